//! What happened, as a number: the same history has the same, and one that differs anywhere has another.

use std::fmt::{self, Write};

/// A running hash (FNV-1a) of everything that is noted, and on request its text.
#[derive(Clone, Debug)]
pub struct Trace {
    is_kept: bool,
    hash: u64,
    lines: u64,
    text: Option<String>,
}

impl Default for Trace {
    fn default() -> Trace {
        Trace { is_kept: true, hash: 0xcbf2_9ce4_8422_2325, lines: 0, text: None }
    }
}

impl Trace {
    /// Notes nothing from now on: to write everything down takes longer than to do it.
    pub fn stop(&mut self) {
        self.is_kept = false;
    }

    /// Keeps the text from now on, until it is taken.
    pub fn keep_text(&mut self) {
        self.text.get_or_insert_default();
    }

    /// The text since it was last taken.
    pub fn take_text(&mut self) -> String {
        self.text.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes a line.
    pub fn note(&mut self, line: fmt::Arguments<'_>) {
        if !self.is_kept {
            return;
        }
        self.lines += 1;
        // Writing to a number does not fail, nor to a text.
        let _ = self.write_fmt(line);
        let _ = self.write_char('\n');
    }

    /// The number of what was noted.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// How many lines were.
    pub fn lines(&self) -> u64 {
        self.lines
    }
}

impl Write for Trace {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        if let Some(kept) = &mut self.text {
            kept.push_str(text);
        }
        Ok(())
    }
}
