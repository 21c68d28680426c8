//! A bound session: stanzas flow.

use super::link::Link;
use super::wait::HeldStanza;
use super::{Presence, Resumption, backlog};
use crate::Effect;
use crate::connection::{Allowance, Io, Received};
use crate::error::StreamError;
use crate::feature_state::PerSession;
use crate::form::Malformed;
use crate::message::Announcement;
use crate::model::{
    AccountId, ConnId, DomainId, Followed, Listed, Mono, PubsubEvent, SessionId, TopicId, UnixMs,
};
use crate::session::Cx;
use crate::session::hook::{Emit, Outgoing};
use crate::shard::{Addressee, Timer, Track, Wake};
use carillon_wire::jid::{AccountJid, Jid};
use carillon_wire::stanza::{SharedStanza, Stanza, Unit};
use carillon_wire::stream;
use carillon_wire::xml::Element;
use std::sync::Arc;

/// A bound session. All of it is plain data, so that it can be parked, resumed or moved as a whole.
#[derive(Debug)]
pub struct BoundSession {
    /// Its name.
    pub id: SessionId,
    /// Its connection, while it has one.
    pub io: Option<Io>,
    /// Its full JID.
    pub jid: Jid,
    /// Its account's name.
    pub bare: AccountJid,
    /// Its account.
    pub account: AccountId,
    /// Its domain.
    pub domain: DomainId,
    /// When it was bound.
    pub since: UnixMs,
    /// When the client last sent anything.
    pub heard: Mono,
    /// Its presence.
    pub presence: Presence,
    /// How many stanzas the client has not acknowledged; none where it acknowledges nothing (XEP-0198).
    pub unacknowledged: Option<u32>,
    /// Whether and how its client may resume it.
    pub resumption: Option<Box<Resumption>>,
    /// What it waits for of its connection.
    pub(super) link: Link,
    /// The stanza that waits for an answer, and holds up the input behind it.
    pub(super) waiting: Option<Box<HeldStanza>>,
    /// The topics it follows, sorted by topic.
    pub topics: Vec<Followed>,
    /// What the features know of it.
    pub state: PerSession,
    /// Whether it sends too fast for its account; and between two processes what the account owes.
    allowance: Allowance,
    /// Bytes that it was sent, modulo 2^32.
    sent: u32,
    /// Whether what happens to it is noted for an operator.
    pub(crate) is_tapped: bool,
}

// No answer comes to another process: a stanza that waits for one is the client's to repeat.
crate::form! {
    struct BoundSession {
        id,
        io,
        jid,
        bare: omitted(account_of(&jid)?),
        account,
        domain,
        since,
        heard,
        presence,
        unacknowledged,
        resumption,
        link,
        waiting: omitted(None),
        topics,
        state,
        allowance,
        sent: omitted(0),
        is_tapped: omitted(false),
    }
}

/// The account in a session's full JID.
fn account_of(jid: &Jid) -> Result<AccountJid, Malformed> {
    AccountJid::of(jid.bare()).ok_or(Malformed { at: 0, what: "a session's address names no account" })
}

impl BoundSession {
    pub(crate) fn new(
        id: SessionId,
        io: Io,
        bare: AccountJid,
        jid: Jid,
        domain: DomainId,
        account: AccountId,
        cx: &Cx<'_>,
    ) -> BoundSession {
        BoundSession {
            id,
            is_tapped: cx.shard.taps.follow(bare.as_str()),
            bare,
            account,
            domain,
            since: cx.now.unix,
            heard: cx.now.mono,
            presence: Presence::default(),
            unacknowledged: None,
            resumption: None,
            link: Link::IDLE,
            waiting: None,
            topics: Vec::new(),
            state: PerSession::default(),
            allowance: Allowance::new(cx.now.mono),
            sent: 0,
            io: Some(io),
            jid,
        }
    }

    /// Whether input must wait: because a stanza waits for an answer, because the client has not read the last one or is too fast, or
    /// because it closed its stream.
    pub fn is_waiting(&self) -> bool {
        self.link.holds_input() || self.waiting.is_some() || self.allowance.is_throttled()
    }

    /// Whether the client acknowledges what it is given (XEP-0198).
    pub fn is_managed(&self) -> bool {
        self.unacknowledged.is_some()
    }

    /// Whether what waited for it is being written, and the socket has not taken it yet.
    pub fn awaits_flush(&self) -> bool {
        self.link.holds_backlog()
    }

