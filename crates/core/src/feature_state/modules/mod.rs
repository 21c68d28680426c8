//! The modules of a shard: which of them is asked, with how much fuel, and what follows from its failures.

mod verdict;

use crate::feature_state::Shared;
use crate::model::{Mono, Now, bucket};
use crate::ports::modules::*;
use crate::shard::{ModuleFigures, ModuleStanding};

/// So many failures within [`FAILED_MS`] turn a version off.
const FAILURES_MAX: usize = 5;

/// The time within which failures are counted.
const FAILED_MS: u64 = 10_000;

/// The modules of a shard, in the order of their names.
#[derive(Debug, Default)]
pub struct Modules {
    slots: Vec<Slot>,
    /// The hooks that one of them has.
    hooks: HookSet,
    turn: TurnFuel,
}

impl Shared for Modules {}

/// The fuel of a turn. All that happens in one turn happens at one time.
#[derive(Debug, Default)]
struct TurnFuel {
    at: Mono,
    used: u64,
}

#[derive(Debug)]
struct Slot {
    module: ActiveModule,
    version: Health,
    base: Health,
    /// What random numbers follow from.
    seed: u64,
}

/// How a version does on this shard.
#[derive(Debug, Default)]
struct Health {
    failed: [Option<Mono>; FAILURES_MAX],
    /// The turn in which it failed; it is made anew in a later one.
    broken: Option<Mono>,
    is_off: bool,
}

/// What is to be decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) hook: ModuleHook,
    /// The account whose it is.
    pub(crate) account: &'a str,
    pub(crate) domain: &'a str,
    pub(crate) now: Now,
}

/// What the modules decided together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Goes,
    Dropped,
    Rejected(Rejection),
    /// A login fails.
    Refused(LoginRefusal),
    /// A module failed that is to fail closed.
    Failed(Failure),
}

/// One of a module's two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Version,
    Base,
}

impl Modules {
    /// Replaces the modules. A version that was here goes on with the memory that it has. `seed`: what random numbers follow from.
    pub(crate) fn replace(
        &mut self,
        modules: Vec<ActiveModule>,
        seed: u64,
        figures: &mut Vec<ModuleFigures>,
    ) {
        let mut before = std::mem::take(&mut self.slots);
        let mut counted = std::mem::take(figures);
        for module in modules {
            let known = before.iter_mut().find(|slot| slot.module.name == module.name);
            let slot = Slot::new(module, seed ^ self.slots.len() as u64, known);
            let is_same =
                |of: &ModuleFigures| of.name == slot.module.name && of.hash == slot.module.version.hash;
            let mut of = match counted.iter().position(is_same) {
                Some(at) => counted.swap_remove(at),
                None => ModuleFigures {
                    name: slot.module.name.clone(),
                    hash: slot.module.version.hash,
                    ..ModuleFigures::default()
                },
            };
            of.standing = slot.standing();
            figures.push(of);
            self.slots.push(slot);
        }
        self.hooks = self.slots.iter().fold(HookSet::default(), |all, slot| all.and(slot.module.hooks()));
    }

    /// Whether one of them has this hook.
    pub(crate) fn has(&self, hook: ModuleHook) -> bool {
        self.hooks.has(hook)
    }

    /// Asks those that have the hook, in their order, each about what those before it made of the subject.
    pub(crate) fn decide(
        &mut self,
        question: Question<'_>,
        mut subject: Subject,
        figures: &mut [ModuleFigures],
    ) -> (Subject, Decision) {
        self.turn.begin(question.now.mono);
        for (slot, figures) in self.slots.iter_mut().zip(figures) {
            if !slot.module.hooks().has(question.hook) {
                continue;
            }
            let (after, decision) = slot.decide(question, subject, &mut self.turn, figures);
            subject = after;
            // All are told of what is only observed.
            if decision != Decision::Goes && !HookSet::OBSERVERS.has(question.hook) {
                return (subject, decision);
            }
        }
        (subject, Decision::Goes)
    }
}

impl TurnFuel {
    fn begin(&mut self, now: Mono) {
        if self.at != now {
            *self = TurnFuel { at: now, used: 0 };
        }
    }

    /// Whether so much fuel is left for a call of a hook.
    fn has(&self, fuel: u64, hook: ModuleHook) -> bool {
        self.used + fuel <= hook.turn_fuel()
    }
}

impl Slot {
    fn new(module: ActiveModule, seed: u64, before: Option<&mut Slot>) -> Slot {
        let mut slot = Slot { module, version: Health::default(), base: Health::default(), seed };
        if let Some(before) = before {
            slot.adopt(before);
        }
        slot
    }

