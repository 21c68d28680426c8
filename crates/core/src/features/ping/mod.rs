//! Pings (XEP-0199): the client's are answered, and a client that was silent for long is asked whether it is still there.

use crate::error::{StanzaError, StreamError};
use crate::hook::{At, Feature, Hooks, IqHandler, Request, Spec};
use crate::node::{Cx, Wake};
use crate::session::{Live, PingState};
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{IqType, Stanza};
use carillon_wire::stream::Condition;
use carillon_wire::xml::Element;

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "ping",
    about: "Asks whether the other end is still there, and answers when asked.",
    specs: &[Spec {
        id: "XEP-0199",
        title: "XMPP Ping",
        version: "2.0.1",
        coverage: "Both directions. A client that does not answer is disconnected with connection-timeout.",
    }],
    server_features: &[ns::PING],
    account_features: &[ns::PING],
    inline_features: &[],
    hooks: Hooks {
        open: Some(open),
        wake: Some(wake),
        iq: &[IqHandler { kind: IqType::Get, name: "ping", ns: ns::PING, at: At::Both, handle: answer }],
        ..Hooks::NONE
    },
};

fn answer(
    _live: &mut Live,
    _request: &Request<'_>,
    _cx: &mut Cx<'_>,
) -> Result<Option<Element>, StanzaError> {
    Ok(None)
}

fn open(live: &mut Live, cx: &mut Cx<'_>) {
    cx.wake_in(live.io.conn, cx.hub.settings.timeouts.ping_idle_ms, Wake::Ping);
}

/// One timer a session: it fires when the client may have been silent for long, and is set again from when it was last
/// heard.
fn wake(live: &mut Live, wake: Wake, cx: &mut Cx<'_>) -> Result<(), StreamError> {
    let (conn, idle, wait) =
        (live.io.conn, cx.hub.settings.timeouts.ping_idle_ms, cx.hub.settings.timeouts.ping_wait_ms);
    match (wake, live.ping) {
        (Wake::Ping, _) => {
            let silent = cx.now.mono.since(live.heard);
            if silent < idle {
                cx.wake_in(conn, idle - silent, Wake::Ping);
            } else {
                ask(live, cx);
                live.ping = PingState::Asked;
                cx.wake_in(conn, wait, Wake::PingWait);
            }
            Ok(())
        }
        (Wake::PingWait, PingState::Asked) => {
            Err(StreamError::new(Condition::ConnectionTimeout, "no answer to a ping"))
        }
        (Wake::PingWait, PingState::Quiet) => {
            let silent = cx.now.mono.since(live.heard);
            cx.wake_in(conn, idle.saturating_sub(silent), Wake::Ping);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn ask(live: &mut Live, cx: &mut Cx<'_>) {
    let id = format!("ping-{}", cx.now.mono.0);
    let mut ping = Stanza::iq(IqType::Get).with_id(id).with_to(live.jid.clone());
    ping.from = Jid::new(live.bare.domain()).ok();
    let ping = ping.with_payload(Element::new("ping", ns::PING));
    live.send(&ping, &crate::hook::Track::Nothing, cx);
}
