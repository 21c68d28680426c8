//! What was said in a room lately: those who enter are given some of it (XEP-0045 §7.2.13).

use super::xml::request::HistoryWanted;
use crate::message::RoomStanza;
use crate::model::{ArchiveId, UnixMs};
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::SharedStanza;
use carillon_wire::xml::Element;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of messages that a room remembers. Their number is what the room gives at most (`maxhistoryfetch`).
pub(super) const HISTORY_BYTES_MAX: usize = 256 * 1024;

/// What was said lately. In a room with an archive it is known only while clients enter that want it; then it is read from there again.
#[derive(Debug, Default)]
pub(super) struct History(Option<Box<Lately>>);

#[derive(Debug, Default)]
struct Lately {
    /// The oldest first.
    messages: VecDeque<Said>,
    bytes: usize,
    /// How often the shard has tidied since somebody was given it.
    idle: Cell<u8>,
}

/// A message that was said.
#[derive(Debug)]
struct Said {
    at: UnixMs,
    /// Its number in the archive, if it is there.
    id: Option<ArchiveId>,
    message: Arc<SharedStanza>,
}

/// How often the shard tidies before what is in the archive is forgotten.
const IDLE_TURNS: u8 = 6;

impl History {
    /// Whether all is known that the archive has.
    pub(super) fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// From now on nothing is known but what is said.
    pub(super) fn begin(&mut self) {
        self.0 = Some(Box::default());
    }

    /// Remembers a message, and forgets those before the last `max`; not one that is in the archive while others are not known that are.
    pub(super) fn push(
        &mut self,
        message: Arc<SharedStanza>,
        at: UnixMs,
        id: Option<ArchiveId>,
        max: usize,
        is_archived: bool,
    ) {
        if self.0.is_none() && is_archived {
            return;
        }
        let lately = self.0.get_or_insert_default();
        lately.bytes += message.memory_bytes();
        lately.messages.push_back(Said { at, id, message });
        while lately.messages.len() > max || lately.bytes > HISTORY_BYTES_MAX {
            let Some(oldest) = lately.messages.pop_front() else { break };
            lately.bytes -= oldest.message.memory_bytes();
        }
    }

    /// A message is replaced by what is left of it.
    pub(super) fn replace(&mut self, id: ArchiveId, message: Arc<SharedStanza>) {
        let Some(lately) = &mut self.0 else { return };
        if let Some(said) = lately.messages.iter_mut().find(|said| said.id == Some(id)) {
            lately.bytes = lately.bytes + message.memory_bytes() - said.message.memory_bytes();
            said.message = message;
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// The shard tidies: what nobody was given lately is forgotten.
    pub(super) fn tidy(&mut self) {
        let Some(lately) = &self.0 else { return };
        let idle = lately.idle.get() + 1;
        lately.idle.set(idle);
        if idle >= IDLE_TURNS {
            self.0 = None;
        }
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
        let Some(lately) = &self.0 else { return given };
        lately.idle.set(0);
        for said in lately
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
