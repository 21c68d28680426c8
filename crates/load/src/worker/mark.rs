//! The mark in everything that the tester sends: the test, the item and the time at which it was due. From it a receiver
//! computes the latency, and ignores what remains of another test.

use std::fmt;

use memchr::memmem::Finder;
use serde_json::json;

/// Items per phase; items of different phases have different numbers.
pub(super) const ITEMS_PER_PHASE: u32 = 10_000_000;
/// The item of everything behind the last that has a number of its own: whether it arrives twice is not noticed.
pub(super) const UNTRACKED: u32 = ITEMS_PER_PHASE - 1;

/// The mark of a message, notification or item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Its number: see [`number`].
    pub(super) number: u32,
    /// When it was due, in the orchestrator's Unix time.
    pub(super) due_unix_ns: u64,
}

/// Finds the marks of one test.
#[derive(Debug)]
pub(super) struct Marks {
    prefix: String,
    finder: Finder<'static>,
}

/// The number of an item, counted from 0 within its phase.
pub(super) fn number(phase: u32, item: u32) -> u32 {
    phase.saturating_mul(ITEMS_PER_PHASE).saturating_add(item)
}

/// The phase and the item of a number.
pub(super) fn phase_and_item(number: u32) -> (u32, u32) {
    (number / ITEMS_PER_PHASE, number % ITEMS_PER_PHASE)
}

impl Marks {
    /// The marks of a test, whose id has letters, digits and hyphens only.
    pub(super) fn of(test: &str) -> Self {
        let prefix = format!("load:{test}:");
        let finder = Finder::new(prefix.as_bytes()).into_owned();
        Self { prefix, finder }
    }

    /// Text of this size that begins with a mark; longer if the mark is.
    pub(super) fn text(&self, mark: Mark, bytes: usize) -> String {
        let begin = format!("{}{}:{}:", self.prefix, mark.number, mark.due_unix_ns);
        format!("{begin:x<bytes$}")
    }

    /// JSON of about this size that contains a mark.
    pub(super) fn json(&self, mark: Mark, bytes: usize) -> serde_json::Value {
        json!({ "text": self.text(mark, bytes.saturating_sub(AROUND_TEXT_BYTES)) })
    }

    /// The mark in received bytes, if it is of this test.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<Mark> {
        let rest = &bytes[self.finder.find(bytes)? + self.prefix.len()..];
        let (number, rest) = take_number(rest)?;
        let (due_unix_ns, _) = take_number(rest)?;
        Some(Mark { number: u32::try_from(number).ok()?, due_unix_ns })
    }
}

/// The same JSON as text.
pub(super) struct JsonText<'a> {
    pub(super) marks: &'a Marks,
    pub(super) mark: Mark,
    pub(super) bytes: usize,
}

impl fmt::Display for JsonText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A mark contains nothing that JSON escapes.
        let text = self.marks.text(self.mark, self.bytes.saturating_sub(AROUND_TEXT_BYTES));
        f.write_str("{\"text\":\"")?;
        f.write_str(&text)?;
        f.write_str("\"}")
    }
}

/// `{"text":""}`
const AROUND_TEXT_BYTES: usize = 11;

/// A number and the colon after it.
fn take_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let end = bytes.iter().take(21).position(|byte| *byte == b':')?;
    let number = std::str::from_utf8(&bytes[..end]).ok()?.parse().ok()?;
    Some((number, &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_again() {
        let marks = Marks::of("t-1");
        let mark = Mark { number: number(3, 17), due_unix_ns: u64::MAX };
        let text = marks.text(mark, 100);
        assert_eq!(text.len(), 100);
        assert_eq!(marks.json(mark, 400).to_string().len(), 400);
        let written = JsonText { marks: &marks, mark, bytes: 400 }.to_string();
        assert_eq!(written, marks.json(mark, 400).to_string());
        assert_eq!(marks.find(format!("<body>{text}</body>").as_bytes()), Some(mark));
        assert_eq!(phase_and_item(mark.number), (3, 17));
        assert_eq!(Marks::of("t-2").find(text.as_bytes()), None);
        assert_eq!(Marks::of("t").find(text.as_bytes()), None);
    }

    #[test]
    fn broken_marks_are_none() {
        let marks = Marks::of("t");
        for broken in
            ["load:t:", "load:t:1", "load:t:1:", "load:t:1:2", "load:t:-1:2:", "load:t:5000000000:2:"]
        {
            assert_eq!(marks.find(broken.as_bytes()), None, "{broken}");
        }
    }
}
