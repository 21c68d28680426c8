//! Message archives (XEP-0313).
//!
//! A message is kept before it is delivered: at its recipient's home, by one write for both sides. What comes for the recipient behind it
//! waits, so that everything arrives in its order (`keep`). Which archives a message enters is decided by the store.

mod keep;
mod preferences;
mod query;
mod xml;

use crate::error::StanzaError;
use crate::session::hook::{At, Feature, Hooks, IqAnswer, IqHandler, Request, Spec};
use crate::session::{BoundSession, Cx, mam};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType};

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "archive",
    about: "Keeps chat messages in the archives of accounts, who read them later.",
    specs: &[
        Spec {
            id: "XEP-0313",
            title: "Message Archive Management",
            version: "1.1.3",
            coverage: "Archives of accounts, where the domain has them: queries with all fields of `urn:xmpp:mam:2` and \
                       `urn:xmpp:mam:2#extended`, flipped pages, metadata; pages by XEP-0059, counted \
                       where the archive fits into one. A message is in the archive before it is delivered and before its \
                       sender is told that it was dealt with; its number is the stanza-id. Kept are chat and normal messages with a body, the \
                       hint `store`, a chat marker, a retraction, a reaction, or encrypted contents.",
        },
        Spec {
            id: "XEP-0441",
            title: "Message Archive Management Preferences",
            version: "0.2.0",
            coverage: "All of it.",
        },
    ],
    account_features: &[ns::MAM, ns::MAM_EXTENDED],
    in_domain: |policy| policy.archive,
    hooks: Hooks {
        arrived: Some(keep::arrived),
        iq: &[
            IqHandler { kind: IqType::Get, name: "query", ns: ns::MAM, at: At::Account, handle: form },
            IqHandler { kind: IqType::Set, name: "query", ns: ns::MAM, at: At::Account, handle: query::ask },
            IqHandler {
                kind: IqType::Get,
                name: "metadata",
                ns: ns::MAM,
                at: At::Account,
                handle: query::metadata,
            },
            IqHandler {
                kind: IqType::Get,
                name: "prefs",
                ns: ns::MAM,
                at: At::Account,
                handle: preferences::get,
            },
            IqHandler {
                kind: IqType::Set,
                name: "prefs",
                ns: ns::MAM,
                at: At::Account,
                handle: preferences::set,
            },
        ],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// The fields that a query may have (XEP-0313 §4.1.5).
fn form(session: &mut BoundSession, _: &Request<'_>, cx: &mut Cx<'_>) -> Result<IqAnswer, StanzaError> {
    has_archive(session, cx)?;
    Ok(IqAnswer::Payload(mam::form()))
}

/// Whether the session's account has an archive.
fn has_archive(session: &BoundSession, cx: &Cx<'_>) -> Result<(), StanzaError> {
    match cx.shard.domains.numbered(session.domain).is_some_and(|domain| domain.policy.archive) {
        true => Ok(()),
        false => Err(StanzaError::new(Condition::ServiceUnavailable)),
    }
}
