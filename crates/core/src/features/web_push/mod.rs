//! This server as a push service (RFC 8030), as UnifiedPush has it: a client asks for endpoints for the applications on its device, and is given what senders push
//! there. The pushes are notifications, which are made by the HTTP side.

mod xml;

use crate::error::{StanzaError, store_unavailable};
use crate::model::{EndpointId, EndpointKey, PushRequest, UNIFIED_PUSH};
use crate::ports::Fault;
use crate::ports::store::endpoints::{
    ListEndpoints, RegisterEndpoint, RegisterEndpointAnswer, RevokeEndpoints,
};
use crate::session::hook::{At, Feature, Hooks, IqAnswer, IqHandler, Request, Spec};
use crate::session::{BoundSession, Cx};
use carillon_wire::stanza::{Condition, IqType, Payload, Stanza};

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "web_push",
    about: "Endpoints of this server as a push service, which clients ask for and whose pushes they distribute.",
    specs: &[
        Spec {
            id: "http://gultsch.de/xmpp/drafts/unified-push",
            title: "UnifiedPush over XMPP",
            version: "",
            coverage: "All of it, where `push.service_url` is set: `register` and `push` at `push.DOMAIN` for accounts of the domain. Pushes are kept for \
                       a client that is away.",
        },
        Spec {
            id: "RFC 8030",
            title: "Generic Event Delivery Using HTTP Push",
            version: "",
            coverage: "Push resources with TTL, Urgency and Topic, message resources that can be deleted, receipts (§5.1) as answers \
                       that a sender waits for at the message resource instead of server push. The client's side is the XMPP session. Not there: \
                       subscription sets.",
        },
        Spec {
            id: "RFC 8292",
            title: "Voluntary Application Server Identification (VAPID) for Web Push",
            version: "",
            coverage: "Sent with pushes to other services; checked where an endpoint was asked for with the key of a sender.",
        },
    ],
    is_on: |settings| !settings.push.service.url.is_empty(),
    hooks: Hooks {
        iq: &[
            IqHandler {
                kind: IqType::Set,
                name: "register",
                ns: UNIFIED_PUSH,
                at: At::Service,
                handle: register,
            },
            IqHandler { kind: IqType::Get, name: "endpoints", ns: OWN, at: At::Account, handle: list },
            IqHandler { kind: IqType::Set, name: "revoke", ns: OWN, at: At::Account, handle: revoke },
        ],
        response: Some(responded),
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// What the account is told of its endpoints, and asks to be done with them.
const OWN: &str = "urn:carillon:push:0";

/// Endpoints of a list; there are more than that only where an operator allows more for each account.
const LISTED_MAX: u16 = 1000;

/// A client asks for the endpoint of an application, or for it to go on.
fn register(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    if request.stanza.to.as_ref() != Some(&session.bare.service("push")) {
        return Err(StanzaError::new(Condition::ServiceUnavailable));
    }
    cx.check_room(session.domain)?;
    let wanted = xml::read(request.payload)?;
    let settings = &cx.shard.settings.push.service;
    let (expires, per_account_max) = (cx.now.unix.plus(settings.endpoint_ms), settings.per_account_max);
    let random = cx.shard.random.bytes();
    let question = RegisterEndpoint {
        domain: session.domain,
        local: session.bare.local().into(),
        id: EndpointId(u128::from_be_bytes(*random.first_chunk().expect("16 of 32 bytes"))),
        resource: session.jid.resource().unwrap_or_default().into(),
        application: wanted.application,
        instance: wanted.instance,
        sender: wanted.sender,
        now: cx.now.unix,
        expires,
        per_account_max,
    };
    let (pending, domain) = (request.pending(session), session.domain);
    cx.ask(question, move |answer, _, cx| {
        let answer = match answer {
            Ok(RegisterEndpointAnswer::Registered(id)) => {
                let settings = &cx.shard.settings;
                let token = EndpointKey::of(&settings.secret).endpoint(domain, id);
                Ok(Payload::from_element(&xml::registered(&settings.push.service.url, &token, expires)))
            }
            Ok(RegisterEndpointAnswer::TooMany) => {
                let text = "your account has as many endpoints as it may have";
                Err(StanzaError::new(Condition::ResourceConstraint).with_text(text))
            }
            Ok(RegisterEndpointAnswer::NoAccount) => Err(StanzaError::new(Condition::ItemNotFound)),
            Err(fault) => Err(failed(fault)),
        };
        cx.reply(pending.reply(answer));
    });
    Ok(IqAnswer::Later)
}

/// An account asks for its endpoints.
fn list(session: &mut BoundSession, request: &Request<'_>, cx: &mut Cx<'_>) -> Result<IqAnswer, StanzaError> {
    let account = Some(session.bare.local().into());
    let question = ListEndpoints { domain: session.domain, account, after: EndpointId(0), max: LISTED_MAX };
    let pending = request.pending(session);
    cx.ask(question, move |answer, _, cx| {
        let answer = answer.map(|found| Payload::from_element(&xml::endpoints(&found.entries, OWN)));
        cx.reply(pending.reply(answer.map_err(failed)));
    });
    Ok(IqAnswer::Later)
}

/// An account revokes an endpoint; without an id, all of them.
fn revoke(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    let id = request.payload.attr("id").map(str::parse).transpose().map_err(|_| {
        StanzaError::new(Condition::BadRequest)
            .with_text("`id` is that of an endpoint: 32 hexadecimal digits")
    })?;
    let pending = request.pending(session);
    cx.ask(revocation(session, id), move |answer, _, cx| {
        cx.reply(pending.reply(answer.map(|()| Payload::empty()).map_err(failed)));
    });
    Ok(IqAnswer::Later)
}

/// A client that says of a push that its application is gone revokes the endpoint. It can revoke those of its account alone.
fn responded(session: &mut BoundSession, response: &Stanza, cx: &mut Cx<'_>) {
    let Some((_, endpoint)) = response.id.as_deref().and_then(PushRequest::read_id) else { return };
    if PushRequest::is_refused_for_good(response) {
        // If the store does not do it, the next push is refused as this one was.
        cx.ask(revocation(session, Some(endpoint)), |_, _, _| {});
    }
}

fn revocation(session: &BoundSession, id: Option<EndpointId>) -> RevokeEndpoints {
    let local = session.bare.local().into();
    RevokeEndpoints { domain: session.domain, local, id }
}

fn failed(fault: Fault) -> StanzaError {
    match fault {
        Fault::Busy => StanzaError::new(Condition::ResourceConstraint).with_text("try again later"),
        Fault::Closed | Fault::Broken | Fault::Unknown => store_unavailable(),
    }
}
