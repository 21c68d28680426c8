//! What a login and a delivery cost the core, in instructions, counted by valgrind: the same number every time, whatever
//! else the machine does. More than the limit fails; much less asks for a lower limit.

use std::process::Command;

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

const COUNTS: [Count; 2] = [
    Count {
        what: "a login",
        test: "a_login",
        function: "carillon_core::node::shard::Shard::handle",
        times: 512,
        max: 360_000,
    },
    Count {
        what: "a delivery",
        test: "a_delivery",
        function: "carillon_core::node::shard::Shard::walk",
        times: 8960,
        max: 2_700,
    },
];

/// Counts, and says what is above its limit.
pub fn check() -> Result<Vec<String>, String> {
    let program = program()?;
    let mut findings = Vec::new();
    for count in &COUNTS {
        let each = counted(&program, count)? / count.times;
        println!("instructions: {} costs {each}, limit {}", count.what, count.max);
        if each > count.max {
            findings.push(format!(
                "{} costs {each} instructions, {} is the limit: find out why, or raise it in xtask/src/instructions.rs \
                 and say why",
                count.what, count.max
            ));
        }
    }
    Ok(findings)
}

/// Builds the tests; gives the path of their program.
fn program() -> Result<String, String> {
    let output = Command::new(env!("CARGO"))
        .args(["test", "-p", "carillon-core", "--test", "counts", "--no-run"])
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

fn counted(program: &str, count: &Count) -> Result<u64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect={}", count.function))
        .args([program, count.test, "--exact", "--test-threads=1"])
        .output()
        .map_err(|error| format!("valgrind (Debian's package valgrind): {error}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    let collected = told.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    match collected {
        Some(collected) if output.status.success() && collected > 0 => Ok(collected),
        _ => Err(format!("{} was not counted:\n{told}", count.what)),
    }
}
