//! Accounts that became each other's contacts by an invitation: one commit has changed both rosters, and their homes are told.

use super::Cx;
use crate::message::{AccountMessage, RosterCause};
use crate::model::RosterChange;
use std::sync::Arc;

/// Tells the homes of accounts whose rosters have changed: to each it is as if the other had granted what was asked for.
pub(crate) fn tell(changes: Vec<RosterChange>, cx: &mut Cx<'_>) {
    for change in changes {
        let account = change.account.clone();
        cx.tell_account(
            account,
            AccountMessage::RosterChanged { change: Arc::new(change), cause: RosterCause::Contact },
        );
    }
}
