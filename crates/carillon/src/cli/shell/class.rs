//! What a command does: reads, changes something, or nothing that a shell is for.

use clap::ArgMatches;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// It reads from the node.
    Read,
    /// It changes something there.
    Write,
    /// It is about the machine that it is given on, or runs until it is ended.
    Elsewhere,
}

/// Commands that have no verbs, and only read.
const READING: &[&str] = &["status", "top", "dump", "trace"];
/// Verbs that only read.
const READING_VERBS: &[&str] = &[
    "list",
    "show",
    "show-file",
    "status",
    "logs",
    "diff",
    "nodes",
    "where",
    "peek",
    "dead-letters",
    "subscribers",
    "members",
    "occupants",
    "replay",
];
/// Commands that speak to a node.
const REMOTE: &[&str] = &[
    "status",
    "top",
    "dump",
    "trace",
    "drain",
    "queue",
    "cluster",
    "cells",
    "domain",
    "account",
    "key",
    "topic",
    "broadcast",
    "room",
    "webhook",
    "match",
    "module",
    "link",
    "invitation",
    "send",
    "notification",
    "session",
];

/// What a command does. One that is not known to read changes something.
pub(super) fn class(matches: &ArgMatches) -> Class {
    let Some((name, rest)) = matches.subcommand() else { return Class::Elsewhere };
    if !REMOTE.contains(&name) {
        return Class::Elsewhere;
    }
    match rest.subcommand_name() {
        // It writes a file on this machine.
        Some("record") => Class::Elsewhere,
        None if READING.contains(&name) => Class::Read,
        Some(verb) if READING_VERBS.contains(&verb) => Class::Read,
        // `status --watch` runs until it is ended, as a trace does at its bounds; all others change something.
        _ => Class::Write,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    fn of(line: &str) -> Class {
        let words = line.split(' ');
        class(&Cli::command().try_get_matches_from(std::iter::once("carillon").chain(words)).expect(line))
    }

    #[test]
    fn what_is_not_known_to_read_changes_something() {
        for line in [
            "status",
            "session list",
            "session show a@x",
            "top --by cpu",
            "trace alice",
            "account list",
            "module logs m",
        ] {
            assert_eq!(of(line), Class::Read, "{line}");
        }
        for line in [
            "session end a@x",
            "session kick a@x",
            "account create a@x --password b",
            "domain delete d --yes",
            "send a --payload 1",
        ] {
            assert_eq!(of(line), Class::Write, "{line}");
        }
        for line in ["serve", "shell", "config check", "completions bash", "trace record a -o f"] {
            assert_eq!(of(line), Class::Elsewhere, "{line}");
        }
    }

    /// A verb that reads in one command reads in each.
    #[test]
    fn verbs_that_read_are_verbs_of_commands() {
        let root = Cli::command();
        let all: Vec<&str> = root
            .get_subcommands()
            .filter(|command| REMOTE.contains(&command.get_name()))
            .flat_map(|command| command.get_subcommands().map(clap::Command::get_name))
            .collect();
        for verb in READING_VERBS {
            assert!(all.contains(verb), "{verb} is no verb of {all:?}");
        }
    }
}
