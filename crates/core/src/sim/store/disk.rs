//! The questions that shards have asked, and how far each has come: asked, committed, answered.
//!
//! What the port promises, and nothing more: the writes of a shard take effect, and are answered, in their order; those of two
//! shards in any; a read sees every write that was answered before it was asked.

use crate::model::Ticket;
use crate::ports::{Answer, Ask, Fault};
use std::collections::VecDeque;

/// What answers questions. What an answered question changes is committed: [`Disk`] says when that is.
pub trait Engine {
    /// Answers a question, at once.
    fn answer(&mut self, ask: &Ask) -> Answer;
}

impl Engine for super::Committed {
    fn answer(&mut self, ask: &Ask) -> Answer {
        super::Committed::answer(self, ask)
    }
}

/// Something that a store may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Commits the oldest write of a shard that is not committed.
    Commit(usize),
    /// Gives a shard the answer to the oldest of its writes that were committed.
    Confirm(usize),
    /// Reads what was asked for, by its place among those that were not read.
    Read(usize),
    /// Gives what was read, by its place among those that were.
    Give(usize),
}

/// What becomes of questions of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// They fail.
    Refuses(Fault),
    /// They are answered, and who asked is told that this is unknown.
    LosesAnswer,
    /// They are held back until [`Disk::goes_on`].
    Holds,
}

/// An answer, and who asked.
#[derive(Debug)]
pub struct Answered {
    /// The shard that asked.
    pub shard: usize,
    /// Its name for the question.
    pub ticket: Ticket,
    /// What the store says.
    pub answer: Answer,
}

/// A question, and who asked it.
#[derive(Debug)]
struct Asked {
    /// How many were asked before it.
    number: u64,
    shard: usize,
    ticket: Ticket,
    ask: Ask,
}

/// Whether a question is one of those that somebody means.
pub type Asks = fn(&Ask) -> bool;

/// A store between its askers and its disk.
pub struct Disk {
    engine: Box<dyn Engine>,
    asked: u64,
    /// Of each shard, what was not committed.
    writes: Vec<VecDeque<Asked>>,
    /// Of each shard, what was committed and not answered, with the question.
    committed: Vec<VecDeque<(Ask, Answered)>>,
    reads: Vec<Asked>,
    /// What was read and not answered, with the question.
    read: Vec<(Ask, Answered)>,
    /// None: they are answered.
    moods: Vec<(Asks, Option<Mood>)>,
    held: Vec<Asked>,
    /// Writes and what they were answered, in the order in which that was decided, and reads that failed, when they did; where they are wanted.
    log: Option<Vec<(Ask, Answer)>>,
}

impl Disk {
    /// The store of so many shards.
    pub fn new(engine: Box<dyn Engine>, shards: usize) -> Disk {
        let mut disk = Disk {
            engine,
            asked: 0,
            writes: Vec::new(),
            committed: Vec::new(),
            reads: Vec::new(),
            read: Vec::new(),
            moods: Vec::new(),
            held: Vec::new(),
            log: None,
        };
        disk.serve(shards);
        disk
    }

    /// From now on it serves so many shards, which have asked nothing.
    pub fn serve(&mut self, shards: usize) {
        self.crash();
        self.writes.resize_with(shards, VecDeque::new);
        self.committed.resize_with(shards, VecDeque::new);
    }

    /// Answers a question of nobody's: of a test that looks, or that prepares something.
    pub fn answer(&mut self, ask: &Ask) -> Answer {
        self.engine.answer(ask)
    }

