//! What follows when the store has edited a node of an account.

use crate::message::AccountMessage;
use crate::model::{NodeChange, NodeEdit, NodeEvent};
use crate::session::Cx;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// A node is another one, or has other items: its account's home learns it, and who wants to know.
pub(crate) fn node_edited(change: &Arc<NodeChange>, edit: &NodeEdit, account: BareJid, cx: &mut Cx<'_>) {
    if change.before != change.after {
        cx.tell_account(account.clone(), AccountMessage::NodesChanged(change.clone()));
    }
    let node = change.is.as_ref().or(change.was.as_ref());
    if let (Some(event), Some(node)) = (NodeEvent::of(change, edit), node) {
        let access = node.config.access_model;
        cx.tell_account(
            account,
            AccountMessage::Published { event: Arc::new(event), access, at: change.after },
        );
    }
}
