//! Data forms (XEP-0004) of topics: configuration, publish-options, meta-data (XEP-0060 §16.4).

use super::{Terms, refusal};
use crate::error::StanzaError;
use crate::model::{Access, Affiliation, ConfigChange, PublishModel, SendLast, TopicConfig, TopicRecord};
use carillon_wire::ns;
use carillon_wire::stanza::Condition;
use carillon_wire::xml::Element;

const ACCESS: &[(&str, Access)] = &[
    ("open", Access::Open),
    ("whitelist", Access::Whitelist),
    ("presence", Access::Presence),
    ("roster", Access::Roster),
];
const PUBLISH: &[(&str, PublishModel)] = &[
    ("publishers", PublishModel::Publishers),
    ("subscribers", PublishModel::Subscribers),
    ("open", PublishModel::Open),
];
const SEND_LAST: &[(&str, SendLast)] = &[
    ("never", SendLast::Never),
    ("on_sub", SendLast::OnSub),
    ("on_sub_and_presence", SendLast::OnSubAndPresence),
];

/// The access models that topics have: the first ones.
const OF_TOPICS: usize = 2;
/// The publish models that nodes of accounts have: the first one.
const OF_ACCOUNTS: usize = 1;

impl Terms {
    /// The access models that there are.
    fn access(&self) -> &'static [(&'static str, Access)] {
        if self.is_personal { ACCESS } else { ACCESS.split_at(OF_TOPICS).0 }
    }

    /// The publish models that there are.
    fn publish(&self) -> &'static [(&'static str, PublishModel)] {
        if self.is_personal { PUBLISH.split_at(OF_ACCOUNTS).0 } else { PUBLISH }
    }
}

/// Fields for which only one value is supported: the type of the field, the value, and its label.
const FIXED: &[(&str, &str, &str, &str)] = &[
    ("node_type", "list-single", "leaf", "Topics hold items, not other topics"),
    ("subscribe", "boolean", "1", "Accounts may subscribe"),
    ("deliver_notifications", "boolean", "1", "Subscribers are sent each item"),
    ("presence_based_delivery", "boolean", "1", "Items are sent to available sessions only"),
    ("notification_type", "list-single", "headline", "The type of the messages that carry items"),
    ("item_expire", "list-single", "max", "Items are kept until newer ones take their place"),
    ("notify_config", "boolean", "0", "Subscribers are not told of a new configuration"),
    ("notify_sub", "boolean", "0", "Owners are not told of new subscribers"),
    ("purge_offline", "boolean", "0", "Items stay when their publisher goes"),
    ("tempsub", "boolean", "0", "Subscriptions stay until they are ended"),
];
/// Fields that ask for something unsupported, and without a value for nothing; forms of other services have them.
const EMPTY: &[&str] = &[
    "children",
    "children_association_whitelist",
    "children_max",
    "collection",
    "max_payload_size",
    "replyroom",
    "replyto",
    "roster_groups_allowed",
];
/// Fields that describe a topic and change nothing; their values are not stored.
const INFORMATIVE: &[&str] =
    &["description", "type", "language", "contact", "body_xslt", "dataform_xslt", "itemreply"];

/// A form that was filled in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Filled {
    /// The changes of supported fields.
    pub change: ConfigChange,
    /// Fields that ask for something that the service does not do.
    pub wrong: Vec<String>,
    /// Fields that describe the topic; their values are not stored.
    pub informative: Vec<String>,
}

/// Reads a form of this type, for a service of these terms.
pub(super) fn parse(x: &Element, form_type: &str, terms: &Terms) -> Result<Filled, StanzaError> {
    let (change, wrong, informative) = (ConfigChange::default(), Vec::new(), Vec::new());
    let mut filled = Filled { change, wrong, informative };
    for field in x.children().filter(|child| child.is("field", ns::DATA_FORMS)) {
        let var = field.attr("var").unwrap_or_default();
        let value = field.child("value", ns::DATA_FORMS).map(Element::text).unwrap_or_default();
        let value = value.trim();
        if var == "FORM_TYPE" && value != form_type {
            let text = format!("the form is of type {form_type}");
            return Err(StanzaError::new(Condition::BadRequest).with_text(text));
        }
        let name = var.strip_prefix("pubsub#").unwrap_or_default();
        if INFORMATIVE.contains(&name) {
            filled.informative.push(var.to_owned());
        } else if var != "FORM_TYPE"
            && set(&mut filled.change, name, value, terms).is_none()
            && !is_met(name, value)
        {
            filled.wrong.push(var.to_owned());
        }
    }
    Ok(filled)
}

