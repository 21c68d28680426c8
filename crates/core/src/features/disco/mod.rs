//! Service discovery (XEP-0030): what the server and an account can do, made of the enabled features' own declarations.

use crate::error::StanzaError;
use crate::session::home;
use crate::session::homes::AtHome;
use crate::session::hook::{
    AnswerOther, AskedHandler, At, CommandHandler, Feature, Hooks, IqAnswer, IqHandler, Request, ServerNode,
    Spec,
};
use crate::session::{BoundSession, Cx, Sessions};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType, Stanza};
use carillon_wire::xml::Element;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "disco",
    about: "Tells what the server, an account and the services can do.",
    specs: &[Spec {
        id: "XEP-0030",
        title: "Service Discovery",
        version: "2.5",
        coverage: "Info and items of the server and of the own account, info of accounts whose presence one sees; those of pubsub are the pubsub \
                   feature's. The items of an account that is not there, or of which one sees nothing, are none (§8).",
    }],
    server_features: &[ns::DISCO_INFO, ns::DISCO_ITEMS],
    account_features: &[ns::DISCO_INFO, ns::DISCO_ITEMS],
    hooks: Hooks {
        iq: &[
            IqHandler { kind: IqType::Get, name: "query", ns: ns::DISCO_INFO, at: At::Both, handle: info },
            IqHandler { kind: IqType::Get, name: "query", ns: ns::DISCO_ITEMS, at: At::Both, handle: items },
            IqHandler {
                kind: IqType::Get,
                name: "query",
                ns: ns::DISCO_INFO,
                at: At::Service,
                handle: service,
            },
            IqHandler {
                kind: IqType::Get,
                name: "query",
                ns: ns::DISCO_ITEMS,
                at: At::Service,
                handle: service_items,
            },
        ],
        asked: &[
            AskedHandler {
                kind: IqType::Get,
                name: "query",
                ns: ns::DISCO_INFO,
                answer: AnswerOther::AtHome(info_of_other),
                is_same_for_all: false,
            },
            AskedHandler {
                kind: IqType::Get,
                name: "query",
                ns: ns::DISCO_ITEMS,
                answer: AnswerOther::AtHome(items_of_other),
                is_same_for_all: false,
            },
        ],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

fn info(session: &mut BoundSession, request: &Request<'_>, cx: &mut Cx<'_>) -> Result<IqAnswer, StanzaError> {
    if request.at == At::Account && request.payload.attr("node").is_some() && cx.pipeline.node_info.is_some()
    {
        return home::ask(session, request, cx);
    }
    if let Some(node) = request.payload.attr("node").filter(|_| request.at == At::Server)
        && let Some(node) = cx.pipeline.server_node(node)
    {
        return Ok(IqAnswer::Payload(describe_node(node)));
    }
    if is_of_commands(request, cx) {
        let list = Element::new("query", ns::DISCO_INFO).with_attr("node", ns::COMMANDS);
        return Ok(IqAnswer::Payload(list.with_child(identity("automation", "command-list"))));
    }
    if let Some(command) = command_of(session, request, cx) {
        return Ok(IqAnswer::Payload(describe_command(command)));
    }
    no_nodes(request)?;
    Ok(IqAnswer::Payload(describe(request.at == At::Account, session.bare.domain(), cx)))
}

/// What a domain can do, or an account of it.
fn describe(is_account: bool, domain: &str, cx: &Cx<'_>) -> Element {
    let own = match is_account {
        true => identity("account", "registered"),
        false => identity("server", "im").with_attr("name", "Carillon"),
    };
    let mut query = Element::new("query", ns::DISCO_INFO).with_child(own);
    let policy = cx.shard.domains.named(domain).map(|domain| domain.policy).unwrap_or_default();
    let features = cx.pipeline.features();
    for (category, kind) in
        features.iter().flat_map(|feature| feature.account_identities).filter(|_| is_account)
    {
        query.push(identity(category, kind));
    }
    for feature in features.iter().filter(|feature| (feature.in_domain)(&policy)) {
        let vars = if is_account { feature.account_features } else { feature.server_features };
        for var in vars {
            query.push(Element::new("feature", ns::DISCO_INFO).with_attr("var", *var));
        }
    }
    query
}

/// The command of the server that is asked about, if this session may give it.
fn command_of(session: &BoundSession, request: &Request<'_>, cx: &Cx<'_>) -> Option<&'static CommandHandler> {
    let node = request.payload.attr("node").filter(|_| request.at == At::Server)?;
    let commands = cx.pipeline.commands?;
    commands(session, cx).into_iter().find(|command| command.node == node)
}

