//! Which notifications are with a session of their account, and not acknowledged.

use crate::model::NotificationId;
use crate::session::Sessions;
use carillon_wire::jid::BareJid;

/// Whether a session of the account was given it and has not acknowledged it.
pub(super) fn is_on_its_way(id: NotificationId, account: &BareJid, sessions: &mut Sessions) -> bool {
    sessions.of(account.as_str()).into_iter().any(|slot| {
        let session = sessions.bound_in(slot);
        session.is_some_and(|session| session.state.notifications.in_flight().any(|entry| entry.id == id))
    })
}
