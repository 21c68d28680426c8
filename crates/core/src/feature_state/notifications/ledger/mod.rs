//! What a shard knows of the notifications of its accounts while they are on their way: one answer to whether one may be given now.
//!
//! The store holds a kept notification until its end is committed, and may hand it out until then, or in an answer that was asked for
//! before. So four things are known of one here: its trace, if it was given or is not in the store; whether its end is being written;
//! whether it ended while something is being read; and when it was given, until the store is told.

mod hops;
mod sent;
mod traces;

use super::open_broadcasts::Broadcasts;
use crate::feature_state::Shared;
use crate::model::{Mono, NotificationId, Set, Trace, UnixMs};
use crate::shard::Reads;
use carillon_wire::jid::BareJid;
use hops::Hops;
use sent::Sent;
use traces::Traces;

/// What a shard knows of notifications that are on their way.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Of the recent past, and not in the store or newer than there.
    traces: Traces,
    /// Those whose end is not committed.
    ending: Set<NotificationId>,
    /// Questions whose answers may hold what ended meanwhile.
    reads: Reads<NotificationId>,
    /// Kept ones that were given lately.
    sent: Sent,
    /// Those that are followed.
    pub(crate) hops: Hops,
    /// Broadcasts that are open.
    pub(crate) broadcasts: Broadcasts,
}

/// To whom a notification is about to be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recipient {
    /// All sessions of its account: it was stored just now.
    Account,
    /// A session that asked the store for what waits; others may have it.
    Session,
}

/// Why a notification is not given now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withheld {
    /// It has ended.
    Ended,
    /// A session of its account was given it, from the store.
    Given,
    /// Its end is being written.
    Ending,
    /// It has expired; the store ends it.
    Expired,
}

impl Ledger {
    /// Whether a notification that the store has, or had when it was asked, may be given now.
    pub(crate) fn may_be_given(
        &self,
        (id, expires): (NotificationId, Option<UnixMs>),
        to: Recipient,
        now: UnixMs,
    ) -> Result<(), Withheld> {
        if self.reads.has_ended(id) {
            return Err(Withheld::Ended);
        }
        if to == Recipient::Account && self.traces.find(id).is_some() {
            return Err(Withheld::Given);
        }
        if self.ending.contains(&id) {
            return Err(Withheld::Ending);
        }
        match expires {
            Some(expires) if expires <= now => Err(Withheld::Expired),
            _ => Ok(()),
        }
    }

    /// The trace of a notification, if it is here.
    pub(crate) fn trace(&self, id: NotificationId) -> Option<&Trace> {
        self.traces.find(id)
    }

    /// The trace of one that was given and whose end is not being written.
    pub(crate) fn open_trace(&self, id: NotificationId) -> Option<&Trace> {
        self.traces.find(id).filter(|_| !self.ending.contains(&id))
    }

    /// The traces of the newest notifications that are not kept, newest first.
    pub(crate) fn unkept(&self) -> impl Iterator<Item = &Trace> {
        self.traces.unkept()
    }

    /// Keeps a trace, or its newer state, and forgets others while all together take more than `bytes_max`.
    pub(crate) fn put(&mut self, trace: Trace, bytes_max: usize) {
        self.traces.put(trace, bytes_max);
    }

    /// Ends one that the store does not have, unless it has ended before. Returns the ended trace.
    pub(crate) fn end_unkept(&mut self, id: NotificationId, end: impl FnOnce(&mut Trace)) -> Option<Trace> {
        self.traces.end(id, end)
    }

    /// The store has its trace from now on.
    pub(crate) fn forget_trace(&mut self, id: NotificationId) {
        self.traces.forget(id);
    }

    /// Takes out traces that go on in another process, of about so many bytes: those that have not ended, or those that have.
    pub(crate) fn take_traces(&mut self, have_ended: bool, bytes_max: usize) -> Vec<Trace> {
        match have_ended {
            false => self.traces.take_open(bytes_max),
            true => self.traces.take_ended(bytes_max),
        }
    }

    /// Takes out the traces of an account, which is at home elsewhere from now on.
    pub(crate) fn take_traces_of(&mut self, account: &BareJid) -> Vec<Trace> {
        self.traces.take_of(account)
    }

    /// The same for many.
    pub(crate) fn take_traces_where(&mut self, is_wanted: impl Fn(&BareJid) -> bool) -> Vec<Trace> {
        self.traces.take_where(is_wanted)
    }

    /// The store is asked to end a notification; false if it is already.
    pub(crate) fn begin_end(&mut self, id: NotificationId) -> bool {
        self.ending.insert(id)
    }

    /// It answered, or is not asked again.
    pub(crate) fn stop_end(&mut self, id: NotificationId) {
        self.ending.remove(&id);
    }

    /// Whether its end is being written.
    pub(crate) fn is_ending(&self, id: NotificationId) -> bool {
        self.ending.contains(&id)
    }

