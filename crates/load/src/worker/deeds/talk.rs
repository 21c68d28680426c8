//! Messages among neighbours, when each is due.

use std::ops::Range;
use std::time::{Duration, Instant};

use carillon_wire::stanza::{Kind, MessageType, Stanza};

use super::{Act, Next};
use crate::client::stanzas;
use crate::plan::{Shape, Talk};
use crate::worker::crowd::{Crowd, Roster};
use crate::worker::hand::Turn;
use crate::worker::mark::{self, Mark, Marks};
use crate::worker::schedule::Schedule;
use crate::worker::setting::Setting;
use crate::worker::tally::Count;

/// What has not arrived so long after the last message was due is missing.
const PATIENCE: Duration = Duration::from_secs(10);

/// An open loop: each message is sent when it is due, whatever became of those before.
pub(super) struct Chat {
    marks: Marks,
    /// What this phase's messages are numbered by.
    number: u32,
    bucket: usize,
    payload_bytes: usize,
    schedule: Schedule,
    until: Instant,
    /// Messages begun so far; says who is next.
    turns: usize,
    /// Messages that have not arrived.
    under_way: u64,
    over: bool,
}

impl Chat {
    pub(super) fn new(talk: &Talk, rate: &Shape, turn: &Turn, setting: &Setting, roster: &Roster) -> Self {
        Self {
            marks: Marks::of(&setting.job.test),
            number: mark::number(turn.position.phase, 0),
            bucket: talk.bucket.max(2) as usize,
            payload_bytes: talk.payload_bytes,
            schedule: Schedule::new(rate, setting.share(&roster.numbers), turn.at),
            until: turn.at + talk.span.0,
            turns: 0,
            under_way: 0,
            over: false,
        }
    }

    /// Sends the message that was due then.
    fn send(&mut self, due: Instant, crowd: &mut Crowd<'_>) {
        let (from, to) = pair(self.turns, &crowd.roster.numbers, self.bucket);
        self.turns += 1;
        let Some(jid) = crowd.network.jid(to).filter(|_| from != to).cloned() else {
            return crowd.ledger.error("talk: the neighbour is not in session");
        };
        let mark = Mark { number: self.number, due_unix_ns: crowd.setting.clock.unix_ns(due) };
        let message = stanzas::message(jid, &self.marks.text(mark, self.payload_bytes));
        if crowd.network.send(from, &message) {
            crowd.sent(due);
            self.under_way += 1;
        } else {
            crowd.ledger.error("talk: the sender is not in session");
        }
    }
}

impl Act for Chat {
    fn tick(&mut self, crowd: &mut Crowd<'_>) -> Next {
        while let Some(due) = self.schedule.next().filter(|due| *due < self.until) {
            if self.schedule.take(crowd.now).is_none() {
                return Next::At(Some(due));
            }
            self.send(due, crowd);
        }
        if crowd.now < self.until {
            return Next::At(Some(self.until));
        }
        if self.under_way > 0 && crowd.now < self.until + PATIENCE {
            return Next::At(Some(self.until + PATIENCE));
        }
        if !std::mem::replace(&mut self.over, true) {
            crowd.ledger.add(Count::Missing, self.under_way);
        }
        Next::Done
    }

    fn stanza(&mut self, _number: usize, stanza: &Stanza, crowd: &mut Crowd<'_>) {
        match stanza.kind {
            Kind::Message(MessageType::Chat) => {}
            Kind::Message(MessageType::Error) => {
                let condition = stanzas::error(stanza).map(|error| error.condition.to_string());
                return crowd.ledger.error(format!("talk: {}", condition.unwrap_or_default()));
            }
            _ => return,
        }
        let mark = self.marks.find(stanza.payload.bytes());
        let Some(mark) = mark.filter(|mark| mark.number == self.number) else { return };
        self.under_way = self.under_way.saturating_sub(1);
        let due = crowd.setting.clock.instant(mark.due_unix_ns);
        crowd.ledger.delivered(crowd.now.saturating_duration_since(due));
    }
}

/// Who sends the message of a turn, and to whom: everyone in turn, and each to all neighbours of its bucket in turn.
fn pair(turn: usize, numbers: &Range<usize>, bucket: usize) -> (usize, usize) {
    let count = numbers.len().max(1);
    let from = turn % count;
    let first = from / bucket * bucket;
    let size = bucket.min(count - first);
    if size < 2 {
        return (numbers.start + from, numbers.start + from);
    }
    let step = 1 + turn / count % (size - 1);
    let to = first + (from - first + step) % size;
    (numbers.start + from, numbers.start + to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_talks_to_every_neighbour_and_to_nobody_else() {
        let numbers = 20..32;
        let pairs: Vec<_> = (0..12 * 3).map(|turn| pair(turn, &numbers, 4)).collect();
        for (from, to) in &pairs {
            assert!(from != to && (from - 20) / 4 == (to - 20) / 4);
        }
        let mut different = pairs.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), pairs.len());
    }

    #[test]
    fn a_rest_of_one_has_nobody_to_talk_to() {
        assert_eq!(pair(4, &(0..5), 4), (4, 4));
        assert_eq!(pair(5, &(0..6), 4), (5, 4));
    }
}
