//! Players read their archives page by page, the newest messages first.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Instant;

use carillon_wire::stanza::{Kind, Stanza};

use super::executor::{Executor, Loss, Next};
use crate::client::{SendOutcome, stanzas};
use crate::plan::ReadArchive;
use crate::worker::context::ActionContext;
use crate::worker::mark::Marks;
use crate::worker::player_states::PlayerStates;
use crate::worker::recorder::{Count, Metric};
use crate::worker::setup::Setup;

/// The id of a request: each player has one in flight.
const ID: &str = "archive";

/// The readers of one thread.
pub(super) struct ReadArchives {
    marks: Marks,
    waiting: VecDeque<usize>,
    reading: HashMap<usize, Reading>,
    page: u32,
    pages_max: u32,
    in_flight_max: usize,
}

/// A player who reads.
struct Reading {
    asked: Instant,
    pages: u32,
    /// The ids on the page that is coming, and on the one before: none is on both.
    ids: HashSet<String>,
    before: HashSet<String>,
}

impl ReadArchives {
    pub(super) fn new(read: &ReadArchive, setup: &Setup, states: &PlayerStates) -> Self {
        let share = setup.share(&states.numbers);
        let in_flight = f64::from(read.in_flight) * f64::from(share.count) / f64::from(share.total.max(1));
        Self {
            marks: Marks::of(&setup.job.test),
            waiting: states.members().collect(),
            reading: HashMap::new(),
            page: read.page,
            pages_max: if read.pages == 0 { u32::MAX } else { read.pages },
            in_flight_max: (in_flight as usize).max(1),
        }
    }

    fn ask(&self, number: usize, before: Option<&str>, context: &mut ActionContext<'_>) -> bool {
        let request = stanzas::archive_page(self.page, before).with_id(ID);
        context.network.send(number, &request) == SendOutcome::Sent
    }

    /// A page has come.
    fn answered(&mut self, number: usize, answer: &Stanza, context: &mut ActionContext<'_>) {
        let Some(mut reading) = self.reading.remove(&number) else { return };
        if let Some(error) = stanzas::error(answer) {
            return context.recorder.refused("archive", &error);
        }
        let Some((first, is_complete)) = stanzas::archive_page_end(answer) else {
            return context.recorder.error("archive: an answer without an end");
        };
        context.recorder.count(Count::Pages);
        context.recorder.time(Metric::Page, context.now.saturating_duration_since(reading.asked));
        context.recorder.add(Count::Archived, reading.ids.len() as u64);
        reading.pages += 1;
        if reading.ids.len() > self.page as usize {
            context.recorder.error("archive: a page has more messages than were asked for");
        }
        if reading.ids.is_empty() && !is_complete {
            context.recorder.error("archive: a page is empty and not the last");
        }
        let goes_on = !is_complete && reading.pages < self.pages_max && !reading.ids.is_empty();
        if goes_on && first.is_some() && self.ask(number, first.as_deref(), context) {
            let before = std::mem::take(&mut reading.ids);
            self.reading.insert(number, Reading { asked: context.now, before, ..reading });
        }
    }
}

impl Executor for ReadArchives {
    fn tick(&mut self, context: &mut ActionContext<'_>) -> Next {
        while self.reading.len() < self.in_flight_max
            && let Some(number) = self.waiting.pop_front()
        {
            if self.ask(number, None, context) {
                let (ids, before) = (HashSet::new(), HashSet::new());
                self.reading.insert(number, Reading { asked: context.now, pages: 0, ids, before });
            }
        }
        if self.reading.is_empty() { Next::Done } else { Next::At(None) }
    }

    fn lost(&mut self, number: usize, _context: &mut ActionContext<'_>) -> Loss {
        self.waiting.retain(|other| *other != number);
        self.reading.remove(&number);
        Loss::Final
    }

    fn stanza(&mut self, number: usize, stanza: &Stanza, context: &mut ActionContext<'_>) {
        if matches!(stanza.kind, Kind::Iq(_)) && stanzas::is_response(stanza, ID) {
            return self.answered(number, stanza, context);
        }
        let (Some(reading), Some(id)) = (self.reading.get_mut(&number), stanzas::archived_id(stanza)) else {
            return;
        };
        if reading.before.contains(&id) || !reading.ids.insert(id) {
            return context.recorder.count(Count::Duplicates);
        }
        if self.marks.find(stanza.payload.bytes()).is_some() {
            context.recorder.count(Count::ArchivedInTest);
        }
    }
}
