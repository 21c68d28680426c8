//! What holds for all input: properties, with rxml as the judge of what is well-formed and what it means.

mod differential;
mod generate;
mod meaning;
mod oracle;
mod splits;

use proptest::test_runner::Config;

/// As many cases, unless `PROPTEST_CASES` says otherwise.
fn cases(cases: u32) -> Config {
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { cases };
    Config { cases, failure_persistence: None, ..Config::default() }
}
