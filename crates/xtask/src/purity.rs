//! That `core` and `wire` do no I/O and know no clock: what they call of the standard library and of the system, by their compiled code.
//!
//! `tidy` reads the source, which a macro, a dependency's function or another name could get past. Here the symbols that the libraries
//! leave to others are read (`nm` of binutils, which a C compiler brings).

use crate::tree;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates that take the world as arguments.
const PURE: [&str; 2] = ["carillon_core", "carillon_wire"];

/// Beginnings of what they must not call: paths of the standard library, and functions of the C library (`=`: the whole name).
const IMPURE: &[&str] = &[
    "std::env::",
    "std::fs::",
    "std::io::stdio::",
    "std::net::tcp",
    "std::net::udp",
    "std::net::socket_addr::ToSocketAddrs",
    "std::os::",
    "std::process::",
    "std::sys::fs",
    "std::sys::net",
    "std::sys::process",
    "std::thread::builder",
    "std::thread::functions::sleep",
    "std::thread::functions::spawn",
    "std::thread::sleep",
    "std::thread::spawn",
    "std::thread::Builder",
    "std::time::Instant::elapsed",
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "getrandom::",
    "=clock_gettime",
    "=connect",
    "=getrandom",
    "=gettimeofday",
    "=nanosleep",
    "=open",
    "=open64",
    "=read",
    "=recv",
    "=send",
    "=socket",
    "=syscall",
    "=write",
];

/// What of [`IMPURE`] the pure crates call, as they are compiled with these `features` of the workspace (`--features …`).
///
/// # Errors
/// They do not compile, or `nm` is not there.
pub(crate) fn check(features: &[&str]) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    let libraries = libraries(features)?;
    for name in PURE {
        let path = libraries.iter().find(|path| is_of(path, name));
        let path = path.ok_or_else(|| format!("cargo tells of no library of {name}"))?;
        let output = Command::new("nm").args(["--undefined-only", "--demangle"]).arg(path).output();
        let output = output.map_err(|error| format!("nm: {error}; it is a part of binutils"))?;
        let symbols = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() || symbols.is_empty() {
            return Err(format!("nm {}: {}", path.display(), String::from_utf8_lossy(&output.stderr)));
        }
        findings.extend(impure(&symbols).into_iter().map(|symbol| format!("{name} calls {symbol}")));
    }
    Ok(findings)
}

fn is_of(path: &Path, name: &str) -> bool {
    path.file_name()
        .and_then(|file| file.to_str())
        .is_some_and(|file| file.starts_with(&format!("lib{name}-")))
}

/// Where cargo put the libraries of the build that the other checks use.
fn libraries(features: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--workspace", "--bin", "xtask", "--message-format", "json"]);
    let output =
        cargo.args(features).current_dir(tree::root()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let quoted = text.split('"').filter(|part| part.ends_with(".rlib"));
    Ok(quoted.map(PathBuf::from).collect())
}

/// The impure ones among symbols as `nm` prints them.
fn impure(symbols: &str) -> Vec<&str> {
    let names = symbols.lines().filter_map(|line| line.trim_start().strip_prefix("U "));
    let mut found: Vec<&str> = names.map(str::trim).filter(|name| is_impure(name)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn is_impure(symbol: &str) -> bool {
    // A method of a type is printed as `<TYPE>::NAME` or `<TYPE as TRAIT>::NAME`.
    let path = symbol.trim_start_matches('<').replace('>', "");
    IMPURE.iter().any(|name| match name.strip_prefix('=') {
        Some(function) => symbol == function,
        None => path.starts_with(name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reaches_for_the_world_is_found() {
        let symbols = "\nmod.o:\n                 U <std::fs::File>::open\n                 U clock_gettime\n\
                       U clock_gettime_of_ours\n U std::time::Instant::now\n U std::time::SystemTime::now\n\
                       U core::fmt::write\n U write\n";
        let expected = [
            "<std::fs::File>::open",
            "clock_gettime",
            "std::time::Instant::now",
            "std::time::SystemTime::now",
            "write",
        ];
        assert_eq!(impure(symbols), expected);
        assert!(is_impure("std::thread::functions::spawn"));
        assert!(!is_impure("<std::sync::mpmc::waker::SyncWaker>::notify"));
    }
}
