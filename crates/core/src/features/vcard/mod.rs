//! vcard-temp (XEP-0054): an account tells of itself, and the server shows it to whoever asks, also while the account is absent.

use crate::command::PendingIq;
use crate::error::{StanzaError, store_unavailable};
use crate::ports::store::vcard::{ReadVcard, StoreVcard};
use crate::session::hook::{
    AnswerOther, AskedHandler, At, Feature, Hooks, IqAnswer, IqHandler, Request, Spec,
};
use crate::session::{BoundSession, Cx, Wait};
use bytes::Bytes;
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Payload, Stanza};
use carillon_wire::xml::Element;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "vcard",
    about: "Shows what accounts tell of themselves.",
    specs: &[Spec {
        id: "XEP-0054",
        title: "vcard-temp",
        version: "1.3.0",
        coverage: "Own vCards are read (an empty one if there is none), replaced and, by an empty one, removed; those of others are read at their bare JIDs, by accounts \
                   of this node that they do not block. Whether there is an account without a vCard is not told. A vCard has as many \
                   bytes as `limits.vcard_bytes` says. Hashes of photos in presence (XEP-0153) pass as clients send them; the server adds \
                   none.",
    }],
    server_features: &[ns::VCARD],
    hooks: Hooks {
        iq: &[
            IqHandler { kind: IqType::Get, name: "vCard", ns: ns::VCARD, at: At::Account, handle: own },
            IqHandler { kind: IqType::Set, name: "vCard", ns: ns::VCARD, at: At::Account, handle: set },
        ],
        asked: &[
            AskedHandler {
                kind: IqType::Get,
                name: "vCard",
                ns: ns::VCARD,
                answer: AnswerOther::Now(show),
                is_same_for_all: false,
            },
            AskedHandler {
                kind: IqType::Set,
                name: "vCard",
                ns: ns::VCARD,
                answer: AnswerOther::Now(forbid),
                is_same_for_all: true,
            },
        ],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// A client reads the vCard of its account.
fn own(session: &mut BoundSession, _: &Request<'_>, _: &mut Cx<'_>) -> Result<IqAnswer, StanzaError> {
    let local = session.bare.local().into();
    let question = ReadVcard { domain: session.domain, local };
    Ok(IqAnswer::Wait(Wait::ask(question, |_, _, answer, _| match answer {
        Ok(Some(xml)) => Ok(IqAnswer::Ready(Payload::from_raw(xml))),
        // XEP-0054 §3.1 allows an error, too, which clients such as slixmpp take for a failure when they set an avatar.
        Ok(None) => Ok(IqAnswer::Ready(Payload::from_element(&Element::new("vCard", ns::VCARD)))),
        Err(_) => Err(store_unavailable()),
    })))
}

/// A client replaces it.
fn set(session: &mut BoundSession, request: &Request<'_>, cx: &mut Cx<'_>) -> Result<IqAnswer, StanzaError> {
    let xml = match request.payload.nodes().is_empty() {
        true => Bytes::new(),
        false => Payload::from_element(request.payload).bytes().clone(),
    };
    if xml.len() > cx.shard.settings.limits.vcard_bytes {
        return Err(StanzaError::new(Condition::NotAcceptable).with_text("your vCard is too large"));
    }
    if !xml.is_empty() {
        cx.check_room(session.domain)?;
    }
    let local = session.bare.local().into();
    let pending = request.pending(session);
    cx.ask(StoreVcard { domain: session.domain, local, xml }, move |answer, _, cx| {
        let answer = match answer {
            Ok(Ok(())) => Ok(Payload::empty()),
            Ok(Err(_)) => Err(StanzaError::new(Condition::ItemNotFound)),
            Err(_) => Err(store_unavailable()),
        };
        cx.reply(pending.reply(answer));
    });
    Ok(IqAnswer::Later)
}

/// Somebody else reads it.
fn show(request: &Stanza, cx: &mut Cx<'_>) {
    let (Some(from), Some(to)) = (&request.from, &request.to) else { return };
    let (pending, request) = (PendingIq::new(request, from), request.clone());
    // XEP-0054 §3.3: nobody learns whether there is such an account, or whether it does not want to be asked.
    let refuse = move |error: &StanzaError| request.error_reply(error);
    let none = StanzaError::new(Condition::ServiceUnavailable);
    let domain = cx.shard.domains.named(to.domain()).map(|domain| domain.id);
    let (Some(domain), Some(local)) = (domain, to.local().map(Box::from)) else {
        return refuse(&none).into_iter().for_each(|reply| cx.reply(reply));
    };
    cx.ask(ReadVcard { domain, local }, move |answer, _, cx| {
        let reply = match answer {
            Ok(Some(xml)) => Some(pending.reply(Ok(Payload::from_raw(xml)))),
            Ok(None) => refuse(&none),
            Err(_) => refuse(&store_unavailable()),
        };
        reply.into_iter().for_each(|reply| cx.reply(reply));
    });
}

/// XEP-0054 §3.2: nobody replaces that of another.
fn forbid(request: &Stanza, cx: &mut Cx<'_>) {
    if let Some(reply) = request.error_reply(&StanzaError::new(Condition::Forbidden)) {
        cx.reply(reply);
    }
}
