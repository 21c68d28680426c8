//! Connections of the light protocol ([`crate::light`]).
//!
//! Connections are anonymous: a client proves nothing, and may follow topics that are open to all for as long as its
//! connection lasts. It stays on the shard that accepted it, in the same slab as XMPP sessions and in the same lists of
//! followers, so that one walk serves both. Nothing of it is ever stored.
//!
//! To follow a topic a connection waits for the topic's home, and is not read meanwhile. All that wait for the same topic on
//! one shard share one question. The home reads the last item while nothing is published, so that its answer comes after
//! every earlier event and before every later one: no item is missed, and none comes twice.

#[cfg(test)]
mod tests;

use crate::Effect;
use crate::command::{Actor, Asker, Refusal, TopicOp, TopicOutcome};
use crate::connection::Received;
use crate::light::frame::{self, Request};
pub(super) use crate::light::{Ended, Written};
use crate::light::{Light, Moved, Open, Refused, Rest};
use crate::message::ShardMessage;
use crate::model::{
    ConnId, Domain, DomainId, Domains, Listed, PubsubEvent, SessionId, TopicId, topic_address,
};
use crate::session::{Cx, Sessions};
use crate::shard::Deadline;

use std::mem;
use std::sync::Arc;

/// A connection was accepted.
pub(super) fn open(conn: ConnId, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    cx.set_deadline(conn, cx.shard.settings.timeouts.auth_ms, Deadline::Login);
    let id = sessions.begin_light(conn);
    sessions.put_light(id, Box::new(Light::Opening(Rest::default())));
}

/// Reads new bytes after those that were kept, frame by frame, until more are needed or the connection must wait.
pub(super) fn read(conn: ConnId, bytes: &[u8], sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some((id, mut light)) = sessions.take_light_at(conn) else { return };
    let kept = light.rest_mut().and_then(|rest| rest.take_with(bytes));
    let mut input = kept.as_deref().unwrap_or(bytes);
    while light.is_reading() {
        match frame::cut(input) {
            Ok(Some((frame, rest))) => {
                input = rest;
                if let Err(why) = take(conn, &mut light, frame, sessions, cx) {
                    finish(conn, &mut light, why, sessions, cx);
                }
            }
            Ok(None) => break,
            Err(why) => finish(conn, &mut light, why, sessions, cx),
        }
    }
    if let Some(rest) = light.rest_mut() {
        rest.keep(input);
    }
    sessions.put_light(id, light);
}

/// A timer of the connection fired.
pub(super) fn wake(conn: ConnId, deadline: Deadline, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some((id, mut light)) = sessions.take_light_at(conn) else { return };
    match (&mut *light, deadline) {
        (Light::Opening(_), Deadline::Login) => finish(conn, &mut light, Ended::OpeningTimeout, sessions, cx),
        (Light::Open(open) | Light::Asking(open), Deadline::Idle) => {
            let (silent, patience) = (cx.now.mono.since(open.heard), cx.shard.settings.light.idle_timeout_ms);
            if patience == 0 {
                // The bound was lifted meanwhile.
            } else if silent >= patience {
                finish(conn, &mut light, Ended::Idle, sessions, cx);
            } else {
                cx.set_deadline(conn, patience - silent, Deadline::Idle);
            }
        }
        (Light::Open(open), Deadline::Unthrottle) => {
            let waited = open.allowance.lift();
            if waited {
                cx.resume(conn);
            }
        }
        // It goes on when its answer comes.
        (Light::Asking(open), Deadline::Unthrottle) => drop(open.allowance.lift()),
        _ => {}
    }
    sessions.put_light(id, light);
}

/// The connection is gone.
pub(super) fn closed(conn: ConnId, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    if let Some((id, mut light)) = sessions.take_light_at(conn) {
        part(&mut light, sessions, cx);
        sessions.end(id);
    }
}

/// Sends a connection an error and ends it.
pub(super) fn end(conn: ConnId, why: Ended, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some((id, mut light)) = sessions.take_light_at(conn) else { return };
    finish(conn, &mut light, why, sessions, cx);
    sessions.put_light(id, light);
}

