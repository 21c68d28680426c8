//! Reads that clients caused and that are not answered yet. An account has so many of them under way at once, in all its sessions; the others
//! begin as those end. What counts is what the store and the shards have in hand: a session that ended gives nothing back until the
//! answer to what it asked has come, so that logging in anew gains nothing.
//!
//! Requests to homes on other nodes are here, too, whether their clients wait for them or not: where the node of the home is gone, so is
//! the request, or its answer, and the client is told so (RFC 6120 §8.2.3: every request is answered).

use super::{Cx, Sessions};
use crate::command::PendingIq;
use crate::model::{AccountId, Map, Mono, NodeId, Place, SessionId};
use carillon_wire::stanza::{Condition, IqType, Kind, Stanza, StanzaError};
use std::collections::VecDeque;

#[cfg(test)]
mod tests;

/// Reads of one account that are under way at once. Each answer is bounded in bytes by itself: 1 MiB and an item for items, the page or the
/// limit of what is read for the others.
pub(crate) const READS_MAX: u8 = 4;

/// The reads of a shard's accounts.
#[derive(Debug, Default)]
pub(crate) struct AccountReads {
    /// Accounts of which a read is under way, and no others.
    accounts: Map<AccountId, OfAccount>,
    /// Requests that were sent to the home of another account or of a topic, by the numbers that are the ids of their answers.
    replies: Map<u64, AwaitedReply>,
}

/// The reads of one account.
#[derive(Debug, Default)]
struct OfAccount {
    under_way: u8,
    waiting: VecDeque<QueuedRead>,
}

/// A read that has not begun.
struct QueuedRead {
    session: SessionId,
    begin: Box<Begin>,
}

/// Begins a read for a session, which may wait for it no longer. Whether it began.
type Begin = dyn FnOnce(&mut Sessions, &mut Cx<'_>) -> bool + Send;

impl std::fmt::Debug for QueuedRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "QueuedRead({:?})", self.session)
    }
}

/// A request whose answer comes as a stanza.
#[derive(Debug)]
struct AwaitedReply {
    since: Mono,
    /// The node of the home that it was sent to.
    node: NodeId,
    by: By,
}

/// Who awaits the answer.
enum By {
    /// A session, whose input waits behind it: a read of this account.
    Session(AccountId, Box<Then>),
    /// A client that goes on meanwhile.
    Client(PendingIq),
}

/// Takes the answer; none where the node that had to give it is gone.
type Then = dyn FnOnce(Option<Stanza>, &mut Sessions, &mut Cx<'_>) + Send;

impl std::fmt::Debug for By {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            By::Session(account, _) => write!(f, "Session({account:?})"),
            By::Client(iq) => write!(f, "Client({iq:?})"),
        }
    }
}

/// After so long nobody believes that an answer will come, and it is not counted any more: every home answers what reaches it.
const REPLY_LOST_MS: u64 = 600_000;

impl AccountReads {
    /// Whether another read of the account may begin now; then it is counted.
    fn take(&mut self, account: AccountId) -> bool {
        let of = self.accounts.entry(account).or_default();
        let may_begin = of.under_way < READS_MAX && of.waiting.is_empty();
        of.under_way += u8::from(may_begin);
        may_begin
    }

    /// A read has ended: the next one that waits takes its place.
    fn next(&mut self, account: AccountId) -> Option<QueuedRead> {
        let of = self.accounts.get_mut(&account)?;
        if let Some(next) = of.waiting.pop_front() {
            return Some(next);
        }
        of.under_way -= 1;
        if of.under_way == 0 {
            self.accounts.remove(&account);
            if self.accounts.len() * 4 + 64 < self.accounts.capacity() {
                self.accounts.shrink_to(self.accounts.len() * 2);
            }
        }
        None
    }

    /// A session has ended: what it waits for need not begin.
    pub(crate) fn forget(&mut self, account: AccountId, session: SessionId) {
        if let Some(of) = self.accounts.get_mut(&account) {
            of.waiting.retain(|waiting| waiting.session != session);
        }
    }

    /// Answers that never came are not waited for any longer. Their accounts.
    fn lost(&mut self, now: Mono) -> Vec<AccountId> {
        let is_lost = |reply: &AwaitedReply| reply.since.plus(REPLY_LOST_MS) <= now;
        let lost = self.replies.extract_if(|_, reply| is_lost(reply));
        let account = |reply: AwaitedReply| match reply.by {
            By::Session(account, _) => Some(account),
            By::Client(_) => None,
        };
        lost.filter_map(|(_, reply)| account(reply)).collect()
    }
}

