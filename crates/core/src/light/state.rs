//! The states of a light connection.
//!
//! ```text
//! Opening ─<regular-socket/>─► Open ◄─answer─ Asking      (Asking: it waits for a topic's home, and is not read)
//!    │                          │  └─subscribe──►│
//!    └──────────────────────────┴────────────────┴─► Closing
//! ```

use crate::connection::Allowance;
use crate::form::{Form, Malformed, Reader, Writer};
use crate::model::{ConnId, Listed, Mono, TopicId};

/// A light connection in one of its states.
#[derive(Debug)]
pub enum Light {
    /// Awaits the opening.
    Opening(Rest),
    /// Requests are taken, items are given.
    Open(Open),
    /// Its last request awaits an answer; items are given meanwhile.
    Asking(Open),
    /// It was sent an error, and ends.
    Closing,
}

/// A connection that sent its opening.
#[derive(Debug)]
pub struct Open {
    pub(crate) conn: ConnId,
    pub(crate) rest: Rest,
    /// When anything was last heard from the client.
    pub(crate) heard: Mono,
    /// Frames of the present window.
    pub(crate) allowance: Allowance,
    /// The topics it follows, sorted by topic.
    pub(crate) topics: Vec<Listed>,
}

/// Bytes of an incomplete frame, or of frames that wait; none between two frames.
#[derive(Debug, Default)]
pub struct Rest(
    #[expect(clippy::box_collection, reason = "eight bytes in an idle session, not twenty-four")]
    Option<Box<Vec<u8>>>,
);

impl Rest {
    /// Keeps bytes.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.0 = Some(Box::new(bytes.to_vec()));
        }
    }

    /// The kept bytes with `more` appended; none when none are kept.
    pub(crate) fn take_with(&mut self, more: &[u8]) -> Option<Vec<u8>> {
        let mut kept = *self.0.take()?;
        kept.extend_from_slice(more);
        Some(kept)
    }
}

// Nothing and no bytes are the same.
impl Form for Rest {
    fn write(&self, out: &mut Writer) {
        out.string(self.0.as_ref().map_or(&[], |kept| kept.as_slice()));
    }

    fn read(input: &mut Reader<'_>) -> Result<Rest, Malformed> {
        let mut rest = Rest::default();
        rest.keep(&Vec::read(input)?);
        Ok(rest)
    }
}

impl Open {
    /// A connection that has just sent its opening.
    pub(crate) fn new(conn: ConnId, now: Mono) -> Open {
        let (rest, topics) = (Rest::default(), Vec::new());
        Open { conn, rest, heard: now, allowance: Allowance::new(now), topics }
    }

    /// Whether it follows a topic.
    pub(crate) fn follows(&self, topic: TopicId) -> bool {
        self.place(topic).is_ok()
    }

    /// Adds a topic.
    pub(crate) fn follow(&mut self, followed: Listed) {
        if let Err(at) = self.place(followed.topic) {
            self.topics.reserve_exact(1);
            self.topics.insert(at, followed);
        }
    }

    /// Removes a topic. Returns the connection's position in the topic's list, if it followed it.
    pub(crate) fn leave(&mut self, topic: TopicId) -> Option<Listed> {
        self.place(topic).ok().map(|at| self.topics.remove(at))
    }

    fn place(&self, topic: TopicId) -> Result<usize, usize> {
        self.topics.binary_search_by_key(&topic, |followed| followed.topic)
    }
}

impl Light {
    /// The open connection, whether it waits or not.
    pub(crate) fn open_mut(&mut self) -> Option<&mut Open> {
        match self {
            Light::Open(open) | Light::Asking(open) => Some(open),
            Light::Opening(_) | Light::Closing => None,
        }
    }

    /// From now on the connection waits for an answer.
    pub(crate) fn asking(self) -> Light {
        match self {
            Light::Open(open) => Light::Asking(open),
            other => other,
        }
    }

    /// Another session left a topic's list, and this one took its position there.
    pub fn moved(&mut self, followed: Listed) {
        let Some(open) = self.open_mut() else { return };
        let at = open.place(followed.topic).ok();
        if let Some(own) = at.and_then(|at| open.topics.get_mut(at)) {
            own.position = followed.position;
        }
    }

    /// Whether frames are taken now.
    pub(crate) fn is_reading(&self) -> bool {
        match self {
            Light::Opening(_) => true,
            Light::Open(open) => !open.allowance.is_throttled(),
            Light::Asking(_) | Light::Closing => false,
        }
    }

    pub(crate) fn rest_mut(&mut self) -> Option<&mut Rest> {
        match self {
            Light::Opening(rest) => Some(rest),
            Light::Open(open) | Light::Asking(open) => Some(&mut open.rest),
            Light::Closing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an idle light session costs in this crate, besides 24 bytes of its slot and of its timer each, and 12 bytes a
    /// topic. With the server's 104 bytes of a connection it stays below 500.
    #[test]
    fn a_light_session_is_small() {
        assert!(size_of::<Light>() <= 72, "{} bytes", size_of::<Light>());
        assert_eq!(size_of::<Listed>(), 8);
    }
}
