//! Chat messages: to who is there and who is away, between clients of all kinds.

use super::actions::jid;
use super::{ACCOUNTS, Connected, DOMAIN, Program, holds};
use crate::model::{ArchiveFilter, ArchiveStart};
use crate::ports::store::archive::{ArchivePage, ArchivePageAnswer, KeepMessage, KeepMessageAnswer};
use crate::ports::store::offline::{DeleteOffline, StoreOffline, StoreOfflineAnswer};
use crate::ports::store::roster::ReadRecord;
use crate::ports::{Answer, Ask, Fault, Page, Question};
use crate::sim::client::{Got, XmppClient, value};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the chat messages of a program.
#[derive(Default)]
pub(super) struct Chats {
    /// All that were sent, by their numbers.
    all: Vec<Chat>,
    /// Those in the store, by the numbers that it gave them.
    stored: BTreeMap<u64, usize>,
    /// Those in the archives.
    archived: BTreeSet<usize>,
    /// How often it was unknown whether a message was stored, by its account: each time the node looks among the account's messages.
    unsure: BTreeMap<Box<str>, usize>,
    /// Accounts whose records could not be read: what comes for them is refused until they are asked for again.
    unreadable: BTreeSet<Box<str>>,
}

impl Chats {
    /// How many looks among the messages of an account may be under way.
    pub(super) fn looks(&self, local: &str) -> usize {
        self.unsure.get(local).copied().unwrap_or_default()
    }
}

/// A chat message.
struct Chat {
    /// The client that sent it, and how many stanzas and bytes it had sent with this one.
    from: usize,
    stanzas: u32,
    bytes: u64,
    /// The account that it is for.
    to: String,
    /// Which clients it was sent to, since the node started.
    given: Vec<SentChat>,
    /// The server has read it from a client that was there when all had become quiet.
    was_read: bool,
    /// Some client was sent it: if that one did not take it, it comes when that is known.
    was_given: bool,
    /// The sender was told that it was not delivered, or would have been if it were there.
    is_refused: bool,
    /// The node ended while only its memory had it, and its sender had not been told that it was dealt with.
    is_forgotten: bool,
    /// It was in the store, and has been deleted there.
    is_deleted: bool,
    /// The node restarted while it was not settled: its sender repeats it.
    may_come_again: bool,
}

/// A chat message was sent to a client.
#[derive(Clone, Copy, Debug)]
struct SentChat {
    whose: usize,
    /// When, as a number of looks.
    look: u64,
    /// Its place among the stanzas that the client acknowledges, if it does.
    place: Option<u32>,
    /// Whether it came from the store.
    was_stored: bool,
}

/// What happens.
impl Program {
    /// A client sends an account a chat message.
    pub(super) fn chats(&mut self, whose: usize, account: &str) {
        self.says_chat(whose, account, jid(account).as_str());
    }

    /// A client sends several chat messages in a row to one client, at its full address.
    pub(super) fn addresses(&mut self, whose: usize) {
        self.note_available();
        let all = self.clients.iter().enumerate().filter(|(_, connected)| connected.was_available);
        let all: Vec<usize> = all.map(|(whose, _)| whose).collect();
        let addressed = self.dice.pick(&all).and_then(|whose| self.clients[whose].xmpp());
        let address = |client: &XmppClient| Some((client.account.clone(), client.jid.clone()?));
        let Some((account, to)) = addressed.and_then(address) else { return };
        for _ in 0..1 + self.dice.below(4) {
            self.says_chat(whose, &account, &to);
        }
    }

    /// Notes whose presence the server has dealt with. Before, a client is given what is addressed to it, and what waits for its account
    /// comes later.
    fn note_available(&mut self) {
        for at in 0..self.clients.len() {
            let connected = &self.clients[at];
            let link = self.world.connection(connected.link);
            let is_read = link.dealt_with().is_some_and(|bytes| bytes >= link.said());
            self.clients[at].was_available |= is_read && self.is_available(connected);
        }
    }

