//! A sender retracts what it said (XEP-0424): a tombstone is left of it in the archive, and all are told.

use super::asker::Asker;
use super::home::Home;
use super::step::{Retracted, Retracting, Step};
use super::xml::{request, user};
use crate::command::RoomRefusal;
use crate::error::StanzaError;
use crate::model::{ArchiveId, ArchivedMessage, RoomKey, RoomRecord};
use crate::ports::store::archive::ArchivePageAnswer;
use crate::ports::store::rooms::{ReplaceRoomMessage, RoomArchivedMessages};
use crate::ports::{Fault, Missing};
use crate::session::Cx;
use carillon_wire::Framing;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, Payload, SharedStanza, Stanza};
use carillon_wire::xml::Element;
use std::sync::Arc;

impl Home {
    /// Says something to all; what it retracts is looked for before.
    pub(super) fn utter(
        &mut self,
        record: &Arc<RoomRecord>,
        said: Stanza,
        sender: BareJid,
        asker: Asker,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let Some(id) = request::retracted(&said.payload).filter(|_| record.config.archive) else {
            return self.keep(record, said, sender, asker, key, cx);
        };
        let question = RoomArchivedMessages { room: record.id, since: ArchiveId(0), ids: vec![id] };
        let of = Retracting { record: record.clone(), id, said, sender, asker };
        self.hold();
        self.ask(key, question, Step::Retracting(Box::new(of)), cx);
    }

    /// The message to be retracted was read.
    pub(super) fn found_own(
        &mut self,
        of: Retracting,
        answer: Result<ArchivePageAnswer, Fault>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let Retracting { record, id, said, sender, asker } = of;
        self.open(record.clone());
        let original = match answer {
            Ok(ArchivePageAnswer::Page { messages, .. }) => messages.first().and_then(ArchivedMessage::read),
            Ok(_) => None,
            Err(fault) => return asker.refused(fault.into(), cx),
        };
        match original {
            Some(original) if !is_of_one(&original, &said) => {
                let error = StanzaError::new(Condition::Forbidden);
                let error = error.with_text("only who said something retracts it");
                asker.refused_by(&error, RoomRefusal::NoMessage, cx);
            }
            Some(original) if original.payload.find("retracted", ns::RETRACT).is_none() => {
                let left = tombstone(original, &said, &cx.now.unix.to_xmpp());
                let mut stanza = Vec::new();
                left.write(&mut stanza, Framing::Tcp);
                let question =
                    ReplaceRoomMessage { room: record.id, id, stanza: stanza.into(), facts: Vec::new() };
                let of = Retracting { record, id, said, sender, asker };
                self.hold();
                self.ask(key, question, Step::Retracted(Box::new(Retracted { of, left })), cx);
            }
            // It is not there any more, or was retracted before: clients that have it are told.
            Some(_) | None => self.keep(&record, said, sender, asker, key, cx),
        }
    }

    /// A tombstone is left of the message, or it was not there any more: all are told.
    pub(super) fn retracted(
        &mut self,
        of: Retracted,
        answer: Result<Result<(), Missing>, Fault>,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) {
        let Retracted { of: Retracting { record, id, said, sender, asker }, mut left } = of;
        match answer {
            Ok(done) => {
                self.open(record.clone());
                if done.is_ok() {
                    left.payload.push_element(&user::stanza_id(&self.state.address, id));
                    self.state.history.replace(id, Arc::new(SharedStanza::new(left)));
                }
                self.keep(&record, said, sender, asker, key, cx);
            }
            Err(fault) => {
                self.open(record);
                asker.refused(fault.into(), cx);
            }
        }
    }
}

/// Whether both are of one sender: of an occupant by its id, of an account by its address.
fn is_of_one(one: &Stanza, other: &Stanza) -> bool {
    let id = |of: &Stanza| {
        let id = of.payload.find("occupant-id", ns::OCCUPANT_ID);
        id.and_then(|id| id.element().attr("id").map(str::to_owned))
    };
    match (id(one), id(other)) {
        (None, None) => one.from == other.from,
        (one, other) => one == other,
    }
}

/// What is left of a message (XEP-0424 §5).
fn tombstone(mut original: Stanza, by: &Stanza, stamp: &str) -> Stanza {
    let mut retracted = Element::new("retracted", ns::RETRACT).with_attr("stamp", stamp);
    if let Some(id) = &by.id {
        retracted.set_attr("id", &**id);
    }
    let sender = original.payload.find("occupant-id", ns::OCCUPANT_ID).map(|id| id.element());
    original.payload = Payload::from_elements([Some(retracted), sender].iter().flatten());
    original
}
