//! Personal events (XEP-0163): an account publishes under its own address, on nodes of its own.
//!
//! The account's home answers for it, by its record, which says what nodes there are and who is whom to the account. What an edit does is decided
//! by the store, in one commit (`model::node`).

mod events;
mod last;
mod request;

use crate::feature_state::pep::Nodes;
use crate::message::AccountMessage;
use crate::session::homes::AtHome;
use crate::session::hook::{AnswerOther, AskedHandler, Feature, HomeHandler, Hooks, RecordPart, Spec};
use crate::session::{Cx, Sessions};
use carillon_wire::ns;
use carillon_wire::stanza::IqType;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "pep",
    about: "Accounts publish what concerns them under their own addresses: bookmarks, avatars, keys.",
    specs: &[
        Spec {
            id: "XEP-0163",
            title: "Personal Eventing Protocol",
            version: "1.2.2",
            coverage: "Nodes of one's own: created by publishing, with publish-options, or by request; configured, purged, deleted; items published, \
                       retracted, and read by pages; told to the account's own sessions and to contacts that may read the node and want it \
                       (XEP-0115), who are given the last items when they become available. Access: open, presence, whitelist (the account \
                       alone); roster is the same as presence, groups are not distinguished. Not there: subscriptions and affiliations of \
                       others.",
        },
        Spec {
            id: "XEP-0402",
            title: "PEP Native Bookmarks",
            version: "1.2.0",
            coverage: "What it needs of XEP-0163 and XEP-0060.",
        },
    ],
    account_features: FEATURES,
    account_identities: &[("pubsub", "pep")],
    hooks: Hooks {
        record: &[RecordPart::Nodes(|record, nodes| record.pep = Nodes::of(nodes))],
        account_message: Some(account_message),
        at_home: &[
            own(IqType::Get, "pubsub", ns::PUBSUB),
            own(IqType::Set, "pubsub", ns::PUBSUB),
            own(IqType::Get, "pubsub", ns::PUBSUB_OWNER),
            own(IqType::Set, "pubsub", ns::PUBSUB_OWNER),
            own(IqType::Get, "query", ns::DISCO_ITEMS),
        ],
        node_info: Some(NODE_INFO),
        asked: &[
            other(IqType::Get, "pubsub", ns::PUBSUB),
            other(IqType::Set, "pubsub", ns::PUBSUB),
            other(IqType::Get, "pubsub", ns::PUBSUB_OWNER),
            other(IqType::Set, "pubsub", ns::PUBSUB_OWNER),
            other(IqType::Get, "query", ns::DISCO_ITEMS),
            other(IqType::Get, "query", ns::DISCO_INFO),
        ],
        capable: Some(last::wanted),
        close: Some(|session, _, cx| cx.features.pep.forget(session.id)),
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// The parts of XEP-0060 that an account has (§10).
const FEATURES: &[&str] = &[
    "http://jabber.org/protocol/pubsub",
    "http://jabber.org/protocol/pubsub#access-open",
    "http://jabber.org/protocol/pubsub#access-presence",
    "http://jabber.org/protocol/pubsub#access-roster",
    "http://jabber.org/protocol/pubsub#access-whitelist",
    "http://jabber.org/protocol/pubsub#auto-create",
    "http://jabber.org/protocol/pubsub#auto-subscribe",
    "http://jabber.org/protocol/pubsub#config-node",
    "http://jabber.org/protocol/pubsub#config-node-max",
    "http://jabber.org/protocol/pubsub#create-and-configure",
    "http://jabber.org/protocol/pubsub#create-nodes",
    "http://jabber.org/protocol/pubsub#delete-items",
    "http://jabber.org/protocol/pubsub#delete-nodes",
    "http://jabber.org/protocol/pubsub#filtered-notifications",
    "http://jabber.org/protocol/pubsub#instant-nodes",
    "http://jabber.org/protocol/pubsub#item-ids",
    "http://jabber.org/protocol/pubsub#last-published",
    "http://jabber.org/protocol/pubsub#meta-data",
    "http://jabber.org/protocol/pubsub#multi-items",
    "http://jabber.org/protocol/pubsub#persistent-items",
    "http://jabber.org/protocol/pubsub#publish",
    "http://jabber.org/protocol/pubsub#publish-options",
    "http://jabber.org/protocol/pubsub#purge-nodes",
    "http://jabber.org/protocol/pubsub#retract-items",
    "http://jabber.org/protocol/pubsub#retrieve-default",
    "http://jabber.org/protocol/pubsub#retrieve-items",
];

/// Describes a node of the account's own.
const NODE_INFO: &HomeHandler = &own(IqType::Get, "query", ns::DISCO_INFO);

const fn own(kind: IqType, name: &'static str, ns: &'static str) -> HomeHandler {
    HomeHandler { kind, name, ns, answer: request::own }
}

const fn other(kind: IqType, name: &'static str, ns: &'static str) -> AskedHandler {
    AskedHandler { kind, name, ns, answer: AnswerOther::AtHome(request::others), is_same_for_all: false }
}

/// At the account's home.
fn account_message(
    message: AccountMessage,
    home: &mut AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Option<AccountMessage> {
    match message {
        AccountMessage::NodesChanged(change) => {
            // A record that was read later has it already.
            if home.generation < change.after {
                home.record.pep.change(&change);
            }
        }
        AccountMessage::Published { event, access, .. } => events::tell(&event, access, home, sessions, cx),
        AccountMessage::Event(event) => events::deliver(&event, home, sessions, cx),
        AccountMessage::Wants(session) => last::give(session, home, sessions, cx),
        AccountMessage::RosterChanged { ref change, .. } => {
            last::gain(change, home, sessions, cx);
            return Some(message);
        }
        other => return Some(other),
    }
    None
}