    /// Bytes that it was sent at least, modulo 2^32: as they are before TLS and WebSocket, so that there are more of them on the wire.
    pub fn sent(&self) -> u32 {
        self.sent
    }

    /// Whether the client closed its stream.
    pub fn is_leaving(&self) -> bool {
        self.link.is_leaving()
    }

    /// The client closed its stream. Returns whether the session ends at once; otherwise it ends when it is known how much
    /// has arrived.
    pub fn leave(&mut self, cx: &mut Cx<'_>) -> bool {
        if !cx.pipeline.awaits_arrival.iter().any(|hook| hook(self)) {
            return true;
        }
        self.link = Link::Leaving;
        self.count_unacked(cx);
        false
    }

    /// Its connection, while it has one.
    pub fn conn(&self) -> Option<ConnId> {
        self.io.as_ref().map(|io| io.conn)
    }

    /// Has counted how much of what was written has not arrived ([`Hooks::unacked`](super::hook::Hooks::unacked)).
    pub fn count_unacked(&self, cx: &mut Cx<'_>) {
        if let Some(conn) = self.conn() {
            cx.out.push(Effect::CountUnacked { conn, sent: self.sent });
        }
    }

    /// Sets a timer of a feature, `ms` from now.
    pub fn set_timer(&self, ms: u64, timer: Timer, cx: &mut Cx<'_>) {
        cx.set_timer(self.id, ms, timer);
    }

    /// The session is available, or is not any more, and its account's others know: tells those whom it concerns besides.
    pub fn announce(&mut self, presence: &Stanza, step: Announcement, cx: &mut Cx<'_>) {
        for hook in &cx.pipeline.announced {
            hook(self, presence, step, cx);
        }
    }

    /// Writes an element that is no stanza.
    pub fn send_element(&self, element: &Element, cx: &mut Cx<'_>) {
        if let Some(io) = &self.io {
            io.send_element(element, cx);
            if self.is_tapped {
                self.tap_element(element, cx);
            }
        }
    }

    /// Whether the session follows a topic.
    pub fn follows(&self, topic: TopicId) -> bool {
        self.topics.binary_search_by_key(&topic, |f| f.topic).is_ok()
    }

    /// A unit of this many bytes came from the client.
    pub fn unit(&mut self, unit: Unit, bytes: usize, cx: &mut Cx<'_>) -> Result<(), StreamError> {
        self.heard = cx.now.mono;
        cx.shard.heavy.sent(self.account, bytes);
        if self.is_tapped {
            self.tap_in(&unit, bytes, cx);
        }
        let mut counts = true;
        match unit {
            // What has no reply, such as an acknowledgement that we asked for, costs its bytes alone.
            Unit::Nonza(element) => counts = self.nonza(&element, cx)?,
            Unit::Stanza(stanza) if self.is_repeated(&stanza, cx) => {}
            Unit::Stanza(mut stanza) => {
                // RFC 6120 §8.1.2.1: whatever the client says of itself, this is who it is.
                stanza.from = Some(self.jid.clone());
                self.submit(stanza, cx);
                if self.waiting.is_none() {
                    self.received(cx);
                }
            }
            Unit::Refused { mut reply, error } => {
                self.received(cx);
                reply.from = None;
                if let Some(mut answer) = reply.error_reply(&error) {
                    answer.to = Some(self.jid.clone());
                    self.send(&answer, &Track::Nothing, cx);
                }
            }
        }
        self.pace(Received { counts, bytes }, cx);
        Ok(())
    }

    /// Whether the client sends a stanza once more that was handled before its session was resumed.
    fn is_repeated(&mut self, stanza: &Stanza, cx: &Cx<'_>) -> bool {
        cx.pipeline.repeated.iter().any(|hook| hook(self, stanza))
    }

    /// A stanza was handled: from now on an acknowledgement covers it.
    pub(super) fn received(&mut self, cx: &mut Cx<'_>) {
        cx.shard.counters.stanzas_in += 1;
        for hook in &cx.pipeline.receive {
            hook(self, cx);
        }
    }