    /// A client sends a chat message; one with stream management may ask whether it was dealt with.
    fn says_chat(&mut self, whose: usize, account: &str, to: &str) {
        let most = [20, 500, 3000][self.dice.below(3)];
        let (text, number, asks) =
            ("x".repeat(self.dice.below(most)), self.chats.all.len(), self.dice.once_in(2));
        let stanza = format!("<message to='{to}' type='chat' id='c{number}'><body>{text}</body></message>");
        let mut stanzas = None;
        self.says(whose, |client| {
            let stanza = client.stanza(&stanza);
            stanzas = Some(client.sent);
            stanza
        });
        let Some(stanzas) = stanzas else { return };
        let bytes = self.world.connection(self.clients[whose].link).said();
        self.chats.all.push(Chat {
            from: whose,
            stanzas,
            bytes,
            to: account.to_owned(),
            given: Vec::new(),
            was_read: false,
            was_given: false,
            is_refused: false,
            is_forgotten: false,
            is_deleted: false,
            may_come_again: false,
        });
        if asks && self.clients[whose].xmpp().is_some_and(|client| client.kind.is_managed) {
            self.says(whose, |_| "<r xmlns='urn:xmpp:sm:3'/>".to_owned());
        }
    }

    /// The node ended: what was not in the store is forgotten, and with it who was given what. Where the domain's policy is that messages
    /// are durable, this is so only of those that their senders were not told of.
    pub(super) fn forget_chats(&mut self) {
        let stored: Vec<usize> = self.chats.stored.values().copied().collect();
        for (number, chat) in self.chats.all.iter_mut().enumerate() {
            let covered = self.clients[chat.from].xmpp().map_or(0, |client| client.covered);
            let is_promised = self.messages_durable && covered >= chat.stanzas;
            chat.is_forgotten |= !is_promised && !stored.contains(&number);
            chat.given.clear();
        }
    }

    /// The process ends, and the store or another node was too slow for it: what waits for a record, for an archive or for the home of an account is not delivered, and its sender is not told of it, or was told
    /// when it was routed.
    pub(super) fn forget_chats_that_wait(&mut self) {
        let recipient = |asked: &KeepMessage| asked.recipient.as_ref().map(|side| side.local.clone());
        let waited_for = |ask: &Ask| match ReadRecord::of(ask) {
            Some(asked) => Some(asked.local.clone()),
            None => KeepMessage::of(ask).and_then(recipient),
        };
        let mut accounts: Vec<Box<str>> = self.world.disk.under_way().filter_map(waited_for).collect();
        accounts.extend(self.world.sought().iter().filter_map(|account| account.local()).map(Box::from));
        let stored: Vec<usize> = self.chats.stored.values().copied().collect();
        for (number, chat) in self.chats.all.iter_mut().enumerate() {
            let waits = accounts.iter().any(|account| **account == *chat.to);
            let covered = self.clients[chat.from].xmpp().map_or(0, |client| client.covered);
            let is_promised = self.messages_durable && covered >= chat.stanzas;
            chat.is_forgotten |= waits && !is_promised && !chat.was_given && !stored.contains(&number);
        }
    }

    /// The node restarts in order: senders repeat what they were not told of. With something under way at the end, any may come again.
    pub(super) fn chats_go_elsewhere(&mut self, rests: bool) {
        for chat in &mut self.chats.all {
            let covered = self.clients[chat.from].xmpp().map_or(0, |client| client.covered);
            chat.may_come_again |= !rests || covered < chat.stanzas;
        }
    }
}

/// What must hold.
impl Program {
    /// Notes what a write did: messages are stored, refused, deleted.
    pub(super) fn note_chats(&mut self, ask: &Ask, answer: &Answer) {
        if let Some(asked) = KeepMessage::of(ask) {
            let Some(number) = number(&String::from_utf8_lossy(&asked.stanza)) else { return };
            match KeepMessage::answer(answer.clone()) {
                Ok(KeepMessageAnswer::Kept { .. }) => drop(self.chats.archived.insert(number)),
                Ok(KeepMessageAnswer::NotKept) => {}
                // The sender is told so, also where nobody knows.
                Err(_) => self.chats.all[number].is_refused = true,
            }
        } else if let Some(asked) = StoreOffline::of(ask) {
            if let Answer::Failed(Fault::Unknown) = answer {
                *self.chats.unsure.entry(asked.local.clone()).or_default() += 1;
            }
            let Some(number) = number(&String::from_utf8_lossy(&asked.stanza)) else { return };
            match StoreOffline::answer(answer.clone()) {
                Ok(StoreOfflineAnswer::Stored(seq)) => drop(self.chats.stored.insert(seq, number)),
                // It is, and was noted.
                Err(Fault::Unknown) if self.chats.stored.values().any(|stored| *stored == number) => {}
                _ => self.chats.all[number].is_refused = true,
            }
        } else if let Some(asked) = ReadRecord::of(ask) {
            // Those that waited for the record are refused, and those that come before it is asked for again.
            let was_unreadable = match answer {
                Answer::Failed(_) => {
                    self.chats.unreadable.insert(asked.local.clone());
                    true
                }
                _ => self.chats.unreadable.remove(&asked.local),
            };
            if was_unreadable {
                self.may_have_refused(&asked.local);
            }
        } else if let Some(asked) = DeleteOffline::of(ask)
            && DeleteOffline::answer(answer.clone()).is_ok()
        {
            for number in asked.seqs.iter().filter_map(|seq| self.chats.stored.remove(seq)) {
                self.chats.all[number].is_deleted = true;
            }
        }
    }

