//! What the core needs from the world, as small traits that state a guarantee and not a mechanism.
//! No driver's type crosses them. The conformance suite in `carillon-backend` runs against every implementation.

pub mod bus;
pub mod claims;
mod directory;
pub mod members;
pub mod modules;
pub mod queue;
pub mod session_log;
pub mod store;

pub use crate::sasl::{Derivation, Derived, Hashes, Password};
pub use bus::{Bus, Heard, Subject};
pub use claims::{Claimed, Claims, Policy, Unavailable};
pub use directory::{Computed, Directory};
pub use members::{Member, Members, Membership};
pub use queue::{Depth, Pulled, Queue, QueueFault, Reason, Receipt, Verdict};
pub use session_log::{Left, LogEntry, LogHead, LogHeard, LogHears, SessionLog};
pub use store::{
    Answer, Ask, Fault, Missing, Page, Part, PushHint, Question, Store, StoreHealth, StoreLane, StoreStats,
};

/// Where an answer goes. Called exactly once, from whatever thread has the answer; it must not block.
pub type Reply<T> = Box<dyn FnOnce(T) + Send>;