    /// Goes on with the instances of the same versions. Those that are off begin anew, if the module was activated anew.
    fn adopt(&mut self, before: &mut Slot) {
        let Slot { module, version, base, .. } = before;
        let is_untouched = module.since == self.module.since;
        let mut kept = vec![(&mut module.version, version)];
        kept.extend(module.base.as_mut().map(|of| (of, base)));
        for (of, health) in kept.into_iter().filter(|(_, health)| is_untouched || !health.is_off) {
            let own = [(Some(&mut self.module.version), &mut self.version)]
                .into_iter()
                .chain([(self.module.base.as_mut(), &mut self.base)]);
            let same = own
                .filter_map(|(own, health)| Some((own?, health)))
                .find(|(own, _)| (own.hash, &own.config) == (of.hash, &of.config));
            if let Some((own, own_health)) = same {
                std::mem::swap(&mut own.instance, &mut of.instance);
                std::mem::swap(own_health, health);
            }
        }
    }

    fn standing(&self) -> ModuleStanding {
        match (self.version.is_off, &self.module.base) {
            (false, _) => ModuleStanding::Active,
            (true, Some(_)) if !self.base.is_off => ModuleStanding::RolledBack,
            (true, _) => ModuleStanding::Off,
        }
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        subject: Subject,
        turn: &mut TurnFuel,
        figures: &mut ModuleFigures,
    ) -> (Subject, Decision) {
        let is_meant = self.is_meant(question);
        let shadow = self.module.is_shadow && is_meant && !self.version.is_off;
        let which = match is_meant && !self.module.is_shadow && !self.version.is_off {
            true => Which::Version,
            false => Which::Base,
        };
        // Nobody but the activated version was there for these.
        let was_none = self.module.base.is_none() && (!is_meant || self.module.is_shadow);
        let other = shadow.then(|| subject.clone());
        let (subject, said) = match (was_none, self.has(which, question.hook)) {
            (true, _) => (subject, Ok(Verdict::Pass)),
            (false, false) => (subject, Ok(Verdict::Pass)),
            (false, true) => self.call(which, question, subject, turn, figures),
        };
        if let Some(other) = other.filter(|_| self.module.version.hooks.has(question.hook)) {
            let (_, new) = self.call(Which::Version, question, other, turn, figures);
            compare(question, &said, &new, figures);
        }
        self.follow(said, subject, question, turn.at, which, figures)
    }

    /// What follows from what was said.
    fn follow(
        &mut self,
        said: Result<Verdict, Failed>,
        subject: Subject,
        question: Question<'_>,
        turn: Mono,
        which: Which,
        figures: &mut ModuleFigures,
    ) -> (Subject, Decision) {
        let verdict = match said {
            Ok(verdict) => verdict,
            Err(failed) => return (subject, self.decision_of(failed.failure)),
        };
        figures.verdicts.count(verdict.name());
        match verdict {
            Verdict::Pass | Verdict::Noted => (subject, Decision::Goes),
            Verdict::Drop => (subject, Decision::Dropped),
            Verdict::Reject(why) => (subject, Decision::Rejected(why)),
            Verdict::Refuse(why) => (subject, Decision::Refused(why)),
            // No filter has such a verdict.
            Verdict::Match(_) => (subject, self.decision_of(Failure::Verdict)),
            Verdict::Replace(by) => match verdict::replaced(&subject, by) {
                Ok(subject) => (subject, Decision::Goes),
                Err(detail) => {
                    let failed = Failed { failure: Failure::Verdict, detail: detail.into() };
                    self.fail(which, &failed, question.now, turn, figures);
                    (subject, self.decision_of(Failure::Verdict))
                }
            },
        }
    }

    fn decision_of(&self, failure: Failure) -> Decision {
        match self.module.on_failure {
            OnFailure::Open => Decision::Goes,
            OnFailure::Closed => Decision::Failed(failure),
        }
    }

    fn is_meant(&self, question: Question<'_>) -> bool {
        let ModuleScope { domain, percent } = &self.module.scope;
        domain.as_deref().is_none_or(|domain| domain == question.domain)
            && bucket(question.account) % 100 < u16::from(*percent)
    }

    fn has(&self, which: Which, hook: ModuleHook) -> bool {
        match which {
            Which::Version => self.module.version.hooks.has(hook),
            // One that is gone and that fails closed is asked in vain.
            Which::Base => self.module.base.as_ref().unwrap_or(&self.module.version).hooks.has(hook),
        }
    }

    fn part(&mut self, which: Which) -> Option<(&mut ModuleVersion, &mut Health)> {
        match which {
            Which::Version => Some((&mut self.module.version, &mut self.version)),
            Which::Base => self.module.base.as_mut().map(|base| (base, &mut self.base)),
        }
    }

