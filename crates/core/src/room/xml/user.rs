//! What occupants are told of each other (XEP-0045, namespace `muc#user`).

use crate::model::{ArchiveId, RoomAffiliation, RoomRole as Role};
use crate::room::occupants::{Client, Occupant, OccupantId};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::{Payload, PresenceType, Stanza};
use carillon_wire::xml::Element;

/// The status codes by which an occupant is told why somebody has it leave (XEP-0045 §15.6.2).
pub(in crate::room) const BANNED: u16 = 301;
pub(in crate::room) const KICKED: u16 = 307;
pub(in crate::room) const NO_MEMBER: u16 = 321;
pub(in crate::room) const MEMBERS_ONLY: u16 = 322;
/// Self-presence: it is about its recipient.
pub(in crate::room) const SELF: u16 = 110;
const SHUT_DOWN: u16 = 332;
/// The affiliation of somebody who is not in the room has changed.
const AFFILIATION_CHANGED: u16 = 101;

/// The word for an affiliation.
pub(in crate::room) fn affiliation_word(affiliation: RoomAffiliation) -> &'static str {
    match affiliation {
        RoomAffiliation::Outcast => "outcast",
        RoomAffiliation::None => "none",
        RoomAffiliation::Member => "member",
        RoomAffiliation::Admin => "admin",
        RoomAffiliation::Owner => "owner",
    }
}

/// The affiliation of a word.
pub(in crate::room) fn affiliation(word: &str) -> Option<RoomAffiliation> {
    use RoomAffiliation::{Admin, Member, None, Outcast, Owner};
    [Outcast, None, Member, Admin, Owner].into_iter().find(|of| affiliation_word(*of) == word)
}

/// The word for a role.
pub(in crate::room) fn role_word(role: Role) -> &'static str {
    match role {
        Role::None => "none",
        Role::Visitor => "visitor",
        Role::Participant => "participant",
        Role::Moderator => "moderator",
    }
}

/// The role of a word.
pub(in crate::room) fn role(word: &str) -> Option<Role> {
    [Role::None, Role::Visitor, Role::Participant, Role::Moderator]
        .into_iter()
        .find(|of| role_word(*of) == word)
}

/// What a presence says of an occupant besides its affiliation and role.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::room) struct Said<'a> {
    /// Codes (XEP-0045 §15.5.2).
    pub(in crate::room) codes: &'a [u16],
    /// The nick that it takes.
    pub(in crate::room) nick: Option<&'a str>,
    /// The nick of whoever did it.
    pub(in crate::room) actor: Option<&'a str>,
    pub(in crate::room) reason: Option<&'a str>,
    /// What its client says as it leaves.
    pub(in crate::room) last: Option<&'a Payload>,
    /// The `<destroy/>` element, if the room is destroyed.
    pub(in crate::room) destroy: Option<&'a Element>,
}

/// The presence of an occupant's client, with its address or without.
pub(in crate::room) fn presence(
    occupant: &Occupant,
    client: &Client,
    shows_address: bool,
    said: &Said<'_>,
) -> Stanza {
    let mut presence = client.presence.stanza();
    presence.from = Some(occupant.address.clone());
    presence.payload.push_element(&x(occupant, shows_address.then_some(&client.jid), said));
    presence.payload.push_element(&occupant_id(occupant.id));
    presence
}

/// The presence with which an occupant leaves.
pub(in crate::room) fn unavailable(
    occupant: &Occupant,
    client: &Client,
    shows_address: bool,
    said: &Said<'_>,
) -> Stanza {
    let mut presence = Stanza::presence(PresenceType::Unavailable).with_from(occupant.address.clone());
    if let Some(last) = said.last {
        presence.payload = last.clone();
    }
    presence.payload.push_element(&x(occupant, shows_address.then_some(&client.jid), said));
    presence.payload.push_element(&occupant_id(occupant.id));
    presence
}

