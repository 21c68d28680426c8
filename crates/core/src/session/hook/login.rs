//! Hooks before authentication, and the parts of what a login reads of its account.

use crate::connection::{FeatureClaim, ProofKind};
use crate::model::{Domain, Login, LoginParts, Subscription};
use crate::ports::modules::{ClientSubject, LoginRefusal};
use crate::sasl::{Failure, Inline, Protection};
use crate::session::auth::{Authenticating, KnownAccount, Proved, Proving};
use crate::session::{BoundSession, Cx, Session};
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::Stanza;
use carillon_wire::xml::Element;

/// Adds stream features to `features`, for a client of this domain.
pub type OfferBeforeAuthHook = fn(domain: &Domain, cx: &Cx<'_>, features: &mut Vec<Element>);
/// Offers something inline with SASL2 (XEP-0388 §2.2), on a stream with this protection.
pub type OfferInlineHook = fn(protection: &Protection, cx: &Cx<'_>) -> Option<Element>;
/// Adds something to the success of SASL2. It may also have the login cached ([`Proved::remember`]).
pub type SuccessHook =
    fn(proved: &mut Proved, inline: &Inline, protection: &Protection, cx: &mut Cx<'_>) -> Option<Element>;
/// Decides on the login of a client that has proved that it is this account. Why it fails, if it does.
pub type AuthoriseHook =
    fn(account: &BareJid, client: Box<ClientSubject>, cx: &mut Cx<'_>) -> Option<LoginRefusal>;
/// Reads an `<authenticate/>` and its `<initial-response/>`: what the client claims, or why it fails; none for one that is not this
/// feature's.
pub type ClaimHook = fn(
    client: &Authenticating,
    inline: &Inline,
    initial: Option<&Element>,
    cx: &mut Cx<'_>,
) -> Option<Result<FeatureClaim, Failure>>;
/// Checks a proof against what is known of the account; `None` if there is no such account.
pub type CheckHook = fn(proving: Proving, account: Option<KnownAccount>, cx: &mut Cx<'_>) -> Session;
/// Takes a stanza of a client before authentication, or gives the client back because the stanza is not this feature's. A
/// stanza that no feature takes ends the stream.
pub type StanzaBeforeAuthHook =
    fn(client: Box<Authenticating>, stanza: &Stanza, cx: &mut Cx<'_>) -> Result<Session, Box<Authenticating>>;

/// Logs clients in by mechanisms of a feature's own, which SASL2 frames (XEP-0388).
pub struct ProofHandler {
    /// The kind of proof.
    pub kind: ProofKind,
    /// Reads the account from the client's elements.
    pub claim: ClaimHook,
    /// Checks the proof.
    pub check: CheckHook,
}

/// A part of what a login reads of its account, with the function that takes it. The store is asked for the parts that enabled
/// features take, and for no others.
#[derive(Clone, Copy)]
pub enum LoginPart {
    /// The topics that the account follows, with the last items of those that send them at login.
    Subscriptions(fn(session: &mut BoundSession, subscriptions: &[Subscription], cx: &mut Cx<'_>)),
    /// Whether notifications wait for it.
    Notifications(fn(session: &mut BoundSession, wait: bool)),
    /// Whether offline messages wait for it.
    Messages(fn(session: &mut BoundSession, wait: bool)),
}

impl LoginPart {
    /// The part of the question to the store.
    pub const fn wanted(self) -> LoginParts {
        match self {
            LoginPart::Subscriptions(_) => LoginParts { subscriptions: true, ..LoginParts::NONE },
            LoginPart::Notifications(_) => LoginParts { notifications: true, ..LoginParts::NONE },
            LoginPart::Messages(_) => LoginParts { messages: true, ..LoginParts::NONE },
        }
    }

    /// Passes the part to the feature.
    pub fn give(self, session: &mut BoundSession, login: &Login, cx: &mut Cx<'_>) {
        match self {
            LoginPart::Subscriptions(take) => take(session, &login.subscriptions, cx),
            LoginPart::Notifications(take) => take(session, login.waiting.notifications),
            LoginPart::Messages(take) => take(session, login.waiting.messages),
        }
    }
}
