//! Where a stanza goes: the rules of RFC 6121 §8.5, at the home of the account it is for.

mod rules;

use crate::model::Settlement;
use crate::session::home;
use crate::session::hook::{Arrival, Delivery, Held, Plan, ScreenArrivedHook};
use crate::session::tapping::note_route;
use crate::session::{BoundSession, Cx, Sessions};
use crate::shard::{Chat, Fate, Recipients, Track};
use carillon_wire::jid::Jid;
use carillon_wire::stanza::{Condition, IqType, Kind, MessageType, PresenceType, Stanza, StanzaError};
use smallvec::SmallVec;

/// A stanza has come for an account, and passes: it goes its way, unless a feature has something to do first.
pub fn arrived(mut stanza: Stanza, settlement: Option<Settlement>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    // What a module ends, or changes, is so for rules, archives and sessions.
    if let Some(screen) = cx.pipeline.screen_arrived
        && is_screened_out(screen, &mut stanza, settlement, cx)
    {
        return;
    }
    // What a rule ends is in no archive either.
    if let Some(rules) = cx.pipeline.rules_of(&stanza)
        && cx.pipeline.arrived.is_some()
        && let Some(to) = &stanza.to
    {
        let mut lives = sessions.bound_of(to.bare_str());
        home::retain_hearers(&stanza, &mut lives, cx);
        let plan = plan(&stanza, &lives, cx);
        if rules::end(rules, &stanza, &plan, &lives, cx) {
            return cx.settle(settlement);
        }
    }
    let arrival = match cx.pipeline.arrived {
        Some(hook) => hook(stanza, settlement, cx),
        None => Arrival::Passes(stanza, settlement),
    };
    match arrival {
        Arrival::Passes(stanza, settlement) => self::stanza(&stanza, settlement, sessions, cx),
        Arrival::Held(why) => cx.shard.counters.stanzas_held.count(why.name()),
        Arrival::Refused => {}
    }
}

/// Whether a message that has come ends here. Its sender is told if it is refused, and with that it is settled.
fn is_screened_out(
    screen: ScreenArrivedHook,
    stanza: &mut Stanza,
    settlement: Option<Settlement>,
    cx: &mut Cx<'_>,
) -> bool {
    let (what, detail) = match screen(stanza, cx) {
        Ok(None) => return false,
        Ok(Some(how)) => {
            cx.shard.counters.stanzas_taken.count(how.name());
            ("taken", how.name())
        }
        Err(error) => {
            if let Some(reply) = stanza.error_reply(&error) {
                cx.reply_to(settlement, reply);
            }
            ("refused", error.condition.as_str())
        }
    };
    if !cx.shard.taps.is_empty() {
        note_route(stanza, what, detail, cx);
    }
    cx.settle(settlement);
    true
}

/// Gives a stanza to the sessions of its account, or answers it with an error. With that it is settled, unless it has to be stored or
/// a client is to acknowledge it.
pub fn stanza(stanza: &Stanza, mut settlement: Option<Settlement>, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Some(to) = stanza.to.clone() else { return };
    let mut lives = sessions.bound_of(to.bare_str());
    home::retain_hearers(stanza, &mut lives, cx);
    let mut plan = plan(stanza, &lives, cx);
    if let Some(rules) = cx.pipeline.rules_of(stanza) {
        if rules::end(rules, stanza, &plan, &lives, cx) {
            return cx.settle(settlement);
        }
        rules::tell(rules, stanza, &plan, &lives, cx);
    }
    let nobody = plan.is_empty();
    for hook in &cx.pipeline.routed {
        hook(stanza, &lives, &mut plan, cx);
    }
    if nobody {
        undelivered(stanza, &lives, &mut settlement, cx);
    }
    if !cx.shard.taps.is_empty() && cx.shard.taps.follow(to.bare_str()) {
        note_plan(stanza, &plan, &lives, cx);
    }
    note_recipients(&mut plan, &lives, cx);
    await_acknowledgement(&mut plan, &mut settlement, &lives, cx);
    drop(lives);
    for delivery in plan {
        if let Some(session) = sessions.bound_in(delivery.slot) {
            let stanza = delivery.instead.unwrap_or_else(|| stanza.clone());
            session.deliver(stanza, delivery.track, cx);
        }
    }
    cx.settle(settlement);
}

/// Notes for an operator which sessions are given a stanza.
#[cold]
fn note_plan(stanza: &Stanza, plan: &Plan, lives: &[&BoundSession], cx: &mut Cx<'_>) {
    let resource = |delivery: &Delivery| {
        let session = lives.iter().find(|session| session.id.slot == delivery.slot)?;
        session.jid.resource()
    };
    let resources: Vec<&str> = plan.iter().filter_map(resource).collect();
    if !resources.is_empty() {
        note_route(stanza, "delivered", &resources.join(" "), cx);
    }
}

/// The sessions that are given a stanza now.
fn plan(stanza: &Stanza, lives: &[&BoundSession], cx: &mut Cx<'_>) -> Plan {
    match stanza.to.as_ref().and_then(Jid::resource) {
        Some(resource) => to_resource(stanza, resource, lives, cx),
        None => to_account(stanza, lives, cx),
    }
}

