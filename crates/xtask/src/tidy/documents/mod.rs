//! Rules on the documents: what they name is there.

mod links;
mod markdown;
mod names;
mod paths;

pub use links::links;
pub use names::names;
pub use paths::paths;

use crate::tree::Tree;

/// The documents that describe the code as it is: all but the changelog, which names what was there at the time.
fn current(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.iter().filter(|(path, _)| path.ends_with(".md") && *path != "CHANGELOG.md")
}
