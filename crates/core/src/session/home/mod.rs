//! The homes of accounts: what is told to an account comes here as an [`AccountMessage`], and is dealt with in its order, with the account's
//! record at hand.
//!
//! ```text
//!  message ─► is the record here? ─yes─► hooks
//!                └─no─► it waits, and all behind it ─► ReadRecord ─► hooks, one after the other
//! ```
//!
//! A record is read when the first message needs it, and kept while the account has a session; when all records of the shard take too
//! much memory, the one that was read first is dropped, to be read again. An account whose record has never held anything is known by
//! the generation that its login read: nothing is asked for it. Of the record of an absent account, only what it says of the sender is
//! looked up.
//!
//! Every change of a record has the generation before it and the one it made. The home tells its sessions of changes in that order,
//! whatever the order in which the messages come: one that is too early waits for those before it.

mod absent;
mod contacts;
mod filter;
mod nodes;
mod reload;
mod requests;
pub(crate) mod send_as;

pub(crate) use self::filter::retain_hearers;
pub(crate) use self::nodes::node_edited;
use self::reload::begin_reload;
pub(crate) use self::reload::verify;
pub(crate) use self::requests::asked;
use super::context::Work;
use super::homes::{About, AccountRecord, AtHome, Home};
use super::hook::{AnswerOther, AskedHandler, Denial, Flow, IqAnswer, Request};
use super::{BoundSession, Cx, Next, Sessions, Wait, account_reads};
use crate::command::Outcome;
use crate::feature_state::PerAccount;
use crate::home::{HomeKey, Pushed};
use crate::message::{AccountMessage, Addressees, Requester, ShardMessage};
use crate::model::{DomainId, Generation, Place, Record, RecordParts, Settlement, Ticket};
use crate::ports::store::roster::ReadRecord;
use crate::ports::{Answer, Fault, Question};
use crate::shard::Track;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{Condition, IqType, Kind, PresenceType, Stanza, StanzaError};
use std::collections::BTreeMap;

/// A message came for an account whose home this shard is.
pub(crate) fn receive(account: &BareJid, message: AccountMessage, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    if message.is_of_record() {
        cx.shard.accounts.record_changed(account.as_str());
        cx.homes.forget_empty(account);
    }
    // A read that is in flight may return the record as it was before this change.
    let is_of_use = message.is_of_record() && cx.homes.places.get(account).is_some();
    if message.is_for_sessions() && !sessions.has_any(account.as_str()) && !is_of_use {
        return;
    }
    match cx.homes.receive(account, message, sessions.has_any(account.as_str())) {
        Pushed::Now(message) => {
            open(account, message, sessions, cx);
            settle(account, sessions, cx);
        }
        Pushed::Load => absent::read(account, sessions, cx),
        Pushed::Waits => {}
        Pushed::Refused(message) => refuse(message, sessions, cx),
    }
}

/// Gives a message to the features, and then the changes that waited because it had to come first.
fn open(account: &BareJid, message: AccountMessage, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let mut next = Some(message);
    while let Some(message) = next {
        if let AccountMessage::Reload = message {
            return begin_reload(account, cx);
        }
        let Some(home) = cx.homes.places.get_mut(account) else { return };
        if home.state.is_next(&message) {
            give(account, message, sessions, cx);
        } else if home.state.is_late(&message) {
            reload::tell_missed(account, None, vec![message], sessions, cx);
        }
        let Some(home) = cx.homes.places.get_mut(account) else { return };
        home.state.forget_ahead();
        next = home.state.next_early();
    }
    if cx.homes.places.get(account).is_some_and(|home| home.state.is_flooded()) {
        begin_reload(account, cx);
    }
}

