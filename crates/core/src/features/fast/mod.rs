//! FAST (XEP-0484): a client logs in by its password once, gets a token, and then logs in with that in one round trip.
//!
//! `sasl::fast` derives and checks tokens, without a connection; `xml` reads what a client sends about them. Logins of clients that
//! use tokens are cached, so that the next one need not ask the store (docs/adr/0006).

mod xml;

use crate::connection::FeatureClaim;
use crate::model::{Identity, Revocations};
use crate::ports::Fault;
use crate::ports::store::accounts::RevokeTokens;
use crate::sasl::fast::{Checked, Mechanism, Proof, Refused, Tokens};
use crate::sasl::{self, Failure, Inline, Protection, Stamp};
use crate::session::auth::{Authenticating, KnownAccount, Proved, Proven, Proving};
use crate::session::hook::{Feature, Hooks, ProofHandler, ProofKind, Spec};
use crate::session::{Cx, Session};
use carillon_wire::jid::AccountJid;
use carillon_wire::xml::Element;
use xml::Use;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "fast",
    about: "Gives clients tokens, with which they log in again in one round trip.",
    specs: &[Spec {
        id: "XEP-0484",
        title: "Fast Authentication Streamlining Tokens",
        version: "0.2.0",
        coverage: "HT-SHA-256-EXPR, -ENDP and -NONE under TLS; tokens requested, rotated, counted and invalidated. No TLS 0-RTT.",
    }],
    hooks: Hooks {
        offer_inline: Some(offer),
        proof: Some(&ProofHandler { kind: ProofKind(*b"fast"), claim, check }),
        success: Some(give),
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// Tokens whose uses are counted, where no account is remembered.
const REPLAYS_MIN: usize = 10_000;

/// The mechanisms that can be used on such a connection.
fn offer(protection: &Protection, cx: &Cx<'_>) -> Option<Element> {
    xml::offer(Mechanism::usable(protection)).filter(|_| cx.shard.settings.fast.are_tokens_on())
}

/// Reads an `<authenticate/>` with `<fast/>`: the account whose token the client claims to have, and the proof.
fn claim(
    client: &Authenticating,
    inline: &Inline,
    initial: Option<&Element>,
    cx: &mut Cx<'_>,
) -> Option<Result<FeatureClaim, Failure>> {
    let using = xml::using(inline)?;
    Some(using.and_then(|_| claimed(client, inline, initial, cx)))
}

fn claimed(
    client: &Authenticating,
    inline: &Inline,
    initial: Option<&Element>,
    cx: &mut Cx<'_>,
) -> Result<FeatureClaim, Failure> {
    mechanism(inline)
        .filter(|m| cx.shard.settings.fast.are_tokens_on() && m.binding(client.protection()).is_some())
        .ok_or(Failure::InvalidMechanism)?;
    if inline.agent().is_none() {
        return Err(Failure::MalformedRequest);
    }
    let initial = initial.ok_or(Failure::MalformedRequest)?;
    let message = sasl::decode_bytes(initial)?.ok_or(Failure::MalformedRequest)?;
    let proof = Proof::parse(&message).ok_or(Failure::MalformedRequest)?;
    let account =
        AccountJid::from_parts(&proof.username, &client.domain().name).map_err(|_| Failure::NotAuthorized)?;
    client.admits(cx)?;
    Ok(FeatureClaim { account, message: message.into() })
}

fn mechanism(inline: &Inline) -> Option<Mechanism> {
    inline.mechanism().and_then(Mechanism::named)
}

/// The result if the proof is right.
fn provable(account: KnownAccount, proving: &Proving, cx: &Cx<'_>) -> Proven {
    let (stamp, identity, login) = match account {
        KnownAccount::Read(identity) => {
            let secret = &cx.shard.settings.secret;
            (Stamp::of(secret, proving.account(), &identity.credentials), *identity, None)
        }
        KnownAccount::Remembered(account) => {
            let (stamp, identity, login) = account.into_login();
            (stamp, identity, Some(login))
        }
    };
    Proven { identity, stamp, login, answer: Vec::new() }
}

/// At the account's home: checks the proof.
fn check(mut proving: Proving, account: Option<KnownAccount>, cx: &mut Cx<'_>) -> Session {
    let proven = account.map(|account| provable(account, &proving, cx));
    let checked = proving.admits(cx).and_then(|()| derive(&proving, proven.as_ref(), cx));
    let ((mechanism, using, checked), mut proven) = match (checked, proven) {
        (Ok(checked), Some(proven)) => (checked, proven),
        (Err(failure), _) => return proving.wrong(failure, cx),
        (Ok(_), None) => return proving.wrong(Failure::NotAuthorized, cx),
    };
    if let Err(failure) = proving.may_log_in(&proven.identity, cx) {
        return proving.refuse(failure, cx);
    }
    proven.answer = checked.answer;
    if using.invalidate {
        return invalidate(proving, proven, cx);
    }
    if checked.is_old && xml::token_for(&proving.proof.inline).is_none() {
        proving.proof.inline.push(xml::request(mechanism));
    }
    proving.proved(proven, cx)
}

/// Derives the tokens that the client may have, and compares them with the proof.
fn derive(
    proving: &Proving,
    proven: Option<&Proven>,
    cx: &mut Cx<'_>,
) -> Result<(Mechanism, Use, Checked), Failure> {
    let inline = &proving.proof.inline;
    let using = xml::using(inline).ok_or(Failure::MalformedRequest)??;
    let proof = Proof::parse(&proving.proof.message).ok_or(Failure::MalformedRequest)?;
    let agent = inline.agent().map(xml::agent_id).ok_or(Failure::MalformedRequest)?;
    let mechanism = mechanism(inline).ok_or(Failure::InvalidMechanism)?;
    let binding = mechanism.binding(proving.protection()).ok_or(Failure::InvalidMechanism)?;
    let settings = cx.shard.settings.clone();
    let nobodys = Default::default();
    let (revocations, stamp) = match proven {
        Some(proven) => (&proven.identity.revocations, proven.stamp),
        // An account that does not exist takes as much work.
        None => (&nobodys, Stamp::of(&settings.secret, proving.account(), &Default::default())),
    };
    let (secret, lifetime_ms) = (&settings.secret, settings.fast.token_lifetime_ms);
    let tokens = Tokens { secret, lifetime_ms, stamp, revocations, agent, mechanism };
    let checked = tokens.check(&proof, binding, cx.now.unix)?;
    if proven.is_some()
        && let Some(count) = using.count
    {
        let max = cx.shard.cached_logins_max().max(REPLAYS_MIN);
        cx.features.fast.note(checked.token, count, max).map_err(|_| Failure::NotAuthorized)?;
    }
    Ok((mechanism, using, checked))
}

/// The client asks for its token to be invalidated: that is committed before the success is sent.
fn invalidate(proving: Proving, proven: Proven, cx: &mut Cx<'_>) -> Session {
    let agent = proving.proof.inline.agent().map(xml::agent_id);
    let (domain, local) = (proving.domain().id, proving.account().local().into());
    cx.shard.accounts.changed(proving.account().as_str());
    let ask = RevokeTokens { domain, local, agent };
    proving.ask_then(ask, move |proving, answer, cx| revoked(proving, proven, answer, cx), cx)
}

/// The store revoked the token.
fn revoked(
    proving: Proving,
    proven: Proven,
    answer: Result<Option<Revocations>, Fault>,
    cx: &mut Cx<'_>,
) -> Session {
    let Ok(Some(revocations)) = answer else {
        return proving.refuse(Failure::TemporaryAuthFailure, cx);
    };
    // A login that read the account before this commit must not be cached.
    cx.shard.accounts.changed(proving.account().as_str());
    let identity = Identity { revocations, ..proven.identity };
    proving.proved(Proven { identity, ..proven }, cx)
}

/// Has the login of a client that uses tokens cached, and gives it the token that it asked for if it could use it on this connection:
/// under TLS that ends at this server, with the data that its mechanism binds to.
fn give(proved: &mut Proved, inline: &Inline, protection: &Protection, cx: &mut Cx<'_>) -> Option<Element> {
    let settings = cx.shard.settings.clone();
    let (token_for, is_returning) = (xml::token_for(inline), xml::using(inline).is_some());
    let agent = inline.agent().map(xml::agent_id)?;
    if !settings.fast.are_tokens_on() || !(is_returning || token_for.is_some()) {
        return None;
    }
    let credentials = &proved.identity().credentials;
    let stamp = proved.stamp().unwrap_or_else(|| Stamp::of(&settings.secret, proved.account(), credentials));
    proved.remember(stamp);
    let mechanism = token_for.filter(|m| m.binding(protection).is_some())?;
    let revocations = &proved.identity().revocations;
    let (secret, lifetime_ms) = (&settings.secret, settings.fast.token_lifetime_ms);
    let given = Tokens { secret, lifetime_ms, stamp, revocations, agent, mechanism }.give(cx.now.unix);
    cx.features.fast.begin(given.name);
    Some(xml::token(&given.token, given.expires))
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Failure {
        match refused {
            Refused::Expired => Failure::CredentialsExpired,
            Refused::Wrong => Failure::NotAuthorized,
        }
    }
}
