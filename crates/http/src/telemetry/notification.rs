//! Spans of a notification: one from its home to its end, and one for each part of its way.

use super::recent::Recent;
use super::span::{Span, SpanKind, Value};
use crate::random;
use carillon_core::model::{DropReason, HopStep, NotificationId, TraceContext};
use carillon_server::HopSeen;
use std::borrow::Cow;
use std::collections::HashMap;
use std::time::{Duration, SystemTime};

/// Notifications on their way at once; of more there are no spans.
const WAYS_MAX: usize = 4096;
/// After so long a notification that has not ended has its span: it waits for its device.
const OPEN_MAX: Duration = Duration::from_secs(60);
/// What comes so long after the end still belongs to it: that the peer's TCP has its bytes may be seen after the device has said so.
const LATE: Duration = Duration::from_secs(2);
/// Sessions of one notification whose steps are told.
const SESSIONS_MAX: usize = 16;

/// The notifications that are on their way.
#[derive(Default)]
pub(super) struct Ways(HashMap<NotificationId, Way>);

struct Way {
    /// Its trace and its own span.
    context: TraceContext,
    /// The span of the request.
    parent: u64,
    start: SystemTime,
    last: SystemTime,
    place: (u32, u16),
    sessions: Vec<OnSession>,
    has_ended: bool,
}

/// What is known of a session that was given it.
struct OnSession {
    session: Box<str>,
    given: SystemTime,
    written: Option<SystemTime>,
}

impl Ways {
    /// A notification reached a step: the spans that end with it. Whether there was room for it.
    pub(super) fn step(&mut self, seen: HopSeen, recent: &Recent, spans: &mut Vec<Span>) -> bool {
        let HopSeen { hop, at, place } = seen;
        if !self.0.contains_key(&hop.id) {
            // What comes later than its span has none.
            if self.0.len() >= WAYS_MAX || matches!(hop.step, HopStep::Arrived { .. }) {
                return self.0.len() < WAYS_MAX;
            }
            let context = TraceContext { trace: hop.context.trace, span: random::number().max(1) };
            let place = (place.node.0, place.shard.0);
            let (parent, sessions) = (hop.context.span, Vec::new());
            recent.add(hop.id, context);
            let way = Way { context, parent, start: at, last: at, place, sessions, has_ended: false };
            self.0.insert(hop.id, way);
        }
        if let Some(way) = self.0.get_mut(&hop.id) {
            spans.extend(way.step(hop.id, &hop.step, at));
        }
        true
    }

    /// Forgets what ended a while ago, and gives a span to what has waited long.
    pub(super) fn expire(&mut self, now: SystemTime, spans: &mut Vec<Span>) {
        let age = |since: SystemTime| now.duration_since(since).unwrap_or_default();
        let over = self.0.extract_if(|_, way| age(way.last) > if way.has_ended { LATE } else { OPEN_MAX });
        spans.extend(
            over.filter(|(_, way)| !way.has_ended).map(|(id, way)| way.whole(id, "waiting".into(), None)),
        );
    }

    /// Gives a span to all that have none yet.
    pub(super) fn close(&mut self, spans: &mut Vec<Span>) {
        let open = self.0.drain().filter(|(_, way)| !way.has_ended);
        spans.extend(open.map(|(id, way)| way.whole(id, "waiting".into(), None)));
    }
}

impl Way {
    fn step(&mut self, id: NotificationId, step: &HopStep, at: SystemTime) -> Option<Span> {
        self.last = at;
        match step {
            HopStep::Home | HopStep::Withheld(_) | HopStep::Carried { .. } => None,
            HopStep::Committed => Some(self.part("store", self.start, at, Vec::new())),
            HopStep::Given { session } => {
                if self.sessions.len() < SESSIONS_MAX {
                    let session = session.as_str().into();
                    self.sessions.push(OnSession { session, given: at, written: None });
                }
                None
            }
            HopStep::Written { session, .. } => {
                let on = self.on(session.as_str())?;
                on.written = Some(at);
                let given = on.given;
                Some(self.part("write", given, at, Vec::new()))
            }
            HopStep::Arrived { session } => {
                let written = self.on(session.as_str())?.written?;
                Some(self.part("transmit", written, at, Vec::new()))
            }
            HopStep::Acknowledged { session, by } => {
                let on = self.on(session.as_str())?;
                let since = on.written.unwrap_or(on.given);
                let by = ("carillon.acknowledged_by", Value::Text(word(by)));
                Some(self.part("acknowledge", since, at, vec![by]))
            }
            HopStep::Ended(..) if self.has_ended => None,
            HopStep::Ended(state, reason) => {
                self.has_ended = true;
                Some(self.whole(id, word(state), *reason))
            }
        }
    }

    fn on(&mut self, session: &str) -> Option<&mut OnSession> {
        self.sessions.iter_mut().rev().find(|on| &*on.session == session)
    }

