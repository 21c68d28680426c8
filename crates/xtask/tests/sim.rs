//! That a seed is all there is to a program.

use std::process::{Command, Output};

fn sim(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).arg("sim").args(args).output().expect("xtask runs")
}

/// Addresses differ from process to process; histories do not.
#[test]
fn a_seed_makes_the_same_history_in_every_process() {
    for mix in ["following", "crashing", "breaking", "jumping"] {
        let [first, second] =
            [0; 2].map(|_| sim(&["--seed", "7", "--steps", "200", "--mix", mix, "--trace"]));
        assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
        assert!(first.stdout.len() > 100_000, "something happened");
        assert_eq!(first.stdout, second.stdout);
    }
}
