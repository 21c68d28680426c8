//! A partial configuration: what a form says of a topic or a node, the rest left as it is.

use super::{Access, PublishModel, SendLast, TopicConfig};

/// A partial configuration: a field that is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConfigChange {
    /// [`TopicConfig::title`].
    pub title: Option<String>,
    /// [`TopicConfig::access_model`].
    pub access_model: Option<Access>,
    /// [`TopicConfig::publish_model`].
    pub publish_model: Option<PublishModel>,
    /// [`TopicConfig::max_items`].
    pub max_items: Option<u32>,
    /// [`TopicConfig::persist_items`].
    pub persist_items: Option<bool>,
    /// [`TopicConfig::deliver_payloads`].
    pub deliver_payloads: Option<bool>,
    /// [`TopicConfig::send_last_published_item`].
    pub send_last_published_item: Option<SendLast>,
    /// [`TopicConfig::notify_retract`].
    pub notify_retract: Option<bool>,
    /// [`TopicConfig::notify_delete`].
    pub notify_delete: Option<bool>,
}

crate::form! {
    struct ConfigChange {
        title,
        access_model,
        publish_model,
        max_items,
        persist_items,
        deliver_payloads,
        send_last_published_item,
        notify_retract,
        notify_delete,
    }
}

impl ConfigChange {
    /// The configuration after the change.
    pub fn apply(&self, config: &TopicConfig) -> TopicConfig {
        TopicConfig {
            title: self.title.as_ref().unwrap_or(&config.title).clone(),
            access_model: self.access_model.unwrap_or(config.access_model),
            publish_model: self.publish_model.unwrap_or(config.publish_model),
            max_items: self.max_items.unwrap_or(config.max_items),
            persist_items: self.persist_items.unwrap_or(config.persist_items),
            deliver_payloads: self.deliver_payloads.unwrap_or(config.deliver_payloads),
            send_last_published_item: self
                .send_last_published_item
                .unwrap_or(config.send_last_published_item),
            notify_retract: self.notify_retract.unwrap_or(config.notify_retract),
            notify_delete: self.notify_delete.unwrap_or(config.notify_delete),
        }
    }

    /// Which of these values the configuration does not have (XEP-0060 §7.1.5); an error if any.
    ///
    /// # Errors
    /// Their fields.
    pub fn check_met_by(&self, config: &TopicConfig) -> Result<(), Fields> {
        let differs = [
            self.title.as_ref().is_some_and(|title| *title != config.title),
            self.access_model.is_some_and(|model| model != config.access_model),
            self.publish_model.is_some_and(|model| model != config.publish_model),
            self.max_items.is_some_and(|max| max != config.max_items),
            self.persist_items.is_some_and(|on| on != config.persist_items),
            self.deliver_payloads.is_some_and(|on| on != config.deliver_payloads),
            self.send_last_published_item.is_some_and(|when| when != config.send_last_published_item),
            self.notify_retract.is_some_and(|on| on != config.notify_retract),
            self.notify_delete.is_some_and(|on| on != config.notify_delete),
        ];
        let bits = (0..).zip(differs).fold(0, |bits, (at, differs)| bits | u16::from(differs) << at);
        if bits == 0 { Ok(()) } else { Err(Fields(bits)) }
    }
}

/// Some of the fields of a configuration.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fields(u16);

crate::form! { struct Fields(bits) }

impl Fields {
    /// Their names in forms.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        (0u16..).zip(NAMES).filter(move |(at, _)| self.0 & 1 << at != 0).map(|(_, name)| *name)
    }
}

impl std::fmt::Debug for Fields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// In the order in which [`ConfigChange::check_met_by`] looks at them.
const NAMES: &[&str; 9] = &[
    "pubsub#title",
    "pubsub#access_model",
    "pubsub#publish_model",
    "pubsub#max_items",
    "pubsub#persist_items",
    "pubsub#deliver_payloads",
    "pubsub#send_last_published_item",
    "pubsub#notify_retract",
    "pubsub#notify_delete",
];