/// Sets a field of a configuration; none if there is no such field, or no such value of it.
fn set(change: &mut ConfigChange, name: &str, value: &str, terms: &Terms) -> Option<()> {
    match name {
        "title" => change.title = Some(value.to_owned()).filter(|title| title.len() <= TITLE_BYTES_MAX),
        "access_model" => change.access_model = Some(word(terms.access(), value)?),
        "publish_model" => change.publish_model = Some(word(terms.publish(), value)?),
        "max_items" if value == "max" => change.max_items = Some(terms.max_items),
        "max_items" => {
            let max = value.parse().ok()?;
            change.max_items = Some(max).filter(|max| (1..=terms.max_items).contains(max));
            return change.max_items.map(|_| ());
        }
        "persist_items" => change.persist_items = Some(boolean(value)?),
        "deliver_payloads" => change.deliver_payloads = Some(boolean(value)?),
        "send_last_published_item" => change.send_last_published_item = Some(word(SEND_LAST, value)?),
        "notify_retract" => change.notify_retract = Some(boolean(value)?),
        "notify_delete" => change.notify_delete = Some(boolean(value)?),
        _ => return None,
    }
    // A title that is too long is no value.
    (name != "title" || change.title.is_some()).then_some(())
}

/// Whether a field that no topic can be configured by asks for what is done anyway.
fn is_met(name: &str, value: &str) -> bool {
    let is_it = |(fixed, kind, only, _): &(&str, &str, &str, &str)| {
        let value = match (*kind, value) {
            ("boolean", "true") => "1",
            ("boolean", "false") => "0",
            (_, value) => value,
        };
        *fixed == name && *only == value
    };
    FIXED.iter().any(is_it) || (value.is_empty() && EMPTY.contains(&name))
}

/// Reads a configuration form (XEP-0060 §8.2). Descriptive fields are ignored; unsupported ones are refused, all of them by name, so that
/// nobody relies on them.
pub(super) fn parse_config(x: &Element, terms: &Terms) -> Result<ConfigChange, StanzaError> {
    let Filled { change, wrong, .. } = parse(x, ns::PUBSUB_NODE_CONFIG, terms)?;
    match wrong.is_empty() {
        true => Ok(change),
        false => Err(StanzaError::new(Condition::NotAcceptable).with_text(not_here(&wrong))),
    }
}

/// Reads the preconditions of a publication (XEP-0060 §7.1.5). An unknown one cannot be met.
pub(super) fn parse_options(options: &Element, terms: &Terms) -> Result<ConfigChange, StanzaError> {
    let x = options.child("x", ns::DATA_FORMS).ok_or(StanzaError::new(Condition::BadRequest))?;
    let Filled { change, mut wrong, informative } = parse(x, ns::PUBSUB_PUBLISH_OPTIONS, terms)?;
    wrong.extend(informative);
    match wrong.is_empty() {
        true => Ok(change),
        false => Err(refusal(Condition::Conflict, "precondition-not-met").with_text(not_here(&wrong))),
    }
}

/// Which fields are wrong; of very many the first.
fn not_here(fields: &[String]) -> String {
    let mut text = String::from("this service does not have these fields, or not these values of them: ");
    for (at, field) in fields.iter().enumerate() {
        if text.len() + field.len() > NAMES_BYTES_MAX {
            text.push_str(", …");
            break;
        }
        text.push_str(if at > 0 { ", " } else { "" });
        text.push_str(field);
    }
    text
}

