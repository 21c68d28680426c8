//! What decides an authoritative match: an instance of a module, whose memory is the state of the game.
//!
//! The instance is called once per tick, with the inputs that are in it. Its state is saved about once per second, and when a client needs
//! it. Another version of the module takes over between two ticks, by the state that the one before it saves. After a failure a new instance goes
//! on from the state that was saved last.

use super::modules::{TurnFuel, Version};
use crate::model::{MatchId, Mono, Now, UnixMs};
use crate::ports::modules::{
    CALL_FUEL, Call, Done, Failed, Failure, Instance, MatchSubject, MatchVerdict, ModuleHook, START_FUEL,
    Subject, Verdict,
};
use crate::shard::{MatchFigures, ModuleFigures};

/// So many failures within [`FAILED_MS`] end a match.
const FAILURES_MAX: usize = 3;

/// The time within which failures are counted.
const FAILED_MS: u64 = 10_000;

/// What decides a match.
#[derive(Debug)]
pub(super) struct Logic {
    version: Version,
    /// The version that takes over before the next tick.
    next: Option<Version>,
    /// None before the first tick, and after a failure.
    instance: Option<Box<dyn Instance>>,
    /// The state that was saved last.
    saved: Option<Vec<u8>>,
    failed: [Option<Mono>; FAILURES_MAX],
    ends_on_failure: bool,
    /// The memory of inputs, kept from tick to tick.
    inputs: Vec<u8>,
}

/// What a module may use, and where that is noted.
#[derive(Debug)]
pub(super) struct Meter<'a> {
    pub(super) now: Now,
    pub(super) turn: &'a mut TurnFuel,
    pub(super) figures: &'a mut MatchFigures,
    pub(super) modules: &'a mut Vec<ModuleFigures>,
}

/// A moment of a match, as a module is told it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) id: MatchId,
    pub(super) tick: u32,
    pub(super) seats: u8,
    pub(super) tick_rate: u8,
    pub(super) seed: u64,
}

/// What became of a tick.
#[derive(Debug)]
pub(super) enum Decided {
    /// The module has decided it. The state, if it was saved.
    Done(Box<MatchVerdict>, Option<Vec<u8>>),
    /// The module failed. The next tick goes on from the state that was saved last.
    Restored,
    /// The module failed too often, or once where that ends the match.
    Ended,
}

impl Moment {
    fn subject(&self) -> MatchSubject {
        let Moment { tick, seats, tick_rate, seed, .. } = *self;
        MatchSubject { tick, seats, tick_rate, seed, ..MatchSubject::default() }
    }

    /// Time as the module sees it: that of the ticks, from the beginning of the match.
    fn time(&self) -> UnixMs {
        UnixMs(u64::from(self.tick) * 1000 / u64::from(self.tick_rate.max(1)))
    }

    /// Whether the state is saved after this tick although nobody needs it: once per second, not of all matches at once.
    fn is_saved(&self) -> bool {
        self.tick.wrapping_add(self.id.0 as u32).is_multiple_of(u32::from(self.tick_rate.max(1)))
    }
}

impl Logic {
    pub(super) fn new(version: Version, ends_on_failure: bool) -> Logic {
        let failed = [None; FAILURES_MAX];
        Logic {
            version,
            next: None,
            instance: None,
            saved: None,
            failed,
            ends_on_failure,
            inputs: Vec::new(),
        }
    }

    pub(super) fn version(&self) -> &Version {
        &self.version
    }

    /// Has another version take over before the next tick, unless it is the same.
    pub(super) fn change_to(&mut self, version: &Version) {
        self.next = (self.version != *version).then(|| version.clone());
    }

    /// How much the next tick may take.
    pub(super) fn fuel_wanted(&self) -> u64 {
        let starts = self.instance.is_none() || self.next.is_some();
        // A tick and a save; when an instance starts, a save and a load before that.
        if starts { START_FUEL + 4 * CALL_FUEL } else { 2 * CALL_FUEL }
    }

    /// The memory of inputs, empty: to be filled and given to [`Logic::tick`].
    pub(super) fn take_inputs(&mut self) -> Vec<u8> {
        let mut inputs = std::mem::take(&mut self.inputs);
        inputs.clear();
        inputs
    }

    /// Decides a tick. `is_needed`: a client needs the state after it.
    pub(super) fn tick(
        &mut self,
        moment: Moment,
        inputs: Vec<u8>,
        is_needed: bool,
        meter: &mut Meter<'_>,
    ) -> Decided {
        match self.try_tick(moment, inputs, is_needed, meter) {
            Ok((verdict, state)) => Decided::Done(verdict, state),
            Err(failed) => self.fail(&failed, meter),
        }
    }

