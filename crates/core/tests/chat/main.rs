//! Conversations: every `.chat` file in `src/` is played against a simulated node of two shards, without sockets or clocks: with
//! the store of the simulation, and with a real one. CONTRIBUTING.md describes the format.

#![expect(clippy::disallowed_methods, reason = "the test is the world around the core")]

mod modules;
mod script;
mod tokens;
#[expect(dead_code, reason = "other tests use more of it")]
mod world;

use script::Moves;
use std::path::{Path, PathBuf};
use world::Kept;

#[test]
fn every_conversation_goes_as_written() {
    play_all(Kept::InMemory);
}

/// The same words of the same devices: who listens cannot tell the two stores apart.
#[test]
fn every_conversation_goes_as_written_with_a_real_store() {
    play_all(Kept::BySqlite);
}

/// Nobody can tell either whether a session that is parked was written and read meanwhile.
#[test]
fn every_conversation_goes_as_written_while_parked_sessions_move() {
    play_each(Kept::InMemory, Moves::Parked, 1);
}

/// Nor whether every session was handed to another process and went on there.
#[test]
fn every_conversation_goes_as_written_while_all_sessions_are_handed_over() {
    play_each(Kept::InMemory, Moves::Everybody, 1);
}

/// Nor whether homes are divided between two nodes, which have nothing of each other but what has a form.
#[test]
fn every_conversation_goes_as_written_on_two_nodes() {
    play_each(Kept::InMemory, Moves::Nobody, 2);
}

/// Nor whether all sessions of both are handed over.
#[test]
fn every_conversation_goes_as_written_on_two_nodes_while_all_sessions_are_handed_over() {
    play_each(Kept::InMemory, Moves::Everybody, 2);
}

/// The same words have the same history, though a module decides at random.
#[test]
fn a_conversation_with_modules_goes_the_same_way_twice() {
    let with = |module: &str| {
        let accounts = "account alice secret\naccount bob secret\nalice connects sm\nbob connects\n";
        let speaks =
            "many 40 alice >> <message to='bob@localhost' type='chat' id='{i}'><body>hi</body></message>";
        let text =
            format!("{accounts}{module}{speaks}\nbob drops\nmany 9 alice >> <r xmlns='urn:xmpp:sm:3'/>\n");
        script::history(&text).expect("it goes as written")
    };
    let rolls = "module rolls is rolls.wat\n";
    assert_eq!(with(rolls), with(rolls));
    assert_ne!(with(rolls), with(""));
}

fn play_all(kept: Kept) {
    play_each(kept, Moves::Nobody, 1);
}

fn play_each(kept: Kept, moves: Moves, nodes: u16) {
    let mut files = Vec::new();
    let wanted = std::env::var("CHAT").unwrap_or_default();
    if Path::new(&wanted).is_absolute() {
        // One that was recorded (`carillon trace record`).
        files.push(PathBuf::from(&wanted));
    } else {
        find(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut files);
        files.sort();
        files.retain(|file| file.to_string_lossy().contains(&wanted));
    }
    assert!(!files.is_empty(), "no conversation matches {wanted:?}");
    let mut failures = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a readable file");
        if let Err(error) = script::play(&text, kept, moves, nodes) {
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
