//! The state of a shard: the sole owner of its sessions and of the accounts and topics whose home it is.

mod accounts;
mod barriers;
mod behind;
mod claims;
mod counters;
mod figures;
mod heavy;
mod latency;
mod matches;
mod modules;
mod names;
mod offers;
mod pager;
mod per_domain;
mod quotas;
mod reads;
mod retries;
mod send_as;
mod state;
mod subscribers;
mod throttle;
mod told;
mod track;
mod walks;
mod wheel;

pub use accounts::{Accounts, Allowances, Altered, CachedLogin, Known, LoginCache, Recent};
pub(crate) use barriers::Barriers;
pub use behind::Behind;
pub use claims::Claims;
pub(crate) use claims::{Waiting, Whereabouts, Why};
pub use counters::{Counters, Reasons};
pub use figures::CountedTopics;
pub use heavy::{Heavy, HeavyCount};
pub use latency::Latency;
pub use matches::MatchFigures;
pub use modules::{ModuleFigures, ModuleLine, ModuleStanding};
pub use names::Names;
pub use offers::{OfferShape, Offers};
#[cfg(test)]
pub(crate) use pager::IN_FLIGHT_BYTES_MAX;
pub use pager::{Flight, Next, Pager, TURN_BYTES_MAX, Turn};
pub use per_domain::{DomainCounters, PerDomain};
pub use quotas::Quotas;
pub use reads::Reads;
pub use retries::{End, Forget, Keep, RefusedWrite, Retries};
pub use send_as::SendAs;
pub use state::{Member, ShardState};
#[cfg(test)]
pub(crate) use subscribers::IDLE_BYTES_MAX;
pub use subscribers::Subscribers;
pub use throttle::{Throttle, Throttled};
pub use told::Told;
pub use track::{Chat, Fate, Recipients, Track, Tracked};
pub use walks::{PendingFanout, Slice};
pub use wheel::{Deadline, Timer, Wake, Wheel};
