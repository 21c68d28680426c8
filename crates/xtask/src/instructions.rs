//! What a login and a delivery cost the core, what hostile input costs the reader, and how the cost of requests grows, in instructions counted by valgrind:
//! the same number every time, whatever else the machine does. More than the limit fails; much less asks for a lower limit.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// One thing that is counted.
struct Count {
    what: &'static str,
    /// The test of `crates/core/tests/counts` that does it.
    test: &'static str,
    /// The function within which instructions are counted.
    function: &'static str,
    /// How often the test does it.
    times: u64,
    /// The most one may cost, in the profile of the tests: some percent more than it does, since another processor may have
    /// another way to copy.
    max: u64,
}

const COUNTS: [Count; 3] = [
    Count {
        what: "a login",
        test: "a_login",
        function: "carillon_core::machine::ShardMachine::handle",
        times: 512,
        max: 325_000,
    },
    Count {
        what: "a PLAIN login, up to its success",
        test: "a_plain_login",
        function: "carillon_core::machine::ShardMachine::handle",
        times: 64,
        max: 90_000,
    },
    Count {
        what: "a delivery",
        test: "a_delivery",
        function: "carillon_core::machine::ShardMachine::walk",
        times: 8960,
        max: 2_700,
    },
];

/// The function within which hostile input is counted, in `crates/wire/tests/cost`.
const SPEND: &str = "cost::spend";
/// The test there that reads what clients send.
const COMMON: &str = "common";
/// No input may cost more than so many times what common input of its size costs.
const HOSTILE_MAX: f64 = 10.0;

/// Counts, and says what is above its limit. The tests are built with these `features` of the workspace (`--features …`).
pub(crate) fn check(features: &[&str]) -> Result<Vec<String>, String> {
    let mut findings = hostile_input(&program("cost", features)?)?;
    findings.extend(growth(&program("costs", features)?)?);
    let program = program("counts", features)?;
    for (count, counted) in
        COUNTS.iter().zip(each(&COUNTS, |count| counted(&program, count.test, count.function))?)
    {
        let cost = counted.collected / count.times;
        println!("instructions: {} costs {cost}, limit {}", count.what, count.max);
        if cost > count.max {
            findings.push(format!(
                "{} costs {cost} instructions, {} is the limit: find out why, or raise it in xtask/src/instructions.rs \
                 and say why",
                count.what, count.max
            ));
        }
    }
    Ok(findings)
}

/// What each text of the reader's corpus costs per byte, beside what is common.
fn hostile_input(program: &str) -> Result<Vec<String>, String> {
    let per_byte = |test: &str| -> Result<f64, String> {
        let counted = counted(program, test, SPEND)?;
        let bytes = counted.output.lines().find_map(|line| line.split_once("bytes: ")?.1.trim().parse().ok());
        let bytes: u64 = bytes.ok_or_else(|| format!("{test} does not say how many bytes it reads"))?;
        Ok(counted.collected as f64 / bytes as f64)
    };
    let common = per_byte(COMMON)?;
    println!("instructions: common input costs {common:.0} per byte");
    let mut findings = Vec::new();
    let mut tests = tests(program)?;
    tests.retain(|test| test != COMMON);
    for (test, per_byte) in tests.iter().zip(each(&tests, |test: &String| per_byte(test))?) {
        let times = per_byte / common;
        println!("instructions: hostile input, {test}: {times:.1} times common input, limit {HOSTILE_MAX}");
        if times > HOSTILE_MAX {
            findings.push(format!(
                "hostile input ({test} in crates/wire/tests/cost) costs {times:.1} times what common input of its size \
                 does, {HOSTILE_MAX} is the limit"
            ));
        }
    }
    Ok(findings)
}

/// What requests cost when there is more of them, in `crates/core/tests/costs`.
fn growth(program: &str) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    let tests = tests(program)?;
    let both = |test: &String| -> Result<(Counted, Counted), String> {
        Ok((counted(program, test, "costs::less")?, counted(program, test, "costs::more")?))
    };
    for (test, (less, more)) in tests.iter().zip(each(&tests, both)?) {
        let limit = less.output.lines().find_map(|line| line.split_once("limit: ")?.1.trim().parse().ok());
        let limit: f64 = limit.ok_or_else(|| format!("{test} does not say what its limit is"))?;
        let times = more.collected as f64 / less.collected as f64;
        println!("instructions: growth, {test}: {times:.1} times, limit {limit}");
        if times > limit {
            findings.push(format!(
                "{test} in crates/core/tests/costs costs {times:.1} times as much, {limit} is the limit: something goes through \
                 one list for each entry of another"
            ));
        }
    }
    Ok(findings)
}

/// What is found out of each, in their order; one at a time per processor, as valgrind runs on one alone.
fn each<T: Sync, R: Send>(
    all: &[T],
    find: impl Fn(&T) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some((at, one)) = all.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed)) {
            found.push((at, find(one)));
        }
        found
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut found = thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("it does not panic")).collect::<Vec<_>>()
    });
    found.sort_unstable_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, found)| found).collect()
}

/// The tests of a program.
fn tests(program: &str) -> Result<Vec<String>, String> {
    let listed = Command::new(program).arg("--list").output().map_err(|e| format!("{program}: {e}"))?;
    let listed = String::from_utf8_lossy(&listed.stdout);
    Ok(listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Builds tests, among those of the whole workspace: a package alone has other features, and would be compiled again with all
/// that it depends on. Gives the path of their program.
fn program(test: &str, features: &[&str]) -> Result<String, String> {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--workspace", "--test", test, "--no-run"])
        .args(features)
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    // `Executable tests/counts/main.rs (target/debug/deps/counts-…)`
    let path = told.lines().filter_map(|line| line.trim().strip_prefix("Executable")).find_map(|line| {
        let (_, path) = line.split_once('(')?;
        path.strip_suffix(')')
    });
    path.map(str::to_owned).ok_or_else(|| format!("the tests were not built:\n{told}"))
}

/// What valgrind said of a test.
struct Counted {
    collected: u64,
    /// What the test wrote.
    output: String,
}

fn counted(program: &str, test: &str, function: &str) -> Result<Counted, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect={function}"))
        .args([program, test, "--exact", "--nocapture", "--test-threads=1"])
        .output()
        .map_err(|error| format!("valgrind (Debian's package valgrind): {error}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    let collected = told.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    match collected {
        Some(collected) if output.status.success() && collected > 0 => {
            Ok(Counted { collected, output: String::from_utf8_lossy(&output.stdout).into_owned() })
        }
        _ => Err(format!("{test} was not counted:\n{told}")),
    }
}
