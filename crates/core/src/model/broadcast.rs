//! Broadcasts: one notification for every account of a domain, kept once for all of them.

use super::{AcknowledgedBy, Audience, DomainId, KeyId, NotificationId, Payload, Priority, TopicId, UnixMs};

/// A notification for every account of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broadcast {
    /// The id of the notification that every account is given.
    pub id: NotificationId,
    /// The domain.
    pub domain: DomainId,
    /// Which accounts are given it: those that have an active session, or a session, while it runs, or also those that log in before it
    /// expires.
    pub audience: Audience,
    /// Its priority, as clients are told it.
    pub priority: Priority,
    /// What it carries.
    pub payload: Payload,
    /// The API key that sent it, if one did.
    pub key: Option<KeyId>,
    /// When it was accepted.
    pub created: UnixMs,
    /// When it ends by itself.
    pub expires: UnixMs,
    /// Only sessions that follow this topic are given it.
    pub topic: Option<BroadcastTopic>,
    /// How it is given.
    pub pace: BroadcastPace,
    /// What it does.
    pub state: BroadcastState,
    /// When it ended.
    pub ended: Option<UnixMs>,
    /// A point in the history of all broadcasts: each change of one has a higher one.
    pub revision: u64,
}

crate::form! {
    struct Broadcast {
        id, domain, audience, priority, payload, key, created, expires, topic, pace, state, ended, revision,
    }
}

/// The topic whose followers a broadcast is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroadcastTopic {
    /// Its number.
    pub id: TopicId,
    /// Its name.
    pub name: Box<str>,
}

crate::form! { struct BroadcastTopic { id, name } }

/// How a broadcast is given. May change while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BroadcastPace {
    /// Deliveries per second, of all nodes together; as fast as connections take it where there is no rate.
    pub rate: Option<u32>,
    /// It begins at this time.
    pub not_before: Option<UnixMs>,
    /// It is given at these hours only.
    pub window: Option<DayWindow>,
}

crate::form! { struct BroadcastPace { rate, not_before, window } }

/// Hours of the day, in minutes after midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayWindow {
    /// The first minute.
    pub from: u16,
    /// The first minute that is outside; before `from` where the hours include midnight.
    pub to: u16,
    /// How far the clock is ahead of UTC, in minutes, below a day: 23 hours where it is one hour behind.
    pub ahead: u16,
}

crate::form! { struct DayWindow { from, to, ahead } }

/// What a broadcast does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroadcastState {
    /// It is given, or waits for its time.
    Running,
    /// Nobody is given it until it goes on.
    Paused,
    /// Its sender ended it.
    Aborted,
    /// Its time is over.
    Finished,
}

crate::form! { enum BroadcastState { 0 = Running, 1 = Paused, 2 = Aborted, 3 = Finished } }

/// How far a broadcast has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BroadcastProgress {
    /// Times that it was given to a connection. Told up to a second late; a node that is killed does not tell the last of them.
    pub given: u64,
    /// Accounts that acknowledged it.
    pub acknowledged: u64,
}

/// A broadcast and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroadcastReport {
    /// The broadcast.
    pub broadcast: Broadcast,
    /// How far it has come.
    pub progress: BroadcastProgress,
}

/// That an account acknowledged a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BroadcastEnd {
    /// When.
    pub at: UnixMs,
    /// How.
    pub by: AcknowledgedBy,
}

crate::form! { struct BroadcastEnd { at, by } }

impl Broadcast {
    /// Whether it has not ended.
    pub fn is_open(&self) -> bool {
        match self.state {
            BroadcastState::Running | BroadcastState::Paused => true,
            BroadcastState::Aborted | BroadcastState::Finished => false,
        }
    }

