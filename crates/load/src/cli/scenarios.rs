//! `carillon-load scenarios`.

use clap::Args;

use super::failure::Failure;
use super::print;
use crate::plan::Scenario;

#[derive(Debug, Args)]
pub(super) struct ScenariosArgs {
    /// Print this one as TOML: a start for a file of your own
    name: Option<String>,
}

impl ScenariosArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let Some(name) = &self.name else {
            let scenarios = Scenario::names().filter_map(Scenario::shipped);
            let lines = scenarios.map(|scenario| format!("{:<16} {}\n", scenario.name, scenario.summary));
            return print(&lines.collect::<String>());
        };
        let text = Scenario::text(name).ok_or_else(|| unknown(name))?;
        print(text)
    }
}

/// There is no such scenario.
pub(super) fn unknown(name: &str) -> Failure {
    let names: Vec<_> = Scenario::names().collect();
    Failure::Usage(format!(
        "no scenario is called {name:?}; there are {}, or a file NAME.toml",
        names.join(", ")
    ))
}
