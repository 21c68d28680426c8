//! Messages whose senders gave a time after which they are not to be delivered: when it has come, the store deletes them.

use super::{take_back, xml};
use crate::message::ShardMessage;
use crate::model::ExpiredMessage;
use crate::ports::store::offline::DeleteOffline;
use crate::session::hook::Handling;
use crate::session::{Cx, Sessions};
use crate::shard::Forget;

/// The time of a message is over. Its sender is told once it is deleted, unless a session was given it in time. What the store does not
/// delete now is told of again.
pub(super) fn message(
    message: ShardMessage,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Option<ShardMessage> {
    let ShardMessage::MessageExpired(expired) = message else { return Some(message) };
    let ExpiredMessage { to, message } = *expired;
    let seq = message.seq;
    let (Some(domain), Some(local)) = (cx.shard.domains.named(to.domain()), to.local()) else { return None };
    if cx.features.offline.is_deleting(seq) {
        return None;
    }
    let forget = Forget { domain: domain.id, local: local.into(), seqs: vec![seq] };
    let is_given = sessions.bound_of(to.as_str()).iter().any(|session| session.state.offline.has(seq));
    cx.features.offline.begin_deleting(&forget.seqs);
    let Forget { domain, local, seqs } = forget.clone();
    cx.ask(DeleteOffline { domain, local, seqs }, move |answer, sessions, cx| {
        if answer.is_err() {
            return cx.features.offline.stop_deleting(&forget.seqs);
        }
        take_back(&forget, sessions, cx);
        cx.features.offline.deleted(&forget.seqs);
        if let Some((stanza, at)) = xml::read_plain(&message).zip(message.expires).filter(|_| !is_given)
            && let Some(rules) = cx.pipeline.rules_of(&stanza)
        {
            (rules.ends)(&stanza, Handling::Kept(at), cx);
        }
    });
    None
}
