//! At the session: what happens on a topic is given to its followers, and who follows what is kept in line with the store.

use super::state::Following;
use super::xml;
use crate::event::{Entry, Kind};
use crate::model::{ConnId, Followed, Login, PubsubEvent, TopicId};
use crate::ports::Fault;
use crate::ports::store::subscriptions::SubscriptionsOf;
use crate::session::hook::Step;
use crate::session::{Cx, Live, Sessions, backlog};
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::Stanza;
use std::sync::Arc;

/// Gives a notice to a follower, if it is for it.
pub(super) fn deliver(live: &mut Live, notice: &Arc<PubsubEvent>, cx: &mut Cx<'_>) {
    let Ok(at) = live.topics.binary_search_by_key(&notice.topic(), |f| f.topic) else { return };
    if notice.is_end() {
        live.topics.remove(at);
    }
    let is_for = live.presence.is_available() && !cx.hub.subscribers.is_known(live.state.pubsub.seen);
    if !notice.is_told() || !is_for {
        return;
    }
    if notice.is_item() {
        cx.hub.counters.delivered(live.domain);
        cx.hub.counters.latency.record(cx.now.unix.0.saturating_sub(notice.accepted().0));
        note(live, notice, cx);
    }
    live.notify(notice, cx);
}

/// After initial presence: gives the last items of the topics that send them, but those that the device says it has. As much as
/// is written at once; behind other things, and past that, by [`give_rest`].
pub(super) fn available(live: &mut Live, presence: &Stanza, before: Step, cx: &mut Cx<'_>) -> Step {
    let (began, had, mut rest) = (cx.out.bytes.len(), xml::had(presence), Vec::new());
    for i in 0..live.topics.len() {
        let Some(last) = cx.hub.subscribers.last(live.topics[i].topic).cloned() else { continue };
        let has_it = last.names().is_some_and(|(topic, item)| had.get(topic).is_some_and(|i| i == item));
        if has_it {
            continue;
        }
        if before == Step::Waits || cx.out.bytes.len() - began >= backlog::WRITTEN_BYTES_MAX {
            rest.push((last.topic(), last.revision()));
        } else {
            give_last(live, &last, cx);
        }
    }
    rest.reverse();
    live.state.pubsub.rest = (!rest.is_empty()).then(|| Box::new(rest));
    live.state.pubsub.seen = cx.hub.subscribers.clock();
    if live.state.pubsub.rest.is_some() { Step::Waits } else { Step::Done }
}

/// Gives of the last items as many as are written at once.
pub(super) fn give_rest(live: &mut Live, cx: &mut Cx<'_>) -> Step {
    let Some(mut rest) = live.state.pubsub.rest.take() else { return Step::Done };
    let began = cx.out.bytes.len();
    for _ in 0..backlog::room(live, cx) {
        if cx.out.bytes.len() - began >= backlog::WRITTEN_BYTES_MAX {
            break;
        }
        let Some((topic, revision)) = rest.pop() else { return Step::Done };
        let last = cx.hub.subscribers.last(topic).filter(|last| last.revision() == revision).cloned();
        if let Some(last) = last.filter(|_| live.follows(topic)) {
            give_last(live, &last, cx);
        }
    }
    live.state.pubsub.rest = Some(rest);
    backlog::await_flush(live, cx);
    Step::Waits
}

/// A session follows what its account does.
pub(super) fn login(live: &mut Live, login: &Login, cx: &mut Cx<'_>) {
    for subscription in &login.subscriptions {
        let last = subscription.last.as_ref();
        let last = last.filter(|item| cx.hub.subscribers.is_news(subscription.topic, item.revision));
        let last = last.and_then(|item| PubsubEvent::last(item, &cx.hub.domains));
        let position = cx.hub.subscribers.add(subscription.topic, live.io.conn.slot, last.map(Arc::new));
        live.topics.push(Followed { topic: subscription.topic, position });
    }
    live.topics.shrink_to_fit();
}

/// A session was bound. What its account follows may have changed since its login was read.
pub(super) fn open(live: &mut Live, cx: &mut Cx<'_>) {
    if cx.hub.subscribers.is_marked(&live.bare) {
        ask(live, cx);
    }
}

