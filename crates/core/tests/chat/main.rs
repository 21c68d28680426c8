//! Conversations: every `.chat` file in `src/` is played against a node of two shards and a real store, without sockets,
//! threads or clocks. CONTRIBUTING.md describes the format.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the test is the world around the core"
)]

mod script;
mod tokens;
#[expect(dead_code, reason = "other tests use more of it")]
mod world;

use std::path::{Path, PathBuf};

#[test]
fn every_conversation_goes_as_written() {
    let mut files = Vec::new();
    find(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut files);
    files.sort();
    let wanted = std::env::var("CHAT").unwrap_or_default();
    files.retain(|file| file.to_string_lossy().contains(&wanted));
    assert!(!files.is_empty(), "no conversation matches {wanted:?}");
    let mut failures = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a readable file");
        if let Err(error) = script::play(&text) {
            failures.push(format!("{}: {error}", file.display()));
        }
    }
    println!("{} conversations, {} failed", files.len(), failures.len());
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|e| e == "chat") {
            files.push(path);
        }
    }
}
