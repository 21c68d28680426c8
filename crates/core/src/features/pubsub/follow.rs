//! At the session: events are given to followers, and the topics that a session follows are kept in line with the store.

use crate::event::{Entry, Kind};
use crate::feature_state::pubsub::Following;
use crate::model::{Followed, PubsubEvent, SessionId, Subscription, TopicId};
use crate::ports::Fault;
use crate::ports::store::subscriptions::SubscriptionsOf;
use crate::session::hook::CatchUp;
use crate::session::{BoundSession, Cx, Sessions, backlog};
use crate::shard::PageTurn;
use crate::topic::xml;
use carillon_wire::jid::BareJid;
use carillon_wire::stanza::Stanza;
use std::sync::Arc;

/// Gives an event to a follower, unless it is unavailable or was given it before.
pub(super) fn deliver(session: &mut BoundSession, event: &Arc<PubsubEvent>, cx: &mut Cx<'_>) {
    let Ok(at) = session.topics.binary_search_by_key(&event.topic(), |f| f.topic) else { return };
    if event.is_end() {
        session.topics.remove(at);
    } else if let Some(followed) = session.topics.get_mut(at).filter(|_| event.is_item()) {
        if session.state.pubsub.following == Following::Behind && cx.features.pubsub.holds(event) {
            return;
        }
        followed.note_given(event.revision());
    }
    let is_for =
        session.presence.is_available() && !cx.shard.topics.subscribers.is_known(session.state.pubsub.seen);
    if !event.is_told() || !is_for {
        return;
    }
    if event.is_item() {
        cx.shard.counters.delivered(session.domain);
        cx.shard.counters.latency.record(cx.now.unix.0.saturating_sub(event.accepted().0));
        note(session, event, cx);
    }
    session.notify(event, cx);
}

/// After initial presence: gives the last items of the topics that send them, but not those that the device says it has. What
/// has to wait for other features, or for the next turn, is given by [`give_rest`].
pub(super) fn available(
    session: &mut BoundSession,
    presence: &Stanza,
    before: CatchUp,
    cx: &mut Cx<'_>,
) -> CatchUp {
    let (turn, had, mut rest) = (PageTurn::begin(cx.out.bytes.len()), xml::had(presence), Vec::new());
    for i in 0..session.topics.len() {
        let followed = session.topics.get(i);
        let last = followed.and_then(|followed| cx.shard.topics.subscribers.last(followed.topic)).cloned();
        let Some(last) = last else { continue };
        let has_it = last.names().is_some_and(|(topic, item)| had.get(topic).is_some_and(|i| i == item));
        if has_it {
            continue;
        }
        if before == CatchUp::Waits || turn.is_over(cx.out.bytes.len()) {
            rest.push((last.topic(), last.revision()));
        } else {
            give_last(session, &last, cx);
        }
    }
    rest.reverse();
    session.state.pubsub.rest = (!rest.is_empty()).then(|| Box::new(rest));
    session.state.pubsub.seen = cx.shard.topics.subscribers.clock();
    if session.state.pubsub.rest.is_some() { CatchUp::Waits } else { CatchUp::Done }
}

/// Gives as many of the last items as are written in one turn.
pub(super) fn give_rest(session: &mut BoundSession, cx: &mut Cx<'_>) -> CatchUp {
    let Some(mut rest) = session.state.pubsub.rest.take() else { return CatchUp::Done };
    let turn = PageTurn::begin(cx.out.bytes.len());
    for _ in 0..backlog::room(session, cx) {
        if turn.is_over(cx.out.bytes.len()) {
            break;
        }
        let Some((topic, revision)) = rest.pop() else { return CatchUp::Done };
        let last =
            cx.shard.topics.subscribers.last(topic).filter(|last| last.revision() == revision).cloned();
        if let Some(last) = last.filter(|_| session.follows(topic)) {
            give_last(session, &last, cx);
        }
    }
    session.state.pubsub.rest = Some(rest);
    backlog::await_flush(session, cx);
    CatchUp::Waits
}

/// Makes a session follow its account's topics.
pub(super) fn login(session: &mut BoundSession, subscriptions: &[Subscription], cx: &mut Cx<'_>) {
    for subscription in subscriptions {
        cx.shard.topics.subscribers.hear_of(subscription.topic, subscription.revision);
        let last = subscription.last.as_ref();
        let last = last.filter(|item| cx.shard.topics.subscribers.is_news(subscription.topic, item.revision));
        let last = last.and_then(|item| PubsubEvent::last(item, &cx.shard.domains));
        let position =
            cx.shard.topics.subscribers.add(subscription.topic, session.id.slot, last.map(Arc::new));
        let known = cx.shard.topics.subscribers.floor(subscription.topic);
        session.topics.push(Followed::new(subscription.topic, position, known));
    }
    session.topics.shrink_to_fit();
}

