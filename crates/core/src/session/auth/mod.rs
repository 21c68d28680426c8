//! Authentication, from `<auth/>` or `<authenticate/>` to an [`Authenticated`].
//!
//! Two profiles of SASL, in files of the same names: `classic` (RFC 6120 §6, then a new stream and the resource binding of §7)
//! and `sasl2` (XEP-0388, with Bind 2, XEP-0386, inline). `mod.rs` reads the client's first element, `success.rs` tells it of its
//! success, `bind.rs` chooses its resource. Below them, and knowing neither, is `exchange`: who the client says it is, and how
//! SCRAM and PLAIN prove it.
//!
//! ```text
//! Authenticating ─first message─► Claimed ─(moves to the account's home)─► Asking ─identity─► SCRAM: Authenticating ─┐
//!        ▲                                                                   └─► PLAIN: Deriving ────────────────────┤
//!        └────────────────────────────────── failure ◄──────────────────────────────────────────────────── proof ◄───┤
//!                                     Restarting, Binding or Loading ◄─ success ◄────────────────────────────────────┘
//! ```
//!
//! Only this module can make an [`Authenticated`]: whoever holds one knows that the client proved it.

mod authenticating;
mod claimant;
mod claimed;
mod classic;
mod exchange;
mod greeting;
pub mod offer;
mod profile;
mod proven;
mod proving;
mod refusal;
mod sasl2;
mod waiting;

pub use authenticating::Authenticating;
pub use classic::{Binding, Restarting};
pub use greeting::Greeting;
pub(crate) use greeting::Success;
pub use proven::{Authenticated, Proved};
pub use proving::{KnownAccount, Proven, Proving};
pub use waiting::{Asking, Deriving};
