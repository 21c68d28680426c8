//! Where a module with modules of its own is: all have one form, so that nobody looks in two places.

use super::Finding;
use crate::tree::Tree;

/// A module that has a folder is the file `mod.rs` in it, and not a file beside it.
pub(super) fn folders(tree: &Tree) -> Vec<Finding> {
    let modules = tree.paths().filter_map(|path| Some((path, path.strip_suffix(".rs")?)));
    modules
        .filter(|(_, folder)| tree.has(&format!("{folder}/")))
        .map(|(path, folder)| Finding::new(path, 0, format!("belongs into its folder, as {folder}/mod.rs")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_with_a_folder_is_in_it() {
        let mut tree = Tree::default();
        for path in ["a/src/lib.rs", "a/src/one/mod.rs", "a/src/one/part.rs", "a/src/only.rs"] {
            tree.add(path, "");
        }
        assert_eq!(folders(&tree), []);
        tree.add("a/src/two.rs", "");
        tree.add("a/src/two/tests.rs", "");
        let found = folders(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_string(), "a/src/two.rs: belongs into its folder, as a/src/two/mod.rs");
    }
}
