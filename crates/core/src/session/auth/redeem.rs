//! Redeeming a token: from an `<authenticate/>` that brings one to its success.

use super::exchange::{Authenticating, Stage, may_log_in};
use super::{Authenticated, Greeting};
use crate::connection::{Claim, Claimed, Proof};
use crate::model::{Identity, Login, Moment};
use crate::ports::store::accounts::RevokeTokens;
use crate::ports::{Answer, Question};
use crate::sasl::fast::{self, Checked, Stamp, Tokens};
use crate::sasl::{self, Failure, Inline, Wrap};
use crate::session::{Cx, Session};
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::xml::Element;

/// A login that is proved, and waits for its token to be taken back before it is told so.
#[derive(Debug)]
pub(super) struct Revoking {
    inline: Inline,
    account: BareJid,
    since: Moment,
    found: Found,
    answer: Vec<u8>,
}

/// Whose the client says it is, and the proof of its token.
#[derive(Debug)]
pub(super) struct TokenClaim {
    pub(super) inline: Inline,
    pub(super) account: BareJid,
    pub(super) since: Moment,
    pub(super) mechanism: fast::Mechanism,
    pub(super) proof: fast::Proof,
}

/// What is known of the account that a client claims to be.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) identity: Identity,
    pub(super) stamp: Stamp,
    /// What belongs to it, where the node remembers.
    pub(super) login: Option<Box<Login>>,
}

impl Authenticating {
    /// An `<authenticate/>` with `<fast/>`.
    pub(super) fn token(self: Box<Self>, element: &Element, inline: Inline, cx: &mut Cx<'_>) -> Session {
        match self.claim(element, &inline, cx) {
            Ok((account, mechanism, proof)) => {
                let (wrap, proof) = (Wrap::Sasl2(inline), Proof::Token(mechanism, proof));
                Session::Claimed(Claimed::new(self, Claim { wrap, account, proof, since: Moment::default() }))
            }
            Err(failure) => self.fail(&Wrap::Sasl2(inline), None, failure, cx),
        }
    }

    fn claim(
        &self,
        element: &Element,
        inline: &Inline,
        cx: &mut Cx<'_>,
    ) -> Result<(BareJid, fast::Mechanism, fast::Proof), Failure> {
        let mechanism = element.attr("mechanism").and_then(fast::Mechanism::named);
        let mechanism = mechanism
            .filter(|m| {
                cx.shard.settings.fast.are_tokens_on() && m.binding(&self.client.protection).is_some()
            })
            .ok_or(Failure::InvalidMechanism)?;
        if inline.tokens.agent.is_none() {
            return Err(Failure::MalformedRequest);
        }
        let initial = element.child("initial-response", ns::SASL2).ok_or(Failure::MalformedRequest)?;
        let message = sasl::decode_bytes(initial)?.ok_or(Failure::MalformedRequest)?;
        let proof = fast::Proof::parse(&message).ok_or(Failure::MalformedRequest)?;
        let account = BareJid::from_parts(Some(&proof.username), &self.client.domain.name)
            .map_err(|_| Failure::NotAuthorized)?;
        self.admits(cx)?;
        Ok((account, mechanism, proof))
    }

    /// Checks the proof against what is known of the account.
    pub(super) fn redeem(
        mut self: Box<Self>,
        claim: TokenClaim,
        found: Option<Found>,
        cx: &mut Cx<'_>,
    ) -> Session {
        let checked = self.admits(cx).and_then(|()| self.check(&claim, found.as_ref(), cx));
        let TokenClaim { mut inline, account, since, mechanism, .. } = claim;
        let (Checked { answer, is_old, .. }, found) = match (checked, found) {
            (Ok(checked), Some(found)) => (checked, found),
            (Err(failure), _) => return self.wrong(inline, &account, failure, cx),
            (Ok(_), None) => return self.wrong(inline, &account, Failure::NotAuthorized, cx),
        };
        if let Err(failure) = may_log_in(&found.identity, &account, since, cx) {
            return self.fail(&Wrap::Sasl2(inline), None, failure, cx);
        }
        let invalidate = inline.tokens.using.is_some_and(|using| using.invalidate);
        if is_old && !invalidate {
            inline.tokens.token_for.get_or_insert(mechanism);
        }
        if invalidate {
            let (domain, local) = (self.client.domain.id, account.local().unwrap_or_default().into());
            cx.shard.changed(account.as_str());
            let agent = inline.tokens.agent;
            self.stage = Stage::Revoking(Box::new(Revoking { inline, account, since, found, answer }));
            return self.ask(RevokeTokens { domain, local, agent }, cx);
        }
        self.redeemed(Revoking { inline, account, since, found, answer }, cx)
    }

