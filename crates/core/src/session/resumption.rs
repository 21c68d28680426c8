//! A session outlives its connection (XEP-0198 §5): when that is lost, the session is *parked*, and takes what is for it as before; its
//! client resumes it over another connection, or it ends when its time is up.
//!
//! What the client is sent of this and what it reads is the business of a feature ([`ResumptionHandler`]); whose session it is was
//! proved by the login on the new connection, so that the account's own sessions are searched and no others.

use super::auth::{Authenticated, Success};
use super::hook::ResumptionHandler;
use super::{BoundSession, Cx};
use crate::command::Reach;
use crate::connection::Io;
use crate::model::{Mono, Transport};
use crate::shard::Wake;
use std::net::IpAddr;

/// What is known of a session whose client may resume it.
#[derive(Debug)]
pub struct Resumption {
    /// What the client names it by. Random, so that it does not name another session of the account after a restart.
    pub key: u64,
    /// How long it is parked at most, milliseconds.
    pub timeout_ms: u64,
    /// While it is parked: until when, and where its client was.
    pub parked: Option<Parked>,
    /// Whether a dead node left it, and it is as that wrote it last: its client may have more than that says.
    pub is_adopted: bool,
}

crate::form! { struct Resumption { key, timeout_ms, parked, is_adopted: omitted(false) } }

/// How a session is parked.
#[derive(Clone, Copy, Debug)]
pub struct Parked {
    /// When it ends.
    pub until: Mono,
    /// The client's last address.
    pub address: IpAddr,
    /// What carried its stanzas; none if an older release parked it.
    pub transport: Option<Transport>,
}

crate::form! { struct Parked { until, address, transport: since(3) } }

/// What a client wants to resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The session's key.
    pub key: u64,
    /// How many stanzas the client has of it, modulo 2^32.
    pub h: u32,
}

/// A client that proved whose it is wants to resume a session: the shard looks whether there is one.
#[derive(Debug)]
pub struct Resuming {
    pub(crate) io: Io,
    pub(crate) authenticated: Authenticated,
    pub(crate) resume: Resume,
    /// The success of SASL2 that the answer comes with; none on a stream where resource binding was offered.
    pub(crate) success: Option<Success>,
    /// Until when it waits for a session that another node left; none before it was looked for the first time.
    pub(crate) until: Option<Mono>,
}

/// How far a session has come, as its client counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Stanzas that the client was sent, modulo 2^32.
    pub sent: u32,
    /// Stanzas of the client that were handled, modulo 2^32.
    pub handled: u32,
    /// Those of them that are settled, up to the first that is not.
    pub settled: u32,
}

impl BoundSession {
    /// Whether it has no connection, and waits for its client to resume it.
    pub fn is_parked(&self) -> bool {
        self.io.is_none()
    }

    /// Which notifications reach it. While it is parked nobody is using the device.
    pub fn reach(&self) -> Reach {
        let reach = self.presence.reach();
        if self.is_parked() { reach.min(Reach::Asleep) } else { reach }
    }

    /// Whether it is parked when its connection is lost.
    pub fn is_resumable(&self, cx: &Cx<'_>) -> bool {
        self.resumption.is_some() && !self.is_leaving() && !cx.shard.ends_sessions()
    }

    /// How long it may be parked, by the node's setting and its domain's policy.
    pub fn resumption_ms_max(&self, cx: &Cx<'_>) -> u64 {
        let domain = cx.shard.domains.numbered(self.domain);
        let policy_ms = domain.map_or(0, |domain| domain.policy.resumption_ms_max.into());
        cx.shard.settings.timeouts.resume_ms.min(policy_ms)
    }

    /// Its connection is gone: it waits for the client to come back.
    pub(crate) fn park(&mut self, io: &Io, cx: &mut Cx<'_>) {
        let Some(resumption) = &mut self.resumption else { return };
        let timeout_ms = resumption.timeout_ms;
        resumption.parked = Some(Parked {
            until: cx.now.mono.plus(timeout_ms),
            address: io.address,
            transport: Some(io.transport()),
        });
        self.link.cut();
        cx.wake_in(self.id, timeout_ms, Wake::Parked);
        let mut waiting = self.waiting.take();
        for hook in &cx.pipeline.parked {
            // One that waited when an earlier connection was lost counts already.
            let new = waiting.as_ref().filter(|waiting| waiting.settles.is_none());
            let number = hook(self, new.map(|waiting| &waiting.stanza), cx);
            if let (Some(waiting), Some(number)) = (&mut waiting, number) {
                waiting.settles = Some(number);
            }
        }
        self.waiting = waiting;
    }

    /// Whether the client did not come back in time.
    pub(crate) fn is_overdue(&self, cx: &Cx<'_>) -> bool {
        let parked = self.resumption.as_ref().and_then(|resumption| resumption.parked);
        parked.is_some_and(|parked| parked.until <= cx.now.mono)
    }

    /// The client is back, over another connection, and has the first `h` stanzas.
    pub(crate) fn resume(
        &mut self,
        io: Io,
        success: Option<Success>,
        h: u32,
        handler: &ResumptionHandler,
        cx: &mut Cx<'_>,
    ) {
        if let Some(resumption) = &mut self.resumption {
            (resumption.parked, resumption.is_adopted) = (None, false);
        }
        self.heard = cx.now.mono;
        let resumed = (handler.resumed)(self);
        match success {
            Some(success) => success.send_with(resumed, self.jid.as_str(), &io, cx),
            None => io.send_element(&resumed, cx),
        }
        self.io = Some(io);
        (handler.go_on)(self, h, cx);
        for hook in &cx.pipeline.resumed {
            hook(self, cx);
        }
        super::backlog::go_on(self, cx);
    }
}