    fn try_tick(
        &mut self,
        moment: Moment,
        inputs: Vec<u8>,
        is_needed: bool,
        meter: &mut Meter<'_>,
    ) -> Result<(Box<MatchVerdict>, Option<Vec<u8>>), Failed> {
        // What the module is told before the tick is about the one before it.
        let before = Moment { tick: moment.tick - 1, ..moment };
        if let Some(next) = self.next.take() {
            self.take_over(next, before, meter)?;
        }
        let instance = match &mut self.instance {
            Some(instance) => instance,
            None => {
                let started = start(&self.version, self.saved.as_deref(), before, meter)?;
                self.instance.insert(started)
            }
        };
        let subject = MatchSubject { inputs, ..moment.subject() };
        let (subject, verdict) =
            call(&mut **instance, ModuleHook::MatchTick, moment, subject, &self.version, meter);
        self.inputs = subject.inputs;
        let verdict = verdict?;
        meter.of(&self.version, |figures| {
            figures.verdicts.count(if verdict.is_over { "over" } else { "tick" });
        });
        if verdict.is_over || !(is_needed || moment.is_saved()) {
            return Ok((verdict, None));
        }
        let state = save(&mut **instance, moment, &self.version, meter)?;
        self.saved = Some(state.clone());
        Ok((verdict, Some(state)))
    }

    /// Another version takes over, with the state that the present one saves. If it does not take it, the present one goes on.
    fn take_over(&mut self, next: Version, before: Moment, meter: &mut Meter<'_>) -> Result<(), Failed> {
        if let Some(instance) = &mut self.instance {
            match save(&mut **instance, before, &self.version, meter) {
                Ok(state) => self.saved = Some(state),
                Err(failed) => {
                    // It takes over what was saved before.
                    self.next = Some(next);
                    return Err(failed);
                }
            }
        }
        match start(&next, self.saved.as_deref(), before, meter) {
            Ok(started) => {
                meter.figures.module_swaps += 1;
                (self.version, self.instance) = (next, Some(started));
            }
            Err(failed) => {
                meter.figures.module_failures.count("take-over");
                let (new, old) = (next.shown(), self.version.shown());
                let line = format!("{new} does not take over a match of {old}: {}", failed.detail);
                meter.note(&next, line);
            }
        }
        Ok(())
    }

    fn fail(&mut self, failed: &Failed, meter: &mut Meter<'_>) -> Decided {
        self.instance = None;
        let Failed { failure, detail } = failed;
        meter.figures.module_failures.count(failure.name());
        meter.of(&self.version, |figures| figures.failures.count(failure.name()));
        let line = format!("failed in a match: {}: {detail}", failure.name());
        meter.note(&self.version, line);
        let now = meter.now.mono;
        self.failed.rotate_left(1);
        self.failed[FAILURES_MAX - 1] = Some(now);
        let too_often = self.failed[0].is_some_and(|first| now.since(first) < FAILED_MS);
        if self.ends_on_failure || too_often { Decided::Ended } else { Decided::Restored }
    }
}

impl Meter<'_> {
    /// The figures of a module, as long as it is active.
    fn of(&mut self, version: &Version, add: impl FnOnce(&mut ModuleFigures)) {
        if let Some(figures) = self.modules.iter_mut().find(|figures| figures.name == version.name) {
            add(figures);
        }
    }

    fn note(&mut self, version: &Version, line: String) {
        let at = self.now.unix;
        self.of(version, |figures| figures.note(at, line));
    }

    fn spend(&mut self, fuel: u64, version: &Version) {
        self.turn.spend(fuel);
        self.figures.module_fuel += fuel;
        self.of(version, |figures| figures.fuel += fuel);
    }
}

/// An instance that has a state, if there is one.
fn start(
    version: &Version,
    state: Option<&[u8]>,
    before: Moment,
    meter: &mut Meter<'_>,
) -> Result<Box<dyn Instance>, Failed> {
    let (mut instance, fuel) =
        version.compiled.match_instance(&version.config).inspect_err(|_| meter.turn.spend(START_FUEL))?;
    meter.spend(fuel, version);
    if let Some(state) = state {
        let subject = MatchSubject { state: state.to_vec(), ..before.subject() };
        call(&mut *instance, ModuleHook::MatchLoad, before, subject, version, meter).1?;
    }
    Ok(instance)
}

fn save(
    instance: &mut dyn Instance,
    moment: Moment,
    version: &Version,
    meter: &mut Meter<'_>,
) -> Result<Vec<u8>, Failed> {
    let (_, verdict) = call(instance, ModuleHook::MatchSave, moment, moment.subject(), version, meter);
    verdict.map(|verdict| verdict.state)
}

fn call(
    instance: &mut dyn Instance,
    hook: ModuleHook,
    moment: Moment,
    subject: MatchSubject,
    version: &Version,
    meter: &mut Meter<'_>,
) -> (MatchSubject, Result<Box<MatchVerdict>, Failed>) {
    // The same match with the same inputs is the same match, whenever it is played.
    let seed = moment.seed ^ u64::from(moment.tick).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let subject = Subject::Match(Box::new(subject));
    let Done { subject, result, fuel, notes } =
        instance.call(Call { hook, subject, now: moment.time(), seed, fuel: CALL_FUEL });
    meter.spend(fuel, version);
    meter.of(version, |figures| {
        figures.counts.iter_mut().zip(notes.counts).for_each(|(sum, more)| *sum = sum.saturating_add(more));
    });
    for line in notes.lines {
        meter.note(version, line.into());
    }
    let Subject::Match(subject) = subject else { return (MatchSubject::default(), Err(unknown())) };
    let verdict = result.and_then(|verdict| match verdict {
        Verdict::Match(verdict) => Ok(verdict),
        _ => Err(unknown()),
    });
    (*subject, verdict)
}

fn unknown() -> Failed {
    Failed { failure: Failure::Verdict, detail: "its verdict is not about a match".into() }
}
