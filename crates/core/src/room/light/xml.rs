//! What is said in MUC Light, as XML.

use crate::error::StanzaError;
use crate::model::{RoomAffiliation, RoomConfig, RoomMember, RoomRecord};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::ns;
use carillon_wire::stanza::Condition;
use carillon_wire::xml::Element;

/// The field with the name for people.
pub(super) const TITLE: &str = "roomname";
/// The field with the subject.
pub(super) const SUBJECT: &str = "subject";

/// Accounts that one request names.
pub(super) const USERS_MAX: usize = 200;

/// The word for an affiliation.
fn word(affiliation: RoomAffiliation) -> &'static str {
    match affiliation {
        RoomAffiliation::Owner => "owner",
        RoomAffiliation::Member | RoomAffiliation::Admin => "member",
        RoomAffiliation::None | RoomAffiliation::Outcast => "none",
    }
}

/// What an account is to the room.
pub(super) fn user(jid: &BareJid, affiliation: RoomAffiliation, ns: &str) -> Element {
    Element::new("user", ns).with_attr("affiliation", word(affiliation)).with_text(jid.as_str())
}

/// The accounts that a request names, and what they are to be.
pub(super) fn users(parent: &Element) -> Result<Vec<(BareJid, RoomAffiliation)>, StanzaError> {
    if parent.children().count() > USERS_MAX {
        let text = format!("at most {USERS_MAX} accounts in one request");
        return Err(StanzaError::new(Condition::PolicyViolation).with_text(text));
    }
    let mut users = Vec::new();
    for user in parent.children() {
        let affiliation = match user.attr("affiliation").filter(|_| user.is("user", parent.ns())) {
            Some("owner") => RoomAffiliation::Owner,
            Some("member") => RoomAffiliation::Member,
            Some("none") => RoomAffiliation::None,
            _ => return Err(StanzaError::new(Condition::BadRequest)),
        };
        let jid = Jid::new(user.text().trim()).map_err(|_| StanzaError::new(Condition::JidMalformed))?;
        users.push((jid.bare(), affiliation));
    }
    let mut jids: Vec<&str> = users.iter().map(|(jid, _)| jid.as_str()).collect();
    jids.sort_unstable();
    if jids.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
        return Err(StanzaError::new(Condition::BadRequest).with_text("an account is named twice"));
    }
    Ok(users)
}

/// A text of its own.
pub(super) fn text(name: &str, text: impl Into<String>, ns: &str) -> Element {
    Element::new(name, ns).with_text(text)
}

/// The fields of a configuration.
fn push_fields(parent: &mut Element, config: &RoomConfig) {
    let ns = parent.ns().to_owned();
    if !config.title.is_empty() {
        parent.push(text(TITLE, config.title.as_str(), &ns));
    }
    for (name, value) in &config.fields {
        parent.push(text(name, value.as_str(), &ns));
    }
}

fn push_users(parent: &mut Element, members: &[RoomMember]) {
    let ns = parent.ns().to_owned();
    for member in members.iter().filter(|member| member.is_member()) {
        parent.push(user(&member.jid, member.affiliation, &ns));
    }
}

/// The answer to a request for information (§4.3); nothing where the client has it.
pub(super) fn information(record: &RoomRecord, asked: &Element) -> Option<Element> {
    let (ns, version) = (asked.ns(), record.version_text());
    let known = asked.child("version", ns).map(Element::text).unwrap_or_default();
    if known.trim() == version {
        return None;
    }
    let mut query = Element::new("query", ns).with_child(text("version", version, ns));
    match ns {
        ns::MUCLIGHT_CONFIGURATION => push_fields(&mut query, &record.config),
        ns::MUCLIGHT_AFFILIATIONS => push_users(&mut query, &record.members),
        _ => {
            let mut configuration = Element::new("configuration", ns);
            push_fields(&mut configuration, &record.config);
            let mut occupants = Element::new("occupants", ns);
            push_users(&mut occupants, &record.members);
            query.push(configuration);
            query.push(occupants);
        }
    }
    Some(query)
}

/// The disco#info of a room.
pub(super) fn described(record: &RoomRecord, query: &Element) -> Result<Element, StanzaError> {
    if query.attr("node").is_some() {
        return Err(StanzaError::new(Condition::ItemNotFound));
    }
    let name = if record.config.title.is_empty() { &*record.name } else { &*record.config.title };
    let identity = Element::new("identity", ns::DISCO_INFO)
        .with_attr("category", "conference")
        .with_attr("type", "text")
        .with_attr("name", name);
    let mut info = Element::new("query", ns::DISCO_INFO).with_child(identity);
    let of_archive: &[&str] = if record.config.archive { &[ns::MAM, ns::MAM_EXTENDED] } else { &[] };
    for var in [ns::DISCO_INFO, ns::DISCO_ITEMS, ns::MUCLIGHT, ns::STANZA_ID].iter().chain(of_archive) {
        info.push(Element::new("feature", ns::DISCO_INFO).with_attr("var", *var));
    }
    Ok(info)
}

/// The fields that have changed from one configuration to another; those that were removed are empty.
pub(super) fn changed_fields(before: &RoomConfig, after: &RoomConfig) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    if before.title != after.title {
        fields.push((TITLE.to_owned(), after.title.clone()));
    }
    for name in before.fields.keys().filter(|name| !after.fields.contains_key(*name)) {
        fields.push((name.clone(), String::new()));
    }
    let new = after.fields.iter().filter(|(name, value)| before.fields.get(*name) != Some(*value));
    fields.extend(new.map(|(name, value)| (name.clone(), value.clone())));
    fields
}

/// Whether a field may be configured.
pub(in crate::room) fn is_field(name: &str, others: &[String]) -> bool {
    // §5.3
    let is_reserved = name == "version" || name == "prev-version";
    !is_reserved && ([TITLE, SUBJECT].contains(&name) || others.iter().any(|other| other == name))
}
