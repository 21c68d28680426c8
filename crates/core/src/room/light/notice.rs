//! What a room of MUC Light tells its occupants of itself: who is one of them (§5.4), how it is configured (§5.3), that it is gone (§5.2).

use super::xml::{self, USERS_MAX, text, user};
use crate::message::RoomStanza;
use crate::model::{RoomAffiliation, RoomEntry, RoomKey, RoomMember, RoomRecord};
use crate::ports::store::rooms::KeepRoomMessage;
use crate::room::home::{Home, audience, give_accounts};
use crate::room::step::Step;
use crate::session::Cx;
use carillon_wire::Framing;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{MessageType, Payload, Stanza};
use carillon_wire::xml::Element;
use std::sync::Arc;

impl Home {
    /// What accounts are to the room has changed. Those who stay are told everything; others what they are now. It is kept in the archive (§6.2.2).
    pub(in crate::room) fn tell_members(
        &mut self,
        before: Option<&RoomRecord>,
        after: &RoomRecord,
        changes: &[RoomMember],
        id: Option<Box<str>>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let was = |jid: &BareJid| {
            before.and_then(|before| before.member(jid.as_str())).is_some_and(RoomMember::is_member)
        };
        let stay: Vec<&BareJid> =
            after.members.iter().map(|member| &member.jid).filter(|jid| was(jid)).collect();
        let version = after.version_text();
        if !stay.is_empty() {
            let mut x = Element::new("x", ns::MUCLIGHT_AFFILIATIONS);
            if let Some(before) = before {
                x.push(text("prev-version", before.version_text(), ns::MUCLIGHT_AFFILIATIONS));
            }
            x.push(text("version", version.as_str(), ns::MUCLIGHT_AFFILIATIONS));
            push_changes(&mut x, changes);
            let told = self.notice(&[x], id.clone());
            for (place, accounts) in audience(stay.into_iter(), cx) {
                give_accounts(place, accounts, vec![RoomStanza::for_all(told.clone())], cx);
            }
        }
        for change in changes.iter().filter(|change| !was(&change.jid) || !change.is_member()) {
            let mut x = Element::new("x", ns::MUCLIGHT_AFFILIATIONS);
            if change.is_member() {
                x.push(text("version", version.as_str(), ns::MUCLIGHT_AFFILIATIONS));
            }
            x.push(user(&change.jid, change.affiliation, ns::MUCLIGHT_AFFILIATIONS));
            self.tell_one(&change.jid, &[x], id.clone(), cx);
        }
        let mut x = Element::new("x", ns::MUCLIGHT_AFFILIATIONS).with_child(text(
            "version",
            version,
            ns::MUCLIGHT_AFFILIATIONS,
        ));
        push_changes(&mut x, changes);
        self.keep_notice(after, &x, id, key, cx);
    }

    /// The room is configured otherwise: all are told.
    pub(in crate::room) fn tell_configured(
        &self,
        before: &RoomRecord,
        after: &RoomRecord,
        id: Option<Box<str>>,
        cx: &mut Cx<'_>,
    ) {
        let ns = ns::MUCLIGHT_CONFIGURATION;
        let mut x = Element::new("x", ns)
            .with_child(text("prev-version", before.version_text(), ns))
            .with_child(text("version", after.version_text(), ns));
        for (name, value) in xml::changed_fields(&before.config, &after.config) {
            x.push(text(&name, value, ns));
        }
        self.state.give_all(&[RoomStanza::for_all(self.notice(&[x], id))], &[], cx);
    }

    /// The room is destroyed: each is told that it is in it no more.
    pub(in crate::room) fn tell_destroyed(&self, record: &RoomRecord, id: Option<&str>, cx: &mut Cx<'_>) {
        for member in record.members.iter().filter(|member| member.is_member()) {
            let x = Element::new("x", ns::MUCLIGHT_AFFILIATIONS).with_child(user(
                &member.jid,
                RoomAffiliation::None,
                ns::MUCLIGHT_AFFILIATIONS,
            ));
            let destroyed = Element::new("x", ns::MUCLIGHT_DESTROY);
            self.tell_one(&member.jid, &[x, destroyed], id.map(Box::from), cx);
        }
    }

    fn tell_one(&self, account: &BareJid, said: &[Element], id: Option<Box<str>>, cx: &mut Cx<'_>) {
        let told = RoomStanza::for_all(self.notice(said, id));
        let place = cx.shard.directory.account(account.as_str());
        give_accounts(place, Arc::new(vec![account.clone()]), vec![told], cx);
    }

    /// A message of the room itself.
    fn notice(&self, said: &[Element], id: Option<Box<str>>) -> Stanza {
        let mut message = Stanza::message(MessageType::Groupchat).with_from(self.state.address.clone());
        message.id = id;
        for element in said {
            message.payload.push_element(element);
        }
        message.payload.push_element(&Element::new("body", ns::CLIENT));
        message
    }

    fn keep_notice(
        &mut self,
        record: &RoomRecord,
        x: &Element,
        id: Option<Box<str>>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        if !record.config.archive || record.members.is_empty() {
            return;
        }
        let mut message = Stanza::message(MessageType::Groupchat).with_from(self.state.address.clone());
        (message.id, message.payload) = (id, Payload::from_element(x));
        let mut bytes = Vec::new();
        message.write(&mut bytes, Framing::Tcp);
        let question = KeepRoomMessage {
            room: record.id,
            received: cx.now.unix,
            sender: self.state.address.clone(),
            stanza: bytes.into(),
            entry: RoomEntry::Shown,
            displayed: None,
            wake: None,
            listeners: None,
            // The change itself is told.
            fact: None,
        };
        self.wrote();
        self.ask(key, question, Step::Noted, cx);
    }
}

/// Everything that has changed; where that is too much to tell everybody, they ask, because the version is another one.
fn push_changes(x: &mut Element, changes: &[RoomMember]) {
    for change in changes.iter().filter(|_| changes.len() <= 2 * USERS_MAX) {
        x.push(user(&change.jid, change.affiliation, ns::MUCLIGHT_AFFILIATIONS));
    }
}
