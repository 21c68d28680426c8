//! Registration by an invitation (XEP-0445): the client shows its token, and may register then, whatever the domain's policy says. One step of
//! the store creates the account, counts the use, and has the account and whoever invited it become contacts.

use super::{full, refuse, taken};
use crate::connection::Invited;
use crate::message::AccountMessage;
use crate::model::{Credentials, Invitation, TokenHash};
use crate::ports::Fault;
use crate::ports::store::invitations::{self, RegisterInvited, RegisterInvitedAnswer};
use crate::session::auth::Authenticating;
use crate::session::{Cx, Session, introduction};
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::{Condition, Stanza, StanzaError};
use carillon_wire::xml::Element;

/// Bytes of a token that is looked for.
const TOKEN_BYTES_MAX: usize = 256;

/// The client shows a token.
pub(super) fn show(
    mut client: Box<Authenticating>,
    iq: &Stanza,
    preauth: &Element,
    cx: &mut Cx<'_>,
) -> Result<Session, Box<Authenticating>> {
    if !cx.shard.settings.invitations.enabled {
        return Err(client);
    }
    client.set_invited(None);
    let token = preauth.attr("token").filter(|token| (1..=TOKEN_BYTES_MAX).contains(&token.len()));
    let Some(token) = token else { return Ok(in_vain(client, iq, cx)) };
    let (hash, iq) = (TokenHash::of(token), iq.clone());
    let ask = invitations::Invitation { domain: client.domain().id, hash };
    Ok(client.ask_then(ask, move |client, answer, cx| shown(client, &iq, hash, answer, cx), cx))
}

fn shown(
    mut client: Box<Authenticating>,
    iq: &Stanza,
    hash: TokenHash,
    answer: Result<Option<Box<Invitation>>, Fault>,
    cx: &mut Cx<'_>,
) -> Session {
    match answer {
        Ok(Some(found)) if found.registers && found.is_usable(cx.now.unix) => {
            let Invitation { local, inviter, .. } = *found;
            client.set_invited(Some(Invited { hash, local, inviter }));
            client.reply(&iq.result_reply(), cx)
        }
        Ok(_) => in_vain(client, iq, cx),
        Err(_) => refuse(client, iq, &StanzaError::new(Condition::InternalServerError), cx),
    }
}

/// The token is not one by which somebody can register now.
fn in_vain(client: Box<Authenticating>, iq: &Stanza, cx: &mut Cx<'_>) -> Session {
    match iq.error_reply(&invalid()) {
        Some(reply) => client.reply_in_vain(&reply, cx),
        None => Session::Authenticating(client),
    }
}

fn invalid() -> StanzaError {
    StanzaError::new(Condition::ItemNotFound).with_text("this invitation cannot be used, or not any more")
}

/// The keys of the new account are there.
pub(super) fn register(
    client: Box<Authenticating>,
    iq: Stanza,
    local: Box<str>,
    credentials: Credentials,
    cx: &mut Cx<'_>,
) -> Session {
    let Some(hash) = client.invited().map(|invited| invited.hash) else {
        return refuse(client, &iq, &invalid(), cx);
    };
    let (domain, bounds) = (client.domain().id, cx.shard.settings.limits.roster);
    let ask = RegisterInvited { domain, hash, local, credentials, bounds, now: cx.now.unix };
    client.ask_then(ask, move |client, answer, cx| registered(client, &iq, answer, cx), cx)
}

fn registered(
    mut client: Box<Authenticating>,
    iq: &Stanza,
    answer: Result<RegisterInvitedAnswer, Fault>,
    cx: &mut Cx<'_>,
) -> Session {
    let error = match answer {
        Ok(RegisterInvitedAnswer::Registered(changes)) => {
            introduction::tell(changes, cx);
            client.set_invited(None);
            return client.reply(&iq.result_reply(), cx);
        }
        Ok(RegisterInvitedAnswer::Taken) => taken(),
        Ok(RegisterInvitedAnswer::DomainFull) => full(&client, cx),
        Ok(RegisterInvitedAnswer::OtherName) => {
            StanzaError::new(Condition::NotAcceptable).with_text("the invitation is for another username")
        }
        Ok(RegisterInvitedAnswer::Invalid) => {
            client.set_invited(None);
            invalid()
        }
        Err(fault) => {
            let inviter = client.invited().and_then(|invited| invited.inviter.as_deref());
            let inviter =
                inviter.and_then(|local| BareJid::from_parts(Some(local), &client.domain().name).ok());
            // Its roster may have changed.
            if let (Fault::Unknown, Some(inviter)) = (fault, inviter) {
                cx.tell_account(inviter, AccountMessage::Reload);
            }
            StanzaError::new(Condition::InternalServerError)
        }
    };
    refuse(client, iq, &error, cx)
}
