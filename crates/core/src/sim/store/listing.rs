//! Lists of notifications: those that wait and those that have ended, newest first; and what is told of their ends.

use super::tables::Told;
use super::{Committed, answers};
use crate::model::{DomainId, Event, RoomAction, Trace};
use crate::ports::store::notifications::{EVENT_BYTES_MAX, Events, EventsAnswer, Listing, NotificationQuery};
use std::cmp::Reverse;

answers! {
    NotificationQuery => list;
    Events => events;
}

fn events(store: &Committed, asked: &Events) -> EventsAnswer {
    let (mut events, mut examined) = (Vec::new(), asked.after);
    let mut bytes = 0;
    for (number, told) in store.events.range(asked.after + 1..) {
        if events.len() == usize::from(asked.max) || bytes >= EVENT_BYTES_MAX {
            break;
        }
        examined = *number;
        let Some((domain, event)) = event(store, told) else { continue };
        let is_theirs =
            store.domains.contains_key(&domain) && asked.domain.is_none_or(|wanted| wanted == domain);
        if is_theirs && asked.wanted.takes(&event) {
            bytes += event.bytes();
            events.push((*number, event));
        }
    }
    let oldest = store.events.first_key_value().map_or(0, |(number, _)| *number);
    EventsAnswer { events, examined, oldest, newest: store.last_event }
}

/// An event and its domain, if what it tells of is there still.
fn event(store: &Committed, told: &Told) -> Option<(DomainId, Event)> {
    match told {
        Told::End(id, is_opened) => {
            let (domain, trace) = store.ended.get(id)?;
            let trace = Trace { opened: trace.opened.filter(|_| *is_opened), ..trace.clone() };
            Some((*domain, Event::Notification(trace)))
        }
        Told::Room(room, fact) => {
            let message = match &fact.action {
                RoomAction::Message(message) => store.own.rooms.archived(*room, message.id),
                _ => None,
            };
            Some((fact.domain, Event::Room(Box::new(fact.clone()), message)))
        }
    }
}

fn list(store: &Committed, query: &NotificationQuery) -> Listing {
    let wanted = usize::from(query.limit) + 1;
    let waiting = store.waiting.range(query.from..query.before).rev();
    let waiting = waiting.map(|(_, waiting)| (waiting.notification.domain, waiting.trace()));
    let waiting = waiting.filter(|(domain, trace)| query.matches(trace, *domain)).take(wanted);
    let ended = store.ended.range(query.from..query.before).rev().map(|(_, ended)| ended);
    let ended = ended.filter(|(domain, trace)| query.matches(trace, *domain)).take(wanted).cloned();
    let mut traces: Vec<Trace> = waiting.chain(ended).map(|(_, trace)| trace).collect();
    traces.sort_unstable_by_key(|trace| Reverse(trace.id));
    let more = traces.len() >= wanted;
    traces.truncate(query.limit.into());
    let next = traces.last().filter(|_| more).map(|last| last.id);
    Listing { traces, next }
}
