//! Rules on the documents: what they name is there.

mod absent;
mod guards;
mod links;
mod markdown;
mod names;
mod paths;

pub(super) use absent::absent;
pub(super) use guards::guards;
pub(super) use links::links;
pub(super) use names::names;
pub(super) use paths::paths;

use crate::tree::Tree;

/// The documents that describe the code as it is: all but the changelog, which names what was there at the time.
fn current(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.iter().filter(|(path, _)| path.ends_with(".md") && *path != "CHANGELOG.md")
}

/// The paths that end in `end`, at the beginning of a name.
fn ending<'a>(tree: &'a Tree, end: &'a str) -> impl Iterator<Item = &'a str> {
    tree.paths()
        .filter(move |path| path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/')))
}
