//! Something that happened on a topic, serialised once for all who are told.

use crate::model::{Domains, Item, Revision, TopicId};
use bytes::Bytes;
use carillon_wire::Framing;
use carillon_wire::xml::writer::escape_attr;
use std::sync::Arc;

/// Something that happened on a topic, serialised once for all who are told: each recipient adds only its own `to`.
#[derive(Debug)]
pub struct Notice {
    topic: TopicId,
    revision: Revision,
    /// When it was accepted, for the delivery latency.
    accepted: crate::model::UnixMs,
    retained: Retained,
    told: bool,
    /// From ` from='…'` to before ` to='`.
    head: Bytes,
    /// From behind the value of `to` to the end.
    tail: Bytes,
}

/// What a notice means for logins to come.
#[derive(Clone, Debug)]
pub enum Retained {
    /// This is what they are given from now on.
    Last(Arc<Notice>),
    /// There is nothing to give any more.
    Nothing,
    /// What they are given stays what it was.
    Unchanged,
}

impl Notice {
    /// The last item of a topic, as given at login, with the stamp of its publication (XEP-0203). None when its domain is
    /// gone.
    pub fn last(_item: &Arc<Item>, _domains: &Domains) -> Option<Notice> {
        None
    }

    /// The topic.
    pub fn topic(&self) -> TopicId {
        self.topic
    }

    /// The revision that made it.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// When it was accepted.
    pub fn accepted(&self) -> crate::model::UnixMs {
        self.accepted
    }

    /// What it means for logins to come.
    pub fn retained(&self) -> &Retained {
        &self.retained
    }

    /// Whether the topic's followers are told.
    pub fn is_told(&self) -> bool {
        self.told
    }

    /// Appends the message for one recipient.
    pub fn write(&self, out: &mut Vec<u8>, to: &str, framing: Framing) {
        out.extend_from_slice(match framing {
            Framing::Tcp => b"<message",
            Framing::WebSocket => b"<message xmlns='jabber:client'",
        });
        out.extend_from_slice(&self.head);
        out.extend_from_slice(b" to='");
        escape_attr(out, to);
        out.push(b'\'');
        out.extend_from_slice(&self.tail);
    }
}
