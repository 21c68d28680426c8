//! Accounts without a session: what is sent to them, or asked of them, is decided by what their record says of whoever it is from. That
//! is looked up; the whole record, which may be thousands of entries, is not read for it.

use super::{ask_for_record, give, settle};
use crate::message::AccountMessage;
use crate::model::RecordParts;
use crate::session::homes::{About, AccountRecord, Homes};
use crate::session::pipeline::Pipeline;
use crate::session::{Cx, Sessions};
use carillon_wire::jid::BareJid;

/// Addresses that are looked up together.
const ABOUT_MAX: usize = 64;

/// Asks for as much of a record as the messages that wait for it need.
pub(super) fn read(account: &BareJid, sessions: &Sessions, cx: &mut Cx<'_>) {
    let about = match sessions.has_any(account.as_str()) {
        true => About::default(),
        false => cx.homes.askers(account, cx.pipeline),
    };
    let wanted = cx.pipeline.record_parts();
    let parts = match about.jids.is_empty() || about.answers {
        true => wanted,
        false => RecordParts { blocked: wanted.blocked, privacy: wanted.privacy, ..RecordParts::NONE },
    };
    ask_for_record(account, parts, about, cx);
}

/// What the record says of these addresses was read: their messages are dealt with.
pub(super) fn was_read(
    account: &BareJid,
    about: &About,
    record: AccountRecord,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let mut record = Some(record);
    while let Some(message) = cx.homes.next_of(account, about, cx.pipeline) {
        // It holds what the waiting messages need, and nothing else.
        let Some(home) = cx.homes.places.get_mut(account) else { return };
        record.take().into_iter().for_each(|record| home.open(record));
        give(account, message, sessions, cx);
        let Some(home) = cx.homes.places.get_mut(account) else { return };
        record = home.drop_record();
    }
    let Some(home) = cx.homes.places.get_mut(account) else { return };
    home.drop_record();
    match home.waiting().len() > 0 {
        true => read(account, sessions, cx),
        false => settle(account, sessions, cx),
    }
}

impl Homes {
    /// The senders of the first messages that wait for a record, sorted; none if the first message needs the whole record.
    fn askers(&self, account: &BareJid, pipeline: &Pipeline) -> About {
        let home = self.places.get(account);
        let messages = home.iter().flat_map(|home| home.waiting()).take(ABOUT_MAX);
        let mut about = About::default();
        for message in messages {
            let Some(asker) = message.asker() else { break };
            about.jids.push(asker.clone());
            about.answers |= is_about_contacts(message, pipeline);
        }
        about.jids.sort();
        about.jids.dedup();
        about
    }

    /// The first message that waits, if what was read decides it.
    fn next_of(&mut self, account: &BareJid, about: &About, pipeline: &Pipeline) -> Option<AccountMessage> {
        self.places.get_mut(account)?.next_if(|message| {
            let is_decided = about.answers || !is_about_contacts(message, pipeline);
            is_decided && message.asker().is_some_and(|asker| about.jids.binary_search(asker).is_ok())
        })
    }
}

/// Whether what becomes of a message depends on more than who is blocked.
fn is_about_contacts(message: &AccountMessage, pipeline: &Pipeline) -> bool {
    match message {
        AccountMessage::Asked(_) => true,
        AccountMessage::Stanza { stanza, .. } => pipeline.rules_would_reveal(stanza).is_some(),
        _ => false,
    }
}
