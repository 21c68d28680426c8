//! `carillon account import`: a file of accounts, given to the node chunk by chunk.
//!
//! The node makes or replaces each account, so that an import that was interrupted is simply run again. A line that
//! fails harms none of the others.

mod progress;
mod rows;
#[cfg(test)]
mod tests;

use self::progress::Progress;
use self::rows::{Row, Rows};
use super::client::Client;
use super::failure::Failure;
use super::output::{Output, printable};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Lines in a request: few enough that each is answered in seconds while the node hashes their passwords.
pub(super) const CHUNK_LINES: usize = 1000;
/// Failed lines that are told one by one; the others are only counted.
const FAILURES_TOLD: usize = 100;

/// Imports the accounts of `file`.
pub(super) fn run(client: &Client, file: &Path, output: &mut Output<'_>) -> Result<(), Failure> {
    let name = file.display();
    let unreadable = |e: std::io::Error| Failure::Usage(format!("{name}: {e}"));
    let opened = File::open(file).map_err(unreadable)?;
    let size = opened.metadata().map_err(unreadable)?.len();
    let rows = Rows::new(BufReader::new(opened)).map_err(|e| Failure::Usage(format!("{name}: {e}")))?;
    // A refusal may get lost when it comes in the middle of a large body: asked for before.
    client.get("/v1/admin/accounts?limit=1")?;
    let mut import =
        Import { client, progress: Progress::new(size), tally: Tally::default(), failed: Vec::new() };
    let outcome = import.all(rows);
    import.settle();
    import.progress.finish();
    import.tally.report(file, output, outcome)
}

/// An import that goes on.
struct Import<'a> {
    client: &'a Client,
    progress: Progress,
    tally: Tally,
    /// Failures since the last chunk, in any order: line and detail.
    failed: Vec<(u64, String)>,
}

/// What the node says of records that it was given.
pub(super) struct Given {
    imported: u64,
    /// Lines of what it was given, counted from 1, and what is wrong with them.
    pub(super) errors: Vec<(u64, String)>,
}

/// Gives records to the node: lines of JSON.
pub(super) fn give(client: &Client, records: &[u8]) -> Result<Given, Failure> {
    let answer = client.post_lines("/v1/admin/accounts/import", records)?;
    let (mut last, mut errors) = (Value::Null, Vec::new());
    for line in answer.lines() {
        last = serde_json::from_str(line).unwrap_or_default();
        for error in last.get("errors").and_then(Value::as_array).into_iter().flatten() {
            let line = error.get("line").and_then(Value::as_u64).unwrap_or(0);
            let detail = error.get("detail").and_then(Value::as_str).unwrap_or("refused");
            errors.push((line, detail.to_owned()));
        }
    }
    // The node says so after the last commit; without, it ended in between.
    if last.get("done") != Some(&Value::Bool(true)) {
        return Err(Failure::Unreachable("the node ended in the middle: run the import again".to_owned()));
    }
    Ok(Given { imported: last.get("imported").and_then(Value::as_u64).unwrap_or(0), errors })
}

impl Import<'_> {
    fn all<R: BufRead>(&mut self, mut rows: Rows<R>) -> Result<(), Failure> {
        let mut chunk = Chunk::default();
        while let Some(Row { line, record }) = rows.next().map_err(|e| Failure::Usage(e.to_string()))? {
            match record {
                Ok(record) => chunk.push(line, &record),
                Err(detail) => self.failed.push((line, detail)),
            }
            if chunk.lines.len() == CHUNK_LINES {
                self.send(&std::mem::take(&mut chunk))?;
                self.progress.show(rows.bytes_read(), self.tally.imported, self.tally.failed);
            }
        }
        if chunk.lines.is_empty() { Ok(()) } else { self.send(&chunk) }
    }

    /// Gives a chunk to the node and takes down what became of it.
    fn send(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        let given = give(self.client, &chunk.body)?;
        let errors = given.errors.into_iter().map(|(sent, detail)| (chunk.line_in_file(sent), detail));
        self.failed.extend(errors);
        self.tally.imported += given.imported;
        self.settle();
        Ok(())
    }

    /// Takes down the failures up to here in the order of their lines, whoever found them.
    fn settle(&mut self) {
        self.failed.sort();
        for (line, detail) in self.failed.drain(..) {
            self.tally.fail(line, detail);
        }
    }
}

/// Records on their way to the node: NDJSON, and which line of the file each was.
#[derive(Default)]
struct Chunk {
    body: Vec<u8>,
    lines: Vec<u64>,
}

impl Chunk {
    fn push(&mut self, line: u64, record: &str) {
        self.body.extend_from_slice(record.as_bytes());
        self.body.push(b'\n');
        self.lines.push(line);
    }

    /// The line of the file that was sent as line `sent`, counted from 1.
    fn line_in_file(&self, sent: u64) -> u64 {
        let index = usize::try_from(sent).unwrap_or(0).checked_sub(1);
        index.and_then(|i| self.lines.get(i)).copied().unwrap_or(0)
    }
}

/// What became of the lines so far.
#[derive(Default)]
struct Tally {
    imported: u64,
    failed: u64,
    /// The first failures: line and detail.
    failures: Vec<(u64, String)>,
}

impl Tally {
    fn fail(&mut self, line: u64, detail: String) {
        self.failed += 1;
        if self.failures.len() < FAILURES_TOLD {
            self.failures.push((line, detail));
        }
    }

    /// Tells what became of the file. `outcome` says whether it was read and sent to its end.
    fn report(
        self,
        file: &Path,
        output: &mut Output<'_>,
        outcome: Result<(), Failure>,
    ) -> Result<(), Failure> {
        let failures: Vec<Value> =
            self.failures.iter().map(|(line, detail)| json!({ "line": line, "detail": detail })).collect();
        if !output.is_json() {
            for (line, detail) in &self.failures {
                eprintln!("{}:{line}: {}", file.display(), printable(detail));
            }
        }
        let value = json!({ "imported": self.imported, "failed": self.failed, "errors": failures });
        output.done(&format!("{} imported, {} failed", self.imported, self.failed), &value)?;
        outcome?;
        match self.failed {
            0 => Ok(()),
            n => Err(Failure::Refused(format!("{n} lines of {} were not imported", file.display()))),
        }
    }
}
