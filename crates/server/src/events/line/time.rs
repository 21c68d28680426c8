//! Times in the JSON format: `2026-11-20T09:30:00.125Z`, always of this length.

use carillon_core::model::UnixMs;

/// The text of the last time that was formatted.
pub(super) struct Stamp {
    at: UnixMs,
    text: String,
}

impl Default for Stamp {
    fn default() -> Stamp {
        let at = UnixMs::default();
        Stamp { at, text: at.to_xmpp() }
    }
}

impl Stamp {
    /// Formats a time.
    pub(super) fn of(&mut self, at: UnixMs) -> &str {
        if at != self.at {
            self.at = at;
            self.text = at.to_xmpp();
        }
        &self.text
    }
}

/// Parses a time, in no other form than it was printed.
pub(super) fn parse(text: &[u8]) -> Option<UnixMs> {
    let at = UnixMs::from_rfc3339(str::from_utf8(text).ok()?)?;
    (text.len() == LEN && text.ends_with(b"Z")).then_some(at)
}

const LEN: usize = "2026-11-20T09:30:00.125Z".len();
