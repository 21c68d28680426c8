//! Stanza ids (XEP-0359): each message between accounts gets an id by the recipient's server, which clients cannot forge.

use crate::session::Cx;
use crate::session::hook::{Feature, Flow, Hooks, Spec};
use carillon_wire::ns;
use carillon_wire::stanza::{Kind, MessageType, Stanza};

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "stanza_ids",
    about: "Gives each message an id of the server's, and removes forged ones.",
    specs: &[Spec {
        id: "XEP-0359",
        title: "Unique and Stable Stanza IDs",
        version: "0.7.0",
        coverage: "Chat, normal and group messages to accounts get a stanza-id by the recipient's bare JID; where the domain has \
                   archives, those that are in the recipient's.",
    }],
    account_features: &[ns::STANZA_ID],
    hooks: Hooks {
        submit_message: Some(|_, stanza, cx| {
            stamp(stanza, cx);
            Ok(Flow::Pass)
        }),
        acted: Some(|_, stanza, _, cx| stamp(stanza, cx)),
        ..Hooks::NONE
    },
    ..Feature::NONE
};

fn stamp(stanza: &mut Stanza, cx: &mut Cx<'_>) {
    // Whatever claims to be the server's word and is not, goes (XEP-0359 §5).
    if stanza.payload.find("stanza-id", ns::STANZA_ID).is_some() {
        stanza.payload.remove("stanza-id", ns::STANZA_ID);
    }
    let kept = matches!(
        stanza.kind,
        Kind::Message(MessageType::Chat | MessageType::Normal | MessageType::Groupchat)
    );
    let Some(to) = stanza.to.as_ref().filter(|to| kept && to.local().is_some()) else { return };
    // Where there are archives, an id says where a message is in one: it is given when that is known (XEP-0313 §4.1).
    if cx.shard.domains.named(to.domain()).is_none_or(|domain| domain.policy.archive) {
        return;
    }
    let id = cx.shard.random.token();
    stanza.payload.push_leaf("stanza-id", ns::STANZA_ID, &[("id", &id), ("by", to.bare_str())]);
}
