//! Listeners: each shard has its own, so that the kernel spreads the connections over the shards.

mod accept;
mod admission;
mod bind;
mod descriptors;
mod inherited;
pub(crate) mod proxies;
mod refused;
mod service;
#[cfg(test)]
mod tests;

pub use admission::Bounds;
pub use bind::{BindError, Ports};
pub use inherited::ListenerKind;

pub(crate) use accept::{Accepted, Listener, SpareDescriptor};
pub(crate) use admission::{Admission, Permit, Refusal};
pub(crate) use bind::{bind, bind_quic};
pub(crate) use descriptors::DescriptorLimit;
pub(crate) use inherited::Inherited;
pub(crate) use refused::RefusedConns;
pub(crate) use service::{ListenConfig, PortConfig, Service};
