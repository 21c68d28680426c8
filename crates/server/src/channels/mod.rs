//! What passes between the threads of a node: to a shard by its inbox, and back to those who asked or who watch.

pub(crate) mod hops;
pub(crate) mod inbox;
pub(crate) mod join;
pub(crate) mod replies;
pub(crate) mod taps;
pub(crate) mod watch;
