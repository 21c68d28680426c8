//! A client that proved which account it is may be refused all the same, by what an operator has added.

use super::exchange::Failed;
use super::proven::Proved;
use crate::connection::Client;
use crate::ports::modules::{Agent, ClientSubject, LoginRefusal};
use crate::sasl::{Inline, Mechanism};
use crate::session::Cx;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::xml::Element;

/// Why a login whose proof is right fails, if it does. `inline`: what the client asks for with SASL2.
pub(super) fn of(
    authorise: fn(&BareJid, Box<ClientSubject>, &mut Cx<'_>) -> Option<LoginRefusal>,
    client: &Client,
    inline: Option<&Inline>,
    proved: &Proved,
    cx: &mut Cx<'_>,
) -> Option<Failed> {
    let account = proved.account();
    let mechanism = proved.mechanism.map(Mechanism::as_str).or_else(|| inline?.mechanism());
    let subject = ClientSubject {
        jid: account.as_str().into(),
        address: Some(client.io.address),
        transport: Some(client.io.transport()),
        mechanism: mechanism.map(Into::into),
        agent: inline.and_then(agent).map(Box::new),
        reason: None,
    };
    let LoginRefusal { failure, ends_stream, text } = authorise(account, Box::new(subject), cx)?;
    Some(Failed { failure, account: Some(account.clone()), text, ends_stream })
}

/// What a client says of itself (XEP-0388 §2.3).
fn agent(inline: &Inline) -> Option<Agent> {
    let agent = inline.child("user-agent", ns::SASL2)?;
    let text = |name: &str| {
        let text = agent.child(name, ns::SASL2).map(Element::text)?;
        (!text.is_empty()).then(|| text.into())
    };
    let id = inline.agent().map(Into::into);
    Some(Agent { id, software: text("software"), device: text("device") })
}