/// Ends every light connection.
pub(super) fn end_all(why: Ended, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    sessions.lights().into_iter().for_each(|conn| end(conn, why, sessions, cx));
}

/// Takes an open connection out of the shard, to go on elsewhere. One that has yet to be opened, or waits for an answer, stays.
pub(super) fn take_out(conn: ConnId, sessions: &mut Sessions, cx: &mut Cx<'_>) -> Option<Moved> {
    let (id, light) = sessions.take_light_at(conn)?;
    let Light::Open(open) = *light else {
        sessions.put_light(id, light);
        return None;
    };
    let Open { rest, heard, topics, .. } = open;
    let (domain, names) = (offered(cx), Vec::with_capacity(topics.len()));
    let mut moved = Moved { domain, rest, heard, topics: names, last_items: Vec::new() };
    for followed in topics {
        moved.last_items.extend(cx.shard.topics.subscribers.last(followed.topic).cloned());
        moved.topics.extend(cx.shard.light.name(followed.topic).map(|name| (followed.topic, name)));
        unfollow(followed, sessions, cx);
    }
    cx.shard.counters.light -= 1;
    cx.shard.counters.connections -= 1;
    sessions.leave(conn);
    sessions.end(id);
    Some(moved)
}

/// Goes on with a connection that another process had. Returns whether it can go on here.
pub(super) fn take_in(moved: Moved, conn: ConnId, sessions: &mut Sessions, cx: &mut Cx<'_>) -> bool {
    let Moved { domain, rest, heard, topics, last_items } = moved;
    let mut open = Open { rest, heard, ..Open::new(conn, cx.now.mono) };
    cx.shard.counters.connections += 1;
    cx.shard.counters.light += 1;
    let id = sessions.begin_light(conn);
    for last in last_items {
        cx.shard.topics.subscribers.learn(last);
    }
    for (topic, name) in topics {
        let position = cx.shard.topics.subscribers.add(topic, id.slot, None);
        open.follow(Listed { topic, position });
        cx.shard.light.follow(topic, &name);
    }
    sessions.put_light(id, Box::new(Light::Open(open)));
    if domain.is_none() || domain != offered(cx) {
        end(conn, Ended::NoDomain, sessions, cx);
        return false;
    }
    let patience = cx.shard.settings.light.idle_timeout_ms;
    if patience > 0 {
        cx.set_deadline(conn, patience.saturating_sub(cx.now.mono.since(heard)), Deadline::Idle);
    }
    // It may have been too fast there.
    cx.resume(conn);
    true
}

/// The domain whose topics are offered, if it is served.
fn offered(cx: &Cx<'_>) -> Option<DomainId> {
    cx.shard.domains.named(&cx.shard.settings.light.domain).map(|domain| domain.id)
}

/// The domains changed: if the domain whose topics are offered was removed or replaced, all subscriptions end.
pub(super) fn domains_changed(before: &Domains, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let name = cx.shard.settings.light.domain.clone();
    let number = |domains: &Domains| domains.named(&name).map(|domain| domain.id);
    if number(before).is_some() && number(before) != number(&cx.shard.domains) {
        end_all(Ended::NoDomain, sessions, cx);
    }
}

/// A topic's home answered the connections that wait for it.
pub(super) fn heard(
    name: &str,
    result: Result<TopicOutcome, Refusal>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let found = match result {
        Ok(TopicOutcome::Listening { topic, last }) => Ok((topic, learn(topic, last, cx))),
        Ok(_) => Err(Refused::Unavailable),
        Err(refusal) => Err(Refused::from(refusal)),
    };
    let mut written = Written::default();
    for conn in cx.shard.light.waiting(name) {
        let Some((id, mut light)) = sessions.take_light_at(conn) else { continue };
        *light = match mem::replace(&mut *light, Light::Closing) {
            Light::Asking(mut open) => {
                match &found {
                    Ok((topic, last)) => {
                        follow((id, &mut open), *topic, name, last.as_ref(), &mut written, cx);
                    }
                    Err(refused) => refuse(conn, *refused, cx),
                }
                if !open.allowance.is_throttled() {
                    cx.resume(conn);
                }
                Light::Open(open)
            }
            other => other,
        };
        sessions.put_light(id, light);
    }
}

