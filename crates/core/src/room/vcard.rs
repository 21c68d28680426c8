//! What occupants tell of themselves (XEP-0054), asked for by their addresses in the room: it is answered from what their accounts keep, so
//! that it is there whatever their clients do.

use super::asker::{refuse, reply};
use super::home::Home;
use super::step::Step;
use crate::error::{StanzaError, store_unavailable};
use crate::model::RoomKey;
use crate::ports::Fault;
use crate::ports::store::vcard::ReadVcard;
use crate::session::Cx;
use bytes::Bytes;
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, Payload, Stanza};

impl Home {
    /// Whether a request to an occupant is for its vCard.
    pub(super) fn is_for_vcard(stanza: &Stanza) -> bool {
        stanza.kind == Kind::Iq(IqType::Get) && stanza.payload.find("vCard", ns::VCARD).is_some()
    }

    /// An occupant asks for the vCard of another.
    pub(super) fn read_vcard(
        &mut self,
        stanza: &Stanza,
        key: &RoomKey,
        cx: &mut Cx<'_>,
    ) -> Result<(), StanzaError> {
        self.sender(stanza)?;
        let nick = stanza.to.as_ref().and_then(Jid::resource).unwrap_or_default();
        let of = self.state.occupants.named(nick).ok_or(StanzaError::new(Condition::ItemNotFound))?;
        let domain = cx.shard.domains.named(of.account.domain()).map(|domain| domain.id);
        let (Some(domain), Some(local)) = (domain, of.account.local().map(Box::from)) else {
            return Err(StanzaError::new(Condition::ServiceUnavailable));
        };
        self.ask(key, ReadVcard { domain, local }, Step::Vcard(Box::new(stanza.clone())), cx);
        Ok(())
    }

    /// The vCard was read.
    pub(super) fn show_vcard(request: &Stanza, answer: Result<Option<Bytes>, Fault>, cx: &mut Cx<'_>) {
        match answer {
            Ok(Some(xml)) => {
                let mut answer = request.result_reply();
                answer.payload = Payload::from_raw(xml);
                reply(answer, cx);
            }
            Ok(None) => refuse(request, &StanzaError::new(Condition::ServiceUnavailable), cx),
            Err(_) => refuse(request, &store_unavailable(), cx),
        }
    }
}
