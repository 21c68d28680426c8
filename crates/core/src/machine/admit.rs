//! Admitting a session to its account, and parting with it.

use super::Turn;
use crate::connection::{Io, Noted};
use crate::error::StreamError;
use crate::event::{Entry, Kind, Leave};
use crate::model::{SessionPolicy, Waiting};
use crate::sasl::Wrap;
use crate::session::auth::{Greeting, success2};
use crate::session::hook::Ending;
use crate::session::{Bound, Cx, Live, Session};
use carillon_wire::ns;
use carillon_wire::stanza::{IqType, Stanza};
use carillon_wire::stream::Condition;
use carillon_wire::xml::Element;

impl Turn<'_> {
    /// Admits a session: whom it replaces ends first, then it is known to its account and to the topics it follows, and
    /// is told.
    pub(super) fn admit(&mut self, bound: Bound) {
        let Bound { mut live, greeting, mut login } = bound;
        self.replace(&live);
        let conn = live.io.conn;
        if self.sessions.bind(&live.bare, conn.slot) > 1 {
            self.cx.hub.in_company.insert(live.account);
        }
        self.cx.hub.counters.sessions += 1;
        self.cx.hub.counters.domains.of(live.domain).sessions += 1;
        self.cx.out.journal.note(self.cx.now.unix, Kind::Login, || Entry::Login {
            jid: live.jid.as_str(),
            address: live.io.address,
            transport: live.io.framing,
        });
        // Something may have been stored since the login was read. From here on the session is told of what is.
        if self.cx.hub.recent.is_marked(live.bare.as_str()) {
            login.waiting = Waiting { notifications: true, messages: true };
        }
        for hook in &self.cx.pipeline.login {
            hook(&mut live, &login, &mut self.cx);
        }
        greet(&mut live, greeting, &mut self.cx);
        for hook in &self.cx.pipeline.open {
            hook(&mut live, &mut self.cx);
        }
        self.sessions.put(conn, Session::Live(live));
    }

    /// Ends the sessions that a new one replaces (RFC 6120 §7.7.2.2), and the oldest of too many.
    fn replace(&mut self, new: &Live) {
        let Some(domain) = self.cx.hub.domains.named(new.bare.domain()) else { return };
        let policy = domain.policy;
        let others = self.sessions.lives_of(new.bare.as_str());
        let over = (others.len() + 1).saturating_sub(usize::from(policy.sessions_max));
        let replaced = others.iter().enumerate().filter_map(|(i, live)| match policy.sessions {
            SessionPolicy::Single => Some((live.io.conn, "replaced by a new session")),
            SessionPolicy::Multi if live.jid == new.jid => {
                Some((live.io.conn, "replaced by a new session of this resource"))
            }
            SessionPolicy::Multi if i < over => Some((live.io.conn, "too many sessions; the oldest ends")),
            SessionPolicy::Multi => None,
        });
        let replaced: Vec<_> = replaced.collect();
        drop(others);
        for (conn, why) in replaced {
            self.end(conn, &StreamError::new(Condition::Conflict, why));
        }
    }

    /// Parts with a session: its features are told, its account and topics forget it. Nothing is written to any store for
    /// it. What is left is the connection.
    pub(super) fn part(&mut self, mut live: Box<Live>, leave: Leave) -> Io {
        let slot = live.io.conn.slot;
        if self.sessions.unbind(&live.bare, slot) <= 1 {
            self.cx.hub.in_company.remove(&live.account);
        }
        self.cx.hub.counters.sessions -= 1;
        self.cx.hub.counters.domains.of(live.domain).sessions -= 1;
        self.cx.hub.counters.sessions_ended.count(leave.as_str());
        let ending = if leave == Leave::Closed { Ending::Closed } else { Ending::Lost };
        for hook in &self.cx.pipeline.close {
            hook(&mut live, ending, &mut self.cx);
        }
        for followed in std::mem::take(&mut live.topics) {
            self.cx.unfollow(followed, self.sessions);
        }
        // Behind what its features noted of it.
        self.cx.out.journal.note(self.cx.now.unix, Kind::Disconnect, || Entry::Disconnect {
            jid: Some(live.jid.as_str()),
            address: live.io.address,
            reason: leave,
            after_ms: self.cx.now.unix.0.saturating_sub(live.since.0),
        });
        live.io.noted = Noted::Ended;
        live.io
    }

    /// Gives way to work that a command made.
    pub(super) fn later(&mut self, conn: crate::model::ConnId, error: StreamError) {
        self.cx.end(conn, error);
    }
}

/// Tells the client that its session is there.
fn greet(live: &mut Live, greeting: Greeting, cx: &mut Cx<'_>) {
    match greeting {
        Greeting::Bind { id } => {
            let jid = Element::new("jid", ns::BIND).with_text(live.jid.as_str());
            let result = Stanza::iq(IqType::Result).with_id(id);
            let result = result.with_payload(Element::new("bind", ns::BIND).with_child(jid));
            live.io.send_stanza(&result, cx);
        }
        Greeting::Success { wrap, data, token } => {
            let mut bound = Element::new("bound", ns::BIND2);
            if let Wrap::Sasl2(inline) = &wrap {
                inline.bind.iter().flat_map(Element::children).for_each(|asked| {
                    if let Some(handle) = cx.pipeline.nonza(asked.name(), asked.ns())
                        && let Ok(Some(reply)) = handle(live, asked, cx)
                    {
                        bound.push(reply);
                    }
                });
            }
            let success = success2(data.as_deref(), live.jid.as_str(), token).with_child(bound);
            live.io.send_element(&success, cx);
            // XEP-0388 §2.6: features follow a success at once. All that could be negotiated was, inline.
            live.io.send_features(&[], cx);
        }
    }
}
