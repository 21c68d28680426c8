//! What passes, by an account's record: for its sessions by the lists that they have chosen, else by what decides for the account as a whole
//! (XEP-0016 §2.2, XEP-0191).

use crate::feature_state::PerAccount;
use crate::message::AccountMessage;
use crate::model::StanzaKind;
use crate::session::hook::{Denial, Direction, SessionListHook};
use crate::session::pipeline::Pipeline;
use crate::session::{BoundSession, Cx, Sessions};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{Kind, Stanza};
use smallvec::SmallVec;

/// Whether a session of an account has chosen a list of its own.
pub(super) fn decides_for_sessions(account: &BareJid, sessions: &Sessions, pipeline: &Pipeline) -> bool {
    let has_list = |list_of: SessionListHook| {
        sessions.bound_of(account.as_str()).iter().any(|session| list_of(session).is_some())
    };
    pipeline.session_list.is_some_and(has_list)
}

/// Why a message to an account does not pass, if it passes for none of its sessions.
pub(super) fn denial(
    account: &BareJid,
    message: &AccountMessage,
    record: &PerAccount,
    sessions: &Sessions,
    pipeline: &Pipeline,
) -> Option<Denial> {
    let (sender, way) = (message.sender()?, (Direction::In, message.kind()));
    let by_default = pipeline.denies(record, way, sender, None);
    if pipeline.session_list.is_none() {
        return by_default;
    }
    // The server itself is always heard.
    if sender.as_str() == account.domain() {
        return None;
    }
    let sessions = sessions.bound_of(account.as_str());
    let denies = |session: &BoundSession| pipeline.denies(record, way, sender, pipeline.list_of(session));
    if let Some(session) = addressed(message, &sessions) {
        return denies(session);
    }
    // The server answers for the account: none of its sessions decides.
    if matches!(message, AccountMessage::Stanza { stanza, .. } if matches!(stanza.kind, Kind::Iq(_))) {
        return by_default;
    }
    let is_message = way.1 == StanzaKind::Message;
    let takers = sessions.iter().filter(|session| !is_message || session.presence.takes_messages());
    let mut denials = takers.map(|session| denies(session));
    match denials.next() {
        None => by_default,
        Some(first) => denials.try_fold(first?, |_, denial| denial),
    }
}

/// The session that a stanza is addressed to.
fn addressed<'a>(message: &AccountMessage, sessions: &[&'a BoundSession]) -> Option<&'a BoundSession> {
    let AccountMessage::Stanza { stanza, .. } = message else { return None };
    let resource = stanza.to.as_ref()?.resource()?;
    sessions.iter().find(|session| session.jid.resource() == Some(resource)).copied()
}

/// Leaves out the sessions of an account for which a stanza that has come does not pass.
pub(crate) fn retain_hearers(stanza: &Stanza, sessions: &mut SmallVec<[&BoundSession; 4]>, cx: &Cx<'_>) {
    let Some(list_of) = cx.pipeline.session_list else { return };
    if sessions.iter().all(|session| list_of(session).is_none()) {
        return;
    }
    let (Some(from), Some(to)) = (&stanza.from, &stanza.to) else { return };
    if from.bare_str() == to.bare_str() || from.as_str() == to.domain() {
        return;
    }
    let kind = StanzaKind::received(stanza);
    match cx.homes.record(to.bare_str()) {
        Some(record) => sessions.retain(|session| !cx.pipeline.withholds(record, session, kind, from)),
        // The record was dropped meanwhile: without it nothing passes.
        None => sessions.clear(),
    }
}

impl BoundSession {
    /// Why the session does not send a stanza to this address, by its account's record.
    pub(super) fn denial(
        &self,
        stanza: &Stanza,
        to: &Jid,
        record: &PerAccount,
        cx: &Cx<'_>,
    ) -> Option<Denial> {
        let way = (Direction::Out, StanzaKind::sent(stanza));
        cx.pipeline.denies(record, way, to, cx.pipeline.list_of(self))
    }
}
