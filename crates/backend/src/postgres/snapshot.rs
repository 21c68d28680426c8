//! What a read works with: one state of the store.

use super::connection::Connection;
use super::node::Node;
use crate::rows::last::LastItems;

/// One state of the store, which answers the questions that change nothing: a file per noun says how.
pub(super) struct Snapshot<'a> {
    pub(super) db: &'a Connection,
    pub(super) node: &'a Node,
    pub(super) last: &'a LastItems,
}
