//! The text files of the repository, read once.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// The files that rules look at, by their path from the root, `/` between its parts.
#[derive(Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
    /// The paths of all files, those that no rule reads included.
    paths: BTreeSet<String>,
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).expect("this crate is two folders deep").to_owned()
}

impl Tree {
    /// Reads what is under `root`, but for what is made and what is not ours.
    ///
    /// # Errors
    /// A folder or a file cannot be read.
    pub(crate) fn read(root: &Path) -> io::Result<Tree> {
        let mut tree = Tree::default();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder)? {
                let entry = entry?;
                let (name, kind) = (entry.file_name(), entry.file_type()?);
                let name = name.to_string_lossy();
                if kind.is_dir() && !FOREIGN.contains(&&*name) {
                    folders.push(entry.path());
                } else if kind.is_file() && is_ours(&name) {
                    tree.add(&relative(root, &entry.path()), &std::fs::read_to_string(entry.path())?);
                } else if kind.is_file() {
                    tree.paths.insert(relative(root, &entry.path()));
                }
            }
        }
        Ok(tree)
    }

    /// Adds a file.
    pub(crate) fn add(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_owned(), text.to_owned());
        self.paths.insert(path.to_owned());
    }

    /// The paths of all files, in order.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// Whether there is a file or a folder of this path.
    pub(crate) fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.paths.contains(path)
            || self.paths.range(folder.clone()..).next().is_some_and(|p| p.starts_with(&folder))
    }

    /// How many files there are.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// The text of a file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// All files with their texts, in the order of their paths.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Those under a folder, which is given with its last `/`.
    pub(crate) fn under(&self, folder: &str) -> impl Iterator<Item = (&str, &str)> {
        self.iter().filter(move |(path, _)| path.starts_with(folder))
    }

    /// The names of the folders right in this one, in order.
    pub(crate) fn folders(&self, folder: &str) -> Vec<&str> {
        let inner = self.under(folder).filter_map(|(path, _)| path[folder.len()..].split_once('/'));
        let mut names: Vec<&str> = inner.map(|(name, _)| name).collect();
        names.dedup();
        names
    }
}

fn relative(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).expect("the walk began at the root");
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn is_ours(name: &str) -> bool {
    let written = name.rsplit_once('.').is_some_and(|(_, end)| WRITTEN.contains(&end));
    (written || name == "Makefile") && name != "package-lock.json"
}

/// Folders of things made or fetched.
const FOREIGN: &[&str] = &[".git", "target", "node_modules", ".venv", "data", "out", "__pycache__"];

/// The ends of names of files that people write.
const WRITTEN: &[&str] = &["rs", "chat", "toml", "sql", "py", "js", "mjs", "css", "html", "sh", "md"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_this_very_file() {
        let tree = Tree::read(&root()).unwrap();
        assert_eq!(tree.text("crates/xtask/src/tree.rs"), Some(include_str!("tree.rs")));
        assert!(tree.iter().all(|(path, _)| !path.starts_with("target/")));
    }

    #[test]
    fn files_and_folders_are_there() {
        let mut tree = Tree::default();
        tree.add("a/b/one.rs", "");
        for (path, there) in
            [("a/b/one.rs", true), ("a/b", true), ("a/b/", true), ("a/c", false), ("a/b/one", false)]
        {
            assert_eq!(tree.has(path), there, "{path}");
        }
    }

    #[test]
    fn folders_are_named_once() {
        let mut tree = Tree::default();
        for path in ["a/b/one.rs", "a/b/two.rs", "a/c/three.rs", "a/four.rs"] {
            tree.add(path, "");
        }
        assert_eq!(tree.folders("a/"), ["b", "c"]);
    }
}