    /// Messages to an account may have been refused, as far as nobody was given them and they are not stored. Which of them were, their
    /// senders are told if they are there.
    fn may_have_refused(&mut self, account: &str) {
        let stored: Vec<usize> = self.chats.stored.values().copied().collect();
        let waits = |(number, chat): &(usize, &mut Chat)| {
            *chat.to == *account && !chat.was_given && !stored.contains(number)
        };
        self.chats.all.iter_mut().enumerate().filter(waits).for_each(|(_, chat)| chat.is_refused = true);
    }

    /// A client is sent a chat message: one that is for it, that it was not given before, that is not done with, and in the order of
    /// its sender.
    pub(super) fn chat_is_sent(
        &mut self,
        whose: usize,
        text: &str,
        place: Option<u32>,
    ) -> Result<(), String> {
        let Some(number) = number(text) else { return Ok(()) };
        if text.contains(" type='error'") {
            self.chats.all[number].is_refused = true;
            return Ok(());
        }
        let chat = &self.chats.all[number];
        let connected = &mut self.clients[whose];
        holds(connected.is_of(&chat.to), || {
            format!("c{number} for {} was sent to {}", chat.to, connected.name())
        })?;
        if connected.chats_again.remove(&number) {
            let given = SentChat { whose, look: self.looks, place, was_stored: text.contains("<delay") };
            self.chats.all[number].given.push(given);
            return Ok(());
        }
        let is_first = !chat.given.iter().any(|given| given.whose == whose);
        holds(is_first || chat.may_come_again, || format!("c{number} was sent twice to the same client"))?;
        let was_stored = text.contains("<delay");
        // A parked session has what it was given before, too, for its own client.
        let waited = self.mix.recipe().resumes && !was_stored;
        holds(!chat.is_deleted || waited || chat.may_come_again, || {
            format!("c{number} was sent after its deletion was committed")
        })?;
        let before = chat.given.iter().filter(|given| given.look < self.looks);
        let is_done = before.clone().count() > 0 && before.clone().all(|given| self.is_acknowledged(given));
        // Where sessions are parked, one that nobody was sent may have waited with one of them.
        holds(!is_done || self.mix.recipe().resumes, || {
            format!("c{number} was sent again: {:?} have it", chat.given)
        })?;
        let is_newer = |other: &Chat| other.from == chat.from && other.given.iter().any(|g| g.whose == whose);
        let newer = self.chats.all[number + 1..].iter().position(is_newer);
        holds(newer.is_none() || chat.was_given || chat.may_come_again, || {
            format!(
                "c{number} was sent behind a newer one of its sender, c{}",
                number + 1 + newer.unwrap_or(0)
            )
        })?;
        let chat = &mut self.chats.all[number];
        chat.was_given = true;
        chat.given.push(SentChat { whose, look: self.looks, place, was_stored });
        Ok(())
    }

    /// A client resumes its session, and has the first `h` stanzas of it: what else it was given comes again.
    pub(super) fn takes_back_chats(&mut self, whose: usize, h: u32) {
        for (number, chat) in self.chats.all.iter_mut().enumerate() {
            let is_lost =
                |given: &SentChat| given.whose == whose && given.place.is_some_and(|place| place > h);
            if chat.given.iter().any(is_lost) {
                chat.given.retain(|given| !is_lost(given));
                self.clients[whose].chats_again.insert(number);
            }
        }
    }

    /// Whether the server knows that a client has what it was given, or has no reason to give it to another. Of one that acknowledges nothing
    /// it knows that by its TCP when the connection is lost; what the store has it gives to others until then.
    fn is_acknowledged(&self, given: &SentChat) -> bool {
        let client = &self.clients[given.whose];
        match given.place {
            Some(place) => client.acknowledged >= place,
            None => !given.was_stored && (self.is_open(client) || client.had_all),
        }
    }

