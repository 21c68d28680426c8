//! Random programs against a simulated node: `carillon_core::sim::program`.
//!
//! - `xtask sim --seed N --steps M [--mix NAME] [--nodes N] [--trace]` runs one program; the same numbers run the same program, here and
//!   anywhere. `--trace` prints everything that happened.
//! - `xtask sim [--seconds S] [--mix NAME]` runs the programs of fixed seeds, one of each mix, and then others by new seeds for so long, on
//!   all processors. `--programs COUNT` runs that many others instead, and `--from N` takes their seeds from N on: the two together
//!   run the same programs everywhere.

mod seeds;

use carillon_core::sim::program::{Failure, Finished, History, Mix, run};
use seeds::{FIXED, Fixed};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Steps of a program, where nobody says how many.
const STEPS: u64 = 400;
/// A program takes some milliseconds.
const HANGS_AFTER: Duration = Duration::from_secs(60);
/// How long new seeds are tried, where nobody says how long.
const SECONDS: u64 = 10;

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    seed: Option<u64>,
    from: Option<u64>,
    steps: Option<u64>,
    mix: Option<Mix>,
    nodes: Option<u16>,
    seconds: Option<u64>,
    programs: Option<u64>,
    trace: bool,
}

/// Runs what the arguments say; what did not hold.
///
/// # Errors
/// The arguments cannot be understood.
pub(crate) fn check(args: &[&str]) -> Result<Vec<String>, String> {
    let wanted = read(args)?;
    if let Some(seed) = wanted.seed {
        let (steps, mix) = (wanted.steps.unwrap_or(STEPS), wanted.mix.unwrap_or(Mix::of(seed)));
        let program = Fixed { seed, steps, mix, nodes: wanted.nodes.unwrap_or(1) };
        return Ok(play(program, wanted.trace).err().into_iter().collect());
    }
    Ok(play_all(&wanted))
}

/// What was run, in whole.
#[derive(Default)]
struct Sum {
    programs: u64,
    steps: u64,
    accepted: u64,
    delivered: u64,
    failure: Option<String>,
}

impl Sum {
    fn add(&mut self, program: Fixed, done: Result<Finished, Failure>) {
        self.programs += 1;
        self.steps += program.steps;
        match done {
            Ok(Finished { accepted, delivered, .. }) => {
                self.accepted += accepted;
                self.delivered += delivered;
            }
            Err(failure) => self.failure = self.failure.take().or(Some(found(program, &failure))),
        }
    }
}

/// Runs the fixed seeds, then new ones until the time is over or something does not hold.
fn play_all(wanted: &Wanted) -> Vec<String> {
    let (began, until) = (Instant::now(), Duration::from_secs(wanted.seconds.unwrap_or(SECONDS)));
    // From the system's randomness: other seeds each time.
    let first = wanted.from.unwrap_or_else(|| RandomState::new().hash_one(0) >> 16);
    let steps = wanted.steps.unwrap_or(STEPS);
    let is_wanted = |program: &Fixed| wanted.mix.is_none_or(|mix| mix == program.mix);
    let each_mix = |nodes| Mix::ALL.map(|mix| Fixed { seed: 20, steps: STEPS, mix, nodes });
    let fixed =
        FIXED.iter().copied().chain(each_mix(1)).chain(each_mix(2)).chain(each_mix(3)).filter(is_wanted);
    let fixed: Vec<Fixed> = fixed.collect();
    let (taken, sum) = (AtomicU64::new(0), Mutex::new(Sum::default()));
    let next = || {
        let number = taken.fetch_add(1, Ordering::Relaxed);
        if let Some(program) = usize::try_from(number).ok().and_then(|number| fixed.get(number)) {
            return Some(*program);
        }
        let number = number - fixed.len() as u64;
        let seed = first.wrapping_add(number);
        let nodes = wanted.nodes.unwrap_or(1 + (seed / Mix::ALL.len() as u64 % 3) as u16);
        let mix = wanted.mix.unwrap_or(Mix::of(seed));
        let is_next = wanted.programs.map_or_else(|| began.elapsed() < until, |count| number < count);
        is_next.then_some(Fixed { seed, steps, mix, nodes })
    };
    let running = Mutex::new(Vec::new());
    let work = || {
        while let Some(program) = next() {
            let done = watched(program, &running, || run_one(program));
            let mut sum = sum.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            sum.add(program, done);
            if sum.failure.is_some() {
                break;
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| end_what_hangs(&running, &is_over));
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|worker| worker.join().expect("a panic of a program is caught"));
        is_over.store(true, Ordering::Relaxed);
        watch.thread().unpark();
    });
    let Sum { programs, steps, accepted, delivered, failure } =
        sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    println!(
        "sim: {programs} programs, {steps} steps in {:.0?}, seeds from {first}: {accepted} accepted, {delivered} of these \
         delivered, the others waiting or ended for a reason",
        began.elapsed()
    );
    failure.into_iter().collect()
}