/// Gives a message to the features.
fn give(account: &BareJid, message: AccountMessage, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some((domain, local)) = parts_of(account, cx) else { return };
    let Some(home) = cx.homes.places.get_mut(account) else { return };
    let Some((AccountRecord { generation, parts: record }, changes)) = home.record_and_state() else {
        return;
    };
    changes.is_pinned = filter::decides_for_sessions(account, sessions, cx.pipeline);
    if let Some(denial) = send_as::denial(account, &message, record, cx.pipeline) {
        return send_as::deny(message, denial, cx);
    }
    if let Some(denial) = filter::denial(account, &message, record, sessions, cx.pipeline) {
        return deny(account, message, denial, sessions, cx);
    }
    let message = match message {
        AccountMessage::Stanza { stanza, settlement } => {
            let refused = cx.pipeline.refused_rules(&stanza, record);
            return route_or_refuse(*stanza, settlement, refused, cx);
        }
        AccountMessage::Sent { number, stanza } => {
            return send_as::send(account, number, *stanza, sessions, cx);
        }
        message => message,
    };
    let (was, mut record) = (*generation, std::mem::take(record));
    let after = message.generations().map_or(was, |(_, after)| after.max(was));
    // A feature that asks meanwhile whether there is anything in it is told that there is.
    *generation = after;
    let mut at_home = AtHome { account, local, domain, record: &mut record, generation: was };
    match message {
        AccountMessage::Request { requester, stanza } if matches!(stanza.kind, Kind::Iq(_)) => {
            requests::own(requester, &stanza, &at_home, sessions, cx);
        }
        AccountMessage::Asked(stanza) => requests::other(&stanza, &at_home, sessions, cx),
        message => {
            let hooks = &mut cx.pipeline.account_message.iter();
            let left = hooks.try_fold(message, |message, hook| hook(message, &mut at_home, sessions, cx));
            if let Some(AccountMessage::Request { requester, stanza }) = left {
                let error = StanzaError::new(Condition::ServiceUnavailable);
                reply(requester, &stanza, Err(error), sessions, cx);
            }
        }
    }
    if let Some((known, _)) = cx.homes.places.get_mut(account).and_then(Home::record_and_state) {
        known.parts = record;
    }
}

/// The domain and the local part of an account; none if its domain is gone.
pub(super) fn parts_of<'a>(account: &'a BareJid, cx: &Cx<'_>) -> Option<(DomainId, &'a str)> {
    Some((cx.shard.domains.named(account.domain())?.id, account.local()?))
}

/// Refuses a message from somebody whom the account blocks: requests and messages are answered as if the account did not exist,
/// presence is not answered.
fn deny(
    account: &BareJid,
    message: AccountMessage,
    denial: Denial,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let AccountMessage::Stanza { stanza, settlement } = message else { return };
    let handler = match stanza.kind {
        Kind::Iq(_) if stanza.to.as_ref().is_some_and(Jid::is_bare) => requests::first(&stanza, cx.pipeline),
        _ => None,
    };
    match (stanza.kind, handler) {
        (Kind::Presence(_), _) => {}
        (_, Some(AskedHandler { answer: AnswerOther::Now(answer), is_same_for_all: true, .. })) => {
            answer(&stanza, cx);
        }
        (_, Some(_)) => answer_for_nobody(account, &stanza, sessions, cx),
        (_, None) => answer_error(&stanza, &(denial.0)(), settlement, cx),
    }
    cx.settle(settlement);
}

/// Answers a request from an empty record, so that an account that does not exist looks like one that shows nothing.
fn answer_for_nobody(account: &BareJid, stanza: &Stanza, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some((domain, local)) = parts_of(account, cx) else { return };
    let (mut record, generation) = (PerAccount::default(), Generation::default());
    let at_home = AtHome { account, local, domain, record: &mut record, generation };
    requests::other(stanza, &at_home, sessions, cx);
}

/// A stanza passes: it is routed, unless its rules are refused.
fn route_or_refuse(
    stanza: Stanza,
    settlement: Option<Settlement>,
    refused: Option<StanzaError>,
    cx: &mut Cx<'_>,
) {
    let Some(error) = refused else { return cx.route_on(stanza, settlement) };
    answer_error(&stanza, &error, settlement, cx);
    cx.settle(settlement);
}

/// Answers the stanza of another account with an error.
fn answer_error(stanza: &Stanza, error: &StanzaError, settlement: Option<Settlement>, cx: &mut Cx<'_>) {
    if let Some(reply) = stanza.error_reply(error) {
        cx.reply_to(settlement, reply);
    }
}