    /// In the end: what was sent, and the server has dealt with, is at a client, in the store, or refused; and what a client that is
    /// there has is not in the store.
    pub(super) fn check_chats(&mut self) -> Result<(), String> {
        for account in std::mem::take(&mut self.chats.unreadable) {
            self.may_have_refused(&account);
        }
        for (number, chat) in self.chats.all.iter().enumerate() {
            let id = format!("c{number}");
            let is_stored = self.chats.stored.values().any(|stored| *stored == number);
            let mut theirs =
                self.clients.iter().filter(|client| client.is_of(&chat.to) && self.is_open(client));
            let is_due = theirs.any(|client| client.had_chat(&id) || self.is_available(client));
            holds(!is_stored || !is_due, || {
                format!("{id} is in the store, although {} is here: {:?}", chat.to, chat.given)
            })?;
            let may_be_gone = chat.is_refused || chat.is_forgotten || !self.is_taken(chat);
            let has_arrived =
                self.clients.iter().any(|client| client.is_of(&chat.to) && client.had_chat(&id));
            holds(has_arrived || is_stored || may_be_gone, || {
                format!("{id} for {} is lost: {:?}", chat.to, chat.given)
            })?;
        }
        self.check_archives()
    }

    /// Whatever a client has is in the archive of its account, where the domain has archives.
    fn check_archives(&mut self) -> Result<(), String> {
        if !self.archive {
            return Ok(());
        }
        let domain = self.world.domain_id(DOMAIN);
        for account in ACCOUNTS {
            let page = Page { entries: u16::MAX, bytes: usize::MAX };
            let (filter, start) = (ArchiveFilter::default(), ArchiveStart::First);
            let answer = self.world.ask(ArchivePage { domain, local: account.into(), filter, start, page });
            let ArchivePageAnswer::Page { messages, .. } = answer else { continue };
            let ids: Vec<_> = messages.iter().map(|message| message.id).collect();
            holds(ids.is_sorted_by(|a, b| a < b), || format!("the archive of {account} is out of order"))?;
            let found: BTreeSet<usize> = messages
                .iter()
                .filter_map(|message| number(&String::from_utf8_lossy(&message.stanza)))
                .collect();
            for (number, _) in self.chats.all.iter().enumerate().filter(|(_, chat)| chat.to == account) {
                let is_here = found.contains(&number);
                let is_theirs = self.clients.iter().any(|client| client.had_chat(&format!("c{number}")));
                holds(is_here || !is_theirs, || {
                    format!("c{number} for {account} was given and is not in the archive")
                })?;
                let is_archived = self.chats.archived.contains(&number);
                holds(is_here == is_archived, || {
                    format!("c{number} for {account}: archived {is_archived}, found {is_here}")
                })?;
            }
        }
        Ok(())
    }

    /// All is quiet: what the server has read from the clients that are there, it has dealt with.
    pub(super) fn note_read(&mut self) {
        for chat in &mut self.chats.all {
            let link = self.world.connection(self.clients[chat.from].link);
            chat.was_read = link.is_open() && link.dealt_with().is_some_and(|bytes| bytes >= chat.bytes);
        }
    }

    /// Whether the server has dealt with a message: it has told its sender so, or has read it.
    fn is_taken(&self, chat: &Chat) -> bool {
        let covered = self.clients[chat.from].xmpp().map_or(0, |client| client.covered);
        covered >= chat.stanzas || chat.was_read
    }

    /// How many the server has dealt with and not refused, and how many of these a client has.
    pub(super) fn count_chats(&self) -> (u64, u64) {
        let chats = self.chats.all.iter().enumerate();
        let taken = chats.filter(|(_, chat)| self.is_taken(chat) && !chat.is_refused);
        let had = |number: usize| self.clients.iter().any(|client| client.had_chat(&format!("c{number}")));
        let arrived: Vec<bool> = taken.map(|(number, _)| had(number)).collect();
        (arrived.len() as u64, arrived.iter().filter(|arrived| **arrived).count() as u64)
    }

    /// Those that wait for an account.
    pub(super) fn waiting_chats(&self, account: &str) -> Vec<String> {
        let numbers = self.chats.stored.values().filter(|number| self.chats.all[**number].to == account);
        numbers.map(|number| format!("c{number}")).collect()
    }
}

impl Connected {
    pub(super) fn had_chat(&self, wanted: &str) -> bool {
        self.got().iter().any(|got| matches!(got, Got::Chat { id } if id == wanted))
    }
}

/// The number of a chat message.
pub(super) fn number(text: &str) -> Option<usize> {
    value(text, " id='c").filter(|_| text.starts_with("<message")).and_then(|number| number.parse().ok())
}