    fn call(
        &mut self,
        which: Which,
        question: Question<'_>,
        subject: Subject,
        turn: &mut TurnFuel,
        figures: &mut ModuleFigures,
    ) -> (Subject, Result<Verdict, Failed>) {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let seed = self.seed;
        let ready = match self.part(which) {
            Some((version, health)) => ready(version, health, question.hook, turn),
            None => Err(not_called(Failure::Off, "no version of it is on")),
        };
        if let Err(failed) = ready {
            self.fail(which, &failed, question.now, turn.at, figures);
            return (subject, Err(failed));
        }
        let call = Call { hook: question.hook, subject, now: question.now.unix, seed, fuel: CALL_FUEL };
        let (version, _) = self.part(which).expect("it is ready");
        let Done { subject, result, fuel, notes } = version.instance.call(call);
        turn.used += fuel;
        figures.fuel += fuel;
        figures.counts.iter_mut().zip(notes.counts).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        for line in notes.lines {
            figures.note(question.now.unix, line);
        }
        if let Err(failed) = &result {
            self.fail(which, failed, question.now, turn.at, figures);
        }
        (subject, result)
    }

    /// A version failed: it is made anew in a later turn, or turned off.
    fn fail(&mut self, which: Which, failed: &Failed, now: Now, turn: Mono, figures: &mut ModuleFigures) {
        figures.failures.count(failed.failure.name());
        if matches!(failed.failure, Failure::Turn | Failure::Off) {
            return;
        }
        figures.note(now.unix, format!("failed: {}: {}", failed.failure.name(), failed.detail));
        let Some((version, health)) = self.part(which) else { return };
        let hash = hex(&version.hash);
        health.broken = Some(turn);
        if health.failed(now.mono) {
            health.is_off = true;
            figures.note(
                now.unix,
                format!("version {hash} is off: it failed {FAILURES_MAX} times in 10 seconds"),
            );
            figures.standing = self.standing();
        }
    }
}

impl Health {
    /// Notes a failure; whether there are too many.
    fn failed(&mut self, now: Mono) -> bool {
        self.failed.rotate_left(1);
        self.failed[FAILURES_MAX - 1] = Some(now);
        self.failed[0].is_some_and(|first| now.since(first) < FAILED_MS)
    }
}

/// Makes a version ready for a call of a hook, or says why it is not.
fn ready(
    version: &mut ModuleVersion,
    health: &mut Health,
    hook: ModuleHook,
    turn: &mut TurnFuel,
) -> Result<(), Failed> {
    if health.is_off {
        return Err(not_called(Failure::Off, "it failed too often"));
    }
    match health.broken {
        Some(at) if at == turn.at => return Err(not_called(Failure::Off, "it failed in this turn")),
        Some(_) if !turn.has(START_FUEL + CALL_FUEL, hook) => {
            return Err(not_called(Failure::Turn, "too little fuel is left to start it"));
        }
        Some(_) => {
            let begun = version.instance.renew(START_FUEL);
            turn.used += begun.as_ref().copied().unwrap_or(START_FUEL);
            begun?;
            health.broken = None;
        }
        None if !turn.has(CALL_FUEL, hook) => {
            return Err(not_called(Failure::Turn, "modules have used up the fuel of this turn"));
        }
        None => {}
    }
    Ok(())
}

fn not_called(failure: Failure, detail: &str) -> Failed {
    Failed { failure, detail: detail.into() }
}

/// Compares what a version in shadow said with what was decided.
fn compare(
    question: Question<'_>,
    old: &Result<Verdict, Failed>,
    new: &Result<Verdict, Failed>,
    figures: &mut ModuleFigures,
) {
    let is_same = match (old, new) {
        (Ok(old), Ok(new)) => old == new,
        (Err(_), Err(_)) => true,
        _ => false,
    };
    if is_same {
        figures.same += 1;
        return;
    }
    let text = format!("{}: {} before, {} now", question.hook.name(), said(old), said(new));
    figures.differ(question.now.unix, text);
}

fn said(result: &Result<Verdict, Failed>) -> String {
    match result {
        Ok(Verdict::Reject(why)) => format!("reject {}", why.condition.as_str()),
        Ok(Verdict::Refuse(why)) => format!("reject {}", why.failure.as_str()),
        Ok(verdict) => verdict.name().to_owned(),
        Err(failed) => format!("failed ({})", failed.failure.name()),
    }
}

/// The beginning of a hash, as operators name it.
fn hex(hash: &ModuleHash) -> String {
    hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
