//! `carillon autoscale simulate`: replays demands against policies.

mod demand;
mod page;
mod targets;

use self::demand::{Demand, DemandArgs};
use self::targets::Targets;
use super::super::failure::Failure;
use super::super::output::{Column, Output};
use super::time;
use carillon_scale::simulate::{self, Outcome, Target};
use carillon_scale::{Policy, Settings, settings};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `carillon autoscale simulate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    demand: DemandArgs,
    /// How full a unit is to be, in percent: 70, several as 50,70, or a range in steps of ten as 30..80, of five as 30..80/5 [default:
    /// 30..80, or that of the file]
    #[arg(long, value_name = "PERCENT")]
    target: Option<Targets>,
    /// By what is decided: consumed-5, consumed-2, consumed-1, requests-1, demand, or all; may be given again [default: all, or that of
    /// the file]
    #[arg(long, value_name = "POLICY", value_parser = policies)]
    policy: Vec<Policies>,
    /// Decide as the [policy] of this settings file of `autoscale run` does, but without what goes by the clock: schedule, season, freeze
    #[arg(long = "config", value_name = "FILE", conflicts_with_all = ["min", "max", "interval", "effect", "scale_down"])]
    file: Option<PathBuf>,
    /// Have the policies of the experiment take units away, too; `demand` always does
    #[arg(long)]
    scale_down: bool,
    #[command(flatten)]
    capacity: Capacity,
    /// Print JSON: a list with an object per demand, policy and target
    #[arg(long)]
    json: bool,
    /// Write a page with plots to this file
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
    /// Write each plot as a picture into this folder
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

/// What is scaled.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What is scaled")]
struct Capacity {
    /// Units at the start [default: 50, or the minimum of the file]
    #[arg(long, value_name = "UNITS")]
    start: Option<u32>,
    /// The fewest units
    #[arg(long, value_name = "UNITS", default_value_t = 1)]
    min: u32,
    /// The most units
    #[arg(long, value_name = "UNITS", default_value_t = 1000)]
    max: u32,
    /// What one unit carries per second
    #[arg(long, value_name = "RATE", default_value_t = 1.0)]
    per_unit: f64,
    /// For how long what is not used can be saved for a burst
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = time)]
    burst: Duration,
    /// How long an interval of measurement is
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = time)]
    interval: Duration,
    /// How long after it began an interval of what was consumed is known
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = time)]
    seen_consumed: Duration,
    /// How long after it began an interval of what was asked for is known
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = time)]
    seen_demand: Duration,
    /// How long it takes until a change is in force
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = time)]
    effect: Duration,
    /// How often a client repeats what was refused: each attempt is a throttle event
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=100))]
    retries: u32,
}

/// Units that the experiment had at the start.
const START: u32 = 50;

/// One policy, or all.
#[derive(Clone, Debug)]
struct Policies(Vec<Policy>);

fn policies(name: &str) -> Result<Policies, String> {
    match name {
        "all" => Ok(Policies(Policy::ALL.to_vec())),
        name => name.parse().map(|policy| Policies(vec![policy])).map_err(|error| format!("{error}, all")),
    }
}

/// What came of one demand under one policy at one target.
struct Row {
    shape: String,
    policy: Policy,
    target: u32,
    outcome: Outcome,
}

const COLUMNS: &[Column] = &[
    ("SHAPE", "shape"),
    ("TARGET", "target"),
    ("POLICY", "policy"),
    ("SUCCESS %", "success_percent"),
    ("WRITES LOST", "writes_lost"),
    ("THROTTLE EVENTS", "throttle_events"),
    ("UNIT-HOURS", "unit_hours"),
    ("CHANGES", "changes"),
];

/// Does what is said.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let demands = args.demand.read()?;
    let rows = args.rows(&demands)?;
    if let Some(file) = &args.html {
        write(file, &page::html(&rows, args.capacity.per_unit))?;
    }
    if let Some(folder) = &args.svg {
        for (name, picture) in page::pictures(&rows, args.capacity.per_unit) {
            write(&folder.join(name), &picture)?;
        }
    }
    let values: Vec<Value> = rows.iter().map(|row| row.value(args.capacity.per_unit)).collect();
    Output::new(out, args.json).rows(&values, COLUMNS)
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))
}

impl Args {
    fn rows(&self, demands: &[Demand]) -> Result<Vec<Row>, Failure> {
        let per_unit = self.capacity.per_unit;
        if !per_unit.is_finite() || per_unit <= 0.0 {
            return Err(Failure::Usage("--per-unit: expected more than 0".to_owned()));
        }
        let file = self.file.as_deref().map(policy_of).transpose()?;
        let policies: Vec<Policy> = match (&self.policy[..], &file) {
            ([], Some(file)) => vec![file.policy],
            ([], None) => Policy::ALL.to_vec(),
            (given, _) => given.iter().flat_map(|policies| policies.0.iter().copied()).collect(),
        };
        let targets: Vec<f64> = match (&self.target, &file) {
            (None, Some(file)) => vec![file.target],
            (None, None) => Targets::of_the_experiment().shares(),
            (Some(targets), _) => targets.shares(),
        };
        let capacity = self.capacity.target(file.as_ref());
        let mut rows = Vec::new();
        for demand in demands {
            let units: Vec<f64> = demand.rates.iter().map(|rate| rate / per_unit).collect();
            for share in &targets {
                for policy in &policies {
                    let settings = self.settings(file.as_ref(), *policy, *share);
                    let outcome = simulate::run(&settings, &capacity, &units);
                    let outcome = outcome.map_err(|wrong| Failure::Usage(option(&wrong)))?;
                    let target = (share * 100.0).round() as u32;
                    rows.push(Row { shape: demand.name.clone(), policy: *policy, target, outcome });
                }
            }
        }
        Ok(rows)
    }

    fn settings(&self, file: Option<&Settings>, policy: Policy, target: f64) -> Settings {
        let Capacity { min, max, interval, effect, seen_consumed, seen_demand, .. } = self.capacity;
        let seen = seen_consumed.max(seen_demand);
        if let Some(file) = file {
            let stale_after = file.stale_after.max(seen * 2);
            return Settings { policy, target, stale_after, ..file.clone() };
        }
        let goes_down = self.scale_down || policy == Policy::Demand;
        Settings {
            policy,
            target,
            min,
            max,
            interval,
            effect,
            down: goes_down.then(settings::Down::default),
            stale_after: interval.max(seen) * 2,
            ..Settings::default()
        }
    }
}

/// The policy of a settings file, without what goes by the clock, which a simulation does not have.
fn policy_of(file: &Path) -> Result<Settings, Failure> {
    let wrong = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
    let settings = super::run::policy(file).map_err(Failure::Usage)?;
    settings.check().map_err(|why| wrong(format!("policy.{why}")))?;
    Ok(Settings { schedule: Vec::new(), season_days: 0, freeze: Vec::new(), ..settings })
}

/// The option that a wrong setting came from.
fn option(wrong: &settings::Wrong) -> String {
    let name = match wrong.field {
        "seen" => "seen-demand and --seen-consumed".to_owned(),
        field => field.replace('_', "-"),
    };
    format!("--{name}: {}", wrong.why)
}

impl Capacity {
    fn target(&self, file: Option<&Settings>) -> Target {
        let Capacity { start, burst, seen_consumed, seen_demand, retries, .. } = *self;
        let start = start.unwrap_or_else(|| file.map_or(START, |file| file.min.max(1)));
        Target { start, burst, seen_consumed, seen_demand, retries, ..Target::default() }
    }
}

impl Row {
    fn value(&self, per_unit: f64) -> Value {
        let Outcome { success_percent, lost, throttle_events, unit_hours, changes, .. } = self.outcome;
        let rounded = |value: f64, digits: i32| (value * 10_f64.powi(digits)).round() / 10_f64.powi(digits);
        json!({
            "shape": self.shape,
            "policy": self.policy.name(),
            "target": self.target,
            "success_percent": rounded(success_percent, 3),
            "writes_lost": (lost * per_unit).round() as u64,
            "throttle_events": (throttle_events * per_unit).round() as u64,
            "unit_hours": rounded(unit_hours, 1),
            "changes": changes,
        })
    }
}

#[cfg(test)]
mod tests;
