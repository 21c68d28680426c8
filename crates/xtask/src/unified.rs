//! That dependencies are compiled once. Cargo gives a dependency the features that the packages it builds together ask for,
//! tests included; so a dependency that only a test asks more of would be compiled again, with all that depends on it, for
//! `make build`, `cargo test --workspace` and `cargo doc`. What is asked for somewhere is asked for in the
//! workspace's list of dependencies instead.

use crate::tree;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// A package and its version, and the sets of features it is built with: one for programs and, perhaps, one for what runs
/// while they are built.
type Built = BTreeMap<String, BTreeSet<String>>;

/// The dependencies of the binary that the tests of the workspace build with other features.
///
/// # Errors
/// `cargo tree` fails.
pub(crate) fn check() -> Result<Vec<String>, String> {
    let makefile =
        std::fs::read_to_string(tree::root().join("Makefile")).map_err(|error| error.to_string())?;
    let wanted = makefile.lines().find_map(|line| line.strip_prefix("FEATURES := --features "));
    let wanted = wanted.ok_or("the Makefile says no FEATURES")?;
    // As `make build` builds it: of one piece with the tests, for which `core` has its simulation.
    let features = format!("carillon-core/sim,{wanted}");
    let binary = built(&["--package", "carillon", "--edges", "normal,build", "--features", &features])?;
    let tests = built(&["--workspace", "--edges", "all", "--features", wanted])?;
    Ok(differences(&binary, &tests))
}

fn differences(binary: &Built, tests: &Built) -> Vec<String> {
    let mut findings = Vec::new();
    for (package, features) in binary {
        let Some(with_tests) = tests.get(package) else { continue };
        if !features.is_subset(with_tests) {
            let show =
                |sets: &BTreeSet<String>| sets.iter().map(|set| format!("[{set}]")).collect::<String>();
            findings.push(format!(
                "{package} is compiled twice: with the features {} for the binary, {} with the tests; give it those of the \
                 tests in Cargo.toml, or the tests those of the binary",
                show(features),
                show(with_tests)
            ));
        }
    }
    findings
}

/// What a selection of packages is built with.
fn built(selection: &[&str]) -> Result<Built, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--prefix", "none", "--format", "{p}\t{f}"]).args(selection);
    let output = cargo.current_dir(tree::root()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(read(&String::from_utf8_lossy(&output.stdout)))
}

fn read(tree: &str) -> Built {
    let mut built = Built::new();
    for (package, features) in tree.lines().filter_map(|line| line.split_once('\t')) {
        // The mark of a package that was printed before.
        let features = features.trim_end_matches("(*)").trim_end();
        built.entry(package.to_owned()).or_default().insert(features.to_owned());
    }
    built
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_that_only_tests_ask_for_is_found() {
        let binary = read("a v1\tstd\nb v1\t\nsyn v2\tfull\n");
        let tests = read("a v1\tstd\nb v1\tdefault\nsyn v2\tfull\nsyn v2\tparsing\nproptest v1\t\n");
        let findings = differences(&binary, &tests);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("b v1 is compiled twice: with the features [] for"), "{findings:?}");
        assert_eq!(differences(&binary, &binary), Vec::<String>::new());
    }
}
