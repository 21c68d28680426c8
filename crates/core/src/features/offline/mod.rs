//! Offline messages (XEP-0160): chat messages for an absent account are kept, and given to the next session that becomes
//! available, in their order and with the time they came (XEP-0203).

mod xml;

use crate::error::StanzaError;
use crate::hook::{Absent, Feature, Hooks, Spec, Track};
use crate::model::OfflineMessage;
use crate::node::{Cx, Sessions};
use crate::ports::{Answer, Ask};
use crate::session::Live;
use crate::{Effect, node};
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::{Condition, Stanza};

/// The feature.
pub const FEATURE: Feature = Feature {
    name: "offline",
    about: "Keeps chat messages for accounts that are away.",
    specs: &[
        Spec {
            id: "XEP-0160",
            title: "Best Practices for Handling Offline Messages",
            version: "1.0.1",
            coverage: "Chat and normal messages with a body or a store hint; forgotten once the client has them.",
        },
        Spec { id: "XEP-0203", title: "Delayed Delivery", version: "2.0", coverage: "Stamps what was kept." },
        Spec {
            id: "XEP-0334",
            title: "Message Processing Hints",
            version: "1.0.0",
            coverage: "no-store, no-permanent-store and store; no-copy by carbons.",
        },
    ],
    server_features: &["msgoffline"],
    account_features: &[],
    inline_features: &[],
    hooks: Hooks { absent: Some(absent), flushed: Some(flushed), ..Hooks::NONE },
};

/// Messages read at once.
pub const PAGE: u16 = 100;

/// A session's offline messages on their way.
#[derive(Debug, Default)]
pub struct State(Option<Box<Progress>>);

#[derive(Debug, Default)]
struct Progress {
    /// What the login brought, until initial presence.
    waiting: Vec<OfflineMessage>,
    /// Whether the store has more.
    more: bool,
    /// Whether a page is on its way from the store: newer messages wait behind it.
    asking: bool,
    /// Whether something was kept since the page was asked for.
    again: bool,
    /// Given to the socket, which has not yet taken them.
    unflushed: Vec<u64>,
    /// The last one given.
    last: u64,
}

/// A question that waits for the store.
#[derive(Debug)]
pub enum Then {
    /// A message is being kept.
    Kept(Box<Stanza>),
    /// A page for this session.
    Page(crate::model::ConnId),
}

impl State {
    /// Keeps what a login brought.
    pub fn take_login(&mut self, waiting: Vec<OfflineMessage>, more: bool) {
        if !waiting.is_empty() || more {
            self.0 = Some(Box::new(Progress { waiting, more, ..Progress::default() }));
        }
    }

    /// Whether older messages are still on their way from the store, so that newer ones must wait behind them there.
    pub fn is_catching_up(&self) -> bool {
        self.0.as_ref().is_some_and(|progress| progress.asking)
    }

    fn progress(&mut self) -> &mut Progress {
        self.0.get_or_insert_default()
    }
}

/// After initial presence: gives what waited.
pub fn initial(live: &mut Live, cx: &mut Cx<'_>) {
    if live.state.presence.priority() < 0 || !is_on(cx) {
        return;
    }
    if cx.hub.recent.is_marked(live.bare.as_str()) {
        // Something was kept since the login was read.
        live.state.offline = State::default();
        ask(live, cx);
    } else if let Some(progress) = &mut live.state.offline.0 {
        let (messages, more) = (std::mem::take(&mut progress.waiting), progress.more);
        give(live, messages, cx);
        if more {
            ask(live, cx);
        }
    }
}

/// The client has these.
pub fn acknowledged(live: &Live, seqs: &[u64], cx: &mut Cx<'_>) {
    let local = live.bare.local().unwrap_or_default().into();
    let ask = Ask::DeleteOffline { domain: live.domain, local, seqs: seqs.to_vec() };
    cx.ask(ask, node::Then::Nothing);
}

