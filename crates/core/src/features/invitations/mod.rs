//! Invitations of accounts: a request for a subscription with the token of one makes contacts at once (XEP-0379), and an account makes an
//! invitation by a command (XEP-0401). Registering by one is the business of in-band registration.

mod create;

use crate::error::{StanzaError, store_unavailable};
use crate::message::AccountMessage;
use crate::model::{Invitation, TokenHash};
use crate::ports::store::invitations::{self, AcceptInvitation};
use crate::ports::{Fault, Missing};
use crate::session::hook::{CommandHandler, Feature, Flow, Hooks, Spec, Taken};
use crate::session::{BoundSession, Cx, Wait, introduction};
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Kind, PresenceType, Stanza};

/// Bytes of a token that is looked for.
const TOKEN_BYTES_MAX: usize = 256;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "invitations",
    about: "Makes contacts of accounts that were invited, and lets accounts invite others.",
    specs: &[
        Spec {
            id: "XEP-0379",
            title: "Pre-Authenticated Roster Subscription",
            version: "0.3.3",
            coverage: "With `invitations.enabled`, off by default: a request for a subscription with a token of the account it is for is granted at once, \
                       both ways, by the server; the tokens are those of invitations. A token that cannot be used leaves an ordinary request.",
        },
        Spec {
            id: "XEP-0401",
            title: "Ad-hoc Account Invitation Generation",
            version: "0.5.0",
            coverage: "The command `urn:xmpp:invite#invite`, for accounts that may make invitations (`invitations.per_account`, none by default). Not there: \
                       `#create-account`; operators make invitations over HTTP and by the command line.",
        },
    ],
    hooks: Hooks {
        submit_presence: Some(submit),
        ad_hoc: &[CommandHandler {
            node: create::NODE,
            name: "Invite somebody",
            is_offered: create::is_offered,
            handle: create::create,
        }],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// A session asks for a subscription: with a token of the account it is for, that is granted at once. First it is only looked at, so that
/// nobody makes the store write by guessing.
fn submit(session: &mut BoundSession, stanza: &mut Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError> {
    if stanza.kind != Kind::Presence(PresenceType::Subscribe) || !cx.shard.settings.invitations.enabled {
        return Ok(Flow::Pass);
    }
    let Some(preauth) = stanza.payload.find("preauth", ns::PREAUTH).map(|child| child.element()) else {
        return Ok(Flow::Pass);
    };
    let token = preauth.attr("token").filter(|token| (1..=TOKEN_BYTES_MAX).contains(&token.len()));
    let inviter = stanza.to.as_ref().map(Jid::bare);
    let (Some(token), Some(inviter)) = (token, inviter) else { return Ok(Flow::Pass) };
    let Some(domain) = cx.domain_of(&inviter.to_jid()) else { return Ok(Flow::Pass) };
    let accept = AcceptInvitation {
        inviter_domain: domain.id,
        inviter,
        hash: TokenHash::of(token),
        domain: session.domain,
        account: session.bare.to_bare(),
        bounds: cx.shard.settings.limits.roster,
        now: cx.now.unix,
    };
    let find = invitations::Invitation { domain: domain.id, hash: accept.hash };
    Ok(Flow::Wait(Wait::ask(find, move |_, _, answer, cx| found(accept, answer, cx))))
}

fn found(
    accept: AcceptInvitation,
    answer: Result<Option<Box<Invitation>>, Fault>,
    cx: &mut Cx<'_>,
) -> Result<Flow, StanzaError> {
    let is_usable =
        answer.map_err(|_| store_unavailable())?.is_some_and(|found| found.is_usable(cx.now.unix));
    if !is_usable {
        return Ok(Flow::Pass);
    }
    let accounts = [accept.account.clone(), accept.inviter.clone()];
    Ok(Flow::Wait(Wait::write(accept, move |answer, cx| match answer {
        // It goes on as any other request.
        Ok(Err(Missing)) => Ok(Flow::Pass),
        Ok(Ok(changes)) if changes.is_empty() => Ok(Flow::Pass),
        Ok(Ok(changes)) => {
            introduction::tell(changes, cx);
            Ok(Flow::Taken(Taken::Subscription))
        }
        Err(fault) => {
            if fault == Fault::Unknown {
                accounts.into_iter().for_each(|account| cx.tell_account(account, AccountMessage::Reload));
            }
            Err(store_unavailable())
        }
    })))
}
