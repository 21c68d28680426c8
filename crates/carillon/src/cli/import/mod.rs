//! `carillon account import`: a file of accounts, with what belongs to them where it is of the form of XEP-0227, given to the node chunk by chunk.
//!
//! The node makes or replaces each account, so that an import that was interrupted is simply run again. A line that
//! fails harms none of the others.

mod piefxis;
mod progress;
mod rows;
#[cfg(test)]
mod tests;

use self::piefxis::Users;
use self::progress::Progress;
use self::rows::{Row, Rows};
use super::client::Client;
use super::failure::Failure;
use super::output::{Output, printable};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

/// Lines in a request: few enough that each is answered in seconds while the node hashes their passwords.
pub(super) const CHUNK_LINES: usize = 1000;
/// Bytes of a request, but for its last line.
const CHUNK_BYTES: usize = 4 << 20;
/// Failed lines that are told one by one; the others are only counted.
const FAILURES_TOLD: usize = 100;

/// Imports the accounts of `file`.
pub(super) fn run(client: &Client, file: &Path, output: &mut Output<'_>) -> Result<(), Failure> {
    let name = file.display();
    let unreadable = |e: std::io::Error| Failure::Usage(format!("{name}: {e}"));
    let opened = File::open(file).map_err(unreadable)?;
    let size = opened.metadata().map_err(unreadable)?.len();
    let records = Records::new(file, BufReader::new(opened))?;
    // A refusal may get lost when it comes in the middle of a large body: asked for before.
    client.get("/v1/admin/accounts?limit=1")?;
    let mut import =
        Import { client, progress: Progress::new(size), tally: Tally::default(), failed: Vec::new() };
    let outcome = import.all(records);
    import.settle();
    import.progress.finish();
    import.tally.report(file, output, outcome)
}

/// The records of a file.
enum Records {
    Csv(Rows<BufReader<File>>),
    Piefxis(Users),
}

impl Records {
    /// What a file has is seen by how it begins.
    fn new(path: &Path, mut file: BufReader<File>) -> Result<Records, Failure> {
        let name = path.display();
        let begin = file.fill_buf().map_err(|e| Failure::Usage(format!("{name}: {e}")))?;
        let begin = begin.strip_prefix(rows::BYTE_ORDER_MARK).unwrap_or(begin);
        if begin.trim_ascii_start().first() == Some(&b'<') {
            return Users::open(path).map(Records::Piefxis).map_err(|e| Failure::Usage(e.to_string()));
        }
        Rows::new(file).map(Records::Csv).map_err(|e| Failure::Usage(format!("{name}: {e}")))
    }

    fn next(&mut self) -> Result<Option<Row>, Failure> {
        match self {
            Records::Csv(rows) => rows.next().map_err(|e| Failure::Usage(e.to_string())),
            Records::Piefxis(users) => users.next().map_err(|e| Failure::Usage(e.to_string())),
        }
    }

    fn bytes_read(&self) -> u64 {
        match self {
            Records::Csv(rows) => rows.bytes_read(),
            Records::Piefxis(users) => users.bytes_read(),
        }
    }
}

/// Where a record was in which file, and what of the line it is.
type Place = (Option<Arc<str>>, u64, String);

/// An import that goes on.
struct Import<'a> {
    client: &'a Client,
    progress: Progress,
    tally: Tally,
    /// Failures since the last chunk, in any order, with what is wrong.
    failed: Vec<(Place, String)>,
}

/// What the node says of records that it was given.
pub(super) struct ImportReport {
    imported: u64,
    parts: u64,
    /// Lines of what it was given, counted from 1, and what is wrong with them.
    pub(super) errors: Vec<(u64, String)>,
}

/// Gives records to the node: lines of JSON.
pub(super) fn give(client: &Client, records: &[u8]) -> Result<ImportReport, Failure> {
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
    let count = |name: &str| last.get(name).and_then(Value::as_u64).unwrap_or(0);
    Ok(ImportReport { imported: count("imported"), parts: count("parts"), errors })
}