/// Whether a stanza is to a resource that is not there.
fn is_to_nobody(stanza: &Stanza, lives: &[&BoundSession]) -> bool {
    let resource = stanza.to.as_ref().and_then(Jid::resource);
    resource.is_some_and(|resource| exact(resource, lives).is_none())
}

/// A message that a session did not acknowledge before its connection was lost. Another session that was given it may still be
/// there: if that does not acknowledge it either, it comes here again. If all that were given it are parked, it is stored, so that
/// its sender need not wait for their clients. If none is left, it is routed again. So no client is given it twice.
pub fn unacknowledged(message: &Stanza, chat: Chat, sessions: &mut Sessions, cx: &mut Cx<'_>) {
    let Chat { recipients, settlement } = chat;
    if let Some(recipients) = recipients {
        if recipients.fate() != Fate::Theirs {
            return;
        }
        let (mut has_it, mut is_parked) = (false, false);
        for id in recipients.all() {
            match sessions.bound(id) {
                None => {}
                Some(session) if session.is_parked() => is_parked = true,
                // It settles it, too.
                Some(_) if recipients.sessions.contains(&id) => return,
                Some(_) => has_it = true,
            }
        }
        if has_it {
            recipients.decide(Fate::Settled);
            return cx.settle(settlement);
        }
        if is_parked {
            if let Some(handler) = cx.pipeline.keep {
                (handler.keep)(message, recipients, settlement, cx);
            }
            return;
        }
        recipients.decide(Fate::Settled);
    }
    stanza(message, settlement, sessions, cx);
}

/// Stores a message that clients may have or not, so that its sender need not wait for them. It stays in their sessions' queues;
/// whoever acknowledges it has it deleted.
pub fn keep(message: &Stanza, chat: Chat, cx: &mut Cx<'_>) {
    let Chat { recipients: Some(recipients), settlement } = chat else { return };
    if recipients.fate() == Fate::Theirs
        && let Some(handler) = cx.pipeline.keep
    {
        (handler.keep)(message, recipients, settlement, cx);
    }
}

/// Whether it becomes known that the client has what it is given.
fn acknowledges(session: &BoundSession, cx: &Cx<'_>) -> bool {
    session.is_managed() || cx.pipeline.given.is_some()
}

/// Where several sessions are given a message, each remembers the others.
fn note_recipients(plan: &mut Plan, lives: &[&BoundSession], cx: &Cx<'_>) {
    if plan.len() < 2 || !plan.iter().any(|delivery| matches!(delivery.track, Track::Chat(_))) {
        return;
    }
    let is_awaited = |session: &BoundSession| {
        let delivery = plan.iter().find(|delivery| delivery.slot == session.id.slot)?;
        Some(matches!(delivery.track, Track::Chat(_)) && acknowledges(session, cx))
    };
    let of = |awaited: bool| {
        let theirs = lives.iter().filter(move |session| is_awaited(session) == Some(awaited));
        theirs.map(|session| session.id)
    };
    let recipients = Recipients::with_copies(of(true), of(false));
    for delivery in plan {
        if let Track::Chat(chat) = &mut delivery.track {
            chat.recipients = Some(recipients.clone());
        }
    }
}

/// Where clients are to acknowledge a message, each of them settles it.
fn await_acknowledgement(
    plan: &mut Plan,
    settlement: &mut Option<Settlement>,
    lives: &[&BoundSession],
    cx: &Cx<'_>,
) {
    if settlement.is_none() {
        return;
    }
    let mut is_awaited = false;
    for delivery in plan {
        let Track::Chat(chat) = &mut delivery.track else { continue };
        let session = lives.iter().find(|session| session.id.slot == delivery.slot);
        if session.is_some_and(|session| acknowledges(session, cx)) {
            chat.settlement = *settlement;
            is_awaited = true;
        }
    }
    if is_awaited {
        *settlement = None;
    }
}

/// RFC 6121 §8.5.3: to a full JID. The resource gets it, available or not; one that takes messages gets it behind those that wait for it.
fn to_resource(stanza: &Stanza, resource: &str, lives: &[&BoundSession], cx: &mut Cx<'_>) -> Plan {
    let exact = exact(resource, lives);
    match (exact, stanza.kind) {
        (Some(session), Kind::Message(MessageType::Normal | MessageType::Chat))
            if session.presence.takes_messages() && is_held(must_wait(session, stanza, cx), cx) =>
        {
            // While a client is away another one of the account may take it; else it is stored.
            if session.is_parked() { to_account(stanza, lives, cx) } else { Plan::new() }
        }
        // It is the server's to answer.
        (_, Kind::Presence(PresenceType::Probe)) => Plan::new(),
        (Some(session), _) => SmallVec::from_iter([plain(session, stanza)]),
        // §8.5.3.2.1: a chat message whose resource is gone is as good as one to the account.
        (None, Kind::Message(MessageType::Chat)) => to_account(stanza, lives, cx),
        (None, _) => Plan::new(),
    }
}