    /// The notifications of one bucket whose end is being written.
    pub(crate) fn ending(&self, bucket: u16) -> impl Iterator<Item = NotificationId> {
        self.ending.iter().copied().filter(move |id| id.bucket() == bucket)
    }

    /// The end of a notification is committed: it is not given again, and the store has its trace. What was known of it here.
    pub(crate) fn ended(&mut self, id: NotificationId) -> Option<Trace> {
        self.reads.note_ended(id);
        self.traces.forget(id)
    }

    /// The end of a notification may be committed: an answer that was asked for before does not give it.
    pub(crate) fn may_have_ended(&mut self, id: NotificationId) {
        self.reads.note_ended(id);
    }

    /// The questions whose answers may hold what ended meanwhile.
    pub(crate) fn reads(&mut self) -> &mut Reads<NotificationId> {
        &mut self.reads
    }

    /// A kept one was given: the store is told after a while.
    pub(crate) fn note_sent(&mut self, id: NotificationId, at: UnixMs, now: Mono) {
        self.sent.note(id, at, now);
    }

    /// Takes those of which the store is to be told now that they were given, and when: all that have not ended.
    pub(crate) fn take_sent(&mut self, now: Mono) -> Vec<(NotificationId, UnixMs)> {
        let mut due = self.sent.take_due(now);
        due.retain(|(id, _)| self.open_trace(*id).is_some());
        due
    }
}

impl Shared for Ledger {
    /// When the store is to be told what was given.
    fn due(&self) -> Option<Mono> {
        [self.sent.due(), self.broadcasts.next_wake()].into_iter().flatten().min()
    }

    fn tidy(&mut self) {
        if self.ending.capacity() > 4 * self.ending.len() + 64 {
            self.ending.shrink_to_fit();
        }
        self.broadcasts.tidy();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Audience, DomainId, Notification, Payload, Priority};
    use carillon_wire::jid::BareJid;

    const ID: NotificationId = NotificationId(7);
    const NOW: UnixMs = UnixMs(1000);

    fn asked(ledger: &Ledger, to: Recipient) -> Result<(), Withheld> {
        ledger.may_be_given((ID, None), to, NOW)
    }

    fn trace() -> Trace {
        Trace::of(&Notification {
            id: ID,
            domain: DomainId(1),
            to: BareJid::new("alice@localhost").expect("a JID"),
            audience: Audience::Always,
            priority: Priority::Normal,
            expires: None,
            collapse_key: None,
            key: None,
            payload: Payload::Json("1".into()),
            accepted: UnixMs(0),
            send_at: None,
        })
    }

    #[test]
    fn one_that_is_ending_or_has_ended_is_given_to_nobody() {
        let mut ledger = Ledger::default();
        assert_eq!(asked(&ledger, Recipient::Session), Ok(()));
        let read = ledger.reads().begin();
        assert!(ledger.begin_end(ID) && !ledger.begin_end(ID), "that is one end");
        assert_eq!(asked(&ledger, Recipient::Session), Err(Withheld::Ending));
        assert_eq!(ledger.ending(ID.bucket()).collect::<Vec<_>>(), [ID]);
        ledger.stop_end(ID);
        ledger.ended(ID);
        for to in [Recipient::Account, Recipient::Session] {
            assert_eq!(asked(&ledger, to), Err(Withheld::Ended), "the answer may hold it still");
        }
        ledger.reads().end(read);
        assert_eq!(asked(&ledger, Recipient::Session), Ok(()), "no answer can");
    }

    #[test]
    fn one_that_a_session_has_is_given_to_those_that_ask() {
        let mut ledger = Ledger::default();
        ledger.put(trace(), usize::MAX);
        assert_eq!(asked(&ledger, Recipient::Account), Err(Withheld::Given));
        assert_eq!(asked(&ledger, Recipient::Session), Ok(()));
        let due = Some(NOW);
        let expired = ledger.may_be_given((ID, due), Recipient::Session, NOW);
        assert_eq!(expired, Err(Withheld::Expired));
        assert!(ledger.may_be_given((ID, due), Recipient::Session, UnixMs(999)).is_ok());
    }

    #[test]
    fn the_store_is_told_of_those_that_have_not_ended() {
        let mut ledger = Ledger::default();
        for (n, ends) in [(7, false), (8, true), (9, false)] {
            let id = NotificationId(n);
            ledger.put(Trace { id, ..trace() }, usize::MAX);
            ledger.note_sent(id, NOW, Mono(0));
            if ends {
                ledger.begin_end(id);
            }
        }
        ledger.ended(NotificationId(9));
        let due = ledger.due().expect("some are noted");
        assert_eq!(ledger.take_sent(due), [(ID, NOW)]);
        assert_eq!(ledger.due(), None);
    }
}