/// An account follows a topic from now on.
pub(super) fn subscribed(
    account: &BareJid,
    topic: TopicId,
    last: Option<Arc<PubsubEvent>>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    cx.hub.subscribers.mark(account);
    cx.hub.memory.forget(account.as_str());
    let (is_news, for_it_alone) = match last {
        // Also for logins on their way.
        Some(last) if last.is_for_logins() => (cx.hub.subscribers.learn(last), None),
        last => {
            cx.hub.subscribers.hear_of(topic);
            (false, last)
        }
    };
    for slot in sessions.of(account.as_str()) {
        let Some(live) = sessions.live_in(slot) else { continue };
        live.state.pubsub.outdate();
        let is_new = follow(live, topic, cx);
        let given = if !live.presence.is_available() {
            None
        } else if is_new || is_news {
            cx.hub.subscribers.last_for_new(topic, slot).or_else(|| for_it_alone.clone())
        } else {
            // It has followed it since its login, which brought what is given at logins.
            for_it_alone.clone()
        };
        if let Some(given) = given {
            give_last(live, &given, cx);
        }
    }
}

/// An account follows a topic no longer.
pub(super) fn unsubscribed(account: &BareJid, topic: TopicId, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    cx.hub.subscribers.mark(account);
    cx.hub.memory.forget(account.as_str());
    for slot in sessions.of(account.as_str()) {
        if let Some(live) = sessions.live_in(slot) {
            live.state.pubsub.outdate();
        }
        unfollow(slot, topic, sessions, cx);
    }
}

/// The store said what a session's account follows.
fn answered(
    conn: ConnId,
    answer: Result<Vec<(TopicId, Box<str>)>, Fault>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let Some(live) = sessions.live(conn) else { return };
    let following = std::mem::take(&mut live.state.pubsub.following);
    let Ok(names) = answer else { return };
    if following == Following::Outdated {
        return ask(live, cx);
    }
    let mut topics: Vec<TopicId> = names.into_iter().map(|(topic, _)| topic).collect();
    topics.sort_unstable();
    let left: Vec<TopicId> =
        live.topics.iter().map(|f| f.topic).filter(|t| topics.binary_search(t).is_err()).collect();
    for topic in topics {
        // What nothing was heard of here is on its way from the topic's home, with its last item.
        if !cx.hub.subscribers.knows(topic) {
            continue;
        }
        let is_new = follow(live, topic, cx);
        if is_new
            && live.presence.is_available()
            && let Some(last) = cx.hub.subscribers.last_for_new(topic, conn.slot)
        {
            live.state.pubsub.rest.get_or_insert_default().push((topic, last.revision()));
        }
    }
    backlog::go_on(live, cx);
    left.into_iter().for_each(|topic| unfollow(conn.slot, topic, sessions, cx));
}

fn ask(live: &mut Live, cx: &mut Cx<'_>) {
    live.state.pubsub.following = Following::Asked;
    let local = live.bare.local().unwrap_or_default().into();
    let (conn, ask) = (live.io.conn, SubscriptionsOf { domain: live.domain, local });
    cx.ask(ask, move |answer, sessions, cx| answered(conn, answer, sessions, cx));
}

/// The session follows a topic from now on; whether it did not before.
fn follow(live: &mut Live, topic: TopicId, cx: &mut Cx<'_>) -> bool {
    let Err(at) = live.topics.binary_search_by_key(&topic, |f| f.topic) else { return false };
    let slot = live.io.conn.slot;
    cx.hub.subscribers.pass_over(topic, slot);
    let position = cx.hub.subscribers.add(topic, slot, None);
    live.topics.insert(at, Followed { topic, position });
    true
}

/// The session in this slot follows a topic no longer; whoever takes its place in the list is told.
fn unfollow(slot: u32, topic: TopicId, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(live) = sessions.live_in(slot) else { return };
    let Ok(at) = live.topics.binary_search_by_key(&topic, |f| f.topic) else { return };
    let followed = live.topics.remove(at);
    cx.unfollow(followed, sessions);
}

fn give_last(live: &mut Live, last: &Arc<PubsubEvent>, cx: &mut Cx<'_>) {
    cx.hub.counters.delivered(live.domain);
    note(live, last, cx);
    live.notify(last, cx);
}

/// Notes that a session is given an item.
fn note(live: &Live, notice: &PubsubEvent, cx: &mut Cx<'_>) {
    cx.out.journal.note(cx.now.unix, Kind::Item, || {
        let (topic, item) = notice.names().unwrap_or_default();
        let after_ms = cx.now.unix.0.saturating_sub(notice.accepted().0);
        Entry::Item { topic, item, to: live.jid.as_str(), after_ms }
    });
}