/// A session was bound: its account's subscriptions may have changed since its login was read.
pub(super) fn open(session: &mut BoundSession, cx: &mut Cx<'_>) {
    if cx.shard.topics.subscribers.is_marked(&session.bare) {
        ask(session, cx);
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
    cx.shard.topics.subscribers.mark(account);
    cx.shard.accounts.login_cache.forget(account.as_str());
    let (is_news, for_it_alone) = match last {
        // Also for logins on their way.
        Some(last) if last.is_for_logins() => (cx.shard.topics.subscribers.learn(last), None),
        last => {
            cx.shard.topics.subscribers.hear_of(topic, last.as_ref().map(|last| last.revision()));
            (false, last)
        }
    };
    for slot in sessions.of(account.as_str()) {
        let Some(session) = sessions.bound_in(slot) else { continue };
        session.state.pubsub.outdate();
        let is_new = follow(session, topic, cx);
        let given = if !session.presence.is_available() {
            None
        } else if is_new || is_news {
            if !is_new {
                // It has followed it since its login, and older items may be on their way to it.
                cx.shard.topics.subscribers.pass_over_items(topic, slot);
            }
            cx.shard.topics.subscribers.last_for_new(topic, slot).or_else(|| for_it_alone.clone())
        } else {
            // It has followed it since its login, which brought what is given at logins.
            for_it_alone.clone()
        };
        if let Some(given) = given {
            give_last(session, &given, cx);
            cx.shard.topics.subscribers.note_given(topic, slot, given.revision());
        }
    }
}

/// An account no longer follows a topic.
pub(super) fn unsubscribed(account: &BareJid, topic: TopicId, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    cx.shard.topics.subscribers.mark(account);
    cx.shard.accounts.login_cache.forget(account.as_str());
    for slot in sessions.of(account.as_str()) {
        if let Some(session) = sessions.bound_in(slot) {
            session.state.pubsub.outdate();
        }
        unfollow(slot, topic, sessions, cx);
    }
}

/// The store's answer: the subscriptions of a session's account.
fn answered(
    id: SessionId,
    answer: Result<Vec<(TopicId, Box<str>)>, Fault>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let Some(session) = sessions.bound(id) else { return };
    let following = std::mem::take(&mut session.state.pubsub.following);
    let Ok(names) = answer else { return };
    if following == Following::Outdated {
        return ask(session, cx);
    }
    let mut topics: Vec<TopicId> = names.into_iter().map(|(topic, _)| topic).collect();
    topics.sort_unstable();
    let left: Vec<TopicId> =
        session.topics.iter().map(|f| f.topic).filter(|t| topics.binary_search(t).is_err()).collect();
    for topic in topics {
        // What nothing was heard of here is on its way from the topic's home, with its last item.
        if !cx.shard.topics.subscribers.knows(topic) {
            continue;
        }
        let is_new = follow(session, topic, cx);
        if is_new
            && session.presence.is_available()
            && let Some(last) = cx.shard.topics.subscribers.last_for_new(topic, id.slot)
        {
            session.state.pubsub.rest.get_or_insert_default().push((topic, last.revision()));
        }
    }
    backlog::go_on(session, cx);
    left.into_iter().for_each(|topic| unfollow(id.slot, topic, sessions, cx));
}

pub(super) fn ask(session: &mut BoundSession, cx: &mut Cx<'_>) {
    session.state.pubsub.following = Following::Asked;
    let local = session.bare.local().into();
    let (id, ask) = (session.id, SubscriptionsOf { domain: session.domain, local });
    cx.ask(ask, move |answer, sessions, cx| answered(id, answer, sessions, cx));
}

/// Makes a session follow a topic. Returns whether it did not before.
fn follow(session: &mut BoundSession, topic: TopicId, cx: &mut Cx<'_>) -> bool {
    let Err(at) = session.topics.binary_search_by_key(&topic, |f| f.topic) else { return false };
    let slot = session.id.slot;
    cx.shard.topics.subscribers.pass_over(topic, slot);
    let position = cx.shard.topics.subscribers.add(topic, slot, None);
    session.topics.insert(at, Followed::new(topic, position, cx.shard.topics.subscribers.floor(topic)));
    true
}

/// Makes the session in this slot stop following a topic, and tells the one that takes over its position in the list.
fn unfollow(slot: u32, topic: TopicId, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(session) = sessions.bound_in(slot) else { return };
    let Ok(at) = session.topics.binary_search_by_key(&topic, |f| f.topic) else { return };
    let followed = session.topics.remove(at);
    cx.unfollow(followed.listed(), sessions);
}

pub(super) fn give_last(session: &mut BoundSession, last: &Arc<PubsubEvent>, cx: &mut Cx<'_>) {
    if let Ok(at) = session.topics.binary_search_by_key(&last.topic(), |f| f.topic)
        && let Some(followed) = session.topics.get_mut(at)
    {
        followed.note_given(last.revision());
    }
    cx.shard.counters.delivered(session.domain);
    note(session, last, cx);
    session.notify(last, cx);
}

/// Notes in the event log that a session is given an item.
fn note(session: &BoundSession, event: &PubsubEvent, cx: &mut Cx<'_>) {
    cx.out.journal.note(cx.now.unix, Kind::Item, || {
        let (topic, item) = event.names().unwrap_or_default();
        let after_ms = cx.now.unix.0.saturating_sub(event.accepted().0);
        Entry::Item { topic, item, to: session.jid.as_str(), after_ms }
    });
}
