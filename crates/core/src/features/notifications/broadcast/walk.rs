//! Broadcasts are given: to the sessions that are there, a slice at a time, and to those that come later.

use super::super::giving;
use super::super::xml;
use crate::command::Reach;
use crate::feature_state::notifications::{InFlight, Open, Pair};
use crate::model::{AccountId, Audience, Broadcast, DomainId, NotificationId, SessionId};
use crate::ports::store::broadcasts::EndedBroadcasts;
use crate::session::{BoundSession, Cx, Sessions, backlog};
use crate::shard::PageTurn;
use carillon_wire::jid::BareJid;

/// What may be done in a slice.
#[derive(Clone, Copy)]
struct Slice {
    deliveries: usize,
    /// Slots looked at.
    looks: usize,
}

/// Makes one slice of the deliveries that are due, at most `max`. Returns whether more can be made at once.
pub(in crate::features::notifications) fn walk(max: usize, sessions: &mut Sessions, cx: &mut Cx<'_>) -> bool {
    let (now, slots, asks) = (cx.now, sessions.slots(), !is_alone(cx));
    let broadcasts = &mut cx.features.notifications.broadcasts;
    if !broadcasts.has_work(now.mono) {
        return false;
    }
    let due = broadcasts.due(slots, asks, now);
    ask_of_those_that_came(sessions, cx);
    let parts = parts(cx);
    let share = |of: usize, least: usize| (of / due.len().max(1)).max(least);
    let (each, each_looks) = (share(max, EACH_MIN), share(LOOKS_MAX, EACH_LOOKS_MIN));
    let mut left = Slice { deliveries: max, looks: LOOKS_MAX };
    let mut has_more = false;
    for id in due {
        if left.deliveries == 0 || left.looks == 0 {
            has_more = true;
            break;
        }
        let own = Slice { deliveries: each.min(left.deliveries), looks: each_looks.min(left.looks) };
        let (used, can_go_on) = go_on(id, own, parts, sessions, cx);
        left.deliveries -= used.deliveries;
        left.looks -= used.looks;
        has_more |= can_go_on;
    }
    let broadcasts = &mut cx.features.notifications.broadcasts;
    broadcasts.plan_wake(parts, now);
    broadcasts.is_stirred = has_more;
    has_more
}

/// Whether no account has been at home anywhere else.
pub(super) fn is_alone(cx: &Cx<'_>) -> bool {
    cx.shard.directory.other_nodes().is_empty()
}

/// Among how many shards a rate is divided.
fn parts(cx: &Cx<'_>) -> u32 {
    let nodes = 1 + cx.shard.directory.other_nodes().len() as u32;
    nodes * u32::from(cx.shard.shard_count)
}

/// Goes on with one broadcast. Returns how much of the slice that took, and whether more of it can be given at once.
fn go_on(
    id: NotificationId,
    slice: Slice,
    parts: u32,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> (Slice, bool) {
    let nothing = Slice { deliveries: 0, looks: 0 };
    let Some(mut open) = cx.features.notifications.broadcasts.take(id) else { return (nothing, false) };
    let allowed = open.allowed(parts, cx.now.mono);
    if allowed == 0 || open.walk.is_asked || open.walk.asks_at > cx.now.mono {
        cx.features.notifications.broadcasts.give_back(open);
        return (nothing, false);
    }
    let (before, most) = (open.given, slice.deliveries.min(allowed));
    let mut left = Slice { deliveries: most, ..slice };
    match open.walk.asks || !open.walk.queue.is_empty() {
        true => ask_of_next(&mut open, &mut left, sessions, cx),
        false => give_next(&mut open, &mut left, sessions, cx),
    }
    note_given(&mut open, before, parts, cx);
    let has_more = allowed > slice.deliveries && open.walk.has_more() && !open.walk.is_asked;
    cx.features.notifications.broadcasts.give_back(open);
    (Slice { deliveries: most - left.deliveries, looks: slice.looks - left.looks }, has_more)
}

/// Gives a broadcast that is new to the next accounts.
fn give_next(open: &mut Open, slice: &mut Slice, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    while slice.deliveries > 0 && slice.looks > 0 && open.walk.next < open.walk.end {
        slice.looks -= 1;
        if let Some(account) = next(open, sessions).map(|session| session.bare.to_bare()) {
            let before = open.given;
            give_account(open, &account, sessions, cx);
            slice.deliveries = slice.deliveries.saturating_sub((open.given - before) as usize);
        }
    }
}

/// The next session of the walk, if that is one of the domain.
fn next<'a>(open: &mut Open, sessions: &'a mut Sessions) -> Option<&'a mut BoundSession> {
    let slot = open.walk.next;
    open.walk.next += 1;
    let session = sessions.bound_in(slot)?;
    let is_passed = !open.walk.passed.is_empty() && open.walk.passed.remove(&session.id);
    (session.domain == open.broadcast.domain && !is_passed).then_some(session)
}