/// Gives an event to a follower in this slot.
pub(super) fn deliver(
    slot: u32,
    event: &Arc<PubsubEvent>,
    written: &mut Written,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) {
    let Some(open) = sessions.light_in(slot).and_then(Light::open_mut) else { return };
    let topic = event.topic();
    let (true, Some(name)) = (open.follows(topic), cx.shard.light.name(topic)) else { return };
    let conn = open.conn;
    if event.is_item() {
        cx.shard.counters.deliveries += 1;
        cx.shard.counters.latency.record(cx.now.unix.0.saturating_sub(event.accepted().0));
    }
    if event.is_told() {
        written.send(conn, cx.out, |out| out.extend_from_slice(cx.shard.light.print(event, &name)));
    }
    if event.is_end() {
        // The list is gone with the topic: nobody has to be told of a position.
        open.leave(topic);
        cx.shard.light.leave(topic);
    }
}

/// A topic is no longer open to all: anonymous connections stop following it, and are told.
pub(super) fn restricted(topic: TopicId, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    for &slot in cx.shard.topics.subscribers.followers(topic).iter() {
        let Some(open) = sessions.light_in(slot).and_then(Light::open_mut) else { continue };
        let (conn, followed) = (open.conn, open.leave(topic));
        if let (Some(followed), Some(name)) = (followed, cx.shard.light.name(topic)) {
            cx.out.send(conn, |out| frame::restricted(out, &name));
            unfollow(followed, sessions, cx);
        }
    }
}

/// Takes a frame.
fn take(
    conn: ConnId,
    light: &mut Light,
    frame: &[u8],
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Result<(), Ended> {
    let open = match light {
        Light::Opening(_) => {
            frame::opening(frame)?;
            *light = Light::Open(begin(conn, cx)?);
            return Ok(());
        }
        Light::Open(open) => open,
        Light::Asking(_) | Light::Closing => return Ok(()),
    };
    open.heard = cx.now.mono;
    let request = frame::request(frame)?;
    let received = Received { counts: true, bytes: frame.len() };
    if let Some(wait) = open.allowance.debit(cx.now.mono, received, &cx.shard.settings.limits.rates) {
        cx.set_deadline(conn, wait, Deadline::Unthrottle);
        cx.out.push(Effect::Pause { conn });
    }
    match request {
        Request::Ping => cx.out.send(conn, frame::pong),
        Request::Subscribe(name) => {
            if subscribe(open, &name, cx)? == Answered::Later {
                *light = mem::replace(light, Light::Closing).asking();
            }
        }
        Request::Unsubscribe(name) => unsubscribe(open, &name, sessions, cx),
    }
    Ok(())
}

/// The opening came.
fn begin(conn: ConnId, cx: &mut Cx<'_>) -> Result<Open, Ended> {
    if cx.shard.is_draining() {
        return Err(Ended::Shutdown);
    }
    let settings = cx.shard.settings.clone();
    if cx.shard.domains.named(&settings.light.domain).is_none() {
        return Err(Ended::NoDomain);
    }
    let (now, token) = (cx.now.unix, cx.shard.random.token());
    cx.out.send(conn, |out| frame::welcome(out, now, &token));
    if settings.light.idle_timeout_ms > 0 {
        cx.set_deadline(conn, settings.light.idle_timeout_ms, Deadline::Idle);
    }
    cx.shard.counters.light += 1;
    Ok(Open::new(conn, cx.now.mono))
}

/// When a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answered {
    /// It was.
    Now,
    /// When the topic's home has answered.
    Later,
}

fn subscribe(open: &Open, name: &str, cx: &mut Cx<'_>) -> Result<Answered, Ended> {
    let conn = open.conn;
    if cx.shard.light.topic(name).is_some_and(|topic| open.follows(topic)) {
        cx.out.send(conn, frame::ack);
        return Ok(Answered::Now);
    }
    if open.topics.len() >= cx.shard.settings.light.subscriptions {
        refuse(conn, Refused::TooMany, cx);
        return Ok(Answered::Now);
    }
    let domain = cx.shard.domains.named(&cx.shard.settings.light.domain).ok_or(Ended::NoDomain)?.clone();
    if cx.shard.light.wait(name, conn) {
        ask(&domain, name, cx);
    }
    cx.out.push(Effect::Pause { conn });
    Ok(Answered::Later)
}

