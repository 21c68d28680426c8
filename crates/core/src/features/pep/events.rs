//! What happens on a node is told to those who may read it and want to know (XEP-0163 §4).

use crate::message::AccountMessage;
use crate::model::{Access, NodeEvent, Reader, StanzaKind};
use crate::session::homes::AtHome;
use crate::session::hook::Direction;
use crate::session::{Cx, Sessions};
use crate::shard::Track;
use std::sync::Arc;

/// At the home of the account whose node it is: one message for the home of each contact, the account's own sessions are here.
pub(super) fn tell(
    event: &Arc<NodeEvent>,
    access: Access,
    home: &AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    deliver(event, home, sessions, cx);
    let mut readers = home.contacts(|standing| access.tells(Reader::Other(standing)), cx);
    readers.retain(|jid| {
        jid.local().is_some()
            && cx.shard.domains.reachable(home.account.domain(), jid.domain()).is_some()
            && cx
                .pipeline
                .denies(home.record, (Direction::Out, StanzaKind::Other), &jid.to_jid(), None)
                .is_none()
    });
    cx.tell_accounts(readers.into_iter(), &AccountMessage::Event(event.clone()));
}

/// At the home of an account that may know of it.
pub(super) fn deliver(event: &NodeEvent, home: &AtHome<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let is_own = event.owner.as_str() == home.account.as_str();
    for slot in sessions.of(home.account.as_str()) {
        let Some(session) = sessions.bound_in(slot).filter(|session| session.presence.is_available()) else {
            continue;
        };
        if !is_own && cx.pipeline.withholds(home.record, session, StanzaKind::Message, &event.owner) {
            continue;
        }
        match cx.wants(session.id) {
            Some(wants) if wants.binary_search(&event.node).is_ok() => {
                session.deliver(event.to(&session.jid), Track::Nothing, cx);
                cx.features.pep.tell(session.id, &event.owner, &event.node);
            }
            Some(_) => {}
            // It is given the last item when that is known.
            None => cx.pipeline.discover.into_iter().for_each(|discover| discover(session, cx)),
        }
    }
}
