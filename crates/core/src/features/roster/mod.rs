//! The roster, and the presence of contacts (RFC 6121 §2–§4).
//!
//! Who may see whose presence is decided by the store: one commit changes both sides of a subscription, by the tables of Appendix A
//! ([`crate::model::change_subscription`]). Each side's home is told what changed of its roster, and everything else follows from that
//! (`changed`): the push to the account's sessions, the presence by which the other side said it, and the presence that is seen from now
//! on, or is not any more.

mod announced;
mod changed;
mod missed;
mod request;
mod subscription;
mod xml;

use crate::error::StanzaError;
use crate::feature_state::roster::Contacts;
use crate::message::AccountMessage;
use crate::session::homes::AtHome;
use crate::session::hook::{
    AnswerOther, AskedHandler, ContactsHandler, Feature, HomeHandler, Hooks, RecordPart, Spec,
};
use crate::session::{Cx, Sessions};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Stanza};
use carillon_wire::xml::Element;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "roster",
    about: "Contacts, subscriptions to their presence, and their presence.",
    specs: &[
        Spec {
            id: "RFC 6121",
            title: "XMPP: Instant Messaging and Presence",
            version: "",
            coverage: "§2 rosters with versions (§2.6: unchanged or whole), §3 subscriptions with pre-approval (§3.4), between \
                       accounts of this node; both sides change in one commit. §4.2–4.5 presence of contacts, probes included: a \
                       contact that is not available is not told of (§4.3.2.1). Requests are given again at each initial presence.",
        },
        Spec {
            id: "XEP-0237",
            title: "Roster Versioning",
            version: "1.3",
            coverage: "That of RFC 6121 §2.6.",
        },
    ],
    hooks: Hooks {
        offer: Some(|_, features| {
            features.push(Element::new("ver", ns::ROSTER_VERSIONS));
            features.push(Element::new("sub", ns::PRE_APPROVAL));
        }),
        record: &[RecordPart::Roster(|record, roster| record.roster = Contacts::of(roster))],
        contacts: Some(&ContactsHandler {
            standing: |record, other| {
                record.roster.get(other).map(|entry| entry.standing).unwrap_or_default()
            },
            each: |record, each| record.roster.iter().for_each(|entry| each(entry.jid, entry.standing)),
            groups: |record, contact, each| match contact {
                Some(contact) => record.roster.get(contact).iter().for_each(|entry| entry.each_group(each)),
                None => record.roster.iter().for_each(|entry| entry.each_group(each)),
            },
        }),
        submit_presence: Some(subscription::submit),
        announced: Some(announced::announced),
        seen: Some(announced::seen),
        account_message: Some(account_message),
        missed: Some(missed::missed),
        at_home: &[
            HomeHandler { kind: IqType::Get, name: "query", ns: ns::ROSTER, answer: request::get },
            HomeHandler { kind: IqType::Set, name: "query", ns: ns::ROSTER, answer: request::set },
        ],
        asked: &[AskedHandler {
            kind: IqType::Set,
            name: "query",
            ns: ns::ROSTER,
            answer: AnswerOther::Now(forbid),
            is_same_for_all: true,
        }],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// RFC 6121 §2.1.5, §2.3.3: nobody edits the roster of another, whether there is such an account or not.
fn forbid(request: &Stanza, cx: &mut Cx<'_>) {
    if let Some(reply) = request.error_reply(&StanzaError::new(Condition::Forbidden)) {
        cx.reply(reply);
    }
}

/// At the account's home.
fn account_message(
    message: AccountMessage,
    home: &mut AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Option<AccountMessage> {
    match message {
        AccountMessage::Request { requester, stanza } => {
            return subscription::asked(requester, stanza, home, sessions, cx);
        }
        AccountMessage::Announced { presence, step, list } => {
            announced::tell(&presence, step, list.as_deref(), home, sessions, cx);
        }
        AccountMessage::Presence(presence) => announced::deliver(&presence, home, sessions, cx),
        AccountMessage::Probe(from) => announced::probed(&from, home, sessions, cx),
        AccountMessage::Asks { from, of } => announced::asked(&from, &of, home, sessions, cx),
        AccountMessage::RosterChanged { change, cause } => {
            changed::changed(&change, cause, home, sessions, cx);
        }
        AccountMessage::Sent { .. }
        | AccountMessage::BlockListChanged(_)
        | AccountMessage::PrivacyChanged(_)
        | AccountMessage::NodesChanged(_)
        | AccountMessage::Published { .. }
        | AccountMessage::Event(_)
        | AccountMessage::Wants(_)
        | AccountMessage::Asked(_)
        | AccountMessage::Stanza { .. }
        | AccountMessage::Reload => return Some(message),
    }
    None
}