impl Import<'_> {
    fn all(&mut self, mut records: Records) -> Result<(), Failure> {
        let mut chunk = Chunk::default();
        let outcome = loop {
            let row = match records.next() {
                Ok(Some(row)) => row,
                // What comes before it is good.
                other => break other.map(drop),
            };
            let place = (row.file, row.line, row.what);
            match row.record {
                Ok(record) => chunk.push(place, &record),
                Err(detail) => self.failed.push((place, detail)),
            }
            if chunk.places.len() == CHUNK_LINES || chunk.body.len() >= CHUNK_BYTES {
                self.send(&std::mem::take(&mut chunk))?;
                self.progress.show(records.bytes_read(), self.tally.imported, self.tally.failed);
            }
        };
        if !chunk.places.is_empty() {
            self.send(&chunk)?;
        }
        if let Records::Piefxis(users) = &records {
            self.tally.passed = users.passed().iter().map(|(name, count)| (name.clone(), *count)).collect();
        }
        outcome
    }

    /// Gives a chunk to the node and takes down what became of it.
    fn send(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        let given = give(self.client, &chunk.body)?;
        let errors = given.errors.into_iter().map(|(sent, detail)| (chunk.place_in_file(sent), detail));
        self.failed.extend(errors);
        self.tally.imported += given.imported;
        self.tally.parts += given.parts;
        self.settle();
        Ok(())
    }

    /// Takes down the failures up to here in the order of their lines, whoever found them.
    fn settle(&mut self) {
        self.failed.sort();
        for (place, detail) in self.failed.drain(..) {
            self.tally.fail(place, detail);
        }
    }
}

/// Records on their way to the node: NDJSON, and where in the file each was.
#[derive(Default)]
struct Chunk {
    body: Vec<u8>,
    places: Vec<Place>,
}

impl Chunk {
    fn push(&mut self, place: Place, record: &str) {
        self.body.extend_from_slice(record.as_bytes());
        self.body.push(b'\n');
        self.places.push(place);
    }

    /// Where that was in the file which was sent as line `sent`, counted from 1.
    fn place_in_file(&self, sent: u64) -> Place {
        let index = usize::try_from(sent).unwrap_or(0).checked_sub(1);
        index.and_then(|i| self.places.get(i)).cloned().unwrap_or_default()
    }
}

/// What became of the lines so far.
#[derive(Default)]
struct Tally {
    imported: u64,
    /// What belongs to accounts.
    parts: u64,
    failed: u64,
    /// The first failures, and what is wrong.
    failures: Vec<(Place, String)>,
    /// What a file has that this server has no place for, and how often.
    passed: Vec<(String, u64)>,
}

impl Tally {
    fn fail(&mut self, place: Place, detail: String) {
        self.failed += 1;
        if self.failures.len() < FAILURES_TOLD {
            self.failures.push((place, detail));
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
            self.failures.iter().map(|(place, detail)| failure(place, detail)).collect();
        if !output.is_json() {
            for ((included, line, what), detail) in &self.failures {
                let file = included.as_ref().map_or_else(|| file.display().to_string(), ToString::to_string);
                let what = if what.is_empty() { String::new() } else { format!("{what}: ") };
                eprintln!("{file}:{line}: {}", printable(&format!("{what}{detail}")));
            }
            for (name, count) in &self.passed {
                eprintln!("passed over, {count} times: {}", printable(name));
            }
        }
        let mut value = json!({ "imported": self.imported, "failed": self.failed, "errors": failures });
        let mut said = format!("{} imported, {} failed", self.imported, self.failed);
        if self.parts > 0 {
            value["parts"] = json!(self.parts);
            said = format!(
                "{} imported, with {} contacts, items and the like, {} failed",
                self.imported, self.parts, self.failed
            );
        }
        if !self.passed.is_empty() {
            value["passed"] =
                self.passed.iter().map(|(name, count)| json!({ "element": name, "count": count })).collect();
        }
        output.done(&said, &value)?;
        outcome?;
        match self.failed {
            0 => Ok(()),
            n if self.parts > 0 => {
                Err(Failure::Refused(format!("{n} things of {} were not imported", file.display())))
            }
            n => Err(Failure::Refused(format!("{n} lines of {} were not imported", file.display()))),
        }
    }
}

/// A failure as a script reads it.
fn failure((file, line, what): &Place, detail: &str) -> Value {
    let mut value = json!({ "line": line, "detail": detail });
    if let Some(file) = file {
        value["file"] = json!(&**file);
    }
    if !what.is_empty() {
        value["what"] = json!(what);
    }
    value
}