/// The configuration form of a topic, with its present values.
pub(super) fn config(config: &TopicConfig, terms: &Terms) -> Element {
    let mut x = Element::new("x", ns::DATA_FORMS)
        .with_attr("type", "form")
        .with_child(form_type(ns::PUBSUB_NODE_CONFIG))
        .with_child(field("title", "text-single", "A name for people", &config.title))
        .with_child(list("access_model", "Who may subscribe and read", terms.access(), config.access_model))
        .with_child(list("publish_model", "Who may publish", terms.publish(), config.publish_model))
        .with_child(field("max_items", "text-single", "Items to keep", &config.max_items.to_string()))
        .with_child(toggle("persist_items", "Keep items", config.persist_items))
        .with_child(toggle("deliver_payloads", "Send items with their payloads", config.deliver_payloads))
        .with_child(list(
            "send_last_published_item",
            "When to send the last item",
            SEND_LAST,
            config.send_last_published_item,
        ))
        .with_child(toggle("notify_retract", "Tell subscribers of retracted items", config.notify_retract))
        .with_child(toggle("notify_delete", "Tell subscribers when the topic is gone", config.notify_delete));
    for (name, kind, value, label) in FIXED {
        let mut field = field(name, kind, label, value);
        if *kind == "list-single" {
            field.push(option(value));
        }
        x.push(field);
    }
    x
}

/// The meta-data of a topic, which anyone may read (XEP-0060 §16.4.3).
pub(super) fn meta_data(record: &TopicRecord) -> Element {
    let config = &record.config;
    let result = |name: &str, value: &str| {
        let value = Element::new("value", ns::DATA_FORMS).with_text(value);
        Element::new("field", ns::DATA_FORMS).with_attr("var", format!("pubsub#{name}")).with_child(value)
    };
    let mut owners =
        Element::new("field", ns::DATA_FORMS).with_attr("var", "pubsub#owner").with_attr("type", "jid-multi");
    for (jid, _) in record.affiliations.iter().filter(|(_, a)| *a == Affiliation::Owner).take(100) {
        owners.push(Element::new("value", ns::DATA_FORMS).with_text(jid.as_str()));
    }
    Element::new("x", ns::DATA_FORMS)
        .with_attr("type", "result")
        .with_child(form_type(ns::PUBSUB_META_DATA))
        .with_child(result("title", &config.title))
        .with_child(result("creation_date", &record.created.to_xmpp()))
        .with_child(owners)
        .with_child(result("access_model", name_of(ACCESS, config.access_model)))
        .with_child(result("publish_model", name_of(PUBLISH, config.publish_model)))
        .with_child(result("max_items", &config.max_items.to_string()))
}

fn form_type(ns: &str) -> Element {
    Element::new("field", ns::DATA_FORMS)
        .with_attr("var", "FORM_TYPE")
        .with_attr("type", "hidden")
        .with_child(Element::new("value", ns::DATA_FORMS).with_text(ns))
}

fn field(name: &str, kind: &str, label: &str, value: &str) -> Element {
    Element::new("field", ns::DATA_FORMS)
        .with_attr("var", format!("pubsub#{name}"))
        .with_attr("type", kind)
        .with_attr("label", label)
        .with_child(Element::new("value", ns::DATA_FORMS).with_text(value))
}

fn toggle(name: &str, label: &str, on: bool) -> Element {
    field(name, "boolean", label, if on { "1" } else { "0" })
}

fn list<T: Copy + PartialEq>(name: &str, label: &str, words: &[(&'static str, T)], value: T) -> Element {
    let mut list = field(name, "list-single", label, name_of(words, value));
    words.iter().for_each(|(word, _)| list.push(option(word)));
    list
}

fn option(value: &str) -> Element {
    let value = Element::new("value", ns::DATA_FORMS).with_text(value);
    Element::new("option", ns::DATA_FORMS).with_child(value)
}

fn name_of<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, v)| *v == value).map_or("", |(word, _)| word)
}

fn word<T: Copy>(words: &[(&str, T)], value: &str) -> Option<T> {
    words.iter().find(|(word, _)| *word == value).map(|(_, v)| *v)
}

fn boolean(value: &str) -> Option<bool> {
    match value {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}

/// Bytes of a title.
const TITLE_BYTES_MAX: usize = 256;
/// Bytes of a text that names fields.
const NAMES_BYTES_MAX: usize = 1024;
