//! Rules on files and their lines.

use super::Finding;
use super::place::{self, Line};
use crate::tree::Tree;

/// A file over 800 lines holds more than one idea.
pub fn short_files(tree: &Tree) -> Vec<Finding> {
    let long = tree.iter().filter(|(_, text)| text.lines().count() > LINES_MAX);
    long.map(|(path, text)| {
        Finding::new(path, 0, format!("{} lines; {LINES_MAX} is the most", text.lines().count()))
    })
    .collect()
}

/// A lint is expected with a reason, never allowed silently.
pub fn reasons(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in rust(tree) {
        for line in place::code(path, text) {
            let opens =
                ["#[allow(", "#![allow(", "#[expect(", "#![expect("].iter().find(|o| line.text.contains(**o));
            // The reason may follow on the next lines, up to the attribute's end.
            let rest = || text.lines().skip(line.number - 1).take(6).collect::<String>();
            let Some(opens) = opens else { continue };
            let attribute = rest().split_once(opens).map(|(_, rest)| rest.to_owned()).unwrap_or_default();
            if !attribute.split(")]").next().is_some_and(|inner| inner.contains("reason =")) {
                findings.push(Finding::new(path, line.number, format!("`{opens}…` without `reason = …`")));
            }
        }
    }
    findings
}

/// A test waits for what it tests, not for time.
pub fn no_sleep_in_tests(tree: &Tree) -> Vec<Finding> {
    let in_test = |line: &Line<'_>| line.in_test;
    let mut findings = forbid(rust(tree), in_test, &["thread::sleep", "time::sleep"], "a test never sleeps");
    let python = tree.under("tests/").filter(|(path, _)| path.ends_with(".py"));
    findings.extend(forbid(python, in_test, &["time.sleep(", "asyncio.sleep("], "a test never sleeps"));
    let scripts = tree.under("tests/").filter(|(path, _)| path.ends_with("js"));
    findings.extend(forbid(scripts, in_test, &["setTimeout(", "waitForTimeout("], "a test never sleeps"));
    findings
}

/// Every queue has a bound.
pub fn bounded_channels(tree: &Tree) -> Vec<Finding> {
    forbid(rust(tree), |_| true, &["unbounded_channel", "unbounded()"], "every queue has a bound")
}

/// `core` and `wire` observe nothing: addresses are data, sockets are not. clippy bans the calls, this the names.
pub fn pure_core(tree: &Tree) -> Vec<Finding> {
    let forbidden = &[
        "std::net::Tcp",
        "std::net::Udp",
        "std::net::ToSocketAddrs",
        "std::net::{",
        "std::net::*",
        "std::fs",
        "std::thread",
        "std::env",
        "std::process",
        "Instant::now",
        "SystemTime",
        "tokio::",
    ];
    let sources = ["crates/core/src/", "crates/wire/src/"];
    let files =
        sources.into_iter().flat_map(|folder| tree.under(folder)).filter(|(path, _)| path.ends_with(".rs"));
    forbid(files, |line| !line.in_test, forbidden, "here the world arrives as arguments")
}

/// What of `files` says one of `words` on a line that matters.
fn forbid<'a>(
    files: impl Iterator<Item = (&'a str, &'a str)>,
    matters: impl Fn(&Line<'_>) -> bool,
    words: &[&str],
    why: &str,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in files {
        for line in place::code(path, text).filter(&matters) {
            let found = words.iter().filter(|word| line.text.contains(**word));
            findings.extend(found.map(|word| Finding::new(path, line.number, format!("`{word}`: {why}"))));
        }
    }
    findings
}

/// All Rust files but these rules, which name what they forbid.
fn rust(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.iter().filter(|(path, _)| path.ends_with(".rs") && !path.starts_with("crates/xtask/"))
}

const LINES_MAX: usize = 800;

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(path: &str, text: &str) -> Tree {
        let mut tree = Tree::default();
        tree.add(path, text);
        tree
    }

    #[test]
    fn long_files_are_found() {
        assert_eq!(short_files(&tree("a.rs", &"x\n".repeat(800))), []);
        assert_eq!(short_files(&tree("a.rs", &"x\n".repeat(801))).len(), 1);
    }

    #[test]
    fn an_attribute_has_its_own_reason() {
        let rule = |text: &str| reasons(&tree("crates/wire/src/a.rs", text)).len();
        assert_eq!(rule("#[allow(dead_code)]\nfn f() {}\n"), 1);
        assert_eq!(rule("#[expect(dead_code)]\n#[expect(unused, reason = \"because\")]\n"), 1);
        assert_eq!(rule("#[expect(dead_code, reason = \"because\")]\n"), 0);
        assert_eq!(rule("#[expect(\n    dead_code,\n    reason = \"because\"\n)]\n"), 0);
    }

    #[test]
    fn only_tests_must_not_sleep() {
        let rule = |path: &str| no_sleep_in_tests(&tree(path, "    std::thread::sleep(pause);\n")).len();
        assert_eq!(rule("crates/carillon/src/cli/send.rs"), 0);
        assert_eq!(rule("crates/carillon/src/cli/tests.rs"), 1);
        assert_eq!(rule("crates/carillon/tests/serve.rs"), 1);
        assert_eq!(
            no_sleep_in_tests(&tree("tests/interop/test_a.py", "time.sleep(1)\n# time.sleep(1)\n")).len(),
            1
        );
    }

    #[test]
    fn addresses_are_data() {
        let rule = |text: &str| pure_core(&tree("crates/core/src/lib.rs", text)).len();
        assert_eq!(rule("use std::net::IpAddr;\n"), 0);
        assert_eq!(rule("use std::net::TcpStream;\n"), 1);
        assert_eq!(rule("/// Not `SystemTime`.\nlet now = SystemTime::now();\n"), 1);
        assert_eq!(rule("#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n"), 0);
    }
}
