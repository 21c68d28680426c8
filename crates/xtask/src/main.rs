//! Chores of the repository, in Rust rather than shell.
//!
//! - `cargo run -p xtask -- tidy`: the rules of the code that neither the compiler nor clippy checks ([`tidy`]).
//! - `cargo run -p xtask -- coverage`: prints `docs/coverage.md`, made of what the code declares ([`coverage`]).
//! - `cargo run -p xtask -- coverage --check`: fails when the committed file says something else.
//! - `cargo run -p xtask -- layers`: draws the modules of `core` as they are ([`tidy`]).
//! - `cargo run -p xtask -- instructions [--features …]`: what a login and a delivery cost, counted by valgrind ([`instructions`]).
//! - `cargo run -p xtask -- licences`: where dependencies come from and under which licences ([`licences`]).
//! - `cargo run -p xtask -- purity [--features …]`: that the compiled `core` and `wire` call nothing that does I/O or asks a clock ([`purity`]).
//! - `cargo run -p xtask -- sim`: random programs against a simulated node ([`sim`]).
//! - `cargo run -p xtask -- unified`: that no dependency is compiled once for the binary and again for the tests ([`unified`]).
//!
//! `--features` are those that everything else was built with: with others the core would be compiled once more.

mod coverage;
mod instructions;
mod licences;
mod purity;
mod sim;
mod tidy;
mod tree;
mod unified;

use std::process::ExitCode;
use tree::Tree;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["tidy"] => run_tidy(),
        ["coverage"] => {
            print!("{}", coverage::document());
            ExitCode::SUCCESS
        }
        ["coverage", "--check"] => check_coverage(),
        ["layers"] => match Tree::read(&tree::root()) {
            Ok(tree) => {
                print!("{}", tidy::layers::drawing(&tree));
                ExitCode::SUCCESS
            }
            Err(error) => failed(&format!("the tree cannot be read: {error}")),
        },
        ["instructions", features @ ..] => {
            report(instructions::check(features), "instructions: within their limits")
        }
        ["licences"] => report(
            licences::check(),
            "licences: every dependency is from crates.io, under a licence of deny.toml",
        ),
        ["purity", features @ ..] => {
            report(purity::check(features), "purity: core and wire do no I/O and ask no clock")
        }
        ["sim", args @ ..] => report(sim::check(args), "sim: nothing is wrong"),
        ["unified"] => report(unified::check(), "unified: the binary and the tests share their dependencies"),
        _ => {
            eprintln!(
                "usage: cargo run -p xtask -- tidy | coverage [--check] | layers | instructions | licences | purity | sim | unified"
            );
            ExitCode::from(2)
        }
    }
}

fn run_tidy() -> ExitCode {
    let tree = match Tree::read(&tree::root()) {
        Ok(tree) => tree,
        Err(error) => return failed(&format!("the tree cannot be read: {error}")),
    };
    let findings = tidy::check(&tree);
    for finding in &findings {
        eprintln!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy: {} files, nothing to say", tree.len());
        return ExitCode::SUCCESS;
    }
    failed(&format!("{} findings in {} files", findings.len(), tree.len()))
}

fn check_coverage() -> ExitCode {
    let path = tree::root().join("docs/coverage.md");
    match std::fs::read_to_string(&path) {
        Ok(committed) if committed == coverage::document() => {
            println!("coverage: docs/coverage.md is up to date");
            ExitCode::SUCCESS
        }
        Ok(_) => failed("docs/coverage.md is stale; `cargo run -p xtask -- coverage > docs/coverage.md`"),
        Err(error) => failed(&format!("{}: {error}", path.display())),
    }
}

fn report(findings: Result<Vec<String>, String>, well: &str) -> ExitCode {
    match findings {
        Ok(findings) if findings.is_empty() => {
            println!("{well}");
            ExitCode::SUCCESS
        }
        Ok(findings) => failed(&findings.join("\n")),
        Err(error) => failed(&error),
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("xtask: {why}");
    ExitCode::FAILURE
}
