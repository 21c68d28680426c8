//! What a client knows of its contacts: the roster that it was told, and who is there.

use super::value;
use std::collections::{BTreeMap, BTreeSet};

/// The contacts of an account, as one of its clients knows them.
#[derive(Clone, Debug, Default)]
pub struct Contacts {
    /// What it was told of each, once it has asked: the version, and the attributes by the address.
    pub roster: Option<(u64, BTreeMap<String, String>)>,
    /// The full JIDs of those who are there.
    pub here: BTreeSet<String>,
    /// What it was told last on the nodes of accounts, by their addresses.
    pub told: BTreeMap<String, u64>,
    /// Whose presence it was given since this was looked at.
    pub new: Vec<String>,
}

impl Contacts {
    /// The answer to its question for the roster.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn are(&mut self, text: &str) -> Result<(), String> {
        let version = version(text)?;
        let items = text.split("<item ").skip(1).map(|item| (jid(item), about(item)));
        self.roster = Some((version, items.collect()));
        Ok(())
    }

    /// A change of the roster (RFC 6121 §2.1.6): not older than what it knows.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn change(&mut self, text: &str) -> Result<(), String> {
        let after = version(text)?;
        let (known, contacts) = self.roster.as_mut().ok_or_else(|| format!("was not asked for: {text}"))?;
        if after < *known {
            return Err(format!("is older than {known}: {text}"));
        }
        *known = after;
        let item = text.split("<item ").nth(1).ok_or("a push without an item")?;
        match item.contains("subscription='remove'") {
            true => contacts.remove(&jid(item)),
            false => contacts.insert(jid(item), about(item)),
        };
        Ok(())
    }

    /// What an account has published on its node. Whether it was that.
    pub(super) fn are_told(&mut self, text: &str) -> bool {
        let Some((_, item)) = text.split_once("<v xmlns='urn:v' n='") else { return false };
        let number = item.split('\'').next().and_then(|number| number.parse().ok());
        if let (Some(from), Some(number)) = (value(text, " from='"), number) {
            self.told.insert(bare(from).to_owned(), number);
        }
        true
    }

    /// Somebody's presence.
    pub(super) fn hears(&mut self, text: &str) {
        let Some(from) = value(text, " from='") else { return };
        match value(text.split('>').next().unwrap_or_default(), " type='") {
            None => {
                self.here.insert(from.to_owned());
                self.new.push(from.to_owned());
            }
            Some("unavailable") => self.here.retain(|jid| jid != from && bare(jid) != from),
            Some(_) => {}
        }
    }
}

/// The part of a full JID before the resource.
pub fn bare(jid: &str) -> &str {
    jid.split('/').next().unwrap_or_default()
}

/// What is told of a contact: who sees whom, whether it was asked, and its name.
pub fn described(subscription: &str, is_asked: bool, name: &str) -> String {
    format!("{subscription} {is_asked} {name}")
}

fn version(text: &str) -> Result<u64, String> {
    value(text, " ver='")
        .and_then(|version| version.parse().ok())
        .ok_or_else(|| format!("no version: {text}"))
}

fn jid(item: &str) -> String {
    value(item, "jid='").unwrap_or_default().to_owned()
}

fn about(item: &str) -> String {
    let item = item.split('>').next().unwrap_or_default();
    let is_asked = item.contains(" ask='subscribe'");
    described(
        value(item, " subscription='").unwrap_or_default(),
        is_asked,
        value(item, " name='").unwrap_or_default(),
    )
}
