//! Personal eventing: what is known of an account, and what is kept on a shard.

mod account;
mod shard;

pub use account::Nodes;
pub use shard::LastItems;
