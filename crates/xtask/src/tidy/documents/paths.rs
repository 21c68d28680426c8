//! Paths of the repository that documents write in code spans.

use super::super::Finding;
use super::{current, markdown};
use crate::tree::Tree;

/// What looks like a path of the repository is one, or the end of one. `*` and a part in capitals stand for any name,
/// `{a,b}` for each of its own. A code span is on one line.
pub(crate) fn paths(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in current(tree) {
        for (number, line) in markdown::prose(text) {
            if line.matches('`').count() % 2 == 1 {
                findings.push(Finding::new(
                    path,
                    number,
                    "a code span that crosses lines is read by no rule",
                ));
            }
            let words = markdown::code_spans(line).flat_map(str::split_whitespace);
            let patterns = words.map(without_item).flat_map(expanded);
            let gone = patterns.filter(|path| looks_like_a_path(tree, path) && !exists(tree, path));
            findings.extend(
                gone.map(|gone| {
                    Finding::new(path, number, format!("there is no `{gone}` in the repository"))
                }),
            );
        }
    }
    findings
}

/// A path without the name of an item in its file.
fn without_item(word: &str) -> &str {
    word.split_once("::").map_or(word, |(path, _)| path)
}

fn looks_like_a_path(tree: &Tree, word: &str) -> bool {
    let Some((first, rest)) = word.split_once('/') else { return false };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./*".contains(c);
    let end = word.rsplit_once('.').map_or("", |(_, end)| end);
    let is_ours = SOURCES.contains(&end)
        || (!rest.is_empty() && (tree.has(first) || tree.has(&format!("crates/{first}"))));
    word.chars().all(is_plain) && !first.is_empty() && !first.starts_with('.') && is_ours
}

/// `a/{b,c}` is `a/b` and `a/c`.
fn expanded(word: &str) -> Vec<String> {
    let Some((before, (names, after))) =
        word.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return vec![word.to_owned()];
    };
    names.split(',').flat_map(|name| expanded(&format!("{before}{name}{after}"))).collect()
}

/// Whether a file or a folder has this path, from the root or from any folder on.
fn exists(tree: &Tree, pattern: &str) -> bool {
    let wanted: Vec<&str> = pattern.trim_end_matches('/').split('/').collect();
    tree.paths().any(|path| {
        let parts: Vec<&str> = path.split('/').collect();
        parts
            .windows(wanted.len())
            .any(|parts| parts.iter().zip(&wanted).all(|(part, wanted)| fits(part, wanted)))
    })
}

fn fits(name: &str, wanted: &str) -> bool {
    let (stem, end) = wanted.rsplit_once('.').map_or((wanted, ""), |(stem, end)| (stem, end));
    if stem.chars().any(char::is_alphabetic)
        && !stem.contains(|c: char| c.is_lowercase() || c.is_numeric())
        && stem != "README"
    {
        return name.ends_with(end);
    }
    match wanted.split_once('*') {
        Some((before, after)) => {
            name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
        }
        None => name == wanted,
    }
}

/// The ends of names that only files of this repository have in these documents.
const SOURCES: &[&str] = &["rs", "chat", "mjs", "py", "sql"];

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        let mut tree = Tree::default();
        for path in [
            "crates/core/src/a/mod.rs",
            "crates/core/src/a/b.chat",
            "docs/book/c.md",
            "tests/interop/test_d.py",
        ] {
            tree.add(path, "");
        }
        tree.add("README.md", text);
        paths(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn paths_are_there() {
        for path in [
            "crates/core/src/a/mod.rs",
            "core/src/a/",
            "a/b.chat::name",
            "crates/core/src/NAME/mod.rs",
            "src/a/NAME.chat",
            "src/*/{mod.rs,b.chat}",
            "docs/book",
            "xtask x > docs/book/c.md",
            "interop/test_*.py",
        ] {
            assert_eq!(said(&format!("see `{path}`")), [] as [&str; 0], "{path}");
        }
    }

    #[test]
    fn what_is_gone_is_found() {
        for path in [
            "crates/core/src/b/mod.rs",
            "a/c.chat",
            "docs/books",
            "src/NAME/c.rs",
            "core/src/z/",
            "xtask > docs/d.md",
        ] {
            assert_eq!(said(&format!("see `{path}`")).len(), 1, "{path}");
        }
        assert_eq!(said("`a/{mod.rs,c.rs}`"), ["README.md:1: there is no `a/c.rs` in the repository"]);
    }

    #[test]
    fn a_span_is_on_one_line() {
        assert_eq!(said("see `crates/core\n/src` and `a`\n").len(), 2);
    }

    #[test]
    fn other_paths_are_passed_over() {
        for path in [
            "/etc/carillon.toml",
            "./data",
            "~/.cargo/bin",
            "application/json",
            "a/b",
            "MIT/Apache",
            "GET /v1/docs/x",
        ] {
            assert_eq!(said(&format!("see `{path}`")), [] as [&str; 0], "{path}");
        }
    }
}
