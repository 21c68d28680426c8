//! Private XML storage (XEP-0049): clients keep elements for themselves and each other, of which the server knows nothing.

use crate::error::{StanzaError, store_unavailable};
use crate::ports::store::private::{PrivateElement, ReadPrivate, StorePrivate, StorePrivateAnswer};
use crate::session::hook::{At, Feature, Hooks, IqAnswer, IqHandler, Request, Spec};
use crate::session::{BoundSession, Cx, Wait};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Payload};
use carillon_wire::xml::Element;
use carillon_wire::xml::writer::Writer;

/// Elements of one request: each is looked for on its own, however short it is.
const ELEMENTS_MAX: usize = 64;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "private",
    about: "Keeps what clients store for themselves.",
    specs: &[Spec {
        id: "XEP-0049",
        title: "Private XML Storage",
        version: "1.2",
        coverage: "All of it, at most 64 elements per request; an account keeps as many bytes as `limits.private_bytes` says.",
    }],
    server_features: &[ns::PRIVATE],
    hooks: Hooks {
        iq: &[
            IqHandler { kind: IqType::Get, name: "query", ns: ns::PRIVATE, at: At::Account, handle: get },
            IqHandler { kind: IqType::Set, name: "query", ns: ns::PRIVATE, at: At::Account, handle: set },
        ],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// An element is asked for: the one that is kept, or the question as it came.
fn get(session: &mut BoundSession, request: &Request<'_>, _: &mut Cx<'_>) -> Result<IqAnswer, StanzaError> {
    let mut children = request.payload.children();
    let (Some(wanted), None) = (children.next().cloned(), children.next()) else {
        return Err(bad_request("name one element"));
    };
    check(&wanted)?;
    let question = ReadPrivate {
        domain: session.domain,
        local: session.bare.local().into(),
        name: wanted.name().into(),
        ns: wanted.ns().into(),
    };
    Ok(IqAnswer::Wait(Wait::ask(question, move |_, _, answer, _| match answer {
        Ok(Ok(Some(xml))) => Ok(IqAnswer::Ready(around(&xml))),
        Ok(Ok(None)) => Ok(IqAnswer::Ready(around(Payload::from_element(&wanted).bytes()))),
        Ok(Err(_)) => Err(StanzaError::new(Condition::ItemNotFound)),
        Err(_) => Err(store_unavailable()),
    })))
}

/// Elements are to be kept.
fn set(session: &mut BoundSession, request: &Request<'_>, cx: &mut Cx<'_>) -> Result<IqAnswer, StanzaError> {
    let mut elements = Vec::new();
    for child in request.payload.children() {
        if elements.len() == ELEMENTS_MAX {
            let text = "at most 64 elements in one request";
            return Err(StanzaError::new(Condition::NotAcceptable).with_text(text));
        }
        check(child)?;
        let is_empty = child.nodes().is_empty() && child.attrs().count() == 0;
        let xml = if is_empty { Default::default() } else { Payload::from_element(child).bytes().clone() };
        elements.push(PrivateElement { name: child.name().into(), ns: child.ns().into(), xml });
    }
    if elements.is_empty() {
        return Err(bad_request("no element to be stored"));
    }
    cx.check_room(session.domain)?;
    let bytes_max = cx.shard.settings.limits.private_bytes;
    let (domain, local) = (session.domain, session.bare.local().into());
    let pending = request.pending(session);
    cx.ask(StorePrivate { domain, local, elements, bytes_max }, move |answer, _, cx| {
        let answer = match answer {
            Ok(StorePrivateAnswer::Stored) => Ok(Payload::empty()),
            Ok(StorePrivateAnswer::Full) => {
                let text = "your private storage is full";
                Err(StanzaError::new(Condition::ResourceConstraint).with_text(text))
            }
            Ok(StorePrivateAnswer::NoAccount) => Err(StanzaError::new(Condition::ItemNotFound)),
            Err(_) => Err(store_unavailable()),
        };
        cx.reply(pending.reply(answer));
    });
    Ok(IqAnswer::Later)
}

/// XEP-0049 §3: an element has a namespace of its own, and none of the server's.
fn check(element: &Element) -> Result<(), StanzaError> {
    match element.ns() {
        ns::PRIVATE | ns::CLIENT | "" => Err(StanzaError::new(Condition::NotAcceptable)
            .with_text("an element to be stored needs a namespace of its own")),
        _ => Ok(()),
    }
}

fn around(xml: &[u8]) -> Payload {
    let mut payload = Vec::with_capacity(xml.len() + 64);
    Writer::new(&mut payload).start_in("query", ns::PRIVATE).close_start().raw(xml).end("query");
    Payload::from_raw(payload.into())
}

fn bad_request(text: &'static str) -> StanzaError {
    StanzaError::new(Condition::BadRequest).with_text(text)
}