    /// A shard asks.
    pub fn ask(&mut self, shard: usize, ticket: Ticket, ask: Ask) {
        let asked = Asked { number: self.asked, shard, ticket, ask };
        self.asked += 1;
        let mood = self.moods.iter().find(|(is_meant, _)| is_meant(&asked.ask)).and_then(|(_, mood)| *mood);
        match (mood, &asked.ask) {
            (Some(Mood::Holds), _) => self.held.push(asked),
            (Some(Mood::Refuses(fault)), _) => {
                let answered = Answered { shard, ticket, answer: Answer::Failed(fault) };
                self.read.push((asked.ask, answered));
            }
            (Some(Mood::LosesAnswer), ask) => {
                self.engine.answer(ask);
                let answered = Answered { shard, ticket, answer: Answer::Failed(Fault::Unknown) };
                self.read.push((asked.ask, answered));
            }
            (None, Ask::Read(_)) => self.reads.push(asked),
            (None, Ask::Write(_) | Ask::Once(..)) => self.writes[shard].push_back(asked),
        }
    }

    /// From now on the questions that are meant fare like this. The first that was said of a question counts.
    pub fn is(&mut self, is_meant: Asks, mood: Mood) {
        self.moods.push((is_meant, Some(mood)));
    }

    /// All questions are answered again, those first that were held back.
    pub fn goes_on(&mut self) {
        self.moods.clear();
        self.ask_again();
    }

    /// Those that are meant are answered again.
    pub fn goes_on_with(&mut self, is_meant: Asks) {
        self.moods.insert(0, (is_meant, None));
        self.ask_again();
    }

    fn ask_again(&mut self) {
        for Asked { shard, ticket, ask, .. } in std::mem::take(&mut self.held) {
            self.ask(shard, ticket, ask);
        }
    }

    /// What may be done next, always in the same order.
    pub fn steps(&self) -> impl Iterator<Item = Step> {
        let filled = |(shard, is_empty): (usize, bool)| (!is_empty).then_some(shard);
        let commits = self.writes.iter().map(VecDeque::is_empty).enumerate().filter_map(filled);
        let confirms = self.committed.iter().map(VecDeque::is_empty).enumerate().filter_map(filled);
        let (reads, gives) = (0..self.reads.len(), 0..self.read.len());
        let writes = commits.map(Step::Commit).chain(confirms.map(Step::Confirm));
        writes.chain(reads.map(Step::Read)).chain(gives.map(Step::Give))
    }

    /// Takes a step of [`Disk::steps`]; the answer that reaches its asker by it.
    pub fn take(&mut self, step: Step) -> Option<Answered> {
        match step {
            Step::Commit(shard) => {
                let Asked { ticket, ask, .. } = self.writes[shard].pop_front()?;
                let answer = self.engine.answer(&ask);
                if let Some(log) = &mut self.log {
                    log.push((ask.clone(), answer.clone()));
                }
                self.committed[shard].push_back((ask, Answered { shard, ticket, answer }));
                None
            }
            Step::Confirm(shard) => self.committed[shard].pop_front().map(|(_, answered)| answered),
            Step::Read(place) if place < self.reads.len() => {
                let Asked { shard, ticket, ask, .. } = self.reads.remove(place);
                let answer = self.engine.answer(&ask);
                self.read.push((ask, Answered { shard, ticket, answer }));
                None
            }
            Step::Give(place) if place < self.read.len() => {
                let (ask, answered) = self.read.remove(place);
                if let (Some(log), Ask::Read(_), Answer::Failed(_)) = (&mut self.log, &ask, &answered.answer)
                {
                    log.push((ask, answered.answer.clone()));
                }
                Some(answered)
            }
            Step::Read(_) | Step::Give(_) => None,
        }
    }

    /// The questions that were neither committed nor read nor held back, in the order in which they were asked.
    pub fn waiting(&self) -> Vec<&Ask> {
        let mut waiting: Vec<&Asked> = self.writes.iter().flatten().chain(&self.reads).collect();
        waiting.sort_by_key(|asked| asked.number);
        waiting.into_iter().map(|asked| &asked.ask).collect()
    }

