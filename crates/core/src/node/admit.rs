//! Admitting a session to its account, and parting with it.

use super::hub::Work;
use super::{Cx, Shard};
use crate::Effects;
use crate::error::StreamError;
use crate::event::{Entry, Kind, Leave};
use crate::hook::Ending;
use crate::model::{Now, SessionPolicy, Waiting};
use crate::session::auth::{Greeting, Wrap, success2};
use crate::session::{Bound, Followed, Io, Live, Noted, Session};
use crate::topic::Notice;
use carillon_wire::ns;
use carillon_wire::stanza::{IqType, Stanza};
use carillon_wire::stream::Condition;
use carillon_wire::xml::Element;
use std::sync::Arc;

impl Shard {
    /// Admits a session: whom it replaces ends first, then it is known to its account and to the topics it follows, and
    /// is told.
    pub(super) fn admit(&mut self, bound: Bound, now: Now, effects: &mut Effects) {
        let Bound { mut live, greeting, login } = bound;
        self.replace(&live, now, effects);
        let conn = live.io.conn;
        if self.sessions.bind(&live.bare, conn.slot) > 1 {
            self.hub.in_company.insert(live.account);
        }
        let mut cx = Cx { now, hub: &mut self.hub, out: effects };
        cx.hub.counters.sessions += 1;
        cx.hub.counters.domains.of(live.domain).sessions += 1;
        cx.out.journal.note(now.unix, Kind::Login, || Entry::Login {
            jid: live.jid.as_str(),
            address: live.io.address,
            transport: live.io.framing,
        });
        for subscription in &login.subscriptions {
            let last = subscription.last.as_ref();
            let last = last.filter(|item| cx.hub.subscribers.is_news(subscription.topic, item.revision));
            let last = last.and_then(|item| Notice::last(item, &cx.hub.domains));
            let position = cx.hub.subscribers.add(subscription.topic, conn.slot, last.map(Arc::new));
            live.topics.push(Followed { topic: subscription.topic, position });
        }
        live.topics.shrink_to_fit();
        // Something may have been stored since the login was read. From here on the session is told of what is.
        let recent = cx.hub.recent.is_marked(live.bare.as_str());
        let waiting = Waiting {
            notifications: login.waiting.notifications || recent,
            messages: login.waiting.messages || recent,
        };
        live.state.take_login(waiting);
        greet(&mut live, greeting, &mut cx);
        for i in 0..cx.hub.pipeline.open.len() {
            let hook = cx.hub.pipeline.open[i];
            hook(&mut live, &mut cx);
        }
        self.sessions.put(conn, Session::Live(live));
    }

    /// Ends the sessions that a new one replaces (RFC 6120 §7.7.2.2), and the oldest of too many.
    fn replace(&mut self, new: &Live, now: Now, effects: &mut Effects) {
        let Some(domain) = self.hub.domains.named(new.bare.domain()) else { return };
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
            self.end(conn, &StreamError::new(Condition::Conflict, why), now, effects);
        }
    }

    /// Parts with a session: its features are told, its account and topics forget it. Nothing is written to any store for
    /// it. What is left is the connection.
    pub(super) fn part(&mut self, mut live: Box<Live>, leave: Leave, now: Now, effects: &mut Effects) -> Io {
        let slot = live.io.conn.slot;
        if self.sessions.unbind(&live.bare, slot) <= 1 {
            self.hub.in_company.remove(&live.account);
        }
        let mut cx = Cx { now, hub: &mut self.hub, out: effects };
        cx.hub.counters.sessions -= 1;
        cx.hub.counters.domains.of(live.domain).sessions -= 1;
        cx.hub.counters.sessions_ended.count(leave.as_str());
        let ending = if leave == Leave::Closed { Ending::Closed } else { Ending::Lost };
        for i in 0..cx.hub.pipeline.close.len() {
            let hook = cx.hub.pipeline.close[i];
            hook(&mut live, ending, &mut cx);
        }
        for followed in &live.topics {
            self.unfollow(*followed);
        }
        // Behind what its features noted of it.
        effects.journal.note(now.unix, Kind::Disconnect, || Entry::Disconnect {
            jid: Some(live.jid.as_str()),
            address: live.io.address,
            reason: leave,
            after_ms: now.unix.0.saturating_sub(live.since.0),
        });
        live.io.noted = Noted::Ended;
        live.io
    }

    /// Takes a session out of a topic's list, and tells the one that takes its place.
    fn unfollow(&mut self, followed: Followed) {
        let moved = self.hub.subscribers.remove(followed.topic, followed.position);
        if let Some(other) = moved {
            self.sessions.moved(other, followed);
        }
    }

    /// Gives way to work that a command made.
    pub(super) fn later(&mut self, conn: crate::model::ConnId, error: StreamError) {
        self.hub.queue.push_back(Work::End(conn, error));
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
                    if let Some(handle) = cx.hub.pipeline.nonza(asked.name(), asked.ns())
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
