//! Accounts without a session: what is sent to them, or asked of them, is decided by what their record says of whoever it is from. That
//! is looked up; the whole record, which may be thousands of entries, is not read for it.

use super::homes::Homes;
use super::{ask_for_record, give, rest};
use crate::features::state::PerAccount;
use crate::message::Letter;
use crate::model::{Generation, RecordParts};
use crate::session::{Cx, Sessions};
use carillon_wire::jid::{BareJid, Jid};

/// What of a record is looked up.
#[derive(Debug, Default)]
pub(super) struct About {
    /// Whom it is about, sorted; nobody for the whole record.
    pub(super) jids: Vec<Jid>,
    /// Whether requests are answered by it, or only that decided which pass.
    answers: bool,
}

/// Addresses that are looked up together.
const ABOUT_MAX: usize = 64;

/// Asks for as much of a record as the letters that wait for it need.
pub(super) fn read(account: &BareJid, sessions: &Sessions, cx: &mut Cx<'_>) {
    let about = match sessions.has_any(account.as_str()) {
        true => About::default(),
        false => cx.homes.askers(account),
    };
    let wanted = cx.pipeline.record_parts();
    let parts = match about.jids.is_empty() || about.answers {
        true => wanted,
        false => RecordParts { blocked: wanted.blocked, ..RecordParts::NONE },
    };
    ask_for_record(account.clone(), parts, about, cx);
}

/// What the record says of these addresses was read: their letters are dealt with.
pub(super) fn was_read(
    account: &BareJid,
    about: &About,
    (generation, record): (Generation, PerAccount),
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let mut record = Some((generation, record));
    while let Some(letter) = cx.homes.next_of(account, about) {
        // It is there for this letter only: it says nothing of others.
        let Some(home) = cx.homes.accounts.get_mut(account.as_str()) else { return };
        home.record = record.take();
        give(account, letter, sessions, cx);
        let Some(home) = cx.homes.accounts.get_mut(account.as_str()) else { return };
        record = home.record.take();
    }
    match cx.homes.is_waited_for(account) {
        true => read(account, sessions, cx),
        false => rest(account, sessions, cx),
    }
}

impl Homes {
    /// Whom the first letters that wait for a record are from, sorted; nobody if the first is about more.
    fn askers(&self, account: &BareJid) -> About {
        let mailbox = self.accounts.get(account.as_str()).and_then(|home| home.mailbox.as_ref());
        let letters = mailbox.iter().flat_map(|mailbox| &mailbox.letters).take(ABOUT_MAX);
        let mut about = About::default();
        for letter in letters {
            let Some(asker) = letter.asker() else { break };
            about.jids.push(asker.clone());
            about.answers |= matches!(letter, Letter::Asked(_));
        }
        about.jids.sort();
        about.jids.dedup();
        about
    }

    /// The first letter that waits, if what was read decides it.
    fn next_of(&mut self, account: &BareJid, about: &About) -> Option<Letter> {
        let home = self.accounts.get_mut(account.as_str())?;
        let mailbox = home.mailbox.as_mut()?;
        let letter = mailbox.letters.pop_front_if(|letter| {
            let is_decided = about.answers || !matches!(letter, Letter::Asked(_));
            is_decided && letter.asker().is_some_and(|asker| about.jids.binary_search(asker).is_ok())
        });
        if mailbox.letters.is_empty() {
            self.waiting -= std::mem::take(&mut mailbox.bytes);
            home.tidy();
        }
        letter
    }

    fn is_waited_for(&self, account: &BareJid) -> bool {
        let mailbox = self.accounts.get(account.as_str()).and_then(|home| home.mailbox.as_ref());
        mailbox.is_some_and(|mailbox| !mailbox.letters.is_empty())
    }
}