    /// Handles an element that is no stanza. Returns whether it was answered.
    fn nonza(&mut self, element: &Element, cx: &mut Cx<'_>) -> Result<bool, StreamError> {
        let Some(handle) = cx.pipeline.nonza_handler(element.name(), element.ns()) else {
            // RFC 6120 §4.9.3.24
            let condition = stream::Condition::UnsupportedStanzaType;
            return Err(StreamError::new(condition, "this element is not understood here"));
        };
        let reply = handle(self, element, cx)?;
        if let Some(reply) = &reply {
            self.send_element(reply, cx);
        }
        Ok(reply.is_some())
    }

    /// Gives the session a stanza that was routed to it.
    pub fn deliver(&mut self, mut stanza: Stanza, track: Track, cx: &mut Cx<'_>) {
        for hook in &cx.pipeline.deliver {
            hook(self, &mut stanza, cx);
        }
        self.send(&stanza, &track, cx);
        if let Track::Chat(chat) = track
            && !self.is_managed()
            && let Some(hook) = cx.pipeline.given
        {
            hook(self, stanza, chat, cx);
        }
    }

    /// Writes a stanza to the client.
    pub fn send(&mut self, stanza: &Stanza, track: &Track, cx: &mut Cx<'_>) {
        let outgoing = Outgoing::Stanza(stanza, track);
        if self.emit(&outgoing, cx) != Emit::Write {
            return;
        }
        if let Some(io) = &self.io {
            let began = cx.out.bytes.len();
            cx.out.send(io.conn, |out| stanza.write(out, io.framing));
            self.count_sent(began, cx);
        }
        if self.is_tapped {
            self.tap_out(stanza, cx);
        }
        self.emitted(&outgoing, cx);
    }

    /// Writes an event of a topic to the client: the client's JID is added to what was serialised before.
    pub fn notify(&mut self, event: &Arc<PubsubEvent>, cx: &mut Cx<'_>) {
        let outgoing = Outgoing::PubsubEvent(event);
        if self.emit(&outgoing, cx) != Emit::Write {
            return;
        }
        if let Some(io) = &self.io {
            let began = cx.out.bytes.len();
            cx.out.send(io.conn, |out| event.write(out, self.jid.as_str(), io.framing));
            self.count_sent(began, cx);
        }
        if self.is_tapped {
            self.tap_event(event, cx);
        }
        self.emitted(&outgoing, cx);
    }

    /// Writes what a room gives to many: the address of this one is added to what was serialised before.
    pub fn give_shared(&mut self, shared: &Arc<SharedStanza>, to: Addressee, cx: &mut Cx<'_>) {
        let outgoing = Outgoing::Shared(shared, to);
        if self.emit(&outgoing, cx) != Emit::Write {
            return;
        }
        if let Some(io) = &self.io {
            let began = cx.out.bytes.len();
            cx.out.send(io.conn, |out| shared.write(self.address(to), out, io.framing));
            self.count_sent(began, cx);
        }
        if self.is_tapped {
            self.tap_out(&self.shared_for_it(shared, to), cx);
        }
        self.emitted(&outgoing, cx);
    }

    /// The address by which the session is given something.
    pub fn address(&self, to: Addressee) -> &str {
        match to {
            Addressee::Client => self.jid.as_str(),
            Addressee::Account => self.bare.as_str(),
        }
    }

    /// What many are given, as the session is given it.
    pub fn shared_for_it(&self, shared: &SharedStanza, to: Addressee) -> Stanza {
        match to {
            Addressee::Client => shared.for_one(self.jid.clone()),
            Addressee::Account => shared.for_one(self.bare.to_jid()),
        }
    }

    /// Counts what was written since the buffer had `began` bytes.
    fn count_sent(&mut self, began: usize, cx: &mut Cx<'_>) {
        let bytes = cx.out.bytes.len() - began;
        self.sent = self.sent.wrapping_add(bytes as u32);
        if let Some(wait_ms) = cx.shard.quotas.give(self.domain, cx.now.mono, bytes) {
            cx.given_all(self.domain, wait_ms);
        }
    }

    fn emit(&mut self, outgoing: &Outgoing<'_>, cx: &mut Cx<'_>) -> Emit {
        for hook in &cx.pipeline.emit {
            if let Emit::Held(why) = hook(self, outgoing, cx) {
                cx.shard.counters.stanzas_held.count(why.name());
                if self.is_tapped {
                    self.tap_held(outgoing, why.name(), cx);
                }
                return Emit::Held(why);
            }
        }
        Emit::Write
    }

