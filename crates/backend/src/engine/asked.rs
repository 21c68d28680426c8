//! A question on its way, with the promise that it is answered once.

use carillon_core::model::{BlockListEdit, DeadLetter, Hashing, OperationId};
use carillon_core::ports::store::private::PrivateElement;
use carillon_core::ports::store::{
    ReadAsk, WriteAsk, accounts, archive, blocking, idempotency, inbox, items, links, nodes, notifications,
    offline, parked, private, roster, vcard, webhooks,
};
use carillon_core::ports::{Answer, Fault, Reply};
use std::hash::BuildHasher;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A question and where its answer goes.
pub(crate) struct Asked<A> {
    pub(crate) ask: A,
    pub(crate) respond: Respond,
    bytes: usize,
    account: Option<u64>,
    is_patient: bool,
}

impl<A: Carries> Asked<A> {
    /// Works out once, before any queue is locked, what the question is counted as.
    pub(crate) fn new(ask: A, respond: Respond) -> Asked<A> {
        let (bytes, account, is_patient) = (ask.bytes(), ask.account(), ask.is_patient());
        Asked { ask, respond, bytes, account, is_patient }
    }
}

impl<A> Asked<A> {
    /// See [`Carries::bytes`].
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// See [`Carries::account`].
    pub(crate) fn account(&self) -> Option<u64> {
        self.account
    }

    /// See [`Carries::is_patient`].
    pub(crate) fn is_patient(&self) -> bool {
        self.is_patient
    }

    /// How much work it is, in units: one for being there, and one for each piece of what it carries.
    pub(crate) fn cost(&self) -> usize {
        1 + self.bytes / UNIT_BYTES
    }
}

/// A write, with the id of its operation where it has one.
pub(crate) struct Write {
    pub(crate) operation: Option<OperationId>,
    pub(crate) ask: WriteAsk,
}

impl From<WriteAsk> for Write {
    fn from(ask: WriteAsk) -> Write {
        Write { operation: None, ask }
    }
}

/// A question that takes memory while it waits.
pub(crate) trait Carries {
    /// What it carries, about, beyond what every question does.
    fn bytes(&self) -> usize;

    /// Whose it is, if it changes what is an account's: a number that is the same for the same account.
    fn account(&self) -> Option<u64>;

    /// Whether no commit is made for it alone for a few milliseconds: nothing is held up by it meanwhile.
    fn is_patient(&self) -> bool {
        false
    }
}

/// A unit of work: what it takes to write so many bytes in rows of a usual size.
const UNIT_BYTES: usize = 256;

/// What a row is counted as beside what is in it.
const ROW_BYTES: usize = 128;

impl Carries for ReadAsk {
    fn bytes(&self) -> usize {
        0
    }

    fn account(&self) -> Option<u64> {
        None
    }
}

impl Carries for Write {
    fn bytes(&self) -> usize {
        match &self.ask {
            WriteAsk::Notifications(notifications::WriteAsk::StoreNotification(asked)) => {
                asked.notification.payload.bytes()
            }
            WriteAsk::Items(items::WriteAsk::Publish(asked)) => asked.item.payload.len(),
            WriteAsk::Offline(offline::WriteAsk::StoreOffline(asked)) => asked.stanza.len(),
            WriteAsk::Idempotency(idempotency::WriteAsk::Remember(asked)) => asked.response.len(),
            WriteAsk::Idempotency(idempotency::WriteAsk::NoteLines(asked)) => size_of_val(&asked.lines[..]),
            WriteAsk::Accounts(accounts::WriteAsk::ImportAccounts(asked)) => {
                asked.accounts.len() * IMPORTED_ACCOUNT_BYTES
            }
            WriteAsk::Webhooks(webhooks::WriteAsk::CommitWebhook(asked)) => {
                asked.letters.iter().map(DeadLetter::bytes).sum()
            }
            WriteAsk::Roster(roster::WriteAsk::ChangeSubscription(asked)) => asked.request.len(),
            WriteAsk::Blocking(blocking::WriteAsk::ChangeBlockList(asked)) => match &asked.edit {
                BlockListEdit::Block(jids) | BlockListEdit::Unblock(jids) => {
                    jids.iter().map(|jid| jid.as_str().len() + ROW_BYTES).sum()
                }
                BlockListEdit::UnblockAll => 0,
            },
            WriteAsk::Roster(roster::WriteAsk::PutContact(asked)) => {
                asked.name.len() + asked.groups.iter().map(|group| group.len()).sum::<usize>()
            }
            WriteAsk::Nodes(nodes::WriteAsk::EditNode(asked)) => asked.edit.bytes(),
            WriteAsk::Parked(parked::WriteAsk::StoreParked(asked)) => asked.group.bytes.len(),
            WriteAsk::Private(private::WriteAsk::StorePrivate(asked)) => {
                let bytes = |element: &PrivateElement| {
                    element.name.len() + element.ns.len() + element.xml.len() + ROW_BYTES
                };
                asked.elements.iter().map(bytes).sum()
            }
            WriteAsk::Vcard(vcard::WriteAsk::StoreVcard(asked)) => asked.xml.len(),
            WriteAsk::Links(links::WriteAsk::CreateLink(asked)) => asked.url.len(),
            WriteAsk::Links(links::WriteAsk::CountClicks(asked)) => asked.clicks.len() * ROW_BYTES,
            WriteAsk::Links(links::WriteAsk::OpenNotifications(asked)) => asked.clicks.len() * ROW_BYTES,
            WriteAsk::Links(links::WriteAsk::PutLinkFile(asked)) => {
                asked.body.as_ref().map_or(0, bytes::Bytes::len)
            }
            WriteAsk::Archive(archive::WriteAsk::KeepMessage(asked)) => asked.stanza.len(),
            WriteAsk::Archive(archive::WriteAsk::SetArchivePreferences(asked)) => {
                let rules = asked.preferences.always.len() + asked.preferences.never.len();
                asked.preferences.bytes() + rules * ROW_BYTES
            }
            ask => ask.load().bytes,
        }
    }

