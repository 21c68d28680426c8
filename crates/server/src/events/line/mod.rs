//! Lines of the log: printing an entry, and reading the head of a line.
//!
//! Both formats print the same fields in the same order: time, shard, number, kind, and the fields of the kind
//! ([`Kind::fields`]). `docs/book/event-log.md` describes them.

mod compact;
mod json;
#[cfg(test)]
mod tests;
mod time;

use carillon_core::event::{Kind, Record};
use carillon_core::model::UnixMs;

/// The format of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A JSON object.
    Json,
    /// Values between tabs.
    Compact,
}

impl Format {
    /// The extension of its files.
    pub fn extension(self) -> &'static str {
        match self {
            Format::Json => "jsonl",
            Format::Compact => "tsv",
        }
    }

    /// The other format.
    pub(super) fn other(self) -> Format {
        match self {
            Format::Json => Format::Compact,
            Format::Compact => Format::Json,
        }
    }
}

/// The fields that every line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// When it happened.
    pub at: UnixMs,
    /// In which shard.
    pub shard: u16,
    /// Its number in the shard, without gaps.
    pub seq: u64,
    /// Its kind.
    pub kind: Kind,
}

/// Reads the head of a line of either format, without its newline. None if it is not a line of an event log.
pub fn head(line: &[u8]) -> Option<Head> {
    if line.first() == Some(&b'{') { json::head(line) } else { compact::head(line) }
}

/// Converts a line of either format to JSON, without its newline. None if it is not a line of an event log.
pub fn to_json(line: &[u8]) -> Option<Vec<u8>> {
    if line.first() == Some(&b'{') {
        return json::head(line).map(|_| line.to_vec());
    }
    compact::to_json(line)
}

/// Prints entries as lines. Keeps the text of the last time, as the next one is likely to be the same.
pub(super) struct Printer {
    format: Format,
    stamp: time::Stamp,
}

impl Printer {
    pub(super) fn new(format: Format) -> Printer {
        Printer { format, stamp: time::Stamp::default() }
    }

    /// Appends the line of an entry, with its newline.
    pub(super) fn print(&mut self, out: &mut Vec<u8>, shard: u16, record: &Record<'_>) {
        let head = Head { at: record.at, shard, seq: record.seq, kind: record.kind };
        match self.format {
            Format::Json => {
                json::begin(out, &head, self.stamp.of(record.at));
                record.fields().for_each(|(field, value)| json::field(out, field.name, value));
                out.extend_from_slice(b"}\n");
            }
            Format::Compact => {
                compact::begin(out, &head);
                record.fields().for_each(|(_, value)| compact::field(out, value));
                out.push(b'\n');
            }
        }
    }
}

/// Appends a number.
fn number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Parses decimal digits.
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |n, c| {
        let digit = c.is_ascii_digit().then(|| u64::from(c - b'0'))?;
        n.checked_mul(10)?.checked_add(digit)
    })
}
