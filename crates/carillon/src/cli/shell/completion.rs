//! Completing words of a line: commands, verbs and options.

use clap::Command;
use dialoguer::Completion;
use std::collections::BTreeMap;

/// The words that may follow words.
pub(super) struct Words(BTreeMap<Vec<String>, Vec<String>>);

impl Words {
    /// Those of a command line.
    pub(super) fn of(root: &Command) -> Words {
        let (mut words, mut root) = (Words(BTreeMap::new()), root.clone());
        // Only then do commands have the options of those above them.
        root.build();
        words.add(&[], &root);
        words
    }

    fn add(&mut self, path: &[String], command: &Command) {
        let visible = || command.get_subcommands().filter(|command| !command.is_hide_set());
        let verbs = visible().map(|command| command.get_name().to_owned());
        let options = command.get_arguments().filter_map(|arg| Some(format!("--{}", arg.get_long()?)));
        self.0.insert(path.to_vec(), verbs.chain(options).collect());
        for below in visible() {
            self.add(&[path, &[below.get_name().to_owned()]].concat(), below);
        }
    }
}

impl Completion for Words {
    /// The line with as much added to its last word as there is only one way to go on.
    fn get(&self, line: &str) -> Option<String> {
        let (before, begun) = line.rsplit_once(' ').map_or(("", line), |(before, begun)| (before, begun));
        let mut path: Vec<String> = Vec::new();
        for word in before.split_whitespace() {
            path.push(word.to_owned());
            if !self.0.contains_key(&path) {
                path.pop();
            }
        }
        let fits: Vec<&String> = self.0.get(&path)?.iter().filter(|word| word.starts_with(begun)).collect();
        let first = fits.first().filter(|_| !begun.is_empty())?;
        let common = fits.iter().fold(first.len(), |common, word| {
            first.bytes().zip(word.bytes()).take(common).take_while(|(a, b)| a == b).count()
        });
        let space = if fits.len() == 1 { " " } else { "" };
        let gap = if before.is_empty() { "" } else { " " };
        Some(format!("{before}{gap}{}{space}", &first[..common]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn words_are_completed() {
        let words = Words::of(&Cli::command());
        let get = |line| words.get(line);
        assert_eq!(get("sess").as_deref(), Some("session "));
        assert_eq!(get("session sh").as_deref(), Some("session show "));
        assert_eq!(get("session list --acc").as_deref(), Some("session list --account "));
        assert_eq!(get("session show a@x --j").as_deref(), Some("session show a@x --json "));
        // As far as there is one way.
        assert_eq!(get("to").as_deref(), Some("top"));
        assert_eq!((get("session "), get("nonsense x")), (None, None));
    }
}
