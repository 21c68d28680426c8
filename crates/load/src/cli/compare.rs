//! `carillon-load compare`.

use std::path::Path;

use clap::Args;

use super::failure::Failure;
use super::outputs::{read, write};
use super::print;
use crate::report::{Assertion, Comparison};

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// Reports to put side by side; changes are relative to the first. NAME=FILE.json gives one a name
    #[arg(required = true, num_args = 1.., value_name = "REPORT.json")]
    reports: Vec<String>,
    /// Write bar charts as a page to this file
    #[arg(long, value_name = "FILE.html")]
    html: Option<String>,
    /// Write bar charts as a picture to this file
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Require something of the last report; exit status 3 if it does not hold
    #[arg(long, value_name = "PATH<VALUE")]
    assert: Vec<Assertion>,
}

impl CompareArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let mut reports = Vec::new();
        for given in &self.reports {
            let (name, path) = match given.split_once('=') {
                Some((name, path)) => (name.to_owned(), path),
                None => (name_of(given), given.as_str()),
            };
            reports.push((name, read(path)?));
        }
        let broken: Vec<String> = match reports.last() {
            Some((_, last)) => self
                .assert
                .iter()
                .filter_map(|assertion| assertion.check(last).err())
                .map(|e| e.to_string())
                .collect(),
            None => Vec::new(),
        };
        let comparison = Comparison::of(reports);
        if let Some(path) = &self.html {
            write(path, &comparison.html())?;
        }
        if let Some(path) = &self.svg {
            write(path, &comparison.svg())?;
        }
        print(&if self.json { comparison.json() + "\n" } else { comparison.table() })?;
        if broken.is_empty() { Ok(()) } else { Err(Failure::Assertion(broken.join("\n"))) }
    }
}

fn name_of(path: &str) -> String {
    Path::new(path).file_stem().map_or_else(|| path.to_owned(), |stem| stem.to_string_lossy().into_owned())
}
