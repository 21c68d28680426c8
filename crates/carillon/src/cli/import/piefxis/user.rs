//! A user of the form as records for the node: one with its keys, then one for each thing that belongs to it.

use super::super::rows::Row;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use carillon_wire::ns;
use carillon_wire::xml::Element;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The namespace of SCRAM keys (§4.3).
const SCRAM: &str = "urn:xmpp:pie:0#scram";
/// The namespace of stamps before XEP-0203.
const OLD_DELAY: &str = "jabber:x:delay";

/// The records of a user of a host. What this server has no place for is counted in `passed`.
pub(super) fn rows(
    line: u64,
    file: Option<&Arc<str>>,
    host: &str,
    user: &Element,
    passed: &mut BTreeMap<String, u64>,
) -> VecDeque<Row> {
    let row = |what: String, record: Result<Value, String>| Row {
        line,
        file: file.cloned(),
        what,
        record: record.map(|record| record.to_string()),
    };
    let Some(jid) = user.attr("name").filter(|name| !name.is_empty()).map(|name| format!("{name}@{host}"))
    else {
        return [row(String::new(), Err("`user` has no attribute `name`".to_owned()))].into();
    };
    let mut rows = VecDeque::from([row(jid.clone(), account(&jid, user))]);
    for (what, part) in parts(user, passed) {
        let record = part.map(|part| json!({ "jid": jid, "part": part }));
        rows.push_back(row(format!("{jid}, {what}"), record));
    }
    rows
}

/// The account itself.
fn account(jid: &str, user: &Element) -> Result<Value, String> {
    let mut record = Map::from_iter([("jid".to_owned(), json!(jid))]);
    let password = user.attr("password").filter(|password| !password.is_empty());
    if let Some(keys) = password.and_then(|password| password.strip_prefix("scram:")) {
        record.extend(keys_of_ejabberd(keys)?);
    } else if let Some(password) = password {
        record.insert("password".to_owned(), json!(password));
    } else {
        for element in user.children().filter(|child| child.is("scram-credentials", SCRAM)) {
            record.extend(keys_of(element)?);
        }
    }
    match record.len() {
        1 => Err("it has neither a password nor keys for SCRAM-SHA-1 or SCRAM-SHA-256".to_owned()),
        _ => Ok(Value::Object(record)),
    }
}

/// The member of a record that has the keys of a mechanism; none for one that this server does not have.
fn member(mechanism: &str) -> Option<String> {
    match mechanism {
        "SCRAM-SHA-1" | "sha" => Some("scram_sha1".to_owned()),
        "SCRAM-SHA-256" | "sha256" => Some("scram_sha256".to_owned()),
        _ => None,
    }
}

/// Keys as XEP-0227 has them.
fn keys_of(element: &Element) -> Result<Option<(String, Value)>, String> {
    let mechanism = element.attr("mechanism").ok_or("`scram-credentials` has no attribute `mechanism`")?;
    let Some(member) = member(mechanism) else { return Ok(None) };
    let text = |name: &str| {
        let found = element.child(name, SCRAM).map(|child| child.text().trim().to_owned());
        found.ok_or_else(|| format!("`scram-credentials` of {mechanism} has no `{name}`"))
    };
    let iterations = iterations(&text("iter-count")?)?;
    let (salt, stored_key, server_key) = (text("salt")?, text("stored-key")?, text("server-key")?);
    Ok(Some((member, keys(&salt, iterations, &stored_key, &server_key))))
}

/// Keys as ejabberd writes them in place of a password: `[HASH,]STORED-KEY,SERVER-KEY,SALT,ITERATIONS`.
fn keys_of_ejabberd(text: &str) -> Result<Option<(String, Value)>, String> {
    let fields: Vec<&str> = text.split(',').collect();
    let (hash, [stored_key, server_key, salt, count]) = match fields[..] {
        [hash, stored, server, salt, count] => (hash, [stored, server, salt, count]),
        [stored, server, salt, count] => ("sha", [stored, server, salt, count]),
        _ => return Err("its password begins with `scram:` but has no keys".to_owned()),
    };
    let Some(member) = member(hash) else { return Ok(None) };
    Ok(Some((member, keys(salt, iterations(count)?, stored_key, server_key))))
}

/// What a text is base 64 of, if that is base 64 again: ejabberd writes keys so that it keeps in base 64.
fn once(text: &str) -> Option<String> {
    let inner = STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    inner.filter(|inner| !inner.is_empty() && STANDARD.decode(inner).is_ok())
}

