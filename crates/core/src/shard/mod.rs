//! The state of a shard: the sole owner of its sessions and of the accounts and topics whose home it is.

mod acting;
mod allowances;
mod altered;
mod behind;
mod counters;
mod figures;
mod latency;
mod login_cache;
mod names;
mod offers;
mod pager;
mod per_domain;
mod reads;
mod recent;
mod retries;
mod state;
mod subscribers;
mod throttle;
mod told;
mod track;
mod walks;
mod wheel;

pub use acting::Acting;
pub use allowances::Allowances;
pub use altered::Altered;
pub use behind::Behind;
pub use counters::{Counters, Reasons};
pub use figures::CountedTopics;
pub use latency::Latency;
pub use login_cache::{CachedLogin, Known, LoginCache};
pub use names::Names;
pub use offers::{OfferShape, Offers};
#[cfg(test)]
pub(crate) use pager::IN_FLIGHT_BYTES_MAX;
pub use pager::{Flight, Next, Pager, TURN_BYTES_MAX, Turn};
pub use per_domain::{DomainCounters, PerDomain};
pub use reads::Reads;
pub use recent::Recent;
pub use retries::{End, Forget, Keep, RefusedWrite, Retries};
pub use state::{Member, ShardState};
#[cfg(test)]
pub(crate) use subscribers::IDLE_BYTES_MAX;
pub use subscribers::Subscribers;
pub use throttle::{Throttle, Throttled};
pub use told::Told;
pub use track::{Chat, Fate, Recipients, Track, Tracked};
pub use walks::{PendingFanout, Slice};
pub use wheel::{Deadline, Timer, Wake, Wheel};