/// Gives a broadcast to all sessions of an account, so that none is given it after another has acknowledged it.
fn give_account(open: &mut Open, account: &BareJid, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    for slot in sessions.of(account.as_str()) {
        if let Some(session) = sessions.bound_in(slot) {
            open.walk.pass(session.id);
            give(open, session, cx);
        }
    }
}

/// Has the store say which of the next accounts have acknowledged a broadcast, and gives it to the others.
fn ask_of_next(open: &mut Open, slice: &mut Slice, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let mut asked = Vec::new();
    while slice.looks > 0 && asked.len() < slice.deliveries.min(ASKED_MAX) {
        slice.looks -= 1;
        let session = match open.walk.queue.pop() {
            Some(session) => sessions.bound(session),
            None if open.walk.next < open.walk.end => next(open, sessions),
            None => break,
        };
        asked.extend(session.map(|session| (session.id, session.account)));
    }
    if asked.is_empty() {
        return;
    }
    slice.deliveries -= asked.len();
    open.walk.is_asked = true;
    let id = open.broadcast.id;
    ask(vec![id], asked, cx, move |found, asked, sessions, cx| {
        let at = cx.now.mono.plus(RETRY_MS);
        let broadcasts = &mut cx.features.notifications.broadcasts;
        if let Some(open) = broadcasts.find(id) {
            open.walk.is_asked = false;
        }
        let Some((_, ended)) = found else {
            let again = asked.iter().map(|(session, _)| *session);
            return broadcasts.walk_again(id, again, at);
        };
        for (session, account) in asked {
            if let Some(session) = sessions.bound(session)
                && !ended.contains(&(id, account))
            {
                give_one(id, session, cx);
            }
        }
    });
}

/// Has the store say what the accounts of sessions that came have acknowledged, and gives them the rest.
fn ask_of_those_that_came(sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let now = cx.now.mono;
    let broadcasts = &mut cx.features.notifications.broadcasts;
    if broadcasts.asks || broadcasts.asks_at > now {
        return;
    }
    let (mut asked, mut ids, mut domain): (Asked, Vec<NotificationId>, Option<DomainId>) = Default::default();
    for _ in 0..broadcasts.came_count().min(LOOKS_MAX) {
        if !ids.is_empty() && asked.len() >= (PAIRS_MAX / ids.len()).clamp(1, ASKED_MAX) {
            break;
        }
        let Some(session) = broadcasts.next_that_came() else { break };
        let Some(session) = sessions.bound(session) else { continue };
        if session.awaits_flush() {
            // What else waited for it is being written.
            broadcasts.is_crowded(session.id);
            continue;
        }
        match domain {
            Some(domain) if domain != session.domain => {
                // It is the turn of another domain next.
                broadcasts.ask_again([session.id], now);
                continue;
            }
            Some(_) => {}
            None => {
                ids = broadcasts.for_who_comes(session.domain);
                if ids.is_empty() {
                    // Those that cannot be given now begin a walk when they can.
                    continue;
                }
                domain = Some(session.domain);
            }
        }
        asked.push((session.id, session.account));
    }
    if asked.is_empty() {
        return;
    }
    broadcasts.asks = true;
    ask(ids, asked, cx, |found, asked, sessions, cx| {
        let broadcasts = &mut cx.features.notifications.broadcasts;
        broadcasts.asks = false;
        let Some((ids, ended)) = found else {
            let again = asked.iter().map(|(session, _)| *session);
            return broadcasts.ask_again(again, cx.now.mono.plus(RETRY_MS));
        };
        for (session, account) in asked {
            if let Some(session) = sessions.bound(session) {
                let lacks = ids.iter().copied().filter(|id| !ended.contains(&(*id, account)));
                give_all(lacks, session, cx);
            }
        }
    });
}

