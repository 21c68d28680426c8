//! HTTP file upload (XEP-0363): gives slots, which take room of the account and of its domain, at `upload.DOMAIN`. What is put into them goes to the
//! HTTP side, which knows by signed tokens what is allowed here ([`UploadKey`]).

mod name;
mod xml;

use crate::error::{StanzaError, store_unavailable};
use crate::model::{Slot, UploadBounds, UploadId, UploadKey};
use crate::ports::Fault;
use crate::ports::store::uploads::{CreateSlot, CreateSlotAnswer};
use crate::session::hook::{Feature, Flow, Hooks, Service, Spec, Taken};
use crate::session::{BoundSession, Cx, Wait};
use crate::shard::Track;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Kind, Stanza};
use carillon_wire::xml::Element;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "upload",
    about: "Slots for files that clients upload by HTTP.",
    specs: &[Spec {
        id: "XEP-0363",
        title: "HTTP File Upload",
        version: "1.1.0",
        coverage: "All of it, where `upload.url` is set: slots at `upload.DOMAIN` for accounts of the domain, with bounds in bytes for a file, an account \
                   and a domain, and the errors for these. The right to put a file into its slot is an `Authorization` header.",
    }],
    services: &[SERVICE],
    is_on: |settings| !settings.upload.url.is_empty(),
    hooks: Hooks::NONE,
    ..Feature::NONE
};

const SERVICE: Service = Service {
    host: "upload",
    name: "File upload",
    identity: ("store", "file"),
    submit,
    place: None,
    is_for_others: false,
};

/// The namespace of slots.
const UPLOAD: &str = "urn:xmpp:http:upload:0";

/// A stanza for the service.
fn submit(session: &mut BoundSession, stanza: &mut Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    let is_to_service = stanza.to.as_ref().is_some_and(|to| to.local().is_none());
    if stanza.kind != Kind::Iq(IqType::Get) || !is_to_service {
        return Ok(Flow::Pass);
    }
    let query = stanza.payload.find("query", ns::DISCO_INFO).map(|query| query.element());
    if query.is_some_and(|query| query.attr("node").is_none()) {
        let info = xml::info(SERVICE.identity, SERVICE.name, cx.shard.settings.upload.file_bytes);
        session.send(&stanza.result_reply().with_payload(info), &Track::Nothing, cx);
        return Ok(Flow::Taken(Taken::Request));
    }
    match stanza.payload.find("request", UPLOAD).map(|request| request.element()) {
        Some(request) => slot(session, stanza, &request, cx),
        None => Ok(Flow::Pass),
    }
}

/// A slot is asked for: it is given once the store has it.
fn slot(
    session: &BoundSession,
    stanza: &Stanza,
    request: &Element,
    cx: &mut Cx<'_>,
) -> Result<Flow, StanzaError> {
    cx.check_room(session.domain)?;
    let settings = &cx.shard.settings.upload;
    let wanted = xml::read(request)?;
    if wanted.bytes > settings.file_bytes {
        return Err(xml::too_large(settings.file_bytes));
    }
    if !name::is_among(&settings.types, &wanted.media_type) {
        let text = "files of this type are not taken here";
        return Err(StanzaError::new(Condition::NotAcceptable).with_text(text));
    }
    let bounds = UploadBounds { account_bytes: settings.account_bytes, domain_bytes: settings.domain_bytes };
    let expires = cx.now.unix.plus(settings.slot_ms);
    let random = cx.shard.random.bytes();
    let id = UploadId(u128::from_be_bytes(*random.first_chunk().expect("16 of 32 bytes")));
    let (domain, local) = (session.domain, session.bare.local().into());
    let xml::Wanted { name, media_type, bytes } = wanted;
    let slot = Slot { domain, id, bytes, media_type: media_type.clone(), expires };
    let question = CreateSlot { domain, local, id, name: name.clone(), media_type, bytes, expires, bounds };
    let reply = stanza.result_reply();
    Ok(Flow::Wait(Wait::write(question, move |answer, cx| match answer {
        Ok(CreateSlotAnswer::Created) => {
            cx.reply(reply.with_payload(given(&slot, &name, cx)));
            Ok(Flow::Taken(Taken::Request))
        }
        Ok(CreateSlotAnswer::Full(until)) => Err(xml::full(until)),
        Ok(CreateSlotAnswer::NoAccount) => Err(StanzaError::new(Condition::ItemNotFound)),
        Err(fault) => Err(failed(fault)),
    })))
}

/// What a client is told of its slot.
fn given(slot: &Slot, file_name: &str, cx: &Cx<'_>) -> Element {
    let settings = &cx.shard.settings;
    let key = UploadKey::of(&settings.secret);
    let origin = settings.upload.url.trim_end_matches('/');
    let url = format!("{origin}/{}/{}", key.file(slot.domain, slot.id), name::encoded(file_name));
    xml::slot(&url, &key.slot(slot))
}

fn failed(fault: Fault) -> StanzaError {
    match fault {
        Fault::Busy => StanzaError::new(Condition::ResourceConstraint).with_text("try again later"),
        Fault::Closed | Fault::Broken | Fault::Unknown => store_unavailable(),
    }
}