/// The store answered.
pub fn answered(then: Then, answer: Answer, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    match (then, answer) {
        (Then::Kept(stanza), Answer::Done) => kept(&stanza, sessions, cx),
        (Then::Kept(stanza), answer) => {
            let condition = match answer {
                Answer::Missing | Answer::Full => Condition::ServiceUnavailable,
                _ => Condition::InternalServerError,
            };
            if let Some(reply) = stanza.error_reply(&StanzaError::new(condition)) {
                cx.reply(reply);
            }
        }
        (Then::Page(conn), Answer::Offline { messages, more }) => {
            let Some(live) = sessions.live(conn) else { return };
            let progress = live.state.offline.progress();
            progress.asking = false;
            let again = std::mem::take(&mut progress.again);
            give(live, messages, cx);
            if more || again {
                ask(live, cx);
            }
        }
        (Then::Page(conn), _) => {
            // What is in the store stays there for the next login.
            if let Some(live) = sessions.live(conn) {
                live.state.offline.progress().asking = false;
            }
        }
    }
}

/// A message was kept: a session that became available meanwhile gets it now.
fn kept(stanza: &Stanza, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(to) = &stanza.to else { return };
    cx.hub.changed(to.bare_str());
    for slot in sessions.of(to.bare_str()) {
        let Some(live) = sessions.live_in(slot) else { continue };
        if live.state.presence.is_available() && live.state.presence.priority() >= 0 {
            ask(live, cx);
            return;
        }
    }
}

fn ask(live: &mut Live, cx: &mut Cx<'_>) {
    let (domain, local) = (live.domain, live.bare.local().unwrap_or_default().into());
    let progress = live.state.offline.progress();
    if progress.asking {
        progress.again = true;
        return;
    }
    progress.asking = true;
    let ask = Ask::Offline { domain, local, after: progress.last, max: PAGE };
    cx.ask(ask, node::Then::Offline(Then::Page(live.io.conn)));
}

fn give(live: &mut Live, messages: Vec<OfflineMessage>, cx: &mut Cx<'_>) {
    let managed = live.state.stream_management.is_some();
    let mut any = false;
    for message in messages {
        let Some(stanza) = xml::read(&message, live.bare.domain()) else {
            // It was well-formed when it was kept; should it not be now, it must not come back for ever.
            acknowledged(live, &[message.seq], cx);
            continue;
        };
        live.deliver(stanza, Track::Offline(message.seq), cx);
        let progress = live.state.offline.progress();
        progress.last = message.seq;
        if !managed {
            progress.unflushed.push(message.seq);
            any = true;
        }
    }
    if any {
        cx.out.push(Effect::WatchFlush { conn: live.io.conn });
    }
}

/// Without stream management, what the socket took counts as arrived.
fn flushed(live: &mut Live, cx: &mut Cx<'_>) {
    let Some(progress) = &mut live.state.offline.0 else { return };
    let seqs = std::mem::take(&mut progress.unflushed);
    if !seqs.is_empty() {
        acknowledged(live, &seqs, cx);
    }
}

fn absent(stanza: &Stanza, cx: &mut Cx<'_>) -> Absent {
    let Some(to) = stanza.to.as_ref().map(carillon_wire::jid::Jid::bare) else { return Absent::Pass };
    if !xml::is_worth_keeping(stanza) {
        return Absent::Pass;
    }
    let Some(ask) = keep(stanza, &to, cx) else { return Absent::Pass };
    cx.ask(ask, node::Then::Offline(Then::Kept(Box::new(stanza.clone()))));
    Absent::Taken
}

fn keep(stanza: &Stanza, to: &BareJid, cx: &Cx<'_>) -> Option<Ask> {
    let domain = cx.hub.domains.named(to.domain())?.id;
    let local = to.local()?.into();
    let queue_max = cx.hub.settings.limits.offline_messages;
    Some(Ask::StoreOffline { domain, local, received: cx.now.unix, stanza: xml::write(stanza), queue_max })
}

fn is_on(cx: &Cx<'_>) -> bool {
    cx.hub.pipeline.features().iter().any(|f| f.name == FEATURE.name)
}
