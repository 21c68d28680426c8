//! Pings (XEP-0199): a client's pings are answered, and a client that was silent for long is pinged.

use crate::error::{StanzaError, StreamError};
use crate::session::hook::{At, Feature, Hooks, IqAnswer, IqHandler, Request, Spec, TimerHandler};
use crate::session::{BoundSession, Cx};
use crate::shard::{Timer, Track};
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
    hooks: Hooks {
        open: Some(open),
        resumed: Some(open),
        timers: &[
            TimerHandler { timer: IDLE, handle: look },
            TimerHandler { timer: WAIT, handle: expect_answer },
        ],
        iq: &[IqHandler { kind: IqType::Get, name: "ping", ns: ns::PING, at: At::Both, handle: answer }],
        ..Hooks::NONE
    },
    ..Feature::NONE
};

/// When the client may have to be pinged.
const IDLE: Timer = Timer(*b"ping");
/// When the client must have answered.
const WAIT: Timer = Timer(*b"pong");

fn answer(
    _live: &mut BoundSession,
    _request: &Request<'_>,
    _cx: &mut Cx<'_>,
) -> Result<IqAnswer, StanzaError> {
    Ok(IqAnswer::Empty)
}

fn open(session: &mut BoundSession, cx: &mut Cx<'_>) {
    let idle = cx.shard.settings.timeouts.ping_idle_ms;
    if idle > 0 && !std::mem::replace(&mut session.state.ping.timer_runs, true) {
        session.set_timer(idle, IDLE, cx);
    }
}

/// One timer per session: it fires when the client may have been silent for too long, and is set again counting from when it
/// last sent anything.
fn look(session: &mut BoundSession, cx: &mut Cx<'_>) -> Result<(), StreamError> {
    let timeouts = &cx.shard.settings.timeouts;
    let (idle, wait) = (timeouts.ping_idle_ms, timeouts.ping_wait_ms);
    // Pings were switched off meanwhile, or there is nobody to be pinged until the session is resumed.
    if idle == 0 || session.is_parked() {
        session.state.ping.timer_runs = false;
        return Ok(());
    }
    let silent = cx.now.mono.since(session.heard);
    if silent < idle {
        session.set_timer(idle - silent, IDLE, cx);
    } else {
        session.state.ping.asked = cx.now.mono;
        ask(session, cx);
        session.set_timer(wait, WAIT, cx);
    }
    Ok(())
}

/// The client was pinged: anything it sent since is an answer.
fn expect_answer(session: &mut BoundSession, cx: &mut Cx<'_>) -> Result<(), StreamError> {
    if session.is_parked() {
        session.state.ping.timer_runs = false;
        return Ok(());
    }
    if session.heard < session.state.ping.asked {
        return Err(StreamError::new(Condition::ConnectionTimeout, "no answer to a ping"));
    }
    let silent = cx.now.mono.since(session.heard);
    let idle = cx.shard.settings.timeouts.ping_idle_ms;
    session.set_timer(idle.saturating_sub(silent), IDLE, cx);
    Ok(())
}

fn ask(session: &mut BoundSession, cx: &mut Cx<'_>) {
    let id = format!("ping-{}", cx.now.mono.0);
    let mut ping = Stanza::iq(IqType::Get).with_id(id).with_to(session.jid.clone());
    ping.from = Jid::new(session.bare.domain()).ok();
    let ping = ping.with_payload(Element::new("ping", ns::PING));
    session.send(&ping, &Track::Nothing, cx);
}
