//! A connection of the light protocol between two processes.

use super::Rest;
use crate::model::{DomainId, Mono, PubsubEvent, TopicId};
use std::sync::Arc;

/// An open connection on its way to another process. How fast it may send is counted anew there.
#[derive(Debug)]
pub struct Moved {
    /// The domain whose topics it may follow, if that is served.
    pub(crate) domain: Option<DomainId>,
    /// Bytes of an incomplete frame, or of frames that wait.
    pub(crate) rest: Rest,
    /// When anything was last heard from the client.
    pub(crate) heard: Mono,
    /// The topics that it follows, and their names.
    pub(crate) topics: Vec<(TopicId, Arc<str>)>,
    /// Their last items. All who follow a topic share it.
    pub(crate) last_items: Vec<Arc<PubsubEvent>>,
}

crate::form! { struct Moved { domain, rest, heard, topics, last_items } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::{NOW_MS, proves};

    #[test]
    fn its_form() {
        let mut rest = Rest::default();
        rest.keep(b"{\"action\"");
        let topics = vec![(TopicId(4), "news".into()), (TopicId(5), "scores".into())];
        let (domain, heard) = (Some(DomainId(1)), Mono(NOW_MS - 5000));
        proves("light Moved", &Moved { domain, rest, heard, topics, last_items: Vec::new() });
    }
}
