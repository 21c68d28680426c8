//! A node of a cell: it registers in the PostgreSQL that all share, hears the others over NATS, and moves homes when one comes or goes.
//!
//! ```text
//!  NATS ──Heard::Beat──► the thread ◄──Membership── PostgreSQL, once per second
//!                            │ core::cell::Watch: who lives, who is to be buried, whether this node may act
//!                            └──► Node: homes move, what was with a dead node is given up; what operators see (`operated`)
//! ```

#[cfg(not(all(feature = "nats", feature = "postgres")))]
mod absent;
#[cfg(all(feature = "nats", feature = "postgres"))]
mod adoption;
#[cfg(all(feature = "nats", feature = "postgres"))]
mod operated;
#[cfg(all(feature = "nats", feature = "postgres"))]
mod told;
#[cfg(all(feature = "nats", feature = "postgres"))]
mod watch;

use crate::upgrade::wire::InCell;

/// What the process before left of a node of a cell, as which this one goes on.
pub(crate) struct GoesOn {
    /// The node.
    pub(crate) node: InCell,
    /// Where its bus stopped.
    #[cfg_attr(
        not(all(feature = "nats", feature = "postgres")),
        expect(dead_code, reason = "without the drivers there is no bus to go on with")
    )]
    pub(crate) bus: Vec<u8>,
}

/// A node on its way into its cell: the server is started with what [`Joining::cell`] gives.
#[cfg(all(feature = "nats", feature = "postgres"))]
pub use watch::{Joined, Joining};

/// A binary without the drivers joins no cell.
#[cfg(not(all(feature = "nats", feature = "postgres")))]
pub use absent::{Joined, Joining};