    /// When it may be given next: `now`, if it may be given now. None while it is paused, and after its end.
    pub fn next(&self, now: UnixMs) -> Option<UnixMs> {
        let at = self.pace.not_before.map_or(now, |begin| begin.max(now));
        let at = self.pace.window.map_or(at, |window| window.next(at));
        (self.state == BroadcastState::Running && at < self.expires).then_some(at)
    }

    /// Whether it may be given now.
    pub fn is_due(&self, now: UnixMs) -> bool {
        self.next(now) == Some(now)
    }

    /// What it counts for in the bounds of its domain.
    pub fn bytes(&self) -> usize {
        self.payload.bytes() + self.topic.as_ref().map_or(0, |topic| topic.name.len()) + OWN_BYTES
    }
}

impl DayWindow {
    /// The first instant within the hours, at `at` or after it.
    fn next(self, at: UnixMs) -> UnixMs {
        let minute = (at.0 / MINUTE_MS + u64::from(self.ahead)) % DAY_MINUTES;
        let (from, to) = (u64::from(self.from), u64::from(self.to));
        let is_within = match from <= to {
            true => (from..to).contains(&minute),
            false => minute >= from || minute < to,
        };
        if is_within {
            return at;
        }
        let left = (from + DAY_MINUTES - minute) % DAY_MINUTES;
        UnixMs((at.0 / MINUTE_MS + left) * MINUTE_MS)
    }
}

/// What a broadcast takes besides its payload.
const OWN_BYTES: usize = 256;
const MINUTE_MS: u64 = 60_000;
const DAY_MINUTES: u64 = 24 * 60;

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = DAY_MINUTES * MINUTE_MS;

    fn at(hours: u64, minutes: u64) -> UnixMs {
        UnixMs(20_000 * DAY + (60 * hours + minutes) * MINUTE_MS + 5)
    }

    fn on_the_minute(at: UnixMs) -> UnixMs {
        UnixMs(at.0 / MINUTE_MS * MINUTE_MS)
    }

    #[test]
    fn hours_begin_and_end_by_their_own_clock() {
        let day = DayWindow { from: 9 * 60, to: 21 * 60, ahead: 0 };
        assert_eq!(day.next(at(8, 59)), on_the_minute(at(9, 0)));
        assert_eq!(day.next(at(9, 0)), at(9, 0));
        assert_eq!(day.next(at(20, 59)), at(20, 59));
        assert_eq!(day.next(at(21, 0)), on_the_minute(at(33, 0)));
        let tokyo = DayWindow { ahead: 9 * 60, ..day };
        assert_eq!(tokyo.next(at(0, 0)), at(0, 0));
        assert_eq!(tokyo.next(at(12, 0)), on_the_minute(at(24, 0)));
        let night = DayWindow { from: 22 * 60, to: 6 * 60, ahead: 0 };
        assert_eq!(night.next(at(23, 0)), at(23, 0));
        assert_eq!(night.next(at(5, 59)), at(5, 59));
        assert_eq!(night.next(at(6, 0)), on_the_minute(at(22, 0)));
    }

    #[test]
    fn it_is_due_from_its_time_on_until_it_expires() {
        let pace = BroadcastPace { not_before: Some(at(1, 0)), ..BroadcastPace::default() };
        let mut broadcast = Broadcast {
            id: NotificationId(1),
            domain: DomainId(1),
            audience: Audience::Always,
            priority: Priority::Normal,
            payload: Payload::Json("{}".into()),
            key: None,
            created: at(0, 0),
            expires: at(2, 0),
            topic: None,
            pace,
            state: BroadcastState::Running,
            ended: None,
            revision: 1,
        };
        assert_eq!(broadcast.next(at(0, 0)), Some(at(1, 0)));
        assert!(broadcast.is_due(at(1, 1)) && !broadcast.is_due(at(0, 59)));
        assert_eq!(broadcast.next(at(2, 0)), None, "its time is over");
        broadcast.state = BroadcastState::Paused;
        assert_eq!((broadcast.next(at(1, 1)), broadcast.is_open()), (None, true));
    }
}