/// A stanza came for an account, or for one of its sessions: it comes back if it passes at once. Else it is routed
/// when the account's record says that it passes.
pub(crate) fn incoming(
    stanza: Stanza,
    settlement: Option<Settlement>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Option<(Stanza, Option<Settlement>)> {
    let reveals = cx.pipeline.rules_would_reveal(&stanza);
    let Some(to) = stanza.to.as_ref().filter(|_| cx.pipeline.filters() || reveals.is_some()) else {
        return Some((stanza, settlement));
    };
    let is_own = stanza.from.as_ref().is_none_or(|from| from.bare_str() == to.bare_str());
    let is_empty = |account| match sessions.has_any(account) {
        true => cx.homes.is_empty(account),
        false => cx.homes.is_empty_absent(account),
    };
    if is_own {
        return Some((stanza, settlement));
    }
    if is_empty(to.bare_str()) {
        let Some(error) = reveals else { return Some((stanza, settlement)) };
        // Nobody sees the account's presence.
        route_or_refuse(stanza, settlement, Some(error), cx);
        return None;
    }
    let account = to.bare();
    receive(&account, AccountMessage::Stanza { stanza: Box::new(stanza), settlement }, sessions, cx);
    None
}

/// Asks for the record of an account.
fn read(account: &BareJid, cx: &mut Cx<'_>) {
    let parts = cx.pipeline.record_parts();
    ask_for_record(account, parts, About::default(), cx);
}

fn ask_for_record(account: &BareJid, parts: RecordParts, about: About, cx: &mut Cx<'_>) {
    let Some(mut question) = question(account, parts, cx) else { return };
    question.about.clone_from(&about.jids);
    if cx.homes.places.get(account).is_none() {
        return;
    }
    let ticket = cx.ask_for_home(HomeKey::Account(account.clone()), question);
    if let Some(home) = cx.homes.places.get_mut(account) {
        home.begin_load();
        // A read in flight may return the record as it was before messages that were processed since.
        home.forget_asked();
        home.asked(ticket, about);
    }
}

/// The store answered what a home asked it.
pub(crate) fn answered(
    account: &BareJid,
    ticket: Ticket,
    answer: Answer,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let about = cx.homes.places.get_mut(account).and_then(|home| home.take_step(ticket));
    if let Some(about) = about {
        was_read(account, &about, ReadRecord::answer(answer), sessions, cx);
    }
}

fn question(account: &BareJid, parts: RecordParts, cx: &Cx<'_>) -> Option<ReadRecord> {
    let domain = cx.shard.domains.named(account.domain())?.id;
    Some(ReadRecord { domain, local: account.local()?.into(), parts, about: Vec::new() })
}

/// The record was read: what waited for it is dealt with.
fn was_read(
    account: &BareJid,
    about: &About,
    answer: Result<Option<Box<Record>>, Fault>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    match answer {
        Ok(Some(read)) => {
            let Record { generation, .. } = *read;
            let record = unpacked(&read, cx);
            let has_changed = cx.shard.accounts.changed_records.is_marked(account.as_str());
            if generation == Generation::default() && !has_changed && !sessions.has_any(account.as_str()) {
                cx.homes.note_empty(account);
            }
            if !about.jids.is_empty() && generation != Generation::default() {
                let record = AccountRecord { generation, parts: record };
                return absent::was_read(account, about, record, sessions, cx);
            }
            cx.homes.fill(account, AccountRecord { generation, parts: record });
            reload::settle(account, generation, sessions, cx);
            while let Some(message) = cx.homes.places.get_mut(account).and_then(Home::next) {
                open(account, message, sessions, cx);
            }
        }
        // It was removed, and its sessions are ending; or there never was one. Who sends it something is told so by routing.
        Ok(None) => {
            cx.homes.note_empty(account);
            for message in give_up(account, |_| false, cx) {
                match message {
                    AccountMessage::Stanza { stanza, settlement } => {
                        let refused = cx.pipeline.refused_rules(&stanza, &PerAccount::default());
                        route_or_refuse(*stanza, settlement, refused, cx);
                    }
                    AccountMessage::Asked(stanza) => answer_for_nobody(account, &stanza, sessions, cx),
                    // As one is answered that may not see an account (RFC 6121 §4.3.2).
                    AccountMessage::Asks { from, of } => {
                        let answer = Stanza::presence(PresenceType::Unsubscribed);
                        cx.route(answer.with_from(of.bare()).with_to(from));
                    }
                    other => refuse(other, sessions, cx),
                }
            }
        }
        Err(_) => {
            // Notices wait until the record can be read; requests are answered now.
            for message in give_up(account, AccountMessage::can_wait, cx) {
                refuse(message, sessions, cx);
            }
            cx.homes.places.failed(account, cx.now.mono);
        }
    }
    settle(account, sessions, cx);
    let bytes_max = cx.shard.settings.limits.records_bytes / usize::from(cx.shard.shard_count.max(1));
    cx.homes.shrink(bytes_max);
}

/// Takes all messages that wait, but for those that are kept.
fn give_up(account: &BareJid, is_kept: fn(&AccountMessage) -> bool, cx: &mut Cx<'_>) -> Vec<AccountMessage> {
    let Some(home) = cx.homes.places.get_mut(account) else { return Vec::new() };
    home.drop_record();
    home.give_up(is_kept)
}

/// An account in which nobody is interested any more is forgotten.
pub(crate) fn settle(account: &BareJid, sessions: &Sessions, cx: &mut Cx<'_>) {
    cx.homes.settle(account, sessions.has_any(account.as_str()));
}

fn unreadable() -> StanzaError {
    StanzaError::new(Condition::ResourceConstraint)
        .with_text("what is needed to decide on this cannot be read now; try again later")
}

/// Refuses a message because the record cannot be read.
fn refuse(message: AccountMessage, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let error = unreadable();
    match message {
        AccountMessage::Request { requester, stanza } => reply(requester, &stanza, Err(error), sessions, cx),
        AccountMessage::Sent { number, stanza } => {
            reply(Requester::Command(number), &stanza, Err(error), sessions, cx);
        }
        AccountMessage::Stanza { stanza, settlement } => {
            answer_error(&stanza, &error, settlement, cx);
            cx.settle(settlement);
        }
        AccountMessage::Asked(stanza) => answer_error(&stanza, &error, None, cx),
        _ => {}
    }
}

/// Records that could not be read are asked for again.
pub(crate) fn tick(cx: &mut Cx<'_>) {
    if cx.homes.due().is_some_and(|at| at <= cx.now.mono) {
        read_again(cx);
    }
}

/// Retries reads that failed now: the messages that wait for their records are not handed over.
pub(crate) fn read_again(cx: &mut Cx<'_>) {
    for account in cx.homes.places.take_failed() {
        read(&account, cx);
    }
}

/// A request of a session that is decided at its account's home: it goes there as a message. One that only reads is waited for.
pub fn ask(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    if request.stanza.kind == Kind::Iq(IqType::Get) {
        return ask_in_order(session, request, cx);
    }
    let (requester, account) = (Requester::Session(session.id), session.bare.to_bare());
    let stanza = Box::new(request.stanza.clone());
    cx.tell_account(account, AccountMessage::Request { requester, stanza });
    Ok(IqAnswer::Later)
}

/// The same, and the session's input waits for the answer whatever it asks for.
///
/// # Errors
/// None.
pub fn ask_in_order(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    let (requester, account) = (Requester::Session(session.id), session.bare.to_bare());
    let mut stanza = Box::new(request.stanza.clone());
    // It is of the session's own account, whose home is here.
    Ok(IqAnswer::Wait(Wait::reply(cx.shard.place.node, move |id, cx| {
        stanza.id = Some(id);
        cx.tell_account(account, AccountMessage::Request { requester, stanza });
    })))
}

/// Answers a request of one of the account's own sessions with an empty result or an error; a presence only with an error.
pub fn reply(
    requester: Requester,
    request: &Stanza,
    result: Result<(), StanzaError>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let is_iq = matches!(request.kind, Kind::Iq(_));
    let stanza = match result {
        Ok(()) => is_iq.then(|| request.result_reply()),
        Err(error) => request.error_reply(&error),
    };
    match stanza {
        Some(stanza) => answer(requester, stanza, sessions, cx),
        None => send_as::done(requester, cx),
    }
}

/// Whether anybody waits for the answer: none need be made for a session that is gone.
pub fn is_awaited(requester: Requester, sessions: &mut Sessions) -> bool {
    match requester {
        Requester::Session(session) => sessions.bound(session).is_some(),
        Requester::Command(_) => true,
    }
}

/// The same with this answer.
pub fn answer(requester: Requester, answer: Stanza, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    match requester {
        Requester::Session(session) => {
            // The session that asked is charged for the answer as well.
            let bytes = answer.payload.bytes().len();
            let answer = account_reads::replied(answer, sessions, cx);
            let Some(session) = sessions.bound(session) else { return };
            if let Some(answer) = answer {
                session.send(&answer, &Track::Nothing, cx);
            }
            session.charge(bytes, cx);
        }
        Requester::Command(number) => send_as::tell(number, Outcome::Answered(Box::new(answer)), cx),
    }
}

/// What the features know of an account by its record.
fn unpacked(read: &Record, cx: &Cx<'_>) -> PerAccount {
    let mut record = PerAccount::default();
    cx.pipeline.record.iter().for_each(|part| part.give(&mut record, read));
    record
}

impl BoundSession {
    /// Refuses a stanza to somebody to whom the account sends nothing, or lets it pass, perhaps once the record is read.
    pub(super) fn passes(&mut self, stanza: Stanza, cx: &mut Cx<'_>) -> Option<Stanza> {
        let Some(to) = stanza.to.as_ref().filter(|_| cx.pipeline.filters()) else { return Some(stanza) };
        let is_own = to.bare_str() == self.bare.as_str() || to.as_str() == self.bare.domain();
        if is_own || cx.homes.is_empty(self.bare.as_str()) {
            return Some(stanza);
        }
        let Some(record) = cx.homes.record(self.bare.as_str()) else {
            self.wait_for_record(stanza, cx);
            return None;
        };
        match self.denial(&stanza, to, record, cx) {
            None => Some(stanza),
            Some(denial) => {
                self.refuse(&stanza, &(denial.0)(), cx);
                None
            }
        }
    }

    fn wait_for_record(&mut self, stanza: Stanza, cx: &mut Cx<'_>) {
        let (domain, local) = (self.domain, self.bare.local().into());
        let question = ReadRecord { domain, local, parts: cx.pipeline.record_parts(), about: Vec::new() };
        let wait = Wait::ask(question, |session, stanza, answer, cx| {
            let read = answer.ok().flatten().ok_or_else(unreadable)?;
            let record = unpacked(&read, cx);
            let denial = stanza.to.as_ref().and_then(|to| session.denial(stanza, to, &record, cx));
            cx.homes.note(&session.bare, AccountRecord { generation: read.generation, parts: record });
            match denial {
                None => Ok(Flow::Pass),
                Some(denial) => Err((denial.0)()),
            }
        });
        self.wait(stanza, wait, Next::Hook(0), cx);
    }
}

impl Cx<'_> {
    /// Routes a stanza that passes.
    fn route_on(&mut self, stanza: Stanza, settlement: Option<Settlement>) {
        self.agenda.push(Work::Route { stanza: Box::new(stanza), settlement });
    }

    /// Sends a message to the home of an account, which must be one of this node.
    pub fn tell_account(&mut self, account: BareJid, message: AccountMessage) {
        let at = self.shard.directory.account(account.as_str());
        self.post(at, ShardMessage::ForAccounts { to: Addressees::from_iter([account]), message });
    }

    /// Sends a message to the homes of many accounts: one message per shard of this node, which sends it on.
    pub fn tell_accounts(&mut self, accounts: impl Iterator<Item = BareJid>, message: &AccountMessage) {
        let mut places: BTreeMap<Place, Addressees> = BTreeMap::new();
        for account in accounts {
            places.entry(self.shard.directory.account(account.as_str())).or_default().push(account);
        }
        for (place, to) in places {
            self.post(place, ShardMessage::ForAccounts { to, message: message.clone() });
        }
    }
}
