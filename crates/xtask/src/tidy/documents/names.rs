//! Names of the code that documents write in code spans.

use super::super::Finding;
use super::{current, markdown};
use crate::tree::Tree;
use std::collections::BTreeSet;

/// Each part of `module::Type::item` is a name of the code. Decisions (`docs/adr`) name what was there when they were made.
pub(crate) fn names(tree: &Tree) -> Vec<Finding> {
    let known = identifiers(tree);
    let mut findings = Vec::new();
    for (path, text) in current(tree).filter(|(path, _)| !path.starts_with("docs/adr/")) {
        for (number, line) in markdown::prose(text) {
            for span in markdown::code_spans(line).filter(|span| is_path_of_items(span)) {
                let gone = span.split("::").find(|name| !known.contains(name));
                findings.extend(gone.map(|name| {
                    Finding::new(
                        path,
                        number,
                        format!("`{span}`: no Rust file of the repository says `{name}`"),
                    )
                }));
            }
        }
    }
    findings
}

fn is_path_of_items(span: &str) -> bool {
    span.contains("::") && span.split("::").all(|name| !name.is_empty() && name.chars().all(is_word))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Every word of Rust code, and the names of files, folders and crates, which are modules.
fn identifiers(tree: &Tree) -> BTreeSet<&str> {
    let mut known = BTreeSet::new();
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".rs")) {
        known.extend(path.trim_end_matches(".rs").split('/'));
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        known.extend(code.flat_map(|line| line.split(|c| !is_word(c))));
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_code() {
        let mut tree = Tree::default();
        tree.add("crates/core/src/model/id.rs", "// Gone\npub struct Id;\nimpl Id {\n    fn next() {}\n}\n");
        let mut said = |text: &str| {
            tree.add("ARCHITECTURE.md", text);
            names(&tree).len()
        };
        assert_eq!(said("`core::model::Id::next`, `Id::next`, `Gone`, `a::b()`, `urn:x::`\n"), 0);
        assert_eq!(said("`core::models::Id`\n`Id::Gone`\n"), 2);
    }
}