/// Programs that run, and since when.
type Running = Mutex<Vec<(Fixed, Instant)>>;

/// Runs a program, and has it known meanwhile.
fn watched<T>(program: Fixed, running: &Running, run: impl FnOnce() -> T) -> T {
    let lock = || running.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let began = Instant::now();
    lock().push((program, began));
    let done = run();
    lock().retain(|(_, at)| *at != began);
    done
}

/// Ends the process if a program does not come to an end: two shards tell each other something for ever.
fn end_what_hangs(running: &Running, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        std::thread::park_timeout(Duration::from_secs(1));
        let running = running.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((program, _)) = running.iter().find(|(_, began)| began.elapsed() > HANGS_AFTER) {
            let what = format!("it does not end within {HANGS_AFTER:?}");
            eprintln!("xtask: {}", found(*program, &Failure { step: None, what }));
            std::process::exit(1);
        }
    }
}

/// Runs a program; one that panics has failed, too.
fn run_one(program: Fixed) -> Result<Finished, Failure> {
    let Fixed { seed, steps, mix, nodes } = program;
    let done = std::panic::catch_unwind(|| run(seed, mix, nodes, steps, History::Nothing));
    done.unwrap_or_else(|_| Err(Failure { step: None, what: "it panicked".to_owned() }))
}

/// Runs a program and says how it went; what did not hold.
fn play(program: Fixed, trace: bool) -> Result<(), String> {
    let mut print = |text: &str| {
        // Who reads the trace may have enough of it.
        let _ = std::io::stdout().write_all(text.as_bytes());
    };
    let Fixed { seed, steps, mix, nodes } = program;
    let history = if trace { History::Text(&mut print) } else { History::Hash };
    let done = run(seed, mix, nodes, steps, history).map_err(|failure| found(program, &failure))?;
    let Finished { hash, lines, accepted, delivered } = done;
    println!(
        "sim: seed {seed}, {mix:?}, {nodes} nodes, {steps} steps: {accepted} accepted, {delivered} of these delivered; {lines} lines, hash {hash:016x}"
    );
    Ok(())
}

fn found(program: Fixed, failure: &Failure) -> String {
    let Fixed { seed, steps, mix, nodes } = program;
    let at = failure.step.map_or("in the end".to_owned(), |step| format!("after step {step}"));
    format!(
        "{at}: {}\nreplay: cargo run -p xtask -- sim --seed {seed} --steps {steps} --mix {mix:?} --nodes {nodes} --trace",
        failure.what
    )
}

fn read(args: &[&str]) -> Result<Wanted, String> {
    let mut wanted = Wanted::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut number = || -> Result<Option<u64>, String> {
            let value = args.next().ok_or_else(|| format!("{arg} NUMBER"))?;
            value.parse().map(Some).map_err(|_| format!("{arg} NUMBER, not {value}"))
        };
        match *arg {
            "--seed" => wanted.seed = number()?,
            "--from" => wanted.from = number()?,
            "--steps" => wanted.steps = number()?,
            "--nodes" => {
                let nodes = number()?.and_then(|nodes| u16::try_from(nodes).ok()).filter(|nodes| *nodes > 0);
                wanted.nodes = Some(nodes.ok_or("--nodes NUMBER, at least 1")?);
            }
            "--seconds" => wanted.seconds = number()?,
            "--programs" => wanted.programs = number()?,
            "--trace" => wanted.trace = true,
            "--mix" => {
                let name = args.next().copied().unwrap_or_default();
                let mix = Mix::ALL.into_iter().find(|mix| format!("{mix:?}").eq_ignore_ascii_case(name));
                wanted.mix = Some(mix.ok_or_else(|| format!("--mix {:?}", Mix::ALL))?);
            }
            other => return Err(format!("sim knows no {other}")),
        }
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read() {
        let wanted = read(&["--seed", "7", "--steps", "10", "--mix", "crashing", "--trace"]);
        let expected = Wanted {
            seed: Some(7),
            steps: Some(10),
            mix: Some(Mix::Crashing),
            trace: true,
            ..Wanted::default()
        };
        assert_eq!(wanted, Ok(expected));
        assert!(
            read(&["--seed"]).is_err()
                && read(&["--seed", "x"]).is_err()
                && read(&["--nodes", "0"]).is_err()
                && read(&["-v"]).is_err()
        );
    }
}
