//! Data forms of rooms (XEP-0004): configuration, voice, registration.

use crate::error::StanzaError;
use crate::model::{AllowPm, Policy, PresenceBroadcast, RoomConfig, RoomHistory};
use crate::room::occupants::Occupant;
use crate::settings::Limits;
use carillon_wire::ns;
use carillon_wire::stanza::Condition;
use carillon_wire::xml::Element;

const PM: &[(&str, AllowPm)] = &[
    ("anyone", AllowPm::Anyone),
    ("participants", AllowPm::Participants),
    ("moderators", AllowPm::Moderators),
    ("none", AllowPm::None),
];

/// The roles whose presence is shown.
const BROADCAST: &[(&[&str], PresenceBroadcast)] = &[
    (&["moderator", "participant", "visitor"], PresenceBroadcast::Anyone),
    (&["moderator", "participant"], PresenceBroadcast::Participants),
    (&["moderator"], PresenceBroadcast::Moderators),
    (&[], PresenceBroadcast::None),
];

const HISTORY: &[(&str, RoomHistory)] =
    &[("all", RoomHistory::All), ("since_member", RoomHistory::SinceMember)];

/// The configuration form of a room, with its present values (XEP-0045 §10.2).
pub(in crate::room) fn config(config: &RoomConfig, limits: &Limits) -> Element {
    let toggle =
        |name: &str, label: &str, on: bool| field(name, "boolean", label, if on { "1" } else { "0" });
    let mut pm =
        field("allowpm", "list-single", "Who may send private messages", word_of(PM, config.allow_pm));
    PM.iter().for_each(|(word, _)| pm.push(option(word)));
    let whois = if config.non_anonymous { "anyone" } else { "moderators" };
    let mut whois = field("whois", "list-single", "Who may see the addresses of occupants", whois);
    ["moderators", "anyone"].iter().for_each(|word| whois.push(option(word)));
    let max = if config.max_users == 0 { limits.room_occupants } else { config.max_users };
    let mut history = field(
        "members_history",
        "list-single",
        "What members are given of what was said",
        word_of(HISTORY, config.members_history),
    );
    HISTORY.iter().for_each(|(word, _)| history.push(option(word)));
    form(ns::MUC_ROOM_CONFIG)
        .with_child(field("roomname", "text-single", "A name for people", &config.title))
        .with_child(field("roomdesc", "text-single", "What it is about", &config.description))
        .with_child(toggle("publicroom", "Everybody can find the room", config.public))
        .with_child(toggle("persistentroom", "The room stays when nobody is in it", config.persistent))
        .with_child(toggle("membersonly", "Only members may enter", config.members_only))
        .with_child(toggle("moderatedroom", "Only those with voice may speak", config.moderated))
        .with_child(whois)
        .with_child(toggle(
            "passwordprotectedroom",
            "A password is needed to enter",
            !config.password.is_empty(),
        ))
        .with_child(field("roomsecret", "text-private", "The password", &config.password))
        .with_child(field("maxusers", "text-single", "Occupants at most", &max.to_string()))
        .with_child(toggle("allowinvites", "Occupants may invite others", config.allow_invites))
        .with_child(toggle("changesubject", "Participants may change the subject", config.change_subject))
        .with_child(pm)
        .with_child(broadcast(config.presence_broadcast))
        .with_child(toggle("enablelogging", "Messages are kept in the archive", config.archive))
        .with_child(field(
            "maxhistoryfetch",
            "text-single",
            "Messages for those who enter",
            &config.history.to_string(),
        ))
        .with_child(history)
        .with_child(field(
            "archive_days",
            "text-single",
            "Days for which the archive keeps a message; 0 for as long as the domain does",
            &config.archive_days.to_string(),
        ))
}

