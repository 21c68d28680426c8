//! What a document promises names what would fail if it were not so.

use super::super::{Finding, RULES};
use super::{current, ending, markdown};
use crate::tree::Tree;

/// Each row of a table with a column `guard` names at least one guard there, and everything in backticks there is one that
/// exists:
///
/// - `PATH::NAME`: a test, or a type without which the code does not compile. PATH is the end of the path of exactly one Rust
///   or Python file;
/// - `PATH.chat`, `PATH.mjs`: a conversation, tests in JavaScript;
/// - `fuzz_targets/NAME.rs`: a fuzz target;
/// - `tidy MODULE::RULE`: a rule of these;
/// - `xtask COMMAND`: a check that is a command of its own.
pub(crate) fn guards(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in current(tree) {
        let rows = markdown::column(text, "guard");
        if rows.is_empty() && path == PROMISES {
            findings.push(Finding::new(path, 0, "no table with a column `guard`: what holds its promises?"));
        }
        for (line, cell) in rows {
            let named: Vec<&str> = markdown::code_spans(cell).collect();
            if named.is_empty() {
                findings.push(Finding::new(path, line, "names no test and no rule that guards it"));
            }
            let faults = named.into_iter().filter_map(|guard| fault(tree, guard));
            findings.extend(faults.map(|fault| Finding::new(path, line, fault)));
        }
    }
    findings
}

/// Why this is no guard; none if it is one.
fn fault(tree: &Tree, guard: &str) -> Option<String> {
    if let Some(rule) = guard.strip_prefix("tidy ") {
        let is_rule = RULES.iter().any(|known| known.name == rule);
        return (!is_rule).then(|| format!("`{rule}` is no rule of crates/xtask/src/tidy"));
    }
    if let Some(command) = guard.strip_prefix("xtask ") {
        let main = tree.text("crates/xtask/src/main.rs").unwrap_or_default();
        return (!main.contains(&format!("[\"{command}\"")))
            .then(|| format!("xtask has no command `{command}`"));
    }
    let (end, name) = guard.split_once("::").map_or((guard, None), |(end, name)| (end, Some(name)));
    let mut files = ending(tree, end);
    let file = match (files.next(), files.next()) {
        (None, _) => return Some(format!("`{guard}`: no file's path ends in `{end}`")),
        (Some(a), Some(b)) => return Some(format!("`{guard}`: {a} or {b}?")),
        (Some(file), None) => file,
    };
    match name {
        Some(name) if holds(file, tree.text(file).unwrap_or_default(), name) => None,
        Some(name) => Some(format!("`{guard}`: {file} has neither a test nor a type `{name}`")),
        None if is_test_as_a_whole(file) => None,
        None => Some(format!("`{guard}`: name the test, as `{end}::NAME`")),
    }
}

/// Files that are played or run as one, and name their tests in words.
fn is_test_as_a_whole(file: &str) -> bool {
    file.ends_with(".chat") || file.ends_with(".test.mjs") || file.starts_with("fuzz/fuzz_targets/")
}

fn holds(file: &str, text: &str, name: &str) -> bool {
    match file.rsplit_once('.') {
        Some((_, "py")) => text.lines().any(|line| {
            let line = line.trim_start();
            name.starts_with("test_") && is_item(line.strip_prefix("async ").unwrap_or(line), "def", name)
        }),
        Some((_, "rs")) => {
            let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
            (0..lines.len()).any(|at| {
                is_type(lines[at], name) || (is_function(lines[at], name) && is_test(file, &lines[..at]))
            })
        }
        _ => false,
    }
}

fn is_type(line: &str, name: &str) -> bool {
    ["struct", "enum", "trait"].iter().any(|kind| is_item(visible(line), kind, name))
}

fn is_function(line: &str, name: &str) -> bool {
    let line = visible(line);
    is_item(line.strip_prefix("async ").unwrap_or(line), "fn", name)
}

/// Whether the function behind these lines is run by `cargo test`: its attributes say so, or it is a case of the suite of
/// stores, of which the compiler finds those that are not in its list.
fn is_test(file: &str, before: &[&str]) -> bool {
    let above = before.iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    let is_attribute = |line: &&str| line.starts_with("#[test") || line.starts_with("#[tokio::test");
    above.copied().any(|line| is_attribute(&line)) || file.contains("/conformance/")
}

fn visible(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("pub") else { return line };
    let rest = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest);
    rest.trim_start()
}

fn is_item(line: &str, kind: &str, name: &str) -> bool {
    let rest = line
        .strip_prefix(kind)
        .and_then(|rest| rest.strip_prefix(' '))
        .and_then(|rest| rest.strip_prefix(name));
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// The document that must have promises.
const PROMISES: &str = "ARCHITECTURE.md";

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let mut tree = Tree::default();
        tree.add(
            "crates/a/src/b/tests.rs",
            "#[test]\nfn holds() {}\n\nfn helper() {}\npub(crate) struct Proof(u8);\n",
        );
        tree.add("crates/a/src/c/tests.rs", "    #[tokio::test]\n    // why\n    async fn too() {}\n");
        tree.add("crates/a/src/conformance/keys.rs", "pub(super) fn are_found(store: &dyn Store) {\n");
        tree.add("crates/a/src/b/talk.chat", "");
        tree.add("tests/interop/test_a.py", "async def test_it(node):\n    pass\ndef other(): pass\n");
        tree.add("tests/interop/js/a.test.mjs", "");
        tree.add("fuzz/fuzz_targets/unit.rs", "");
        tree.add("crates/xtask/src/main.rs", "match args { [\"instructions\"] => () }");
        tree
    }

    #[test]
    fn guards_are_found() {
        for guard in [
            "b/tests.rs::holds",
            "b/tests.rs::Proof",
            "c/tests.rs::too",
            "conformance/keys.rs::are_found",
            "talk.chat",
            "b/talk.chat",
            "crates/a/src/b/talk.chat",
            "test_a.py::test_it",
            "a.test.mjs",
            "fuzz_targets/unit.rs",
            "tidy lines::short_files",
            "xtask instructions",
        ] {
            assert_eq!(fault(&tree(), guard), None, "{guard}");
        }
    }

    #[test]
    fn what_was_renamed_is_no_guard() {
        for guard in [
            "b/tests.rs::held",
            "b/tests.rs::hold",
            "b/tests.rs::helper",
            "b/tests.rs",
            "tests.rs::holds",
            "ests.rs::holds",
            "alk.chat",
            "test_a.py",
            "test_a.py::other",
            "tidy lines::long_files",
            "tidy short_files",
            "xtask nothing",
            "some words",
            "Type",
        ] {
            assert!(fault(&tree(), guard).is_some(), "{guard}");
        }
    }

    #[test]
    fn a_row_without_a_guard_is_found() {
        let mut tree = tree();
        let said = |tree: &Tree| guards(tree).iter().map(ToString::to_string).collect::<Vec<_>>();
        tree.add(PROMISES, "# No table\n");
        assert_eq!(said(&tree).len(), 1);
        tree.add(PROMISES, "| invariant | guard |\n|---|---|\n| one | `talk.chat` |\n| two | private |\n");
        assert_eq!(said(&tree), ["ARCHITECTURE.md:4: names no test and no rule that guards it"]);
    }
}
