//! `carillon shell`: a prompt over the commands that speak to a node. It changes nothing unless it was started with a reason, and the node logs each command.

mod class;
mod completion;

use super::client::Client;
use super::failure::Failure;
use super::output::printable;
use super::remote::Remote;
use super::{Cli, Command, Printing};
use clap::{CommandFactory, Parser};
use class::{Class, class};
use completion::Words;
use dialoguer::{BasicHistory, Input};
use serde_json::json;
use std::io::{BufRead, IsTerminal, Write};
use std::time::Instant;

/// What `carillon shell` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    remote: Remote,
    /// Why things will be changed; without it, commands that change something are refused
    #[arg(long, value_name = "REASON")]
    write: Option<String>,
}

/// A shell.
struct Shell {
    remote: Remote,
    client: Client,
    reason: Option<String>,
}

/// Lines that are kept to be called up again.
const HISTORY_LINES: usize = 500;
/// Bytes of a command that are logged.
const LOGGED_BYTES: usize = 1024;
/// Options whose values are secrets, and are not logged.
const SECRETS: &[&str] = &["--password", "--key", "--secret"];

/// Does what is said, line by line, until the end of the input or `exit`. Fails as the last command that failed did.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    let Args { remote, write } = args;
    let shell = Shell { client: remote.client()?, remote, reason: write };
    if std::io::stdin().is_terminal() {
        return shell.ask(out);
    }
    let mut result = Ok(());
    for line in std::io::stdin().lock().lines() {
        if let Err(failure) = shell.line(&line?, out) {
            eprintln!("carillon: {failure}");
            result = Err(failure);
        }
    }
    match result {
        // It was said already.
        Err(failure) => Err(Failure::Refused(format!("the last failure: {failure}"))),
        Ok(()) => Ok(()),
    }
}

impl Shell {
    /// Asks for lines on a terminal.
    fn ask(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let (words, mut history) =
            (Words::of(&Cli::command()), BasicHistory::new().max_entries(HISTORY_LINES));
        let how = if self.reason.is_some() { "changes are allowed" } else { "read-only" };
        writeln!(
            out,
            "{how}; Tab completes, arrows call up earlier lines, `help` lists commands, `exit` leaves"
        )?;
        loop {
            let line = Input::<String>::new()
                .with_prompt("carillon")
                .history_with(&mut history)
                .completion_with(&words)
                .allow_empty(true)
                .interact_text()
                .map_err(|error| Failure::Usage(format!("the terminal: {error}")))?;
            if matches!(line.trim(), "exit" | "quit") {
                return Ok(());
            }
            if let Err(failure) = self.line(&line, out) {
                writeln!(out, "{failure}")?;
            }
            out.flush()?;
        }
    }

    /// Does what a line says.
    fn line(&self, line: &str, out: &mut dyn Write) -> Result<(), Failure> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || matches!(line, "exit" | "quit") {
            return Ok(());
        }
        let words = shell_words::split(line).map_err(|error| Failure::Usage(error.to_string()))?;
        let (said, began) = (said(&words), Instant::now());
        if words.iter().any(|word| matches!(word.as_str(), "help" | "--help" | "-h")) {
            writeln!(out, "{}", help(&words))?;
            return self.log(&said, "done", began);
        }
        let command = match self.allowed(&words) {
            Ok(command) => command,
            Err(failure) => {
                self.log(&said, "refused", began)?;
                return Err(failure);
            }
        };
        if let Class::Write = command.1 {
            // What is not in the log is not done.
            self.log(&said, "begun", began)?;
        }
        let result = super::print(command.0, out);
        self.log(&said, if result.is_ok() { "done" } else { "failed" }, began)?;
        result
    }

    /// The command, if it is one and may be given.
    fn allowed(&self, words: &[String]) -> Result<(Printing, Class), Failure> {
        let usage = |error: clap::Error| Failure::Usage(error.to_string().trim_end().to_owned());
        let all = || std::iter::once("carillon").chain(words.iter().map(String::as_str));
        let class = class(&Cli::command().try_get_matches_from(all()).map_err(usage)?);
        match (class, &self.reason) {
            (Class::Elsewhere, _) => {
                return Err(Failure::Usage("this command is not for a shell; give it outside".to_owned()));
            }
            (Class::Write, None) => {
                let said = "this changes something, and the shell is read-only: start it with --write REASON";
                return Err(Failure::Refused(said.to_owned()));
            }
            _ => {}
        }
        let is_given = |own: &str| {
            let name = own.split('=').next().unwrap_or_default();
            words.iter().any(|word| word.split('=').next() == Some(name))
        };
        let own = self.remote.words();
        let all = all().chain(own.iter().map(String::as_str).filter(|own| !is_given(own)));
        match Cli::try_parse_from(all).map_err(usage)?.command {
            Command::Printing(command) => Ok((command, class)),
            _ => Err(Failure::Usage("this command is not for a shell; give it outside".to_owned())),
        }
    }

    /// Has the node log a command.
    fn log(&self, command: &str, outcome: &str, began: Instant) -> Result<(), Failure> {
        let took_ms = began.elapsed().as_millis() as u64;
        let body =
            json!({ "command": command, "reason": self.reason, "outcome": outcome, "took_ms": took_ms });
        self.client.post("/v1/admin/audit", &body).map(|_| ())
    }
}

/// What the command line says of a command.
fn help(words: &[String]) -> String {
    let words = words.iter().map(String::as_str).filter(|word| !matches!(*word, "help" | "--help" | "-h"));
    let all = std::iter::once("carillon").chain(words).chain(["--help"]);
    Cli::command().try_get_matches_from(all).map_or_else(|error| error.to_string(), |_| String::new())
}

/// The command as it is logged: without secrets, and not longer than it may be.
fn said(words: &[String]) -> String {
    let mut said = Vec::new();
    let mut is_secret = false;
    for word in words {
        let hidden = SECRETS.iter().find(|secret| word.starts_with(&format!("{secret}=")));
        said.push(match hidden {
            _ if is_secret => "…".to_owned(),
            Some(secret) => format!("{secret}=…"),
            None => printable(word),
        });
        is_secret = SECRETS.contains(&word.as_str());
    }
    let said = said.join(" ");
    said[..said.floor_char_boundary(LOGGED_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        shell_words::split(line).expect("words")
    }

    #[test]
    fn secrets_are_not_logged() {
        assert_eq!(
            said(&words("account create a@x --password 'my secret'")),
            "account create a@x --password …"
        );
        assert_eq!(
            said(&words("account create a@x --password=secret --json")),
            "account create a@x --password=… --json"
        );
        assert_eq!(said(&["x".repeat(2000)]).len(), LOGGED_BYTES);
    }
}
