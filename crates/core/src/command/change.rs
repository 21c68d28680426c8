//! Which configurations topics may have.

use super::{Refusal, Unacceptable};
use crate::model::TopicConfig;
use crate::settings::Limits;

/// Whether the values are allowed.
pub(crate) fn check_topic_config(config: &TopicConfig, limits: &Limits) -> Result<(), Refusal> {
    if config.title.len() > 256 {
        return Err(Refusal::Unacceptable(Unacceptable::Title));
    }
    if config.max_items == 0 || config.max_items > limits.topic_items {
        return Err(Refusal::Unacceptable(Unacceptable::MaxItems));
    }
    Ok(())
}
