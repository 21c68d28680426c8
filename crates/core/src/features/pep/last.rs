//! A session that wants to know of nodes is given their last items (XEP-0163 §4.3.4): those of its own account and of the contacts whose
//! presence it sees. The store says which of these it may read, for many contacts at once.

use crate::message::AccountMessage;
use crate::model::{AccountId, Contact, DomainId, NodeEvent, RosterChange, SessionId, StanzaKind, Wants};
use crate::ports::Fault;
use crate::ports::store::nodes::{LastNodeItems, LastNodeItemsAnswer};
use crate::session::account_reads;
use crate::session::homes::AtHome;
use crate::session::hook::Direction;
use crate::session::{BoundSession, Cx, Sessions};
use crate::shard::Track;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// Accounts whose items are read at once, and the bytes of their payloads.
const ACCOUNTS_MAX: usize = 64;
const BYTES_MAX: usize = 64 * 1024;

/// What is being read for a session.
#[derive(Clone)]
struct Reading {
    session: SessionId,
    account: AccountId,
    number: u64,
    reader: BareJid,
    wants: Wants,
    of: Arc<[(BareJid, DomainId)]>,
    /// How many of these accounts have been read.
    at: usize,
}

/// It is known now what the client wants.
pub(super) fn wanted(session: &mut BoundSession, cx: &mut Cx<'_>) {
    if !cx.homes.is_empty(session.bare.as_str()) {
        cx.tell_account(session.bare.to_bare(), AccountMessage::Wants(session.id));
    }
}

/// At the account's home: begins with its own nodes and those of the contacts whose presence it gets.
pub(super) fn give(session: SessionId, home: &AtHome<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(of) = sessions.bound(session) else { return };
    let (account, list) = (of.account, cx.pipeline.list_of(of).map(Box::<str>::from));
    let Some(wants) = cx.wants(session).cloned() else { return };
    let own = home.record.pep.iter().any(|node| wants.binary_search(&node.name).is_ok());
    let contacts = home.contacts(|standing| standing.to, cx).into_iter();
    let way = (Direction::In, StanzaKind::Message);
    let hears =
        |jid: &BareJid| cx.pipeline.denies(home.record, way, &jid.to_jid(), list.as_deref()).is_none();
    let contacts = contacts.filter(hears);
    let accounts = own.then(|| home.account.clone()).into_iter().chain(contacts);
    let domains = &cx.shard.domains;
    let reachable =
        |jid: BareJid| domains.reachable(home.account.domain(), jid.domain()).map(|domain| (jid, domain.id));
    let of: Arc<[_]> = accounts.filter(|jid| jid.local().is_some()).filter_map(reachable).collect();
    begin((session, account), wants, of, home, cx);
}

/// The account is given a contact's presence from now on: its sessions that want to know are given what was published before. The
/// contact's home tells them what is published after this change, which both of them have.
pub(super) fn gain(change: &RosterChange, home: &AtHome<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let is_seen = |contact: &Option<Contact>| contact.as_ref().is_some_and(|contact| contact.standing.to);
    if is_seen(&change.was) || !is_seen(&change.is) {
        return;
    }
    let reachable = cx.shard.domains.reachable(home.account.domain(), change.contact.domain());
    let Some(domain) = reachable.map(|domain| domain.id) else { return };
    let contact = change.contact.to_jid();
    let of: Arc<[_]> = [(change.contact.clone(), domain)].into();
    for slot in sessions.of(home.account.as_str()) {
        let Some(session) = sessions.bound_in(slot).filter(|session| session.presence.is_available()) else {
            continue;
        };
        let list = cx.pipeline.list_of(session);
        if cx.pipeline.denies(home.record, (Direction::In, StanzaKind::Message), &contact, list).is_some() {
            continue;
        }
        match cx.wants(session.id).cloned() {
            Some(wants) => begin((session.id, session.account), wants, of.clone(), home, cx),
            None => cx.pipeline.discover.into_iter().for_each(|discover| discover(session, cx)),
        }
    }
}

fn begin(
    (session, account): (SessionId, AccountId),
    wants: Wants,
    of: Arc<[(BareJid, DomainId)]>,
    home: &AtHome<'_>,
    cx: &mut Cx<'_>,
) {
    if !of.is_empty() && !wants.is_empty() {
        let number = cx.features.pep.begin(session);
        ask(Reading { session, account, number, reader: home.account.clone(), wants, of, at: 0 }, cx);
    }
}

fn ask(reading: Reading, cx: &mut Cx<'_>) {
    let part = reading.of.iter().skip(reading.at).take(ACCOUNTS_MAX);
    let of = part.map(|(jid, domain)| (*domain, jid.local().unwrap_or_default().into())).collect();
    let (reader, nodes) = (reading.reader.clone(), reading.wants.clone());
    let by_lists = cx.pipeline.session_list.is_some();
    let question = LastNodeItems { reader, nodes, of, bytes_max: BYTES_MAX, by_lists };
    let (account, session, number) = (reading.account, reading.session, reading.number);
    let begin = move |sessions: Option<&mut Sessions>, cx: &mut Cx<'_>| {
        let is_wanted = sessions.is_none_or(|sessions| sessions.bound(session).is_some())
            && cx.features.pep.goes_on(session, number);
        if is_wanted {
            cx.ask(question, move |answer, sessions, cx| {
                answered(reading, answer, sessions, cx);
                account_reads::end(account, sessions, cx);
            });
        }
        is_wanted
    };
    account_reads::begin(account, session, begin, cx);
}

fn answered(
    mut reading: Reading,
    answer: Result<LastNodeItemsAnswer, Fault>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    if !cx.features.pep.goes_on(reading.session, reading.number) {
        return;
    }
    let session = sessions.bound(reading.session).filter(|session| session.presence.is_available());
    // The store failed: the session gets only what is published from now on.
    let (Some(session), Ok(answer)) = (session, answer) else {
        return cx.features.pep.end(reading.session, reading.number);
    };
    for (place, item) in &answer.items {
        let Some((owner, _)) = reading.of.get(reading.at + *place as usize) else { continue };
        if !cx.features.pep.is_old(session.id, reading.number, owner.as_str(), &item.name) {
            session.deliver(NodeEvent::last(owner, item).to(&session.jid), Track::Nothing, cx);
        }
    }
    reading.at += (answer.accounts as usize).max(1);
    match reading.at < reading.of.len() {
        true => ask(reading, cx),
        false => cx.features.pep.end(reading.session, reading.number),
    }
}
