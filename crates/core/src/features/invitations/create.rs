//! An account makes an invitation (XEP-0401 §3.1): whoever uses it registers, and becomes its contact.

use crate::error::StanzaError;
use crate::error::store_unavailable;
use crate::model::{Invitation, TokenHash};
use crate::ports::Fault;
use crate::ports::store::invitations::{CreateInvitation, CreateInvitationAnswer};
use crate::session::hook::{IqAnswer, Request};
use crate::session::{BoundSession, Cx, Wait};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use carillon_wire::ns;
use carillon_wire::stanza::Condition;
use carillon_wire::xml::Element;

/// The node of the command.
pub(super) const NODE: &str = "urn:xmpp:invite#invite";

/// Whether accounts may make invitations.
pub(super) fn is_offered(_session: &BoundSession, cx: &Cx<'_>) -> bool {
    let settings = &cx.shard.settings.invitations;
    settings.enabled && settings.per_account > 0
}

/// Carries out the command.
pub(super) fn create(
    session: &mut BoundSession,
    _request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    let token = URL_SAFE_NO_PAD.encode(&cx.shard.random.bytes()[..24]);
    let settings = &cx.shard.settings.invitations;
    let now = cx.now.unix;
    let ask = CreateInvitation {
        domain: session.domain,
        hash: TokenHash::of(&token),
        inviter: Some(session.bare.local().into()),
        local: None,
        registers: true,
        uses_max: 1,
        expires: now.plus(settings.valid_ms),
        max: settings.per_domain,
        inviter_max: settings.per_account,
        now,
    };
    let domain: Box<str> = session.bare.domain().into();
    Ok(IqAnswer::Wait(Wait::write(ask, move |answer, cx| made(&domain, &token, answer, cx))))
}

fn made(
    domain: &str,
    token: &str,
    answer: Result<CreateInvitationAnswer, Fault>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    match answer {
        Ok(CreateInvitationAnswer::Created(made)) => Ok(IqAnswer::Payload(result(domain, token, &made, cx))),
        Ok(CreateInvitationAnswer::Full) => {
            let text = "you have made as many invitations as you may; they count until they expire";
            Err(StanzaError::new(Condition::ResourceConstraint).with_text(text))
        }
        Ok(CreateInvitationAnswer::Exists | CreateInvitationAnswer::Missing) | Err(_) => {
            Err(store_unavailable())
        }
    }
}

/// What the account passes on.
fn result(domain: &str, token: &str, made: &Invitation, cx: &mut Cx<'_>) -> Element {
    let page = cx.shard.settings.invitations.page_of(domain, token);
    let fields = [
        ("uri", Some(made.uri(domain, token))),
        ("landing-url", page),
        ("expire", Some(made.expires.to_xmpp())),
    ];
    let mut form = Element::new("x", ns::DATA_FORMS).with_attr("type", "result");
    for (var, value) in fields.into_iter().filter_map(|(var, value)| Some((var, value?))) {
        let value = Element::new("value", ns::DATA_FORMS).with_text(value);
        form.push(Element::new("field", ns::DATA_FORMS).with_attr("var", var).with_child(value));
    }
    Element::new("command", ns::COMMANDS)
        .with_attr("node", NODE)
        .with_attr("sessionid", cx.shard.random.token())
        .with_attr("status", "completed")
        .with_child(form)
}
