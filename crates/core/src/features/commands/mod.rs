//! Ad-hoc commands (XEP-0050): which of them there are, and who carries them out, is said by other features. Each is done in one step.

use crate::error::StanzaError;
use crate::session::hook::{At, CommandHandler, Feature, Hooks, IqAnswer, IqHandler, Request, Spec};
use crate::session::{BoundSession, Cx};
use carillon_wire::ns;
use carillon_wire::stanza::{Condition, IqType};
use carillon_wire::xml::Element;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "commands",
    about: "Carries out commands of the server for its accounts.",
    specs: &[Spec {
        id: "XEP-0050",
        title: "Ad-Hoc Commands",
        version: "1.3.0",
        coverage: "Those of the server that an account may give, listed to it and carried out in one step; the commands are XEP-0401's.",
    }],
    server_features: &[ns::COMMANDS],
    hooks: Hooks {
        iq: &[IqHandler {
            kind: IqType::Set,
            name: "command",
            ns: ns::COMMANDS,
            at: At::Server,
            handle: execute,
        }],
        commands: Some(list),
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// The commands that a session may give.
fn list(session: &BoundSession, cx: &Cx<'_>) -> Vec<&'static CommandHandler> {
    cx.pipeline.ad_hoc.iter().copied().filter(|command| (command.is_offered)(session, cx)).collect()
}

fn execute(
    session: &mut BoundSession,
    request: &Request<'_>,
    cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    let node = request.payload.attr("node").unwrap_or_default();
    let command = list(session, cx).into_iter().find(|command| command.node == node);
    let command =
        command.ok_or(StanzaError::new(Condition::ItemNotFound).with_text("there is no such command"))?;
    match request.payload.attr("action") {
        None | Some("execute" | "complete" | "next") => (command.handle)(session, request, cx),
        Some("cancel") => {
            let mut cancelled =
                Element::new("command", ns::COMMANDS).with_attr("node", node).with_attr("status", "canceled");
            if let Some(id) = request.payload.attr("sessionid") {
                cancelled.set_attr("sessionid", id);
            }
            Ok(IqAnswer::Payload(cancelled))
        }
        Some(_) => Err(StanzaError::new(Condition::BadRequest).with_text("there is no such action")),
    }
}
