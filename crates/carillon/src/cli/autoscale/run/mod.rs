//! `carillon autoscale run`: measures, decides and puts into force, one interval after another.

mod driver;
mod end;
mod exposition;
mod file;
mod lease;
mod log;
mod policy;
mod source;
mod span;
#[cfg(any(test, not(all(feature = "aws", feature = "kubernetes"))))]
mod unbuilt;

use self::driver::Driver;
use self::end::End;
use self::lease::Lease;
use self::log::Log;
use self::source::Source;
use super::super::failure::Failure;
use super::event::{Event, Outcome};
use carillon_scale::{Action, Decision, Scaler};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Arguments of `carillon autoscale run`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What is scaled, by what and how (TOML)
    #[arg(long = "config", value_name = "FILE")]
    file: PathBuf,
    /// Put decisions into force; without it this is a dry run, which only says what it would do
    #[arg(long)]
    apply: bool,
    /// Only say what would be done; this is what it does without --apply, too
    #[arg(long, conflicts_with = "apply")]
    dry_run: bool,
    /// End after so many decisions
    #[arg(long, value_name = "N")]
    decisions: Option<u64>,
}

/// A scaler with what it measures and commands.
struct Loop {
    scaler: Scaler,
    source: Box<dyn Source>,
    driver: Box<dyn Driver>,
    log: Log,
    /// Without one, the decision log alone sees to it that one scaler is active.
    lease: Option<Lease>,
    is_dry: bool,
}

/// How the scaler with this settings file decides.
///
/// # Errors
/// It cannot be read, or says something that is no setting.
pub(super) fn policy(file: &std::path::Path) -> Result<carillon_scale::Settings, String> {
    file::policy(file)
}

/// Does what is said.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let settings = file::read(&args.file).map_err(Failure::Usage)?;
    let at = |why: String| Failure::Usage(format!("{}: {why}", args.file.display()));
    let mut scaler = Scaler::new(settings.policy.settings().map_err(at)?)
        .map_err(|wrong| at(format!("policy.{wrong}")))?;
    let mut log = Log::open(&settings.log, settings.log_bytes_max, &mut scaler).map_err(Failure::Usage)?;
    let source = source::open(settings.source).map_err(at)?;
    let mut driver = driver::open(settings.driver, scaler.settings().min, log.last_units()).map_err(at)?;
    let (left, decided) = log.left();
    driver.left(left, decided);
    let interval = scaler.settings().interval;
    let lease =
        settings.lease.map(|lease| Lease::new(lease, &settings.log, interval)).transpose().map_err(at)?;
    let end = End::listen()?;
    let mut scaling = Loop { scaler, source, driver, log, lease, is_dry: !args.apply };
    if scaling.is_dry {
        writeln!(out, "dry run: nothing is changed; with --apply it is")?;
    } else if scaling.lease.is_none() {
        writeln!(out, "there is no [lease]: a scaler on another machine would act, too")?;
    }
    let mut said = String::new();
    for number in 1.. {
        let event = scaling.turn(now());
        // The same again says nothing new; the log has it all.
        if event.action != "hold" || event.reason != said || !event.notes.is_empty() {
            writeln!(out, "{}", event.sentence())?;
            out.flush()?;
        }
        said = event.reason;
        if args.decisions.is_some_and(|decisions| number >= decisions) {
            break;
        }
        if end.within(until_next(now(), interval)) {
            writeln!(out, "told to end")?;
            break;
        }
    }
    for edge in scaling.driver.leaving() {
        writeln!(out, "{edge} is being taken away: the next scaler with this decision log goes on with it")?;
    }
    scaling.lease.iter_mut().for_each(Lease::release);
    Ok(())
}

impl Loop {
    /// One interval: measures, decides, puts into force, and writes down all of it.
    fn turn(&mut self, now: Duration) -> Event {
        let mut event = Event::new(now, self.scaler.settings());
        let granted = self.driver.granted(now);
        event.notes = self.driver.notes();
        let reading = self.source.read(now, &self.driver.edges());
        let observation = reading.map(|reading| {
            event.measures = reading.measures;
            // Some may be known from the log.
            let earlier = reading.earlier.into_iter().filter(|one| self.scaler.learn(*one).is_ok());
            event.told_late(&earlier.collect::<Vec<_>>());
            event.observed(&reading.observation);
            reading.observation
        });
        event.floored(self.scaler.floor(now));
        match granted {
            Ok(granted) => {
                event.granted(granted);
                let decision = self.scaler.observe(now, observation, granted);
                event.decided(&decision);
                // Taken anew each time, whether or not there is something to do: whoever waits is to know that this one lives.
                let leased =
                    if self.is_dry { Ok(()) } else { self.lease.as_mut().map_or(Ok(()), Lease::take) };
                event.outcome = match leased {
                    Err(why) => {
                        self.driver.stand_by();
                        Outcome::Refused(why)
                    }
                    Ok(()) => self.act(&decision),
                };
                event.in_force = self.driver.in_force().or(event.in_force);
            }
            Err(why) => {
                // What was measured is not lost for the next decision.
                let _ = observation.and_then(|observation| self.scaler.learn(observation));
                (event.reason, event.why) =
                    ("driver-away".to_owned(), format!("the driver does not say what there is: {why}"));
            }
        }
        event.leaving = self.driver.leaving();
        self.log.note(&event);
        let recent = self.log.recent();
        if let Some(Err(why)) = self.lease.as_mut().map(|lease| lease.say(&event, recent)) {
            event.notes.push(why);
        }
        if let Err(why) = self.log.write(&event) {
            event.notes.push(why);
        }
        event
    }

    fn act(&mut self, decision: &Decision) -> Outcome {
        if !self.is_dry {
            self.driver.take_up();
            if decision.wanted.is_some() {
                self.driver.keep(decision.units);
            }
        }
        match decision.action {
            Action::Hold => Outcome::Nothing,
            Action::Up | Action::Down if self.is_dry => Outcome::DryRun,
            Action::Up | Action::Down => {
                let mut renew = || self.lease.as_mut().map_or(Ok(()), Lease::renew);
                match self.driver.scale(decision.units, &mut renew) {
                    Ok(()) => Outcome::Done,
                    Err(why) => Outcome::Refused(why),
                }
            }
        }
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Intervals begin at multiples of their length, so that those of two scalers, or of one before and after a restart, are the same.
fn until_next(now: Duration, interval: Duration) -> Duration {
    let past = now.as_nanos() % interval.as_nanos().max(1);
    interval.saturating_sub(Duration::from_nanos(u64::try_from(past).unwrap_or_default()))
}
