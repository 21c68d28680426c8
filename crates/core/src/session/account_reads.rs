//! Reads that clients caused and that are not answered yet. An account has so many of them under way at once, in all its sessions; the others
//! begin as those end. What counts is what the store and the shards have in hand: a session that ended gives nothing back until the
//! answer to what it asked has come, so that logging in anew gains nothing.

use super::{Cx, Sessions};
use crate::model::{AccountId, Map, Mono, SessionId};
use carillon_wire::stanza::{IqType, Kind, Stanza};
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
    waiting: VecDeque<Waiting>,
}

/// A read that has not begun.
struct Waiting {
    session: SessionId,
    begin: Box<Begin>,
}

/// Begins a read for a session, which may wait for it no longer. Whether it began.
type Begin = dyn FnOnce(&mut Sessions, &mut Cx<'_>) -> bool + Send;

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Waiting({:?})", self.session)
    }
}

/// A request whose answer comes as a stanza.
struct AwaitedReply {
    account: AccountId,
    since: Mono,
    then: Box<Then>,
}

type Then = dyn FnOnce(Stanza, &mut Sessions, &mut Cx<'_>) + Send;

impl std::fmt::Debug for AwaitedReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AwaitedReply({:?})", self.account)
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
    fn next(&mut self, account: AccountId) -> Option<Waiting> {
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
        self.replies.extract_if(|_, reply| is_lost(reply)).map(|(_, reply)| reply.account).collect()
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
        of.waiting.push_back(Waiting { session, begin });
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

/// A request is sent elsewhere with the id that is returned. Its answer comes to `then`, and to nobody else.
pub(super) fn await_reply(
    account: AccountId,
    then: impl FnOnce(Stanza, &mut Sessions, &mut Cx<'_>) + Send + 'static,
    cx: &mut Cx<'_>,
) -> Box<str> {
    let number = cx.shard.random.number();
    cx.agenda
        .reads
        .replies
        .insert(number, AwaitedReply { account, since: cx.now.mono, then: Box::new(then) });
    format!("{number:016x}").into()
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
    (reply.then)(answer, sessions, cx);
    end(reply.account, sessions, cx);
    None
}

/// What is lost is counted no longer.
pub(crate) fn tidy(sessions: &mut Sessions, cx: &mut Cx<'_>) {
    for account in cx.agenda.reads.lost(cx.now.mono) {
        end(account, sessions, cx);
    }
}