/// What a command is (XEP-0050 §2.3).
fn describe_command(command: &CommandHandler) -> Element {
    let query = Element::new("query", ns::DISCO_INFO).with_attr("node", command.node);
    let query = query.with_child(identity("automation", "command-node").with_attr("name", command.name));
    [ns::COMMANDS, ns::DATA_FORMS].iter().fold(query, |query, var| {
        query.with_child(Element::new("feature", ns::DISCO_INFO).with_attr("var", *var))
    })
}

/// What a node of the server says of a feature.
fn describe_node(node: &ServerNode) -> Element {
    let query = Element::new("query", ns::DISCO_INFO).with_attr("node", node.node);
    let query = query.with_child(identity("server", "im").with_attr("name", node.name));
    node.features.iter().fold(query, |query, var| {
        query.with_child(Element::new("feature", ns::DISCO_INFO).with_attr("var", *var))
    })
}

/// Another account asks what this one can do: who is given its presence is told (XEP-0030 §8).
fn info_of_other(request: &Stanza, home: &AtHome<'_>, _: &mut Sessions, cx: &mut Cx<'_>) -> bool {
    let is_seen = request.from.as_ref().is_some_and(|from| home.standing_of(from, cx).from);
    if is_seen {
        cx.reply(request.result_reply().with_payload(describe(true, home.account.domain(), cx)));
    }
    is_seen
}

/// XEP-0030 §8: it has no items, whether there is nothing, nobody, or nothing for whoever asks.
fn items_of_other(request: &Stanza, _: &AtHome<'_>, _: &mut Sessions, cx: &mut Cx<'_>) -> bool {
    let mut none = Element::new("query", ns::DISCO_ITEMS);
    let query = request.payload.find("query", ns::DISCO_ITEMS).map(|query| query.element());
    if let Some(node) = query.as_ref().and_then(|query| query.attr("node")) {
        none.set_attr("node", node);
    }
    cx.reply(request.result_reply().with_payload(none));
    true
}

fn items(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    if let Some(commands) = cx.pipeline.commands.filter(|_| is_of_commands(request, cx)) {
        let mut query = Element::new("query", ns::DISCO_ITEMS).with_attr("node", ns::COMMANDS);
        for command in commands(session, cx) {
            let item = Element::new("item", ns::DISCO_ITEMS).with_attr("jid", session.bare.domain());
            query.push(item.with_attr("node", command.node).with_attr("name", command.name));
        }
        return Ok(IqAnswer::Payload(query));
    }
    no_nodes(request)?;
    let mut query = Element::new("query", ns::DISCO_ITEMS);
    if request.at != At::Account {
        for service in cx.pipeline.services() {
            let jid = format!("{}.{}", service.host, session.bare.domain());
            query.push(
                Element::new("item", ns::DISCO_ITEMS).with_attr("jid", jid).with_attr("name", service.name),
            );
        }
    }
    Ok(IqAnswer::Payload(query))
}

/// The disco#info of a service that does not answer itself.
fn service(
    _live: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    no_nodes(request)?;
    let host = request.stanza.to.as_ref().and_then(|to| to.domain().split_once('.'));
    let service = host.and_then(|(label, _)| cx.pipeline.service(label));
    let service = service.ok_or(StanzaError::new(Condition::ServiceUnavailable))?;
    let (category, kind) = service.identity;
    let identity = identity(category, kind).with_attr("name", service.name);
    let feature = Element::new("feature", ns::DISCO_INFO).with_attr("var", ns::DISCO_INFO);
    Ok(IqAnswer::Payload(Element::new("query", ns::DISCO_INFO).with_child(identity).with_child(feature)))
}

/// A service has no items (XEP-0030 §4.1).
fn service_items(
    _live: &mut BoundSession,
    request: &Request<'_>,
    _cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    no_nodes(request)?;
    Ok(IqAnswer::Payload(Element::new("query", ns::DISCO_ITEMS)))
}

/// Whether the commands of the server are asked for (XEP-0050 §2.1).
fn is_of_commands(request: &Request<'_>, cx: &Cx<'_>) -> bool {
    request.at == At::Server
        && request.payload.attr("node") == Some(ns::COMMANDS)
        && cx.pipeline.commands.is_some()
}

fn identity(category: &str, kind: &str) -> Element {
    Element::new("identity", ns::DISCO_INFO).with_attr("category", category).with_attr("type", kind)
}

fn no_nodes(request: &Request<'_>) -> Result<(), StanzaError> {
    match request.payload.attr("node") {
        None => Ok(()),
        Some(_) => Err(StanzaError::new(Condition::ItemNotFound).with_text("there are no nodes here")),
    }
}
