//! One place: what is known of it, the tasks that wait, and the questions that await their answers.

use super::{Concurrency, HomeKind};
use crate::model::Ticket;
use std::collections::VecDeque;

/// What is known of a place by the store.
#[derive(Debug)]
pub(crate) enum Stage<R> {
    /// Nothing, and nothing was asked.
    Unknown,
    /// The store was asked for its record.
    Loading,
    /// The record could not be read. It is asked for again after a while; until then tasks wait.
    Failed,
    /// It exists, and this many writes to it await their answers.
    Open { record: R, writes: u32 },
    /// One task holds it exclusively.
    Held,
    /// There is no such place.
    Absent,
}

/// One place.
#[derive(Debug)]
pub(crate) struct Place<K: HomeKind> {
    /// What is known of it beside its record.
    pub(crate) state: K::State,
    stage: Stage<K::Record>,
    /// No memory while nothing waits: most places rest most of the time.
    pending: Option<Box<Pending<K>>>,
    /// Bytes of its record and of its tasks as [`Places`](super::Places) has counted them.
    pub(super) counted: Counted,
    /// How often the shard has tidied since the place was used.
    idle: u8,
    /// Its home is elsewhere. What was begun here ends here.
    has_moved: bool,
}

/// Bytes of a place that its shard has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) record: usize,
    pub(super) waiting: usize,
}

/// What waits at a place.
#[derive(Debug)]
struct Pending<K: HomeKind> {
    tasks: VecDeque<K::Task>,
    /// Bytes of the tasks.
    bytes: usize,
    /// The questions to the store, oldest first.
    asked: VecDeque<(Ticket, K::Step)>,
}

impl<K: HomeKind> Default for Pending<K> {
    fn default() -> Pending<K> {
        Pending { tasks: VecDeque::new(), bytes: 0, asked: VecDeque::new() }
    }
}

impl<K: HomeKind> Place<K> {
    /// A place of which nothing is known yet.
    pub(crate) fn unknown(state: K::State) -> Place<K> {
        let counted = Counted::default();
        Place { state, stage: Stage::Unknown, pending: None, counted, idle: 0, has_moved: false }
    }

    /// A place whose record is known.
    pub(crate) fn of(state: K::State, record: K::Record) -> Place<K> {
        Place { stage: Stage::Open { record, writes: 0 }, ..Place::unknown(state) }
    }

    /// What is known of it.
    pub(crate) fn stage(&self) -> &Stage<K::Record> {
        &self.stage
    }

    /// Its record, if it is known and no task has the place for itself.
    pub(crate) fn record(&self) -> Option<&K::Record> {
        match &self.stage {
            Stage::Open { record, .. } => Some(record),
            _ => None,
        }
    }

    /// Its record and what is known beside it.
    pub(crate) fn record_and_state(&mut self) -> Option<(&mut K::Record, &mut K::State)> {
        match &mut self.stage {
            Stage::Open { record, .. } => Some((record, &mut self.state)),
            _ => None,
        }
    }

    /// The place exists, and no task holds it exclusively.
    pub(crate) fn open(&mut self, record: K::Record) {
        self.stage = Stage::Open { record, writes: 0 };
    }

    /// The store was asked for the record. Gives the one that was known.
    pub(crate) fn begin_load(&mut self) -> Option<K::Record> {
        self.become_(Stage::Loading)
    }

    /// The record is dropped. Gives it.
    pub(crate) fn drop_record(&mut self) -> Option<K::Record> {
        self.become_(Stage::Unknown)
    }

    /// A task begins that has the place for itself. Gives the record.
    pub(crate) fn hold(&mut self) -> Option<K::Record> {
        self.become_(Stage::Held)
    }

    /// There is no such place.
    pub(crate) fn vanish(&mut self) {
        self.stage = Stage::Absent;
    }