/// A read for a session begins, now or when others of its account have ended: `begin` asks, and has [`end`] called with the answer. When it
/// begins later it is told so: then it says whether it is still wanted.
pub(crate) fn begin(
    account: AccountId,
    session: SessionId,
    begin: impl FnOnce(Option<&mut Sessions>, &mut Cx<'_>) -> bool + Send + 'static,
    cx: &mut Cx<'_>,
) {
    if cx.agenda.reads.take(account) {
        if !begin(None, cx) {
            // Nobody waits for its place: it was free.
            cx.agenda.reads.next(account);
        }
    } else if let Some(of) = cx.agenda.reads.accounts.get_mut(&account) {
        let begin = Box::new(move |sessions: &mut Sessions, cx: &mut Cx<'_>| begin(Some(sessions), cx));
        of.waiting.push_back(QueuedRead { session, begin });
    }
}

/// The answer to a read came, whether its session is there or not: the next one begins.
pub(crate) fn end(account: AccountId, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    while let Some(next) = cx.agenda.reads.next(account) {
        if (next.begin)(sessions, cx) {
            return;
        }
    }
}

/// A request is sent to a home on `node` with the id that is returned. Its answer comes to `then`, and to nobody else.
pub(super) fn await_reply(
    account: AccountId,
    node: NodeId,
    then: impl FnOnce(Option<Stanza>, &mut Sessions, &mut Cx<'_>) + Send + 'static,
    cx: &mut Cx<'_>,
) -> Box<str> {
    await_by(node, By::Session(account, Box::new(then)), cx)
}

/// The id of a request to a home on `node`, whose answer is awaited.
fn await_by(node: NodeId, by: By, cx: &mut Cx<'_>) -> Box<str> {
    let number = cx.shard.random.number();
    cx.agenda.reads.replies.insert(number, AwaitedReply { since: cx.now.mono, node, by });
    format!("{number:016x}").into()
}

/// The id with which a request is sent to a home at a place, whose client goes on meanwhile. Where that is another node, it is one by which
/// the answer is known; the client gets its own back.
pub(crate) fn id_elsewhere(iq: &PendingIq, at: Place, cx: &mut Cx<'_>) -> Box<str> {
    if at.node == cx.shard.place.node {
        return iq.id.clone();
    }
    await_by(at.node, By::Client(iq.clone()), cx)
}

/// Nodes are gone, and with them what was sent to homes there, or the answers.
pub(crate) fn nodes_gone(gone: &[NodeId], sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let replies = cx.agenda.reads.replies.extract_if(|_, reply| gone.contains(&reply.node));
    for (_, reply) in replies.collect::<Vec<_>>() {
        match reply.by {
            By::Session(account, then) => {
                then(None, sessions, cx);
                end(account, sessions, cx);
            }
            By::Client(iq) => cx.reply(iq.reply(Err(node_gone()))),
        }
    }
}

/// What a client is told whose request went to a node that is gone.
pub(super) fn node_gone() -> StanzaError {
    StanzaError::new(Condition::RemoteServerTimeout).with_text(
        "the node that had to answer this is gone, and whether it was done is not known; look, or try again",
    )
}

/// The server answers an account: the answer comes back unless somebody waits for it.
pub(crate) fn replied(answer: Stanza, sessions: &mut Sessions, cx: &mut Cx<'_>) -> Option<Stanza> {
    let replies = &mut cx.agenda.reads.replies;
    if replies.is_empty() || !matches!(answer.kind, Kind::Iq(IqType::Result | IqType::Error)) {
        return Some(answer);
    }
    // No client can guess the number of another request.
    let number =
        answer.id.as_deref().filter(|id| id.len() == 16).and_then(|id| u64::from_str_radix(id, 16).ok());
    let Some(reply) = number.and_then(|number| replies.remove(&number)) else { return Some(answer) };
    match reply.by {
        By::Session(account, then) => {
            then(Some(answer), sessions, cx);
            end(account, sessions, cx);
            None
        }
        By::Client(iq) => Some(answer.with_id(iq.id)),
    }
}

/// What is lost is counted no longer.
pub(crate) fn tidy(sessions: &mut Sessions, cx: &mut Cx<'_>) {
    for account in cx.agenda.reads.lost(cx.now.mono) {
        end(account, sessions, cx);
    }
}
