//! Random programs against a simulated node: `carillon_core::sim::program`.
//!
//! - `xtask sim --seed N --steps M [--mix NAME] [--trace]` runs one program; the same numbers run the same program, here and
//!   anywhere. `--trace` prints everything that happened.
//! - `xtask sim [--seconds S]` runs one program of each mix by a fixed seed, then others by new seeds, for so long.

use carillon_core::sim::program::{Finished, Mix, run};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::time::{Duration, Instant};

/// Steps of a program, where nobody says how many.
const STEPS: u64 = 400;
/// How long new seeds are tried, where nobody says how long.
const SECONDS: u64 = 10;
/// The fixed seeds: what they find, everybody finds.
const FIXED: std::ops::Range<u64> = 0..20;

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    seed: Option<u64>,
    steps: Option<u64>,
    mix: Option<Mix>,
    seconds: Option<u64>,
    trace: bool,
}

/// Runs what the arguments say; what did not hold.
///
/// # Errors
/// The arguments cannot be understood.
pub(crate) fn check(args: &[&str]) -> Result<Vec<String>, String> {
    let wanted = read(args)?;
    let steps = wanted.steps.unwrap_or(STEPS);
    if let Some(seed) = wanted.seed {
        let mix = wanted.mix.unwrap_or(Mix::of(seed));
        let findings: Vec<String> = play(seed, mix, steps, wanted.trace).err().into_iter().collect();
        return Ok(findings);
    }
    let (began, until) = (Instant::now(), Duration::from_secs(wanted.seconds.unwrap_or(SECONDS)));
    // From the system's randomness: other seeds each time.
    let mut seed = RandomState::new().hash_one(0);
    let mut programs = 0;
    let fixed = FIXED.map(|seed| (seed, Mix::of(seed)));
    let mut fixed = fixed.chain(Mix::ALL.map(|mix| (FIXED.end, mix)));
    loop {
        let next = fixed.next();
        if next.is_none() && began.elapsed() >= until {
            break;
        }
        let (seed, mix) = next.unwrap_or_else(|| {
            seed = seed.wrapping_add(1);
            (seed, wanted.mix.unwrap_or(Mix::of(seed)))
        });
        programs += 1;
        if let Err(finding) = run_one(seed, mix, steps) {
            return Ok(vec![finding]);
        }
    }
    println!("sim: {programs} programs of {steps} steps in {:.0?}, the last by seed {seed}", began.elapsed());
    Ok(Vec::new())
}

/// Runs a program and says how it went; what did not hold.
fn play(seed: u64, mix: Mix, steps: u64, trace: bool) -> Result<(), String> {
    let mut print = |text: &str| {
        // Who reads the trace may have enough of it.
        let _ = std::io::stdout().write_all(text.as_bytes());
    };
    let told: Option<&mut dyn FnMut(&str)> = if trace { Some(&mut print) } else { None };
    let Finished { hash, lines } =
        run(seed, mix, steps, told).map_err(|failure| found(seed, mix, steps, &failure))?;
    println!("sim: seed {seed}, {mix:?}, {steps} steps, {lines} lines, hash {hash:016x}");
    Ok(())
}

fn run_one(seed: u64, mix: Mix, steps: u64) -> Result<Finished, String> {
    run(seed, mix, steps, None).map_err(|failure| found(seed, mix, steps, &failure))
}

fn found(seed: u64, mix: Mix, steps: u64, failure: &carillon_core::sim::program::Failure) -> String {
    let at = failure.step.map_or("in the end".to_owned(), |step| format!("after step {step}"));
    format!(
        "{at}: {}\nreplay: cargo run -p xtask -- sim --seed {seed} --steps {steps} --mix {mix:?} --trace",
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
            "--steps" => wanted.steps = number()?,
            "--seconds" => wanted.seconds = number()?,
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
        let expected =
            Wanted { seed: Some(7), steps: Some(10), mix: Some(Mix::Crashing), seconds: None, trace: true };
        assert_eq!(wanted, Ok(expected));
        assert!(read(&["--seed"]).is_err() && read(&["--seed", "x"]).is_err() && read(&["-v"]).is_err());
    }
}
