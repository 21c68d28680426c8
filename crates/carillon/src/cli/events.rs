//! `carillon events`: reads the files of an event log. No node needs to run.

use super::failure::Failure;
use crate::assemble;
use crate::config::{Config, Source};
use carillon_server::events::{Verifier, current, files, open, to_json};
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What `carillon events` is told.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print the last lines, and those that come, until interrupted
    Tail {
        /// How many of the last lines
        #[arg(long, short = 'n', default_value_t = 10, value_name = "NUMBER")]
        lines: usize,
        /// Only what is there now
        #[arg(long)]
        no_follow: bool,
        #[command(flatten)]
        source: Source,
    },
    /// Look for lines that are missing or came twice; exit code 1 when there are
    Verify(Files),
    /// Print lines as JSON, whatever their form, compressed or not
    Cat(Files),
}

/// The files to read.
#[derive(Debug, clap::Args)]
struct Files {
    /// Files or folders, in the order in which they were written; without any, the folder that the settings name
    paths: Vec<PathBuf>,
    #[command(flatten)]
    source: Source,
}

/// Does what is said.
pub(super) fn run(args: Args, out: &mut dyn Write) -> Result<(), Failure> {
    match args.command {
        Command::Tail { lines, no_follow, source } => tail(&folder(&source)?, lines, no_follow, out),
        Command::Verify(files) => verify(&files.list()?, out),
        Command::Cat(files) => cat(&files.list()?, out),
    }
}

impl Files {
    fn list(&self) -> Result<Vec<PathBuf>, Failure> {
        let named = match self.paths.as_slice() {
            [] => vec![folder(&self.source)?],
            some => some.to_vec(),
        };
        let mut list = Vec::new();
        for path in named {
            match path.is_dir() {
                true => list.extend(files(&path).map_err(|error| unreadable(&path, &error))?),
                false => list.push(path),
            }
        }
        Ok(list)
    }
}

fn folder(source: &Source) -> Result<PathBuf, Failure> {
    let config = Config::load(source).map_err(|problems| Failure::Usage(problems.to_string()))?;
    Ok(assemble::event_folder(&config.settings))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::Usage(format!("cannot read {}: {error}", path.display()))
}

fn cat(paths: &[PathBuf], out: &mut dyn Write) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(out);
    for path in paths {
        each_line(path, |line| match to_json(line) {
            Some(mut json) => {
                json.push(b'\n');
                Ok(out.write_all(&json)?)
            }
            None => Err(Failure::Refused(format!("{}: not a line of an event log", path.display()))),
        })?;
    }
    Ok(out.flush()?)
}

fn verify(paths: &[PathBuf], out: &mut dyn Write) -> Result<(), Failure> {
    let mut verifier = Verifier::default();
    let mut found = 0u64;
    for path in paths {
        each_line(path, |line| {
            if let Some(finding) = verifier.line(line) {
                found += 1;
                writeln!(out, "{}: {finding}", path.display())?;
            }
            Ok(())
        })?;
    }
    let (lines, shards) = (verifier.lines(), verifier.shards());
    let count = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let read = [count(lines, "line"), count(shards as u64, "shard"), count(paths.len() as u64, "file")];
    let read = format!("{} of {} in {}", read[0], read[1], read[2]);
    if found > 0 {
        writeln!(out, "{read}")?;
        return Err(Failure::Refused(count(found, "finding")));
    }
    Ok(writeln!(out, "{read}: nothing missing, nothing twice")?)
}

/// Gives each line to `take`, without its newline.
fn each_line(path: &Path, mut take: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut reader = open(path).map_err(|error| unreadable(path, &error))?;
    let mut line = Vec::new();
    loop {
        line.clear();
        let n = reader.read_until(b'\n', &mut line).map_err(|error| unreadable(path, &error))?;
        match line.strip_suffix(b"\n") {
            Some(line) => take(line)?,
            None if n == 0 => return Ok(()),
            // The last line of a file that is being written may not be whole yet.
            None => return Ok(()),
        }
    }
}

fn tail(folder: &Path, lines: usize, no_follow: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let none = || Failure::Usage(format!("no event log in {}; is event_log.enabled set?", folder.display()));
    let path = current(folder).ok_or_else(none)?;
    let mut file = File::open(&path).map_err(|error| unreadable(&path, &error))?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL_BYTES)))?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let mut newlines = text.iter().enumerate().rev().filter(|(_, c)| **c == b'\n').map(|(at, _)| at + 1);
    // Behind the newline before the first of the wanted lines; the beginning, when there are not so many.
    text.drain(..newlines.nth(lines).unwrap_or(0));
    print_whole(&mut text, out)?;
    if no_follow {
        return Ok(());
    }
    loop {
        if file.read_to_end(&mut text)? == 0 {
            match successor(folder, &file)? {
                Some(next) => {
                    // What came between the last look and its end.
                    file.read_to_end(&mut text)?;
                    print_whole(&mut text, out)?;
                    file = next;
                }
                None => std::thread::sleep(LOOK_AGAIN),
            }
        }
        print_whole(&mut text, out)?;
    }
}

/// Prints whole lines, and leaves half a one for later.
fn print_whole(text: &mut Vec<u8>, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(at) = text.iter().rposition(|&c| c == b'\n') {
        out.write_all(&text[..=at])?;
        out.flush()?;
        text.drain(..=at);
    }
    Ok(())
}

/// The file that is written now, when it is not this one any more.
fn successor(folder: &Path, file: &File) -> Result<Option<File>, Failure> {
    let Some(path) = current(folder) else { return Ok(None) };
    let Ok(next) = File::open(path) else { return Ok(None) };
    Ok((next.metadata()?.ino() != file.metadata()?.ino()).then_some(next))
}

/// How far before the end of a file the last lines are looked for.
const TAIL_BYTES: u64 = 1 << 20;
/// How often a file is looked at for new lines.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::write;

    const LOG: &str = "start\t1\t0\t0\npublish\t2\t0\t1\ta\tb\tc\nstop\t3\t0\t3\n";

    fn files(paths: Vec<PathBuf>) -> Files {
        Files { paths, source: Source::default() }
    }

    #[test]
    fn the_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path().join("events.tsv"), format!("{LOG}half")).unwrap();
        for (lines, wanted) in [(0, ""), (1, "stop\t3\t0\t3\n"), (3, LOG), (9, LOG)] {
            let mut out = Vec::new();
            tail(folder.path(), lines, true, &mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), wanted, "{lines}");
        }
        assert!(tail(Path::new("/nowhere"), 1, true, &mut Vec::new()).is_err());
    }

    #[test]
    fn a_folder_as_json() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path().join("events.tsv"), LOG).unwrap();
        let mut out = Vec::new();
        cat(&files(vec![folder.path().to_owned()]).list().unwrap(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 3);
        for line in text.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.tsv");
        write(&path, LOG).unwrap();
        let mut out = Vec::new();
        assert!(verify(&files(vec![path]).list().unwrap(), &mut out).is_err());
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("1 missing before line 3 of shard 0"), "{text}");
    }
}
