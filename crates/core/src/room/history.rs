//! What was said in a room lately: those who enter are given some of it (XEP-0045 §7.2.13).

use super::xml::request::HistoryWanted;
use crate::message::RoomStanza;
use crate::model::{ArchiveId, UnixMs};
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::SharedStanza;
use carillon_wire::xml::Element;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of messages that a room remembers. Their number is what the room gives at most (`maxhistoryfetch`).
pub(super) const HISTORY_BYTES_MAX: usize = 256 * 1024;

/// What was said lately, the oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    messages: VecDeque<Said>,
    bytes: usize,
}

/// A message that was said.
#[derive(Debug)]
struct Said {
    at: UnixMs,
    /// Its number in the archive, if it is there.
    id: Option<ArchiveId>,
    message: Arc<SharedStanza>,
}

impl History {
    /// Remembers a message, and forgets those before the last `max`.
    pub(super) fn push(&mut self, message: Arc<SharedStanza>, at: UnixMs, id: Option<ArchiveId>, max: usize) {
        self.bytes += message.memory_bytes();
        self.messages.push_back(Said { at, id, message });
        while self.messages.len() > max || self.bytes > HISTORY_BYTES_MAX {
            let Some(oldest) = self.messages.pop_front() else { break };
            self.bytes -= oldest.message.memory_bytes();
        }
    }

    /// A message is replaced by what is left of it.
    pub(super) fn replace(&mut self, id: ArchiveId, message: Arc<SharedStanza>) {
        if let Some(said) = self.messages.iter_mut().find(|said| said.id == Some(id)) {
            self.bytes = self.bytes + message.memory_bytes() - said.message.memory_bytes();
            said.message = message;
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = History::default();
    }

    /// What somebody is given who enters: `max` messages, or fewer if that is wanted, and nothing that was said before `since`.
    pub(super) fn given(
        &self,
        wanted: &HistoryWanted,
        max: usize,
        since: UnixMs,
        room: &BareJid,
        behind: ArchiveId,
    ) -> Vec<RoomStanza> {
        let max = wanted.stanzas.map_or(max, |wanted| wanted.min(max));
        let (mut left, mut given) = (wanted.chars, Vec::new());
        for said in self
            .messages
            .iter()
            .rev()
            .take(max)
            .take_while(|said| said.at >= since && said.id.is_none_or(|id| id > behind))
        {
            let bytes = said.message.stanza().payload.bytes().len();
            match left.checked_sub(bytes) {
                Some(rest) => left = rest,
                None => break,
            }
            let mut message = said.message.stanza().clone();
            message.payload.push_element(&delay(room, said.at));
            given.push(RoomStanza::for_all(message));
        }
        given.reverse();
        given
    }
}

/// When something was said that comes later (XEP-0203).
pub(super) fn delay(room: &BareJid, at: UnixMs) -> Element {
    Element::new("delay", ns::DELAY).with_attr("from", room.as_str()).with_attr("stamp", at.to_xmpp())
}