fn iterations(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{text}` is no number of iterations"))
}

fn keys(salt: &str, iterations: u32, stored_key: &str, server_key: &str) -> Value {
    // Text by chance is a salt rather than both keys.
    let (salt, stored_key, server_key) = match (once(salt), once(stored_key), once(server_key)) {
        (Some(salt), Some(stored_key), Some(server_key)) => (salt, stored_key, server_key),
        _ => (salt.to_owned(), stored_key.to_owned(), server_key.to_owned()),
    };
    json!({ "salt": salt, "iterations": iterations, "stored_key": stored_key, "server_key": server_key })
}

/// What is said of a part, and the part.
type Named = (String, Result<Value, String>);

/// All that belongs to a user, nodes before their items.
fn parts(user: &Element, passed: &mut BTreeMap<String, u64>) -> Vec<Named> {
    let (mut nodes, mut parts) = (Vec::new(), Vec::new());
    for child in user.children() {
        match (child.name(), child.ns()) {
            ("scram-credentials", SCRAM) => {}
            ("query", ns::ROSTER) => parts.extend(child.children().filter_map(contact)),
            ("query", ns::PRIVATE) => parts.extend(child.children().map(|element| {
                (
                    format!("private element {}", element.name()),
                    Ok(json!({ "kind": "private", "xml": xml(element) })),
                )
            })),
            ("vCard", ns::VCARD) => {
                parts.push(("vCard".to_owned(), Ok(json!({ "kind": "vcard", "xml": xml(child) }))));
            }
            ("offline-messages", _) => {
                let messages = child.children().enumerate();
                parts.extend(
                    messages
                        .map(|(at, message)| (format!("offline message {}", at + 1), Ok(offline(message)))),
                );
            }
            ("pubsub", ns::PUBSUB_OWNER) => nodes.extend(child.children().filter_map(node)),
            ("pubsub", ns::PUBSUB) => parts.extend(child.children().flat_map(items)),
            (name, ns) => *passed.entry(format!("<{name} xmlns='{ns}'/>")).or_default() += 1,
        }
    }
    nodes.extend(parts);
    nodes
}

fn xml(element: &Element) -> String {
    element.to_string_in("")
}

fn contact(item: &Element) -> Option<Named> {
    if !item.is("item", ns::ROSTER) || item.attr("subscription") == Some("remove") {
        return None;
    }
    let Some(jid) = item.attr("jid") else {
        return Some(("contact".to_owned(), Err("an item of the roster has no `jid`".to_owned())));
    };
    let stands = item.attr("subscription").unwrap_or("none");
    let groups: Vec<String> =
        item.children().filter(|child| child.is("group", ns::ROSTER)).map(Element::text).collect();
    let part = json!({
        "kind": "contact",
        "jid": jid,
        "name": item.attr("name").unwrap_or_default(),
        "groups": groups,
        "to": matches!(stands, "to" | "both"),
        "from": matches!(stands, "from" | "both"),
        "asked": item.attr("ask") == Some("subscribe"),
        "approved": matches!(item.attr("approved"), Some("true" | "1")),
    });
    Some((format!("contact {jid}"), Ok(part)))
}

fn offline(message: &Element) -> Value {
    let stamp = [ns::DELAY, OLD_DELAY].into_iter().find_map(|ns| {
        let name = if ns == ns::DELAY { "delay" } else { "x" };
        message.child(name, ns)?.attr("stamp").map(stamp)
    });
    let mut part = json!({ "kind": "offline_message", "xml": xml(message) });
    if let Some(stamp) = stamp {
        part["received_at"] = json!(stamp);
    }
    part
}

/// A stamp as RFC 3339 has it; before XEP-0203 it was `20020910T23:08:25`.
fn stamp(text: &str) -> String {
    match text.split_once('T') {
        Some((date, time)) if date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()) => {
            let time = time.trim_end_matches('Z');
            format!("{}-{}-{}T{time}Z", &date[..4], &date[4..6], &date[6..])
        }
        _ => text.to_owned(),
    }
}

/// How a node is configured.
fn node(configure: &Element) -> Option<Named> {
    let name = configure.attr("node").filter(|_| configure.name() == "configure")?;
    let form = configure.child("x", ns::DATA_FORMS);
    let field = |var: &str| {
        let mut fields = form.into_iter().flat_map(Element::children);
        let field = fields.find(|field| field.name() == "field" && field.attr("var") == Some(var))?;
        field.child("value", ns::DATA_FORMS).map(Element::text)
    };
    let mut part = json!({ "kind": "node", "name": name });
    // What else there is, such as lists of who may read, this server does not have: then the account alone reads it.
    if let Some(access) = field("pubsub#access_model") {
        let is_known = matches!(&*access, "open" | "presence" | "roster" | "whitelist");
        part["access_model"] = json!(if is_known { &access } else { "whitelist" });
    }
    Some((format!("node {name}"), Ok(part)))
}

/// The items of a node, in their order.
fn items(items: &Element) -> Vec<Named> {
    let Some(node) = items.attr("node").filter(|_| items.name() == "items") else { return Vec::new() };
    let found = items.children().filter(|item| item.name() == "item");
    found
        .map(|item| {
            let id = item.attr("id").unwrap_or("current");
            let payload = item.children().next().ok_or_else(|| "it has no payload".to_owned());
            let part =
                payload.map(|payload| json!({ "kind": "item", "node": node, "id": id, "xml": xml(payload) }));
            (format!("item {id} of {node}"), part)
        })
        .collect()
}