/// Gives a session that came what it lacks, as much as is written at once.
fn give_all(lacks: impl Iterator<Item = NotificationId>, session: &mut BoundSession, cx: &mut Cx<'_>) {
    let (begun, turn) = (cx.out.bytes.len(), PageTurn::begin(cx.out.bytes.len()));
    for id in lacks {
        if turn.is_over(cx.out.bytes.len()) {
            cx.features.notifications.broadcasts.is_crowded(session.id);
            break;
        }
        give_one(id, session, cx);
    }
    if cx.out.bytes.len() > begun {
        backlog::await_flush(session, cx);
    }
}

type Asked = Vec<(SessionId, AccountId)>;

/// Asks the store which accounts have acknowledged which broadcasts; none where it cannot say.
fn ask(
    ids: Vec<NotificationId>,
    asked: Asked,
    cx: &mut Cx<'_>,
    then: impl FnOnce(Option<(Vec<NotificationId>, Vec<Pair>)>, Asked, &mut Sessions, &mut Cx<'_>)
    + Send
    + 'static,
) {
    let number = cx.features.notifications.broadcasts.reads.begin();
    let accounts = asked.iter().map(|(_, account)| *account).collect();
    cx.ask(EndedBroadcasts { broadcasts: ids.clone(), accounts }, move |said, sessions, cx| {
        cx.features.notifications.broadcasts.is_stirred = true;
        then(said.ok().map(|ended| (ids, ended)), asked, sessions, cx);
        cx.features.notifications.broadcasts.reads.end(number);
    });
}

/// Gives a broadcast to a session whose account has not acknowledged it; later, if its rate does not allow it now.
fn give_one(id: NotificationId, session: &mut BoundSession, cx: &mut Cx<'_>) {
    let parts = parts(cx);
    let Some(mut open) = cx.features.notifications.broadcasts.take(id) else { return };
    // It may have been stopped while the store was asked; a walk follows when it goes on.
    if open.broadcast.is_due(cx.now.unix) {
        if open.allowed(parts, cx.now.mono) == 0 {
            open.walk.queue.push(session.id);
        } else {
            let before = open.given;
            give(&mut open, session, cx);
            note_given(&mut open, before, parts, cx);
        }
    }
    cx.features.notifications.broadcasts.give_back(open);
}

/// It was given since it had been given `before` times: its rate has less left, and the store is told in a while.
fn note_given(open: &mut Open, before: u64, parts: u32, cx: &mut Cx<'_>) {
    let given = open.given - before;
    if given == 0 {
        return;
    }
    open.spend(given as usize, parts);
    cx.shard.counters.broadcasts_given += given;
    let tell_at = cx.now.mono.plus(TELL_MS);
    cx.features.notifications.broadcasts.tell_at.get_or_insert(tell_at);
}

/// Gives a broadcast to a session, if it is for it and it can take it.
fn give(open: &mut Open, session: &mut BoundSession, cx: &mut Cx<'_>) {
    let (id, broadcast) = (open.broadcast.id, &*open.broadcast);
    let is_given = session.state.notifications.in_flight().any(|entry| entry.id == id);
    let has_ended = cx.features.notifications.broadcasts.has_ended((id, session.account));
    if is_given || has_ended || !is_for(broadcast, session) {
        return;
    }
    // What is not kept for it is for who can take it now.
    let waits = broadcast.audience == Audience::Always;
    if is_full(session, cx) || (waits && session.awaits_flush()) {
        if waits {
            cx.features.notifications.broadcasts.is_crowded(session.id);
        }
        return;
    }
    let managed = session.is_managed();
    let given = InFlight {
        id,
        audience: Audience::Always,
        expires: Some(broadcast.expires),
        is_kept: false,
        sent: cx.now.unix,
        at: cx.now.mono,
        managed,
    };
    let [without, with_request] = &open.contents;
    let content = if managed { without } else { with_request };
    let stanza = xml::message(id, content.clone(), session);
    giving::give(session, &stanza, given, broadcast.created, cx);
    open.given += 1;
    if content.len() > LARGE_BYTES {
        backlog::await_flush(session, cx);
    }
}

/// Whether a client leaves as many unacknowledged as it may.
fn is_full(session: &BoundSession, cx: &Cx<'_>) -> bool {
    giving::has_too_many(session) || backlog::room(session, cx) == 0
}

/// Whether a broadcast is for a session, as it is now.
pub(super) fn is_for(broadcast: &Broadcast, session: &BoundSession) -> bool {
    let reaches = match session.reach() {
        Reach::Unavailable => false,
        Reach::Asleep => broadcast.audience != Audience::Active,
        Reach::Active => true,
    };
    let follows = broadcast.topic.as_ref().is_none_or(|topic| session.follows(topic.id));
    reaches && follows && !session.is_parked() && session.domain == broadcast.domain
}

/// A session is there: what is open of its domain may be for it.
pub(in crate::features::notifications) fn came(session: &BoundSession, cx: &mut Cx<'_>) {
    cx.features.notifications.broadcasts.came(session.id, session.domain);
}

/// A session may have room for what it was not given: it has acknowledged something, or its socket has taken it.
pub(in crate::features::notifications) fn made_room(session: &BoundSession, cx: &mut Cx<'_>) {
    if !is_full(session, cx)
        && !session.awaits_flush()
        && cx.features.notifications.broadcasts.was_crowded(session.id)
    {
        came(session, cx);
    }
}

/// The session is resumed, and its client did not receive this broadcast: the store is asked about it as about one that came. What is not kept for those
/// that come is given from memory while it is open.
pub(in crate::features::notifications) fn is_over(
    session: &mut BoundSession,
    id: NotificationId,
    cx: &mut Cx<'_>,
) -> bool {
    let has_ended = cx.features.notifications.broadcasts.has_ended((id, session.account));
    let open = cx.features.notifications.broadcasts.find(id).map(|open| open.broadcast.clone());
    let open = open.filter(|broadcast| !has_ended && broadcast.is_due(cx.now.unix));
    match open {
        Some(broadcast) if broadcast.audience != Audience::Always => false,
        Some(_) | None => {
            session.state.notifications.forget(id);
            came(session, cx);
            true
        }
    }
}

/// A broadcast that is due has at least so many deliveries of a slice, and looks at so many slots.
const EACH_MIN: usize = 16;
const EACH_LOOKS_MIN: usize = 64;
/// Slots looked at in one slice.
const LOOKS_MAX: usize = 1024;
/// Accounts that the store is asked about at once.
const ASKED_MAX: usize = 128;
/// Deliveries that follow from one answer.
const PAIRS_MAX: usize = 512;
/// What is larger is written alone.
const LARGE_BYTES: usize = 2048;
/// The store is asked again after so long.
const RETRY_MS: u64 = 1000;
/// The store is told after so long how often broadcasts were given.
const TELL_MS: u64 = 1000;
