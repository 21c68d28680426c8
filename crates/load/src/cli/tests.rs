//! Command lines as they are read.

use clap::CommandFactory;

use super::*;

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn a_run_needs_a_scenario_and_a_target() {
    let parse = |line: &str| Cli::try_parse_from(line.split_whitespace());
    let target = "--target h:1 --domain d --password p";
    assert!(parse(&format!("carillon-load run idle {target}")).is_ok());
    assert!(parse(&format!("carillon-load run {target}")).is_err());
    assert!(parse("carillon-load run idle --domain d --password p").is_err());
    assert!(parse(&format!("carillon-load run idle {target} --assert RTT.percentile99<50")).is_ok());
    assert!(parse(&format!("carillon-load run idle {target} --assert RTT")).is_err());
    assert!(parse(&format!("carillon-load run idle {target} --lost-after soon")).is_err());
    assert!(parse(&format!("carillon-load run idle {target} --workers 0")).is_err());
}