/// Asks a topic's home for its last item.
fn ask(domain: &Domain, name: &str, cx: &mut Cx<'_>) {
    let at = cx.shard.directory.home(&topic_address(name, &domain.name));
    let asker = Asker::Light(cx.shard.place);
    let (name, actor, op) = (name.into(), Actor::Anyone, TopicOp::Listen);
    cx.post(at, ShardMessage::Topic { domain: domain.id, name, actor, op, asker });
}

/// Nodes came or went: a question may have been lost with the home of its topic. Of two answers the second is nobody's.
pub(super) fn homes_moved(cx: &mut Cx<'_>) {
    let Some(domain) = cx.shard.domains.named(&cx.shard.settings.light.domain).cloned() else { return };
    for name in cx.shard.light.asked() {
        ask(&domain, &name, cx);
    }
}

fn unsubscribe(open: &mut Open, name: &str, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    match cx.shard.light.topic(name).and_then(|topic| open.leave(topic)) {
        Some(followed) => {
            unfollow(followed, sessions, cx);
            cx.out.send(open.conn, frame::ack);
        }
        None => refuse(open.conn, Refused::NotSubscribed, cx),
    }
}

/// Takes note of a topic's last item. Returns what new followers are given, where that is not what logins are given.
fn learn(topic: TopicId, last: Option<Arc<PubsubEvent>>, cx: &mut Cx<'_>) -> Option<Arc<PubsubEvent>> {
    match last {
        Some(last) if last.is_for_logins() => {
            cx.shard.topics.subscribers.learn(last);
            None
        }
        last => {
            cx.shard.topics.subscribers.hear_of(topic, last.as_ref().map(|last| last.revision()));
            last
        }
    }
}

/// Makes a connection follow a topic, tells it so, and gives it the last item.
fn follow(
    (id, open): (SessionId, &mut Open),
    topic: TopicId,
    name: &str,
    for_new: Option<&Arc<PubsubEvent>>,
    written: &mut Written,
    cx: &mut Cx<'_>,
) {
    let conn = open.conn;
    cx.shard.topics.subscribers.pass_over(topic, id.slot);
    let position = cx.shard.topics.subscribers.add(topic, id.slot, None);
    open.follow(Listed { topic, position });
    cx.shard.light.follow(topic, name);
    let last = cx.shard.topics.subscribers.last_for_new(topic, id.slot).or_else(|| for_new.cloned());
    if let Some(last) = &last {
        cx.shard.counters.deliveries += 1;
        cx.shard.topics.subscribers.note_given(topic, id.slot, last.revision());
    }
    written.send(conn, cx.out, |out| {
        frame::ack(out);
        if let Some(last) = &last {
            out.extend_from_slice(cx.shard.light.print(last, name));
        }
    });
}

/// A connection stops following a topic.
fn unfollow(followed: Listed, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    cx.unfollow(followed, sessions);
    cx.shard.light.leave(followed.topic);
}

/// Answers a request with an error.
fn refuse(conn: ConnId, why: Refused, cx: &mut Cx<'_>) {
    cx.shard.counters.light_errors.count(why.code());
    cx.out.send(conn, |out| frame::refused(out, why));
}

/// Sends a connection an error and closes it. The server tells when it is gone.
fn finish(conn: ConnId, light: &mut Light, why: Ended, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    if matches!(light, Light::Closing) {
        return;
    }
    part(light, sessions, cx);
    cx.shard.counters.light_errors.count(why.code());
    cx.out.send(conn, |out| frame::ended(out, why));
    cx.out.push(Effect::Close { conn });
}

/// Forgets what a connection follows.
fn part(light: &mut Light, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    if let Light::Open(open) | Light::Asking(open) = mem::replace(light, Light::Closing) {
        cx.shard.counters.light -= 1;
        open.topics.into_iter().for_each(|followed| unfollow(followed, sessions, cx));
    }
}