/// The session of this resource.
fn exact<'a>(resource: &str, lives: &[&'a BoundSession]) -> Option<&'a BoundSession> {
    lives.iter().find(|session| session.jid.resource() == Some(resource)).copied()
}

/// Why a session is to be given a message from the store, behind others, if it is.
fn must_wait(session: &BoundSession, stanza: &Stanza, cx: &Cx<'_>) -> Option<Held> {
    cx.pipeline.must_wait.iter().find_map(|hook| hook(session, stanza, cx))
}

/// Whether there is a reason why something is not given now; it is counted.
fn is_held(why: Option<Held>, cx: &mut Cx<'_>) -> bool {
    why.inspect(|why| cx.shard.counters.stanzas_held.count(why.name())).is_some()
}

/// RFC 6121 §8.5.2: to a bare JID.
fn to_account(stanza: &Stanza, lives: &[&BoundSession], cx: &mut Cx<'_>) -> Plan {
    match stanza.kind {
        Kind::Message(MessageType::Normal | MessageType::Chat | MessageType::Headline) => {
            let takers = lives.iter().filter(|session| session.presence.takes_messages());
            // What another session takes need not wait.
            let mut reason = None;
            let waits = takers.clone().all(|session| {
                reason = must_wait(session, stanza, cx);
                reason.is_some()
            });
            let waits = waits && is_held(reason, cx);
            takers.filter(|_| !waits).map(|session| plain(session, stanza)).collect()
        }
        Kind::Presence(PresenceType::Available | PresenceType::Unavailable) => {
            let others = lives.iter().filter(|session| {
                session.presence.is_available() && stanza.from.as_ref() != Some(&session.jid)
            });
            others.map(|session| plain(session, stanza)).collect()
        }
        Kind::Presence(PresenceType::Probe) => answer_probe(stanza, lives),
        // §8.5.2.1: no error, no group chat; IQs are the server's to answer.
        _ => Plan::new(),
    }
}

/// A new session asks its account's others for their presence; strangers get no answer (RFC 6121 §4.3.2).
fn answer_probe(probe: &Stanza, lives: &[&BoundSession]) -> Plan {
    let Some(from) = &probe.from else { return Plan::new() };
    let Some(asker) = lives.iter().find(|session| session.jid == *from) else { return Plan::new() };
    let others = lives.iter().filter(|session| session.jid != *from);
    let presences = others.filter_map(|session| session.presence.stanza(session));
    presences
        .map(|presence| Delivery {
            slot: asker.id.slot,
            instead: Some(presence.with_to(from.clone())),
            track: Track::Nothing,
        })
        .collect()
}

fn plain(session: &BoundSession, stanza: &Stanza) -> Delivery {
    let track = match stanza.kind {
        Kind::Message(MessageType::Normal | MessageType::Chat) => Track::Chat(Chat::default()),
        _ => Track::Nothing,
    };
    Delivery { slot: session.id.slot, instead: None, track }
}

/// No session took it: it is kept, answered with an error, or dropped.
fn undelivered(
    stanza: &Stanza,
    lives: &[&BoundSession],
    settlement: &mut Option<Settlement>,
    cx: &mut Cx<'_>,
) {
    let has_resource = stanza.to.as_ref().is_some_and(|to| !to.is_bare());
    let is_gone = is_to_nobody(stanza, lives);
    let refusal = StanzaError::new(Condition::ServiceUnavailable);
    let result = match stanza.kind {
        // §8.5.3.2.1: a normal message to a resource that is gone is refused, a chat message kept.
        Kind::Message(MessageType::Normal) if is_gone => Err(refusal),
        Kind::Message(MessageType::Normal | MessageType::Chat) => {
            match is_taken(stanza, lives, settlement, cx) {
                Ok(false) => Err(refusal),
                result => result,
            }
        }
        // RFC 6121 §8.5.2.1.3: to the account, the server answers if it can.
        Kind::Iq(IqType::Get | IqType::Set) if !has_resource && home::asked(stanza, cx) => Ok(true),
        Kind::Message(MessageType::Groupchat) | Kind::Iq(IqType::Get | IqType::Set) => Err(refusal),
        Kind::Message(_) | Kind::Presence(_) | Kind::Iq(_) => Ok(true),
    };
    if let Err(error) = &result
        && !cx.shard.taps.is_empty()
    {
        note_route(stanza, "refused", error.condition.as_str(), cx);
    }
    if let Err(error) = result
        && let Some(reply) = stanza.error_reply(&error)
    {
        cx.reply_to(*settlement, reply);
    }
}

/// Whether a feature takes a message that no session takes.
fn is_taken(
    stanza: &Stanza,
    lives: &[&BoundSession],
    settlement: &mut Option<Settlement>,
    cx: &mut Cx<'_>,
) -> Result<bool, StanzaError> {
    for hook in &cx.pipeline.absent {
        if let Some(how) = hook(stanza, lives, settlement, cx)? {
            cx.shard.counters.stanzas_taken.count(how.name());
            if !cx.shard.taps.is_empty() {
                note_route(stanza, "taken", how.name(), cx);
            }
            return Ok(true);
        }
    }
    Ok(false)
}