    /// Answers the oldest of [`Disk::waiting`], past all others.
    pub fn answer_oldest(&mut self) -> Option<Answered> {
        let Asked { shard, ticket, ask, .. } = self.take_oldest()?;
        Some(Answered { shard, ticket, answer: self.engine.answer(&ask) })
    }

    /// Refuses the oldest of [`Disk::waiting`].
    pub fn fail_oldest(&mut self, fault: Fault) -> Option<Answered> {
        let Asked { shard, ticket, .. } = self.take_oldest()?;
        Some(Answered { shard, ticket, answer: Answer::Failed(fault) })
    }

    fn take_oldest(&mut self) -> Option<Asked> {
        let write = self
            .writes
            .iter()
            .filter_map(|queue| queue.front())
            .map(|asked| (asked.number, asked.shard))
            .min();
        let read = self.reads.iter().enumerate().map(|(place, asked)| (asked.number, place)).min();
        match (write, read) {
            (Some((number, shard)), read) if read.is_none_or(|(other, _)| number < other) => {
                self.writes[shard].pop_front()
            }
            (_, Some((_, place))) => Some(self.reads.remove(place)),
            (_, None) => None,
        }
    }

    /// The question of [`Step::Commit`] or [`Step::Read`] fails instead: it changes nothing.
    pub fn fail(&mut self, step: Step, fault: Fault) {
        match step {
            Step::Commit(shard) => {
                if let Some(Asked { ticket, ask, .. }) = self.writes[shard].pop_front() {
                    let answer = Answer::Failed(fault);
                    if let Some(log) = &mut self.log {
                        log.push((ask.clone(), answer.clone()));
                    }
                    self.committed[shard].push_back((ask, Answered { shard, ticket, answer }));
                }
            }
            Step::Read(place) if place < self.reads.len() => {
                let Asked { shard, ticket, ask, .. } = self.reads.remove(place);
                self.read.push((ask, Answered { shard, ticket, answer: Answer::Failed(fault) }));
            }
            Step::Read(_) | Step::Confirm(_) | Step::Give(_) => {}
        }
    }

    /// The write of [`Step::Commit`] is done, and who asked is told that this is unknown.
    pub fn lose_answer(&mut self, step: Step) {
        let Step::Commit(shard) = step else { return };
        self.take(step);
        if let Some((ask, answered)) = self.committed[shard].back_mut() {
            answered.answer = Answer::Failed(Fault::Unknown);
            if let Some(log) = &mut self.log {
                log.push((ask.clone(), answered.answer.clone()));
            }
        }
    }

    /// Those who asked are gone: what was not committed is forgotten, and what was committed is answered to nobody.
    pub fn crash(&mut self) {
        self.writes.iter_mut().for_each(VecDeque::clear);
        self.committed.iter_mut().for_each(VecDeque::clear);
        (self.reads, self.read, self.held) = Default::default();
    }

    /// It is closed: what it was asked to write it writes, and nobody is answered.
    pub fn close(&mut self) {
        for shard in 0..self.writes.len() {
            while !self.writes[shard].is_empty() {
                self.take(Step::Commit(shard));
            }
        }
        self.crash();
    }

    /// The questions that were asked and not answered.
    pub fn under_way(&self) -> impl Iterator<Item = &Ask> {
        let asked = self.writes.iter().flatten().chain(&self.reads).map(|asked| &asked.ask);
        asked.chain(self.committed.iter().flatten().chain(&self.read).map(|(ask, _)| ask))
    }

    /// Whether no question is under way; those that are held back are not.
    pub fn is_idle(&self) -> bool {
        self.steps().next().is_none()
    }

    /// Notes every write that is committed or refused, and every read that fails, from now on.
    pub fn log_commits(&mut self) {
        self.log.get_or_insert_default();
    }

    /// What was committed or refused, or failed, since somebody looked.
    pub fn committed(&mut self) -> Vec<(Ask, Answer)> {
        self.log.as_mut().map(std::mem::take).unwrap_or_default()
    }
}
