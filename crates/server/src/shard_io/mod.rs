//! Everything a shard owns besides its core: the connections, the buffers, and the ways to other threads. Carrying out an
//! effect never calls the core: what the core must hear of is noted as an [`Upcall`] and told when the effects are done.

mod closing;
mod deferred;
mod hops;
mod outboxes;
mod quic;
mod resources;
mod upcall;
mod waiting;

pub(crate) use closing::GOING_AWAY;
pub(crate) use deferred::Deferred;
pub(crate) use outboxes::Outboxes;
pub(crate) use quic::QuicStep;
pub(crate) use resources::QueuedBytes;
pub(crate) use resources::{Ready, Scratch, ShardIo, conn_of, special};
pub(crate) use upcall::Upcall;