    /// A wrong token counts against the address, and not against the account: nobody guesses one.
    fn wrong(
        self: Box<Self>,
        inline: Inline,
        account: &BareJid,
        failure: Failure,
        cx: &mut Cx<'_>,
    ) -> Session {
        if failure == Failure::NotAuthorized {
            cx.login_failed(self.client.io.address);
        }
        self.refuse(&Wrap::Sasl2(inline), Some(account), failure, cx)
    }

    fn check(&self, claim: &TokenClaim, found: Option<&Found>, cx: &mut Cx<'_>) -> Result<Checked, Failure> {
        let settings = cx.shard.settings.clone();
        let nobodys = Default::default();
        let (revocations, stamp) = match found {
            Some(found) => (&found.identity.revocations, found.stamp),
            // As much work for an account that is not there.
            None => (&nobodys, Stamp::of(&settings.secret, &claim.account, &Default::default())),
        };
        let binding = claim.mechanism.binding(&self.client.protection).ok_or(Failure::InvalidMechanism)?;
        let tokens = Tokens {
            secret: &settings.secret,
            lifetime_ms: settings.fast.token_lifetime_ms,
            stamp,
            revocations,
            agent: claim.inline.tokens.agent.ok_or(Failure::MalformedRequest)?,
            mechanism: claim.mechanism,
        };
        let checked = tokens.check(&claim.proof, binding, cx.now.unix)?;
        if found.is_some()
            && let Some(count) = claim.inline.tokens.using.and_then(|using| using.count)
        {
            let max = cx.shard.cached_logins_max().max(REPLAYS_MIN);
            cx.shard.replays.note(checked.token, count, max).map_err(|_| Failure::NotAuthorized)?;
        }
        Ok(checked)
    }

    /// The store took the token back.
    pub(super) fn revoked(self: Box<Self>, revoking: Revoking, answer: Answer, cx: &mut Cx<'_>) -> Session {
        let Revoking { inline, account, since, mut found, answer: proof } = revoking;
        let Ok(Some(revocations)) = RevokeTokens::answer(answer) else {
            return self.fail(&Wrap::Sasl2(inline), None, Failure::TemporaryAuthFailure, cx);
        };
        // A login that read the account before this commit must not be remembered.
        cx.shard.changed(account.as_str());
        found.identity.revocations = revocations;
        self.redeemed(Revoking { inline, account, since, found, answer: proof }, cx)
    }

    fn redeemed(self: Box<Self>, redeemed: Revoking, cx: &mut Cx<'_>) -> Session {
        let Revoking { inline, account, since, found, answer } = redeemed;
        let Found { identity, stamp, login } = found;
        let authenticated =
            Authenticated::proved(account, self.client.domain.id, identity, since, Some(stamp), login);
        let greeting = Greeting::Success { wrap: Wrap::Sasl2(inline), data: Some(answer), token: None };
        authenticated.greet(self.client.io, greeting, self.client.began, &self.client.protection, cx)
    }
}

impl From<fast::Refused> for Failure {
    fn from(refused: fast::Refused) -> Failure {
        match refused {
            fast::Refused::Expired => Failure::CredentialsExpired,
            fast::Refused::Wrong => Failure::NotAuthorized,
        }
    }
}

/// Tokens whose uses are counted, where no account is remembered.
const REPLAYS_MIN: usize = 10_000;
