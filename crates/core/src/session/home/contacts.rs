//! Who is whom to an account, by its record: what features ask that do not keep the roster.

use crate::model::Standing;
use crate::session::Cx;
use crate::session::homes::AtHome;
use carillon_wire::jid::{BareJid, Jid};

impl AtHome<'_> {
    /// Where the subscriptions between the account and another stand. `from`: the other sees the account's presence.
    pub fn standing_of(&self, other: &Jid, cx: &Cx<'_>) -> Standing {
        cx.pipeline
            .contacts
            .map_or_else(Standing::default, |contacts| (contacts.standing)(self.record, other.bare_str()))
    }

    /// The contacts whose subscriptions stand so.
    pub fn contacts(&self, stands: impl Fn(Standing) -> bool, cx: &Cx<'_>) -> Vec<BareJid> {
        let mut found = Vec::new();
        let mut each = |jid: &str, standing| {
            if stands(standing) {
                found.extend(BareJid::new(jid).ok());
            }
        };
        if let Some(contacts) = cx.pipeline.contacts {
            (contacts.each)(self.record, &mut each);
        }
        found
    }
}
