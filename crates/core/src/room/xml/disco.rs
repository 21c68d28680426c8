//! What a room says of itself (XEP-0045 §6.4, §6.5, §7.12).

use super::avatar;
use crate::model::{RoomConfig, RoomKind, RoomListed, RoomRecord};
use crate::session::rsm;
use carillon_wire::ns;
use carillon_wire::xml::Element;

/// What a room can do.
const FEATURES: &[&str] = &[
    ns::DISCO_INFO,
    ns::DISCO_ITEMS,
    ns::MUC,
    ns::MUC_STABLE_ID,
    ns::MUC_SELF_PING,
    ns::MUC_REQUEST,
    ns::REGISTER,
    ns::STANZA_ID,
    ns::OCCUPANT_ID,
    ns::MODERATE,
    ns::RSM,
    ns::VCARD,
];

/// The disco#info of a room.
pub(in crate::room) fn info(record: &RoomRecord, occupants: usize) -> Element {
    let RoomConfig { public, persistent, members_only, moderated, non_anonymous, password, archive, .. } =
        &record.config;
    let name = if record.config.title.is_empty() { &*record.name } else { &*record.config.title };
    let mut query = Element::new("query", ns::DISCO_INFO).with_child(identity(name));
    let pick = |is: bool, yes: &'static str, no: &'static str| if is { yes } else { no };
    let words = [
        pick(*public, "muc_public", "muc_hidden"),
        pick(*persistent, "muc_persistent", "muc_temporary"),
        pick(*members_only, "muc_membersonly", "muc_open"),
        pick(*moderated, "muc_moderated", "muc_unmoderated"),
        pick(*non_anonymous, "muc_nonanonymous", "muc_semianonymous"),
        pick(password.is_empty(), "muc_unsecured", "muc_passwordprotected"),
    ];
    let of_archive: &[&str] =
        if *archive { &[ns::MAM, ns::MAM_EXTENDED, ns::RETRACT_TOMBSTONE] } else { &[] };
    for var in FEATURES.iter().chain(&words).chain(of_archive) {
        query.push(Element::new("feature", ns::DISCO_INFO).with_attr("var", *var));
    }
    query.with_child(room_info(record, occupants))
}

fn room_info(record: &RoomRecord, occupants: usize) -> Element {
    let field = |name: &str, value: &str| {
        Element::new("field", ns::DATA_FORMS)
            .with_attr("var", name)
            .with_child(Element::new("value", ns::DATA_FORMS).with_text(value))
    };
    let config = &record.config;
    let mut x = Element::new("x", ns::DATA_FORMS)
        .with_attr("type", "result")
        .with_child(field("FORM_TYPE", ns::MUC_ROOM_INFO).with_attr("type", "hidden"))
        .with_child(field("muc#roominfo_description", &config.description))
        .with_child(field("muc#roominfo_occupants", &occupants.to_string()))
        .with_child(field("muc#maxhistoryfetch", &config.history.to_string()));
    let subject = record.subject.as_ref().and_then(|subject| {
        let payload = carillon_wire::stanza::Payload::from_raw(subject.stanza.clone());
        payload.find("subject", ns::CLIENT).map(|subject| subject.element().text())
    });
    x.push(field("muc#roominfo_subject", &subject.unwrap_or_default()));
    x.push(field("muc#roomconfig_roomname", &config.title));
    if !record.photos.is_empty() {
        x.push(avatar::hashes(&record.photos));
    }
    x
}

/// The nick that is reserved for whoever asks (XEP-0045 §7.12).
pub(in crate::room) fn own_nick(nick: Option<&str>) -> Element {
    let query = Element::new("query", ns::DISCO_INFO).with_attr("node", NICK_NODE);
    match nick.filter(|nick| !nick.is_empty()) {
        Some(nick) => query.with_child(identity(nick)),
        None => query,
    }
}

/// The node of the reserved nick.
pub(in crate::room) const NICK_NODE: &str = "x-roomuser-item";

/// The disco#items of the service: a page of its rooms.
pub(crate) fn rooms(rooms: &[RoomListed], domain: &str, is_paged: bool) -> Element {
    let mut query = Element::new("query", ns::DISCO_ITEMS);
    for room in rooms {
        let name = if room.title.is_empty() { &room.name } else { &room.title };
        let address = RoomKind::Muc.address(&room.name, domain);
        let item = Element::new("item", ns::DISCO_ITEMS).with_attr("jid", address);
        query.push(item.with_attr("name", &**name));
    }
    if is_paged {
        let (first, last) = (rooms.first().map(|room| &*room.name), rooms.last().map(|room| &*room.name));
        query.push(rsm::set(first, last, None));
    }
    query
}

fn identity(name: &str) -> Element {
    Element::new("identity", ns::DISCO_INFO)
        .with_attr("category", "conference")
        .with_attr("type", "text")
        .with_attr("name", name)
}