    fn account(&self) -> Option<u64> {
        let (domain, local): (_, &str) = match &self.ask {
            WriteAsk::Roster(roster::WriteAsk::PutContact(asked)) => (asked.domain, &asked.local),
            WriteAsk::Roster(roster::WriteAsk::RemoveContact(asked)) => (asked.domain, &asked.local),
            WriteAsk::Roster(roster::WriteAsk::ChangeSubscription(asked)) => (asked.domain, &asked.local),
            WriteAsk::Blocking(blocking::WriteAsk::ChangeBlockList(asked)) => (asked.domain, &asked.local),
            WriteAsk::Nodes(nodes::WriteAsk::EditNode(asked)) => (asked.domain, &asked.local),
            WriteAsk::Private(private::WriteAsk::StorePrivate(asked)) => (asked.domain, &asked.local),
            WriteAsk::Vcard(vcard::WriteAsk::StoreVcard(asked)) => (asked.domain, &asked.local),
            WriteAsk::Inbox(inbox::WriteAsk::ChangeConversation(asked)) => (asked.domain, &asked.local),
            WriteAsk::Inbox(inbox::WriteAsk::EmptyBin(asked)) => (asked.domain, &asked.local),
            WriteAsk::Archive(archive::WriteAsk::SetArchivePreferences(asked)) => {
                (asked.domain, &asked.local)
            }
            WriteAsk::Archive(archive::WriteAsk::KeepMessage(asked)) => {
                let side = asked.sender.as_ref().or(asked.recipient.as_ref())?;
                (side.domain, &side.local)
            }
            ask => ask.load().account?,
        };
        Some(Hashing::default().hash_one((domain.0, local)))
    }

    /// What was delivered and acknowledged is ended with what comes to be stored next.
    fn is_patient(&self) -> bool {
        matches!(self.ask, WriteAsk::Notifications(notifications::WriteAsk::EndNotifications(_)))
    }
}

/// An account with its keys.
const IMPORTED_ACCOUNT_BYTES: usize = 512;

/// Where an answer goes. One that is dropped unanswered, because a thread of the store panicked, answers with a fault: a thread that
/// had begun a write may have committed it.
pub(crate) struct Respond {
    reply: Option<Reply<Answer>>,
    dropped: Fault,
}

impl Respond {
    /// Where the answer to a read goes.
    pub(crate) fn to_read(reply: Reply<Answer>) -> Respond {
        Respond { reply: Some(reply), dropped: Fault::Broken }
    }

    /// Where the answer to a write goes.
    pub(crate) fn to_write(reply: Reply<Answer>) -> Respond {
        Respond { reply: Some(reply), dropped: Fault::Unknown }
    }

    pub(crate) fn with(mut self, answer: Answer) {
        self.call(answer);
    }

    /// An asker that panics must not take the store along.
    fn call(&mut self, answer: Answer) {
        let Some(reply) = self.reply.take() else { return };
        if catch_unwind(AssertUnwindSafe(|| reply(answer))).is_err() {
            tracing::error!("an asker of the store panicked on its answer");
        }
    }
}

impl Drop for Respond {
    fn drop(&mut self) {
        self.call(Answer::Failed(self.dropped));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_write_that_nobody_answers_is_unknown() {
        for (respond, expected) in
            [(Respond::to_read as fn(_) -> _, Fault::Broken), (Respond::to_write, Fault::Unknown)]
        {
            let (sender, receiver) = channel();
            drop(respond(Box::new(move |answer| drop(sender.send(answer)))));
            assert!(matches!(receiver.recv(), Ok(Answer::Failed(fault)) if fault == expected));
        }
    }
}
