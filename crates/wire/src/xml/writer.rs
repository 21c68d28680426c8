//! Append-only writing of XML, with all necessary escapes.
//!
//! The output is well-formed for any text: characters that XML forbids become U+FFFD.

use super::chars::is_legal;

/// Appends `text` as the value of an attribute, for either kind of quotes.
pub(crate) fn escape_attr(out: &mut Vec<u8>, text: &str) {
    escape(out, text, &IN_VALUES);
}

/// Appends `text` as character data.
pub(crate) fn escape_text(out: &mut Vec<u8>, text: &str) {
    escape(out, text, &IN_TEXT);
}

/// The bytes that cannot be copied as they are. A table, because every byte of every attribute is tested.
type Special = [bool; 256];

static IN_VALUES: Special = special(b"&<>\"'\t\n\r");
// A reader would turn a bare CR into LF.
static IN_TEXT: Special = special(b"&<>\r");

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated at compile time: an index out of range does not compile"
)]
const fn special(marked: &[u8]) -> Special {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < b' ' {
        table[byte as usize] = !matches!(byte, b'\t' | b'\n' | b'\r');
        byte += 1;
    }
    // The first byte of U+FFFE and U+FFFF.
    table[0xEF] = true;
    let mut at = 0;
    while at < marked.len() {
        table[marked[at] as usize] = true;
        at += 1;
    }
    table
}

fn escape(out: &mut Vec<u8>, text: &str, special: &Special) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| special.get(usize::from(byte)) == Some(&true)) {
        let Some((plain, marked)) = rest.split_at_checked(at) else { return };
        out.extend_from_slice(plain.as_bytes());
        let mut chars = marked.chars();
        let Some(c) = chars.next() else { return };
        match c {
            '&' => out.extend_from_slice(b"&amp;"),
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            '"' => out.extend_from_slice(b"&quot;"),
            '\'' => out.extend_from_slice(b"&apos;"),
            '\t' => out.extend_from_slice(b"&#9;"),
            '\n' => out.extend_from_slice(b"&#10;"),
            '\r' => out.extend_from_slice(b"&#13;"),
            c if is_legal(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            _ => out.extend_from_slice("\u{FFFD}".as_bytes()),
        }
        rest = chars.as_str();
    }
    out.extend_from_slice(rest.as_bytes());
}

/// Writes tags. Names and namespaces come from code and are written as they are; values and text are escaped.
///
/// ```
/// use carillon_wire::xml::writer::Writer;
///
/// let mut out = Vec::new();
/// let mut writer = Writer::new(&mut out);
/// writer.start("a").attr("b", "c&d").close_start().text("x<y").end("a");
/// writer.start_in("e", "urn:e").close_empty();
/// assert_eq!(out, b"<a b='c&amp;d'>x&lt;y</a><e xmlns='urn:e'/>");
/// ```
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    /// Appends to `out`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// The number of bytes in the buffer.
    pub fn position(&self) -> usize {
        self.out.len()
    }

    /// `<name`
    #[inline]
    pub fn start(&mut self, name: &str) -> &mut Self {
        self.out.push(b'<');
        self.raw(name.as_bytes())
    }

    /// `<name xmlns='ns'`
    #[inline]
    pub fn start_in(&mut self, name: &str, ns: &str) -> &mut Self {
        self.start(name).raw(b" xmlns='").raw(ns.as_bytes()).raw(b"'")
    }

    /// ` name='value'`
    #[inline]
    pub fn attr(&mut self, name: &str, value: &str) -> &mut Self {
        self.out.push(b' ');
        self.raw(name.as_bytes()).raw(b"='");
        escape_attr(self.out, value);
        self.raw(b"'")
    }

    /// As [`Writer::attr`], nothing for `None`.
    pub fn attr_opt(&mut self, name: &str, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.attr(name, value),
            None => self,
        }
    }

    /// `>` of a start tag.
    pub fn close_start(&mut self) -> &mut Self {
        self.raw(b">")
    }

    /// `/>`
    pub fn close_empty(&mut self) -> &mut Self {
        self.raw(b"/>")
    }

    /// `<name xmlns='ns'/>`
    pub fn empty(&mut self, name: &str, ns: &str) -> &mut Self {
        self.start_in(name, ns).close_empty()
    }

    /// Character data.
    pub fn text(&mut self, text: &str) -> &mut Self {
        escape_text(self.out, text);
        self
    }

    /// Bytes that are known to be well-formed at this place.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend_from_slice(bytes);
        self
    }

    /// `</name>`
    pub fn end(&mut self, name: &str) -> &mut Self {
        self.raw(b"</").raw(name.as_bytes()).raw(b">")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr(text: &str) -> String {
        let mut out = Vec::new();
        escape_attr(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    fn text(text: &str) -> String {
        let mut out = Vec::new();
        escape_text(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes_what_each_place_needs() {
        assert_eq!(attr("a&b<c>d\"e'f\tg\nh\ri"), "a&amp;b&lt;c&gt;d&quot;e&apos;f&#9;g&#10;h&#13;i");
        assert_eq!(text("a&b<c>d\"e'f\tg\nh\ri]]>"), "a&amp;b&lt;c&gt;d\"e'f\tg\nh&#13;i]]&gt;");
        assert_eq!(text("é😀\u{FFFD}\u{FEFF}"), "é😀\u{FFFD}\u{FEFF}");
    }

    #[test]
    fn replaces_what_xml_forbids() {
        assert_eq!(
            text("a\0b\u{1}c\u{FFFE}d\u{FFFF}e\u{1F}"),
            "a\u{FFFD}b\u{FFFD}c\u{FFFD}d\u{FFFD}e\u{FFFD}"
        );
        assert_eq!(attr("\u{B}\u{7F}"), "\u{FFFD}\u{7F}");
    }
}
