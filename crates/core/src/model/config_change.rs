//! A partial configuration: what a form says of a topic or a node, the rest left as it is.

use super::{Access, PublishModel, SendLast, TopicConfig};

/// A partial configuration: a field that is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// [`TopicConfig::send_last_published_item`].
    pub send_last_published_item: Option<SendLast>,
    /// [`TopicConfig::notify_retract`].
    pub notify_retract: Option<bool>,
    /// [`TopicConfig::notify_delete`].
    pub notify_delete: Option<bool>,
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
            send_last_published_item: self
                .send_last_published_item
                .unwrap_or(config.send_last_published_item),
            notify_retract: self.notify_retract.unwrap_or(config.notify_retract),
            notify_delete: self.notify_delete.unwrap_or(config.notify_delete),
        }
    }

    /// Whether the configuration has all these values already (XEP-0060 §7.1.5).
    pub fn is_met_by(&self, config: &TopicConfig) -> bool {
        self.apply(config) == *config
    }
}