    /// A part of its way.
    fn part(
        &self,
        name: &'static str,
        start: SystemTime,
        end: SystemTime,
        attributes: Vec<(&'static str, Value)>,
    ) -> Span {
        let context = TraceContext { span: random::number().max(1), ..self.context };
        let (kind, parent, links) = (SpanKind::Internal, self.context.span, Vec::new());
        Span { name: name.into(), kind, context, parent, start, end, attributes, links, error: None }
    }

    /// All of its way.
    fn whole(&self, id: NotificationId, state: Cow<'static, str>, reason: Option<DropReason>) -> Span {
        let text = |text: Cow<'static, str>| Value::Text(text);
        let mut attributes = vec![
            ("carillon.notification.id", text(id.to_string().into())),
            ("carillon.notification.state", text(state)),
            ("carillon.node", Value::Number(self.place.0.into())),
            ("carillon.shard", Value::Number(self.place.1.into())),
        ];
        let reason = reason.map(word);
        attributes.extend(reason.clone().map(|reason| ("carillon.notification.reason", text(reason))));
        Span {
            name: "notification".into(),
            kind: SpanKind::Internal,
            context: self.context,
            parent: self.parent,
            start: self.start,
            end: self.last,
            attributes,
            links: Vec::new(),
            error: reason,
        }
    }
}

/// A word of the API.
fn word(of: impl serde::Serialize) -> Cow<'static, str> {
    let value = serde_json::to_value(of).ok();
    value.and_then(|value| value.as_str().map(|word| Cow::Owned(word.to_owned()))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::model::{AcknowledgedBy, ConnId, Hop, NodeId, NotificationState, Place, ShardId};
    use carillon_wire::jid::Jid;

    const ID: NotificationId = NotificationId(7);

    fn at(ms: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
    }

    fn steps(ways: &mut Ways, recent: &Recent, steps: &[(u64, HopStep)]) -> Vec<Span> {
        let mut spans = Vec::new();
        for (ms, step) in steps {
            let hop = Hop { id: ID, context: TraceContext { trace: 5, span: 6 }, step: step.clone() };
            let place = Place { node: NodeId(0), shard: ShardId(1) };
            assert!(ways.step(HopSeen { hop, at: at(*ms), place }, recent, &mut spans));
        }
        spans
    }

    fn session() -> Jid {
        Jid::new("a@x/r").expect("an address")
    }

    #[test]
    fn each_part_of_the_way_has_a_span_below_that_of_all_of_it() {
        let (mut ways, recent) = (Ways::default(), Recent::default());
        let (session, conn) = (session(), ConnId { slot: 1, generation: 1 });
        let spans = steps(
            &mut ways,
            &recent,
            &[
                (1, HopStep::Home),
                (2, HopStep::Committed),
                (3, HopStep::Given { session: session.clone() }),
                (4, HopStep::Written { session: session.clone(), conn }),
                (6, HopStep::Acknowledged { session: session.clone(), by: AcknowledgedBy::Receipt }),
                (7, HopStep::Ended(NotificationState::Acknowledged, None)),
                (8, HopStep::Arrived { session }),
            ],
        );
        let told: Vec<_> = spans.iter().map(|span| (&*span.name, span.start, span.end)).collect();
        let expected = [
            ("store", at(1), at(2)),
            ("write", at(3), at(4)),
            ("acknowledge", at(4), at(6)),
            ("notification", at(1), at(7)),
            ("transmit", at(4), at(8)),
        ];
        assert_eq!(told, expected);
        let whole = &spans[3];
        assert_eq!((whole.parent, whole.context.trace), (6, 5));
        assert!(spans.iter().all(|span| span.parent == whole.context.span || span.name == "notification"));
        assert_eq!(recent.of([ID].into_iter()), [whole.context]);
        let mut late = Vec::new();
        ways.expire(at(10_000), &mut late);
        assert!(late.is_empty() && ways.0.is_empty());
    }

    #[test]
    fn one_that_waits_for_its_device_has_a_span_after_a_while() {
        let (mut ways, recent) = (Ways::default(), Recent::default());
        let away = HopStep::Withheld(DropReason::NotConnected);
        let spans = steps(&mut ways, &recent, &[(1, HopStep::Home), (2, HopStep::Committed), (2, away)]);
        assert_eq!(spans.len(), 1);
        let mut late = Vec::new();
        ways.expire(at(59_000), &mut late);
        assert!(late.is_empty());
        ways.expire(at(63_000), &mut late);
        assert_eq!(
            late.iter().map(|span| (&*span.name, span.end)).collect::<Vec<_>>(),
            [("notification", at(2))]
        );
    }

    #[test]
    fn what_is_dropped_is_an_error() {
        let (mut ways, recent) = (Ways::default(), Recent::default());
        let dropped = HopStep::Ended(NotificationState::Dropped, Some(DropReason::NotConnected));
        let spans = steps(&mut ways, &recent, &[(1, HopStep::Home), (2, dropped)]);
        assert_eq!(spans[0].error.as_deref(), Some("not-connected"));
    }
}