/// Reads a configuration form. What it does not say stays; a form without fields accepts the room as it is (XEP-0045 §10.1.2).
pub(in crate::room) fn parse_config(
    x: &Element,
    before: &RoomConfig,
    limits: &Limits,
) -> Result<RoomConfig, StanzaError> {
    let mut config = RoomConfig { locked: false, ..before.clone() };
    let (mut wrong, mut is_protected) = (Vec::new(), None);
    for field in x.children().filter(|child| child.is("field", ns::DATA_FORMS)) {
        let var = field.attr("var").unwrap_or_default();
        let value = field.child("value", ns::DATA_FORMS).map(Element::text).unwrap_or_default();
        if var == "FORM_TYPE" {
            if value != ns::MUC_ROOM_CONFIG {
                return Err(StanzaError::new(Condition::BadRequest).with_text("the form is of another type"));
            }
            continue;
        }
        let name = var.strip_prefix("muc#roomconfig_").unwrap_or_default();
        if name == "passwordprotectedroom" {
            is_protected = boolean(&value);
        } else if name == "presencebroadcast" {
            match broadcast_of(field) {
                Some(of) => config.presence_broadcast = of,
                None => wrong.push(var.to_owned()),
            }
        } else if set(&mut config, name, value.trim(), limits).is_none() && !is_met(name, &value) {
            wrong.push(var.to_owned());
        }
    }
    match is_protected {
        Some(false) => config.password.clear(),
        Some(true) if config.password.is_empty() => wrong.push("muc#roomconfig_roomsecret".to_owned()),
        _ => {}
    }
    match wrong.is_empty() {
        true => Ok(config),
        false => {
            let mut text = wrong.join(", ");
            text.truncate(text.floor_char_boundary(RoomConfig::DESCRIPTION_BYTES_MAX));
            let text = format!("rooms here do not have these fields, or not these values of them: {text}");
            Err(StanzaError::new(Condition::NotAcceptable).with_text(text))
        }
    }
}

/// Sets a field; none if there is no such field, or no such value of it.
fn set(config: &mut RoomConfig, name: &str, value: &str, limits: &Limits) -> Option<()> {
    let text = |max: usize| (value.len() <= max).then(|| value.to_owned());
    match name {
        "roomname" => config.title = text(RoomConfig::TITLE_BYTES_MAX)?,
        "roomdesc" => config.description = text(RoomConfig::DESCRIPTION_BYTES_MAX)?,
        "publicroom" => config.public = boolean(value)?,
        "persistentroom" => config.persistent = boolean(value)?,
        "membersonly" => config.members_only = boolean(value)?,
        "moderatedroom" => config.moderated = boolean(value)?,
        "whois" => config.non_anonymous = word(&[("anyone", true), ("moderators", false)], value)?,
        "roomsecret" => config.password = text(RoomConfig::PASSWORD_BYTES_MAX)?,
        "maxusers" if value.is_empty() || value == "none" => config.max_users = 0,
        "maxusers" => {
            let max: u32 = value.parse().ok()?;
            config.max_users = (1..=limits.room_occupants).contains(&max).then_some(max)?;
        }
        "allowinvites" => config.allow_invites = boolean(value)?,
        "changesubject" => config.change_subject = boolean(value)?,
        "allowpm" => config.allow_pm = word(PM, value)?,
        "members_history" => config.members_history = word(HISTORY, value)?,
        "archive_days" => {
            config.archive_days = value.parse().ok().filter(|days| *days <= Policy::ARCHIVE_DAYS_MAX)?;
        }
        "enablelogging" => config.archive = boolean(value)?,
        "maxhistoryfetch" => {
            config.history = value.parse().ok().filter(|max| *max <= RoomConfig::HISTORY_MAX)?;
        }
        _ => return None,
    }
    Some(())
}

/// Whether a field that is not configurable asks for what every room does anyway, or is only descriptive.
fn is_met(name: &str, value: &str) -> bool {
    match name {
        "lang" | "pubsub" => true,
        "getmemberlist" => true,
        "roomadmins" | "roomowners" => value.is_empty(),
        _ => false,
    }
}

/// What a form about voice says (XEP-0045 §7.13, §8.6).
pub(in crate::room) struct Voice {
    pub(in crate::room) nick: Option<String>,
    pub(in crate::room) is_allowed: bool,
}

/// Reads a form about voice.
pub(in crate::room) fn voice(x: &Element) -> Result<Voice, StanzaError> {
    if value(x, "FORM_TYPE").as_deref() != Some(ns::MUC_REQUEST) {
        return Err(StanzaError::new(Condition::BadRequest).with_text("the form is of another type"));
    }
    Ok(Voice {
        nick: value(x, "muc#roomnick"),
        is_allowed: value(x, "muc#request_allow").as_deref().and_then(boolean).unwrap_or(false),
    })
}