    /// Whether there is no such place.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.stage, Stage::Absent)
    }

    /// The record could not be read: tasks wait until it is asked for again.
    pub(crate) fn fail(&mut self) {
        self.stage = Stage::Failed;
    }

    fn become_(&mut self, stage: Stage<K::Record>) -> Option<K::Record> {
        match std::mem::replace(&mut self.stage, stage) {
            Stage::Open { record, .. } => Some(record),
            _ => None,
        }
    }

    /// A write was begun.
    pub(crate) fn wrote(&mut self) {
        if let Stage::Open { writes, .. } = &mut self.stage {
            *writes += 1;
        }
    }

    /// A write was answered. `gone`: the answer was that there is no such place.
    pub(crate) fn written(&mut self, gone: bool) {
        if let Stage::Open { writes, .. } = &mut self.stage {
            *writes = writes.saturating_sub(1);
            if gone && *writes == 0 {
                self.stage = Stage::Absent;
            }
        }
    }

    /// The store was asked: `step` goes on with the answer to this question.
    pub(crate) fn asked(&mut self, ticket: Ticket, step: K::Step) {
        self.pending.get_or_insert_default().asked.push_back((ticket, step));
    }

    /// Answers to what was asked before are of no use any more.
    pub(crate) fn forget_asked(&mut self) {
        if let Some(pending) = &mut self.pending {
            pending.asked.clear();
        }
    }

    /// Its home is elsewhere from now on. Only answers that end something are still awaited; gives the other steps.
    pub(super) fn move_away(&mut self) -> Vec<K::Step> {
        self.has_moved = true;
        let Some(pending) = &mut self.pending else { return Vec::new() };
        let asked = std::mem::take(&mut pending.asked).into_iter();
        let (ending, others): (VecDeque<_>, VecDeque<_>) =
            asked.partition(|(_, step)| K::ends_something(step));
        pending.asked = ending;
        others.into_iter().map(|(_, step)| step).collect()
    }

    /// Whether its home is elsewhere.
    pub(super) fn has_moved(&self) -> bool {
        self.has_moved
    }

    /// The step that goes on with an answer. Answers nearly always come in the order of the questions.
    pub(crate) fn take_step(&mut self, ticket: Ticket) -> Option<K::Step> {
        let asked = &mut self.pending.as_mut()?.asked;
        let at = asked.iter().position(|(asked, _)| *asked == ticket)?;
        asked.remove(at).map(|(_, step)| step)
    }

    /// How many tasks were taken and not answered, without those that only read.
    pub(crate) fn load(&self) -> usize {
        let begun = match self.stage {
            Stage::Open { writes, .. } => writes as usize,
            Stage::Held => 1,
            Stage::Unknown | Stage::Loading | Stage::Failed | Stage::Absent => 0,
        };
        begun + self.waiting().len()
    }

    /// The tasks that wait, in their order.
    pub(crate) fn waiting(&self) -> std::collections::vec_deque::Iter<'_, K::Task> {
        self.pending.as_deref().map_or_else(Default::default, |pending| pending.tasks.iter())
    }

    /// Whether nothing waits here, for the record or for an answer.
    pub(crate) fn is_quiet(&self) -> bool {
        self.pending.as_ref().is_none_or(|pending| pending.tasks.is_empty() && pending.asked.is_empty())
    }

    /// Bytes of the tasks that wait.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.pending.as_ref().map_or(0, |pending| pending.bytes)
    }

    /// Has a task wait behind the others.
    pub(super) fn push(&mut self, task: K::Task) {
        let pending = self.pending.get_or_insert_default();
        pending.bytes += task_bytes::<K>(&task);
        pending.tasks.push_back(task);
    }

    /// Has a task wait before the others.
    pub(crate) fn push_front(&mut self, task: K::Task) {
        let pending = self.pending.get_or_insert_default();
        pending.bytes += task_bytes::<K>(&task);
        pending.tasks.push_front(task);
    }

    /// Whether a task may begin now, those before it left aside.
    pub(super) fn may_begin(&self, task: &K::Task) -> bool {
        match &self.stage {
            Stage::Unknown | Stage::Loading | Stage::Failed | Stage::Held => false,
            Stage::Absent => true,
            Stage::Open { record, writes } => match K::concurrency(task, record, &self.state) {
                Concurrency::Write => true,
                Concurrency::Silent => *writes == 0 || !self.asked_before(task),
                Concurrency::Read | Concurrency::Alone => *writes == 0,
            },
        }
    }

    /// Whether a question awaits its answer that a task follows.
    fn asked_before(&self, task: &K::Task) -> bool {
        let mut asked = self.pending.iter().flat_map(|pending| &pending.asked);
        asked.any(|(_, step)| K::follows(task, step))
    }

    /// The next task, if it may begin now.
    pub(crate) fn next(&mut self) -> Option<K::Task> {
        let next = self.waiting().next()?;
        if self.may_begin(next) { self.next_if(|_| true) } else { None }
    }

    /// The first task that waits, if it is one of these.
    pub(crate) fn next_if(&mut self, is_wanted: impl Fn(&K::Task) -> bool) -> Option<K::Task> {
        let pending = self.pending.as_mut()?;
        let task = pending.tasks.pop_front_if(|task| is_wanted(task))?;
        pending.bytes -= task_bytes::<K>(&task);
        Some(task)
    }

    /// Takes the tasks that wait, so that they can be refused, but for those that are kept.
    pub(crate) fn give_up(&mut self, is_kept: impl Fn(&K::Task) -> bool) -> Vec<K::Task> {
        let Some(pending) = &mut self.pending else { return Vec::new() };
        let all = std::mem::take(&mut pending.tasks);
        let (kept, refused): (Vec<_>, Vec<_>) = all.into_iter().partition(is_kept);
        pending.bytes = kept.iter().map(task_bytes::<K>).sum();
        pending.tasks = kept.into();
        refused
    }

    /// A place at rest takes no memory for what waits.
    pub(super) fn tidy(&mut self) {
        if self.is_quiet() {
            self.pending = None;
        }
    }

    /// It is used.
    pub(super) fn touch(&mut self) {
        self.idle = 0;
    }

    /// Whether its record is known, and no task is under way or waits.
    pub(crate) fn is_at_rest(&self) -> bool {
        matches!(self.stage, Stage::Open { writes: 0, .. }) && self.is_quiet()
    }

    /// Whether there is no such place and no task waits for it.
    pub(crate) fn is_nothing(&self) -> bool {
        self.is_absent() && self.is_quiet()
    }

    /// Counts that the shard tidied. Returns how often it has since the place was used.
    pub(super) fn idle_turn(&mut self) -> u8 {
        self.idle = if self.is_at_rest() { self.idle.saturating_add(1) } else { 0 };
        self.idle
    }
}

/// Bytes that a task takes while it waits.
pub(super) fn task_bytes<K: HomeKind>(task: &K::Task) -> usize {
    size_of::<K::Task>() + K::task_bytes(task)
}
