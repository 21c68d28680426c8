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

impl Terms {
    /// The access models that there are.
    fn access(&self) -> &'static [(&'static str, Access)] {
        if self.is_personal { ACCESS } else { ACCESS.split_at(OF_TOPICS).0 }
    }
}

/// Fields for which only one value is supported: the type of the field, the value, and its label.
const FIXED: &[(&str, &str, &str, &str)] = &[
    ("node_type", "list-single", "leaf", "Topics hold items, not other topics"),
    ("subscribe", "boolean", "1", "Accounts may subscribe"),
    ("deliver_notifications", "boolean", "1", "Subscribers are sent each item"),
    ("deliver_payloads", "boolean", "1", "Items are sent with their payloads"),
    ("presence_based_delivery", "boolean", "1", "Items are sent to available sessions only"),
    ("notification_type", "list-single", "headline", "The type of the messages that carry items"),
    ("item_expire", "list-single", "max", "Items are kept until newer ones take their place"),
    ("notify_config", "boolean", "0", "Subscribers are not told of a new configuration"),
    ("notify_sub", "boolean", "0", "Owners are not told of new subscribers"),
    ("purge_offline", "boolean", "0", "Items stay when their publisher goes"),
];
/// Fields that describe a topic and change nothing; their values are not stored.
const INFORMATIVE: &[&str] =
    &["description", "type", "language", "contact", "body_xslt", "dataform_xslt", "itemreply"];

/// A form that was filled in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Filled {
    /// The changes of supported fields.
    pub change: ConfigChange,
    /// Whether it also has a precondition that no topic here meets.
    pub unmet: Option<Unmet>,
}

/// A field that cannot be applied.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unmet {
    /// It describes the topic; its value is not stored.
    Informative,
    /// It asks for something unsupported; this is its name.
    Unsupported(String),
}

/// Reads a form of this type, for a service of these terms.
pub(super) fn parse(x: &Element, form_type: &str, terms: &Terms) -> Result<Filled, StanzaError> {
    let mut filled = Filled { change: ConfigChange::default(), unmet: None };
    for field in x.children().filter(|child| child.is("field", ns::DATA_FORMS)) {
        let var = field.attr("var").unwrap_or_default();
        let value = field.child("value", ns::DATA_FORMS).map(Element::text).unwrap_or_default();
        let value = value.trim();
        let change = &mut filled.change;
        match var {
            "FORM_TYPE" if value == form_type => {}
            "FORM_TYPE" => {
                let text = format!("the form is of type {form_type}");
                return Err(StanzaError::new(Condition::BadRequest).with_text(text));
            }
            "pubsub#title" => change.title = Some(value.to_owned()),
            "pubsub#access_model" => change.access_model = Some(word(terms.access(), var, value)?),
            "pubsub#publish_model" => change.publish_model = Some(word(PUBLISH, var, value)?),
            "pubsub#max_items" if value == "max" => change.max_items = Some(terms.max_items),
            "pubsub#max_items" => change.max_items = Some(value.parse().map_err(|_| invalid(var))?),
            "pubsub#persist_items" => change.persist_items = Some(boolean(var, value)?),
            "pubsub#send_last_published_item" => {
                change.send_last_published_item = Some(word(SEND_LAST, var, value)?);
            }
            "pubsub#notify_retract" => change.notify_retract = Some(boolean(var, value)?),
            "pubsub#notify_delete" => change.notify_delete = Some(boolean(var, value)?),
            _ => match other(var, value) {
                None => {}
                Some(Unmet::Informative) => {
                    filled.unmet.get_or_insert(Unmet::Informative);
                }
                unsupported => filled.unmet = unsupported,
            },
        }
    }
    Ok(filled)
}

/// Judges a field that no topic can be configured by.
fn other(var: &str, value: &str) -> Option<Unmet> {
    let name = var.strip_prefix("pubsub#").unwrap_or_default();
    if INFORMATIVE.contains(&name) {
        return Some(Unmet::Informative);
    }
    let is_met = FIXED.iter().any(|(fixed, kind, only, _)| {
        let value = match (*kind, value) {
            ("boolean", "true") => "1",
            ("boolean", "false") => "0",
            (_, value) => value,
        };
        *fixed == name && *only == value
    });
    // The topic is in no collection; forms of other services say so.
    if is_met || (name == "collection" && value.is_empty()) {
        None
    } else {
        Some(Unmet::Unsupported(var.to_owned()))
    }
}

/// Reads a configuration form (XEP-0060 §8.2). Descriptive fields are ignored; unsupported ones are refused, so that nobody
/// relies on them.
pub(super) fn parse_config(x: &Element, terms: &Terms) -> Result<ConfigChange, StanzaError> {
    let filled = parse(x, ns::PUBSUB_NODE_CONFIG, terms)?;
    match filled.unmet {
        None | Some(Unmet::Informative) => Ok(filled.change),
        Some(Unmet::Unsupported(var)) => {
            let text = format!("this service does not have {var}, or not that value of it");
            Err(StanzaError::new(Condition::NotAcceptable).with_text(text))
        }
    }
}

/// Reads the preconditions of a publication (XEP-0060 §7.1.5). An unknown one cannot be met.
pub(super) fn parse_options(options: &Element, terms: &Terms) -> Result<ConfigChange, StanzaError> {
    let x = options.child("x", ns::DATA_FORMS).ok_or(StanzaError::new(Condition::BadRequest))?;
    let filled = parse(x, ns::PUBSUB_PUBLISH_OPTIONS, terms)?;
    match filled.unmet {
        Some(_) => Err(refusal(Condition::Conflict, "precondition-not-met")),
        None => Ok(filled.change),
    }
}

/// The configuration form of a topic, with its present values.
pub(super) fn config(config: &TopicConfig, terms: &Terms) -> Element {
    let mut x = Element::new("x", ns::DATA_FORMS)
        .with_attr("type", "form")
        .with_child(form_type(ns::PUBSUB_NODE_CONFIG))
        .with_child(field("title", "text-single", "A name for people", &config.title))
        .with_child(list("access_model", "Who may subscribe and read", terms.access(), config.access_model))
        .with_child(list("publish_model", "Who may publish", PUBLISH, config.publish_model))
        .with_child(field("max_items", "text-single", "Items to keep", &config.max_items.to_string()))
        .with_child(toggle("persist_items", "Keep items", config.persist_items))
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

fn word<T: Copy>(words: &[(&str, T)], var: &str, value: &str) -> Result<T, StanzaError> {
    words.iter().find(|(word, _)| *word == value).map(|(_, v)| *v).ok_or_else(|| invalid(var))
}

fn boolean(var: &str, value: &str) -> Result<bool, StanzaError> {
    match value {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(invalid(var)),
    }
}

fn invalid(var: &str) -> StanzaError {
    StanzaError::new(Condition::NotAcceptable).with_text(format!("this service has no such value of {var}"))
}