/// The form by which moderators give voice (XEP-0045 §8.6).
pub(in crate::room) fn voice_request(of: &Occupant) -> Element {
    let with = |name: &str, kind: &str, label: &str, text: &str| {
        Element::new("field", ns::DATA_FORMS)
            .with_attr("var", name)
            .with_attr("type", kind)
            .with_attr("label", label)
            .with_child(Element::new("value", ns::DATA_FORMS).with_text(text))
    };
    let jid = of.clients.first().map_or("", |client| client.jid.as_str());
    form(ns::MUC_REQUEST)
        .with_child(Element::new("title", ns::DATA_FORMS).with_text("Voice request"))
        .with_child(with("muc#role", "list-single", "Requested role", "participant"))
        .with_child(with("muc#jid", "jid-single", "Address", jid))
        .with_child(with("muc#roomnick", "text-single", "Nick", of.nick()))
        .with_child(with("muc#request_allow", "boolean", "Grant voice to this occupant?", "false"))
}

/// The form of the registration with a room (XEP-0045 §7.10).
pub(in crate::room) fn register(nick: Option<&str>) -> Element {
    let mut query = Element::new("query", ns::REGISTER);
    if let Some(nick) = nick.filter(|nick| !nick.is_empty()) {
        query.push(Element::new("registered", ns::REGISTER));
        query.push(Element::new("username", ns::REGISTER).with_text(nick));
    }
    let nick = Element::new("field", ns::DATA_FORMS)
        .with_attr("var", "muc#register_roomnick")
        .with_attr("type", "text-single")
        .with_attr("label", "The nick to be reserved")
        .with_child(Element::new("required", ns::DATA_FORMS))
        .with_child(Element::new("value", ns::DATA_FORMS).with_text(nick.unwrap_or_default()));
    query.with_child(form(ns::MUC_REGISTER).with_child(nick))
}

/// The first value of a field.
pub(in crate::room) fn value(x: &Element, var: &str) -> Option<String> {
    let mut fields = x.children().filter(|child| child.is("field", ns::DATA_FORMS));
    let field = fields.find(|field| field.attr("var") == Some(var))?;
    field.child("value", ns::DATA_FORMS).map(Element::text)
}

/// A form of a type, or a result.
fn form(form_type: &str) -> Element {
    let value = Element::new("value", ns::DATA_FORMS).with_text(form_type);
    let hidden =
        Element::new("field", ns::DATA_FORMS).with_attr("var", "FORM_TYPE").with_attr("type", "hidden");
    Element::new("x", ns::DATA_FORMS).with_attr("type", "form").with_child(hidden.with_child(value))
}

fn field(name: &str, kind: &str, label: &str, value: &str) -> Element {
    Element::new("field", ns::DATA_FORMS)
        .with_attr("var", format!("muc#roomconfig_{name}"))
        .with_attr("type", kind)
        .with_attr("label", label)
        .with_child(Element::new("value", ns::DATA_FORMS).with_text(value))
}

/// The roles whose presence is shown, as a field.
fn broadcast(of: PresenceBroadcast) -> Element {
    let roles = BROADCAST.iter().find(|(_, other)| *other == of).map_or(&[][..], |(roles, _)| roles);
    let mut field = Element::new("field", ns::DATA_FORMS)
        .with_attr("var", "muc#roomconfig_presencebroadcast")
        .with_attr("type", "list-multi")
        .with_attr("label", "Roles whose presence is shown to others");
    for role in roles {
        field.push(Element::new("value", ns::DATA_FORMS).with_text(*role));
    }
    ["moderator", "participant", "visitor"].iter().for_each(|role| field.push(option(role)));
    field
}

/// What such a field says: a role is shown only with all that may do more.
fn broadcast_of(field: &Element) -> Option<PresenceBroadcast> {
    let values = field.children().filter(|child| child.is("value", ns::DATA_FORMS)).map(Element::text);
    let mut roles: Vec<String> = values.filter(|value| !value.is_empty()).collect();
    roles.sort_unstable();
    roles.dedup();
    BROADCAST.iter().find(|(of, _)| *of == roles).map(|(_, of)| *of)
}

fn option(value: &str) -> Element {
    let value = Element::new("value", ns::DATA_FORMS).with_text(value);
    Element::new("option", ns::DATA_FORMS).with_child(value)
}

fn word_of<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, of)| *of == value).map_or("", |(word, _)| word)
}

fn word<T: Copy>(words: &[(&str, T)], value: &str) -> Option<T> {
    words.iter().find(|(word, _)| *word == value).map(|(_, of)| *of)
}

fn boolean(value: &str) -> Option<bool> {
    match value.trim() {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}
