//! The list that a session chooses for itself (XEP-0016 §2.4).

use super::{blocked, kept, shown};
use crate::error::StanzaError;
use crate::message::Requester;
use crate::session::homes::AtHome;
use crate::session::{Cx, Sessions};
use carillon_wire::stanza::Condition;

/// From now on this list decides for the session alone, or what decides for the account.
pub(super) fn choose(
    requester: Requester,
    name: Option<Box<str>>,
    home: &AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Result<(), StanzaError> {
    let Requester::Session(id) = requester else {
        return Err(StanzaError::new(Condition::NotAllowed).with_text("only a session has an active list"));
    };
    let (lists, blocked) = (kept(home.record), blocked(home.record, cx));
    if name.as_deref().is_some_and(|name| lists.rules_of(name, &blocked).is_none()) {
        return Err(StanzaError::new(Condition::ItemNotFound));
    }
    let before = shown::of_all(home, sessions, cx);
    if let Some(session) = sessions.bound(id) {
        session.state.privacy.choice().active = name;
    }
    shown::tell(&before, home, sessions, cx);
    Ok(())
}