    fn emitted(&mut self, outgoing: &Outgoing<'_>, cx: &mut Cx<'_>) {
        cx.shard.counters.stanzas_out += 1;
        for hook in &cx.pipeline.emitted {
            hook(self, outgoing, cx);
        }
    }

    /// A timer fired.
    pub fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) -> Result<(), StreamError> {
        match wake {
            Wake::Unthrottle if self.allowance.lift() => self.read_on(cx),
            Wake::Waiting => self.give_up_waiting(cx),
            Wake::Parked if self.is_overdue(cx) => {
                return Err(StreamError::new(stream::Condition::ConnectionTimeout, "not resumed in time"));
            }
            Wake::Backlog => backlog::go_on(self, cx),
            Wake::Feature(timer) => {
                if let Some(handle) = cx.pipeline.timer(timer) {
                    handle(self, cx)?;
                }
            }
            // It was lifted, or resumed, already.
            Wake::Unthrottle | Wake::Parked => {}
        }
        Ok(())
    }

    /// Goes on with the input, unless it must wait for another reason.
    pub(super) fn read_on(&self, cx: &mut Cx<'_>) {
        if let Some(conn) = self.conn()
            && !self.is_waiting()
        {
            cx.resume(conn);
        }
    }

    /// Goes on where it stood in another process: with what waits for its client, and with what came from it.
    pub fn carry_on(&mut self, cx: &mut Cx<'_>) {
        cx.shard.accounts.allowances.take_in(self.account, cx.now.mono, &self.allowance);
        if self.is_leaving() {
            return self.count_unacked(cx);
        }
        backlog::go_on(self, cx);
        self.read_on(cx);
    }

    /// It goes on in another process, which is told what its account owes.
    pub(crate) fn take_allowance(&mut self, cx: &Cx<'_>) {
        match cx.shard.accounts.allowances.of(self.account) {
            Some(of_account) => self.allowance.set_owed(of_account),
            None => self.allowance.set_owed(&Allowance::new(cx.now.mono)),
        }
    }

    /// The socket took what was sent.
    pub fn flushed(&mut self, cx: &mut Cx<'_>) {
        backlog::flushed(self, cx);
        if self.link.release_input() {
            self.read_on(cx);
        }
    }

    /// All but the last `bytes` of what was sent have arrived, and no more will: the connection is gone.
    pub(crate) fn lost(&mut self, bytes: u64, cx: &mut Cx<'_>) {
        let sent = self.sent;
        for hook in &cx.pipeline.unacked {
            hook(self, bytes, sent, cx);
        }
    }

    /// All but the last `bytes` of the `sent` that it was sent, modulo 2^32, have arrived.
    pub fn unacked(&mut self, bytes: u64, sent: u32, cx: &mut Cx<'_>) {
        for hook in &cx.pipeline.unacked {
            hook(self, bytes, sent, cx);
        }
        // What arrived made room for more.
        if !self.is_leaving() {
            backlog::go_on(self, cx);
        }
    }

    /// Reads no more for now.
    pub(super) fn pause(&self, cx: &mut Cx<'_>) {
        if let Some(conn) = self.conn() {
            cx.out.push(Effect::Pause { conn });
        }
    }

    /// What the client was answered counts as what it sends: who asks for much is read more slowly.
    pub fn charge(&mut self, bytes: usize, cx: &mut Cx<'_>) {
        self.pace(Received { counts: false, bytes }, cx);
    }

    /// A client that is too fast is read more slowly; nothing of what it sends is lost.
    fn pace(&mut self, received: Received, cx: &mut Cx<'_>) {
        let rates = &cx.shard.settings.limits.rates;
        let wait = cx.shard.accounts.allowances.debit(self.account, cx.now.mono, received, rates);
        let domain_wait = cx.shard.quotas.debit(self.domain, cx.now.mono, received);
        if let Some(wait) = self.allowance.throttle(wait.max(domain_wait)) {
            if domain_wait > 0 {
                cx.shard.counters.domains.of(self.domain).sends_delayed += 1;
            }
            cx.wake_in(self.id, wait, Wake::Unthrottle);
            self.pause(cx);
        }
    }
}

impl BoundSession {
    /// Another session left a topic's list, and this one took over its position.
    pub fn moved(&mut self, followed: Listed) {
        let at = self.topics.binary_search_by_key(&followed.topic, |f| f.topic);
        if let Some(own) = at.ok().and_then(|at| self.topics.get_mut(at)) {
            own.position = followed.position;
        }
    }
}
