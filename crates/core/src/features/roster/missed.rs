//! Changes of a roster of which the account's sessions were not told.

use crate::feature_state::PerAccount;
use crate::feature_state::roster::{Contacts, PackedContact};
use crate::message::{AccountMessage, RosterCause};
use crate::model::{Contact, Map, RosterChange};
use crate::session::homes::AtHome;
use carillon_wire::jid::BareJid;
use std::sync::Arc;

/// Says how the roster is now of each contact of which it said something else.
pub(super) fn missed(
    was: Option<&PerAccount>,
    messages: &[AccountMessage],
    home: &AtHome<'_>,
) -> Vec<AccountMessage> {
    let is = by_address(&home.record.roster);
    let mut missed = Vec::new();
    let mut say = |jid: &BareJid, was: Option<Contact>, cause| {
        let is = is.get(jid.as_str()).and_then(PackedContact::contact);
        if was != is {
            let (account, after) = (home.account.clone(), home.record.roster.version());
            let change = RosterChange { account, before: after, after, contact: jid.clone(), was, is };
            missed.push(AccountMessage::RosterChanged { change: Arc::new(change), cause });
        }
    };
    for message in messages {
        if let AccountMessage::RosterChanged { change, cause } = message {
            say(&change.contact, change.was.clone(), *cause);
        }
    }
    let Some(was) = was.map(|was| by_address(&was.roster)) else { return missed };
    let gone = was.values().filter(|entry| !is.contains_key(entry.jid));
    let other = is.values().filter(|entry| was.get(entry.jid).is_none_or(|was| was != *entry));
    let mut differ: Vec<&PackedContact<'_>> = gone.chain(other).collect();
    differ.sort_by_key(|entry| entry.jid);
    for entry in differ {
        if let Some(jid) = entry.address() {
            say(&jid, was.get(entry.jid).and_then(PackedContact::contact), RosterCause::Contact);
        }
    }
    missed
}

fn by_address(roster: &Contacts) -> Map<&str, PackedContact<'_>> {
    roster.iter().map(|entry| (entry.jid, entry)).collect()
}