fn x(occupant: &Occupant, address: Option<&Jid>, said: &Said<'_>) -> Element {
    let mut item = Element::new("item", ns::MUC_USER)
        .with_attr("affiliation", affiliation_word(occupant.affiliation))
        .with_attr("role", role_word(occupant.role));
    if let Some(address) = address {
        item.set_attr("jid", address.as_str());
    }
    if let Some(nick) = said.nick {
        item.set_attr("nick", nick);
    }
    if let Some(actor) = said.actor {
        item.push(Element::new("actor", ns::MUC_USER).with_attr("nick", actor));
    }
    if let Some(reason) = said.reason.filter(|reason| !reason.is_empty()) {
        item.push(Element::new("reason", ns::MUC_USER).with_text(reason));
    }
    let mut x = Element::new("x", ns::MUC_USER).with_child(item);
    if let Some(destroy) = said.destroy {
        x.push(destroy.clone());
    }
    push_codes(&mut x, said.codes);
    x
}

/// The `<x/>` of somebody who has neither affiliation nor role.
pub(in crate::room) fn nothing(codes: &[u16]) -> Element {
    let item = Element::new("item", ns::MUC_USER).with_attr("affiliation", "none").with_attr("role", "none");
    let mut x = Element::new("x", ns::MUC_USER).with_child(item);
    push_codes(&mut x, codes);
    x
}

/// The presence by which a client leaves a room because the node shuts down.
pub(crate) fn shut_down(occupant: &Jid) -> Stanza {
    let mut told = Stanza::presence(PresenceType::Unavailable).with_from(occupant.clone());
    told.payload.push_element(&nothing(&[SELF, SHUT_DOWN]));
    told
}

/// What an account is told that is not in the room, and has another affiliation now (XEP-0045 §17.1).
pub(in crate::room) fn changed_affiliation(is: RoomAffiliation, reason: &str) -> Element {
    let mut item = Element::new("item", ns::MUC_USER)
        .with_attr("affiliation", affiliation_word(is))
        .with_attr("role", role_word(Role::None));
    if !reason.is_empty() {
        item.push(Element::new("reason", ns::MUC_USER).with_text(reason));
    }
    let mut x = Element::new("x", ns::MUC_USER).with_child(item);
    push_codes(&mut x, &[AFFILIATION_CHANGED]);
    x
}

fn push_codes(x: &mut Element, codes: &[u16]) {
    for code in codes {
        x.push(Element::new("status", ns::MUC_USER).with_attr("code", code.to_string()));
    }
}

/// What all occupants are told by these codes.
pub(in crate::room) fn statuses(codes: &[u16]) -> Element {
    let mut x = Element::new("x", ns::MUC_USER);
    push_codes(&mut x, codes);
    x
}

/// The id of an occupant (XEP-0421).
pub(in crate::room) fn occupant_id(id: OccupantId) -> Element {
    Element::new("occupant-id", ns::OCCUPANT_ID).with_attr("id", id.digits())
}

/// The number of a message in the archive of a room (XEP-0359).
pub(in crate::room) fn stanza_id(room: &BareJid, id: ArchiveId) -> Element {
    Element::new("stanza-id", ns::STANZA_ID).with_attr("by", room.as_str()).with_attr("id", id.to_string())
}

/// An invitation that the room passes on (XEP-0045 §7.8.2), or the refusal of one.
pub(in crate::room) fn invitation(
    name: &'static str,
    from: &str,
    reason: Option<&str>,
    continued: Option<&Element>,
    password: &str,
) -> Element {
    let mut invite = Element::new(name, ns::MUC_USER).with_attr("from", from);
    if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
        invite.push(Element::new("reason", ns::MUC_USER).with_text(reason));
    }
    if let Some(continued) = continued {
        let thread = continued.attr("thread");
        let mut continued = Element::new("continue", ns::MUC_USER);
        thread.into_iter().for_each(|thread| continued.set_attr("thread", thread));
        invite.push(continued);
    }
    let mut x = Element::new("x", ns::MUC_USER).with_child(invite);
    if !password.is_empty() {
        x.push(Element::new("password", ns::MUC_USER).with_text(password));
    }
    x
}
