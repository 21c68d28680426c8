//! Everyone waits for the items that one publisher publishes.

use std::time::{Duration, Instant};

use carillon_wire::stanza::{Kind, Stanza};

use super::{Act, Next};
use crate::light;
use crate::plan::{Deed, Publish};
use crate::worker::crowd::{Crowd, Roster};
use crate::worker::hand::Turn;
use crate::worker::mark::{Marks, phase_and_item};
use crate::worker::schedule::{Schedule, Share};
use crate::worker::setting::Setting;
use crate::worker::tally::Count;

/// When nothing has arrived for so long after it was due, the rest is missing.
const PATIENCE: Duration = Duration::from_secs(30);

/// Counts items of a step as they arrive.
pub(super) struct Await {
    marks: Marks,
    phase: u32,
    /// How many items the step has.
    items: u64,
    /// Players who should get each.
    followers: u64,
    /// Whether only those who subscribed in this test should.
    subscribed_only: bool,
    arrived: u64,
    /// When the last item is due, or the last thing arrived.
    last: Instant,
    over: bool,
}

impl Await {
    pub(super) fn new(publish: &Publish, turn: &Turn, setting: &Setting, roster: &Roster) -> Self {
        let phases = &setting.job.scenario.phases[..turn.position.phase as usize];
        let subscribes = |deed: &Deed| matches!(deed, Deed::Subscribe { topic } if *topic == publish.topic);
        let subscribed_only = phases.iter().any(|phase| subscribes(&phase.deed));
        let followers = roster.members().filter(|number| !subscribed_only || roster.follows(*number));
        let items = if publish.rate.is_some() { publish.items } else { 1 };
        Self {
            marks: Marks::of(&setting.job.test),
            phase: turn.position.phase,
            items: items.into(),
            followers: followers.count() as u64,
            subscribed_only,
            arrived: 0,
            last: last_due(publish, turn),
            over: false,
        }
    }

    fn is_follower(&self, number: usize, crowd: &Crowd<'_>) -> bool {
        !self.subscribed_only || crowd.roster.follows(number)
    }

    fn arrived(&mut self, bytes: &[u8], crowd: &mut Crowd<'_>) {
        let Some(mark) = self.marks.find(bytes) else { return };
        if phase_and_item(mark.number).0 != self.phase {
            return;
        }
        self.arrived += 1;
        self.last = self.last.max(crowd.now);
        let due = crowd.setting.clock.instant(mark.due_unix_ns);
        crowd.ledger.delivered_item(mark.number, crowd.now.saturating_duration_since(due));
    }
}

impl Act for Await {
    fn tick(&mut self, crowd: &mut Crowd<'_>) -> Next {
        let expected = self.items * self.followers;
        let late = crowd.now.saturating_duration_since(self.last) > PATIENCE;
        if self.arrived < expected && !late {
            return Next::At(None);
        }
        if !std::mem::replace(&mut self.over, true) {
            crowd.ledger.add(Count::Missing, expected.saturating_sub(self.arrived));
        }
        Next::Done
    }

    fn stanza(&mut self, _number: usize, stanza: &Stanza, crowd: &mut Crowd<'_>) {
        if !matches!(stanza.kind, Kind::Message(_)) {
            return;
        }
        self.arrived(stanza.payload.bytes(), crowd);
    }

    fn light(&mut self, _number: usize, event: &light::Event, crowd: &mut Crowd<'_>) {
        match event {
            light::Event::Published(item) => self.arrived(item, crowd),
            light::Event::Error(code) => crowd.ledger.error(format!("publish: {code}")),
            _ => {}
        }
    }

    fn ready(&mut self, number: usize, crowd: &mut Crowd<'_>) {
        self.followers += u64::from(self.is_follower(number, crowd));
    }

    fn gone(&mut self, number: usize, crowd: &mut Crowd<'_>) {
        self.followers = self.followers.saturating_sub(self.is_follower(number, crowd).into());
    }
}

fn last_due(publish: &Publish, turn: &Turn) -> Instant {
    let Some(rate) = &publish.rate else { return turn.at };
    let whole = Share { first: 0, count: 1, total: 1 };
    let schedule = Schedule::new(rate, whole, turn.at);
    schedule.at(u64::from(publish.items).saturating_sub(1)).unwrap_or(turn.at)
}
