//! `carillon upgrade`: has a running node go on in a process of another binary, and shows how far that is.

use super::failure::Failure;
use crate::config::{Config, Source};
use crate::control::{self, Answer, Request};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What `carillon upgrade` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Binary that the node goes on in; by default the file that it was started from, which may have been replaced since
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    #[command(flatten)]
    source: Source,
    /// Print JSON, an object per line
    #[arg(long)]
    json: bool,
}

/// Asks, and prints each step when it is done. A node that says no goes on as it is.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let config = Config::load(&args.source).map_err(|problems| Failure::Usage(problems.to_string()))?;
    let folder = &config.settings.node.data_dir;
    let request = Request::Upgrade { binary: args.binary.as_deref().map(absolute).transpose()? };
    let answered = control::ask(folder, &request, |answer| -> Result<(), Interrupted> {
        print(answer, args.json, out).map_err(Interrupted::Output)
    });
    match answered {
        Ok(Answer::Failed(why)) => Err(Failure::Refused(why)),
        Ok(_) => Ok(()),
        Err(Interrupted::Output(error)) => Err(Failure::Output(error)),
        Err(Interrupted::Node(error)) => Err(unanswered(folder, &error)),
    }
}

/// Why there is no last answer.
enum Interrupted {
    /// What came could not be printed.
    Output(io::Error),
    /// Nothing came.
    Node(io::Error),
}

impl From<io::Error> for Interrupted {
    fn from(error: io::Error) -> Interrupted {
        Interrupted::Node(error)
    }
}

/// The node does not know where this command runs, nor where a link leads that is changed meanwhile.
fn absolute(binary: &Path) -> Result<PathBuf, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::Usage(format!("--binary {}: {why}", binary.display()));
    let found = std::fs::canonicalize(binary).map_err(|error| wrong(&error))?;
    if !found.is_file() {
        return Err(wrong(&"not a file"));
    }
    if found.to_str().is_none() {
        return Err(wrong(&"its path is not UTF-8"));
    }
    Ok(found)
}

fn print(answer: &Answer, json: bool, out: &mut dyn Write) -> io::Result<()> {
    if json {
        writeln!(out, "{}", serde_json::to_string(answer)?)?;
    } else {
        match answer {
            Answer::Step(step) => writeln!(out, "{}", super::output::printable(step))?,
            Answer::Done { pid, sessions, silence_ms } => writeln!(
                out,
                "process {pid} serves the node, with {sessions} sessions; clients waited for {silence_ms} ms"
            )?,
            // On standard error, by whoever runs this.
            Answer::Failed(_) => {}
        }
    }
    out.flush()
}

fn unanswered(folder: &Path, error: &io::Error) -> Failure {
    let dir = folder.display();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => Failure::Unreachable(format!(
            "no node runs on {dir}: give --data-dir, or --config with the node's settings file"
        )),
        ErrorKind::PermissionDenied => Failure::Refused(format!(
            "{dir}/{}: {error}; run this command as the node's user, or as root",
            control::FILE
        )),
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            Failure::Refused("the node ended or was handed over before it answered; see its log".to_owned())
        }
        _ => Failure::Refused(format!("{dir}/{}: {error}", control::FILE)),
    }
}
