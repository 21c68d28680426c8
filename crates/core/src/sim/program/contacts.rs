//! Contacts: accounts ask for each other's presence, grant it, take it back, and edit their rosters.

use super::actions::jid;
use super::{ACCOUNTS, Connected, DOMAIN, Program, holds};
use crate::model::{Contact, RecordParts, Standing};
use crate::ports::Ask;
use crate::ports::store::WriteAsk;
use crate::ports::store::roster::ReadRecord;
use crate::sim::client::{XmppClient, bare, described};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the contacts of a program.
#[derive(Default)]
pub(super) struct Rosters {
    /// Who could see whose presence at any time.
    could_see: BTreeSet<(String, String)>,
    /// How many requests were sent.
    requests: u64,
}

/// What happens.
impl Program {
    /// A client says something about the subscriptions between its account and another one.
    pub(super) fn befriends(&mut self, whose: usize, other: &str) {
        let said = ["subscribe", "subscribe", "subscribed", "subscribed", "unsubscribe", "unsubscribed"];
        let what = said[self.dice.below(said.len())];
        let stanza = format!("<presence type='{what}' to='{}'/>", jid(other));
        self.says(whose, |client| client.stanza(&stanza));
    }

    /// A client asks for its roster.
    pub(super) fn asks_for_roster(&mut self, whose: usize) {
        self.asks_of_roster(whose, "get", "");
    }

    /// A client gives a contact a name, or removes it.
    pub(super) fn edits_roster(&mut self, whose: usize, other: &str) {
        let attribute = match self.dice.below(3) {
            0 => "subscription='remove'".to_owned(),
            _ => format!("name='n{}'", self.dice.below(5)),
        };
        self.asks_of_roster(whose, "set", &format!("<item jid='{}' {attribute}/>", jid(other)));
    }

    fn asks_of_roster(&mut self, whose: usize, kind: &str, item: &str) {
        self.rosters.requests += 1;
        let id = format!("R{}", self.rosters.requests);
        let request =
            format!("<iq type='{kind}' id='{id}'><query xmlns='jabber:iq:roster'>{item}</query></iq>");
        self.says(whose, |client| {
            client.requests.push(id);
            client.stanza(&request)
        });
    }
}

/// What must hold.
impl Program {
    /// Notes who may see whose presence from a commit on.
    pub(super) fn note_rosters(&mut self, ask: &Ask) {
        if !matches!(ask, Ask::Write(WriteAsk::Roster(_)) | Ask::Once(_, WriteAsk::Roster(_))) {
            return;
        }
        for account in ACCOUNTS {
            let seen = self.roster(account).into_iter().filter(|(_, contact)| contact.standing.to);
            self.rosters.could_see.extend(seen.map(|(contact, _)| (account.to_owned(), contact)));
        }
    }

    /// Nobody is given the presence of somebody that they could never see.
    pub(super) fn check_presences(&mut self) -> Result<(), String> {
        for connected in &mut self.clients {
            let super::Client::Xmpp(client) = &mut connected.client else { continue };
            for from in std::mem::take(&mut client.contacts.new) {
                let other = bare(&from).split('@').next().unwrap_or_default();
                let pair = (client.account.clone(), other.to_owned());
                holds(other == client.account || self.rosters.could_see.contains(&pair), || {
                    format!("{} was given the presence of {from}", client.account)
                })?;
            }
        }
        Ok(())
    }

    /// In the end: both sides of each subscription agree, clients know the roster that is in the store, and see those who are there
    /// and whom they may see.
    pub(super) fn check_rosters(&mut self) -> Result<(), String> {
        let rosters: BTreeMap<&str, BTreeMap<String, Contact>> =
            ACCOUNTS.into_iter().map(|account| (account, self.roster(account))).collect();
        let standing = |of: &str, other: &str| -> Standing {
            rosters[of].get(other).map_or(Standing::default(), |contact| contact.standing)
        };
        for (one, other) in ACCOUNTS.into_iter().flat_map(|one| ACCOUNTS.map(|other| (one, other))) {
            let (own, theirs) = (standing(one, other), standing(other, one));
            holds(own.to == theirs.from && own.pending_out == theirs.pending_in, || {
                format!("{one} has {own:?} of {other}, who has {theirs:?}")
            })?;
        }
        let there = self.clients.iter().filter(|client| self.is_available(client));
        for client in there.filter_map(Connected::xmpp) {
            self.check_contacts(client, &rosters[&*client.account])?;
        }
        Ok(())
    }

    fn check_contacts(&self, client: &XmppClient, roster: &BTreeMap<String, Contact>) -> Result<(), String> {
        if let Some((_, known)) = &client.contacts.roster {
            let listed = roster.iter().filter(|(_, contact)| contact.is_listed);
            let stored: BTreeMap<String, String> =
                listed.map(|(local, contact)| (jid(local).to_string(), about(contact))).collect();
            holds(*known == stored, || {
                format!("{client:?} was told {known:?}, and in the store is {stored:?}")
            })?;
        }
        let is_seen = |other: &&Connected| {
            let account = other.xmpp().map_or("", |other| &other.account);
            account != client.account && roster.get(account).is_some_and(|contact| contact.standing.to)
        };
        let others = self.clients.iter().filter(|other| self.is_available(other)).filter(is_seen);
        let expected: BTreeSet<&str> =
            others.filter_map(|other| other.xmpp().and_then(|other| other.jid.as_deref())).collect();
        let own = jid(&client.account).to_string();
        let seen: BTreeSet<&str> =
            client.contacts.here.iter().filter(|jid| bare(jid) != own).map(String::as_str).collect();
        holds(seen == expected, || {
            format!("{} ({:?}) sees {seen:?} and not {expected:?}", client.account, client.jid)
        })
    }

    /// The roster of an account in the store, by the names of its contacts.
    pub(super) fn roster(&mut self, account: &str) -> BTreeMap<String, Contact> {
        let domain = self.world.domain_id(DOMAIN);
        let parts = RecordParts { roster: true, ..RecordParts::NONE };
        let record = self.world.ask(ReadRecord { domain, local: account.into(), parts, about: Vec::new() });
        let contacts = record.map(|record| record.roster.contacts).unwrap_or_default();
        let named = |contact: Contact| (contact.jid.local().unwrap_or_default().to_owned(), contact);
        contacts.into_iter().map(named).collect()
    }
}

/// As a client is told.
fn about(contact: &Contact) -> String {
    let Standing { to, from, pending_out, .. } = contact.standing;
    let subscription = match (to, from) {
        (true, true) => "both",
        (true, false) => "to",
        (false, true) => "from",
        (false, false) => "none",
    };
    described(subscription, pending_out, &contact.name)
}
