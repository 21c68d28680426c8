//! Cuts the byte stream of a TCP connection into stream header, stanzas, white space and the stream's end.
//!
//! The framer searches the caller's buffer and has none of its own. Between polls it remembers its position, so that bytes
//! of an incomplete unit are not searched twice, except for a character, reference or `<![CDATA[` that is cut in two (at most
//! 16 bytes). It refuses what XMPP forbids as early as it can; the full check follows when the unit is read.

use quick_xml::parser::{ElementParser, Parser};

use crate::xml::{
    Error, Limits, REFERENCE_BYTES_MAX, Restriction, is_space, legal_utf8_prefix, resolve_reference,
    split_declaration,
};

const CDATA_START: &[u8] = b"<![CDATA[";
const CDATA_END: &[u8] = b"]]>";
const DECLARATION_START: &[u8] = b"<?xml";

/// What stands at the front of the buffer. The number is the unit's length in bytes: the caller consumes that many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// An incomplete unit, or no bytes: poll again with more.
    Incomplete,
    /// White space between units: a keep-alive.
    Whitespace(usize),
    /// A stream header, with the XML declaration before it: for [`Header::parse`](crate::stream::Header::parse).
    Header(usize),
    /// A whole top-level element: for [`stanza::read`](crate::stanza::read).
    Element(usize),
    /// The end tag of the stream.
    Close(usize),
}

/// Finds units in a stream of bytes without allocating. It has 48 bytes, because each connection has one.
#[derive(Clone, Debug)]
pub struct Framer {
    limits: Limits,
    /// Bytes of the current unit that have been searched for its end.
    searched: u32,
    /// Bytes of the current unit that are known to be legal characters.
    checked: u32,
    /// The hash of the header's name, which the stream's end tag must have.
    header_name: u32,
    /// Open elements of the current unit.
    depth: u16,
    /// The hashes of the innermost names.
    names: Names,
    phase: Phase,
    place: Place,
}

/// The state of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Only a stream header is allowed.
    BeforeHeader,
    /// Stanzas are allowed.
    Open,
    /// Only white space is allowed.
    Closed,
}

/// The position within a unit of the byte at `searched`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Between units.
    Between,
    /// In an element's text.
    Text,
    /// At `<`.
    Markup,
    /// At `&`.
    Reference,
    /// In a start tag.
    StartTag(ElementParser),
    /// In an end tag.
    EndTag,
    /// In a CDATA section.
    Cdata,
    /// In an XML declaration.
    Declaration,
}

/// What is known of a stream between two of its units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamState {
    /// A header must come.
    BeforeHeader,
    /// Stanzas may come.
    Open {
        /// The hash of the header's name, which the stream's end tag must have.
        header_name: u32,
    },
    /// Only white space may come.
    Closed,
}

impl Framer {
    /// A framer that goes on with a stream where another left it, from the first byte that was not consumed: see
    /// [`Framer::state`].
    pub fn resume(state: StreamState, limits: Limits) -> Self {
        let (phase, header_name) = match state {
            StreamState::BeforeHeader => (Phase::BeforeHeader, 0),
            StreamState::Open { header_name } => (Phase::Open, header_name),
            StreamState::Closed => (Phase::Closed, 0),
        };
        Self { phase, header_name, ..Self::new(limits) }
    }

    /// What another framer has to know to go on with the stream. Where this one stands in an incomplete unit is not part of it: the
    /// other is given the unit's bytes again, from the first one.
    pub fn state(&self) -> StreamState {
        match self.phase {
            Phase::BeforeHeader => StreamState::BeforeHeader,
            Phase::Open => StreamState::Open { header_name: self.header_name },
            Phase::Closed => StreamState::Closed,
        }
    }

    /// A framer that expects a stream header.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            searched: 0,
            checked: 0,
            header_name: 0,
            depth: 0,
            names: Names::default(),
            phase: Phase::BeforeHeader,
            place: Place::Between,
        }
    }

    /// Changes the limits, also for the current unit.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Expects a new stream header at the front of the next buffer: after TLS or SASL.
    pub fn restart(&mut self) {
        *self = Self::new(self.limits);
    }

    /// Whether nothing of an incomplete unit has been seen.
    pub fn is_idle(&self) -> bool {
        self.searched == 0 && self.place == Place::Between
    }

    /// Searches for the next unit. `buf[0]` is the first byte that has not been consumed; after
    /// [`Step::Incomplete`] the caller passes the same bytes again, followed by more.
    ///
    /// # Errors
    /// Any [`Error`]; the caller must close the stream and not poll the framer again before a restart.
    pub fn poll(&mut self, buf: &[u8]) -> Result<Step, Error> {
        // Bytes past the limit are never searched, so offsets fit into 32 bits.
        let window = self.limits.stanza_bytes.min(u32::MAX as usize);
        let visible = buf.get(..window).unwrap_or(buf);
        let found = self.search(visible);
        let searched = self.searched(visible);
        self.check_characters(searched)?;
        match found? {
            Step::Incomplete if visible.len() >= window => Err(Error::TooLarge),
            Step::Incomplete => Ok(Step::Incomplete),
            step => {
                (self.searched, self.checked, self.place) = (0, 0, Place::Between);
                Ok(step)
            }
        }
    }

    /// The bytes of the current unit that have been searched.
    fn searched<'b>(&self, buf: &'b [u8]) -> &'b [u8] {
        buf.get(..self.searched as usize).unwrap_or(buf)
    }

    fn check_characters(&mut self, searched: &[u8]) -> Result<(), Error> {
        let unchecked = searched.get(self.checked as usize..).unwrap_or_default();
        self.checked += legal_utf8_prefix(unchecked)? as u32;
        Ok(())
    }

    /// Searches until the end of the unit or of the buffer.
    fn search(&mut self, buf: &[u8]) -> Result<Step, Error> {
        loop {
            let rest = buf.get(self.searched as usize..).unwrap_or_default();
            let step = match self.place {
                Place::Between => self.between(rest)?,
                Place::Text => self.text(rest),
                Place::Markup => self.markup(rest)?,
                Place::Reference => self.reference(rest)?,
                Place::StartTag(parser) => self.start_tag(parser, buf, rest)?,
                Place::EndTag => self.end_tag(buf, rest)?,
                Place::Cdata => self.until(rest, CDATA_END, Place::Text),
                Place::Declaration => self.declaration(buf, rest)?,
            };
            if let Some(step) = step {
                return Ok(step);
            }
        }
    }

    fn between(&mut self, rest: &[u8]) -> Result<Option<Step>, Error> {
        match rest.first() {
            None => Ok(Some(Step::Incomplete)),
            Some(b'<') if self.phase == Phase::Closed => Err(Error::NotOneElement),
            Some(b'<') => {
                self.place = Place::Markup;
                Ok(None)
            }
            Some(&b) if is_space(b) => {
                let length = rest.iter().take_while(|b| is_space(**b)).count();
                // White space between the XML declaration and the header belongs to the header.
                if self.searched == 0 {
                    return Ok(Some(Step::Whitespace(length)));
                }
                self.searched += length as u32;
                Ok(None)
            }
            Some(_) => {
                // It may be an illegal character.
                self.searched += 1;
                Err(Error::TextAtStreamLevel)
            }
        }
    }

    fn text(&mut self, rest: &[u8]) -> Option<Step> {
        match memchr::memchr2(b'<', b'&', rest) {
            None => {
                self.searched += rest.len() as u32;
                Some(Step::Incomplete)
            }
            Some(at) => {
                self.searched += at as u32;
                self.place = if rest.get(at) == Some(&b'<') { Place::Markup } else { Place::Reference };
                None
            }
        }
    }

    /// `rest` begins with `<`.
    fn markup(&mut self, rest: &[u8]) -> Result<Option<Step>, Error> {
        let (place, length) = match rest.get(1) {
            None => return Ok(Some(Step::Incomplete)),
            Some(b'/') if self.phase == Phase::BeforeHeader => return Err(Error::MismatchedTag),
            Some(b'/') => (Place::EndTag, 2),
            Some(b'?') => return self.question_mark(rest),
            Some(b'!') => return self.exclamation_mark(rest),
            // Exact for ASCII; the reader checks the rest.
            Some(&b) if b.is_ascii_alphabetic() || b == b'_' || b >= 0x80 => {
                (Place::StartTag(ElementParser::Outside), 1)
            }
            Some(_) => {
                self.searched += 2;
                return Err(Error::Name);
            }
        };
        if matches!(place, Place::StartTag(_)) && self.depth >= self.limits.depth_max() {
            return Err(Error::TooDeep);
        }
        self.place = place;
        self.searched += length;
        Ok(None)
    }

    /// `rest` begins with `<?`: only an XML declaration at the very front of a header is allowed.
    fn question_mark(&mut self, rest: &[u8]) -> Result<Option<Step>, Error> {
        let error = Error::Restricted(Restriction::ProcessingInstruction);
        if self.phase != Phase::BeforeHeader || self.searched != 0 {
            return Err(error);
        }
        let length = DECLARATION_START.len();
        let seen = rest.get(..length).unwrap_or(rest);
        match rest.get(length) {
            _ if !DECLARATION_START.starts_with(seen) => Err(error),
            None => Ok(Some(Step::Incomplete)),
            Some(b) if !is_space(*b) && *b != b'?' => Err(error),
            Some(_) => {
                self.place = Place::Declaration;
                self.searched += length as u32;
                Ok(None)
            }
        }
    }

    /// `rest` begins with `<!`: only a CDATA section inside an element is allowed.
    fn exclamation_mark(&mut self, rest: &[u8]) -> Result<Option<Step>, Error> {
        if self.depth == 0 && rest.get(2) == Some(&b'[') {
            return Err(Error::TextAtStreamLevel);
        }
        let seen = rest.get(..CDATA_START.len()).unwrap_or(rest);
        if !CDATA_START.starts_with(seen) {
            let kind =
                if rest.get(2) == Some(&b'-') { Restriction::Comment } else { Restriction::DocumentType };
            return Err(Error::Restricted(kind));
        }
        if seen.len() < CDATA_START.len() {
            return Ok(Some(Step::Incomplete));
        }
        self.place = Place::Cdata;
        self.searched += CDATA_START.len() as u32;
        Ok(None)
    }

    /// `rest` begins with `&`.
    fn reference(&mut self, rest: &[u8]) -> Result<Option<Step>, Error> {
        let window = rest.get(1..rest.len().min(REFERENCE_BYTES_MAX + 2)).unwrap_or_default();
        let end = match memchr::memchr2(b';', b'<', window) {
            Some(at) if window.get(at) == Some(&b';') => at,
            None if window.len() <= REFERENCE_BYTES_MAX => return Ok(Some(Step::Incomplete)),
            _ => return Err(Error::Reference),
        };
        let name =
            std::str::from_utf8(window.get(..end).unwrap_or_default()).map_err(|_| Error::InvalidUtf8)?;
        resolve_reference(name)?;
        self.searched += end as u32 + 2;
        self.place = Place::Text;
        Ok(None)
    }

    fn start_tag(
        &mut self,
        mut parser: ElementParser,
        buf: &[u8],
        rest: &[u8],
    ) -> Result<Option<Step>, Error> {
        let end = parser.feed(rest);
        let length = end.map_or(rest.len(), |at| at + 1);
        if let Some(at) = memchr::memchr(b'<', rest.get(..length).unwrap_or(rest)) {
            self.searched += at as u32;
            return Err(Error::Tag);
        }
        self.searched += length as u32;
        if end.is_none() {
            self.place = Place::StartTag(parser);
            return Ok(Some(Step::Incomplete));
        }
        let unit = self.searched(buf);
        if self.phase == Phase::BeforeHeader {
            self.phase = Phase::Open;
            self.header_name = header_name(unit);
            return Ok(Some(Step::Header(unit.len())));
        }
        self.place = Place::Text;
        if !unit.ends_with(b"/>") {
            self.depth += 1;
            // A tag contains no `<`.
            let start = memchr::memrchr(b'<', unit).map_or(0, |at| at + 1);
            self.names.open(name_hash(unit.get(start..).unwrap_or_default()));
        } else if self.depth == 0 {
            return Ok(Some(Step::Element(unit.len())));
        }
        Ok(None)
    }

    fn end_tag(&mut self, buf: &[u8], rest: &[u8]) -> Result<Option<Step>, Error> {
        let Some(end) = memchr::memchr2(b'>', b'<', rest) else {
            self.searched += rest.len() as u32;
            return Ok(Some(Step::Incomplete));
        };
        if rest.get(end) == Some(&b'<') {
            self.searched += end as u32;
            return Err(Error::Tag);
        }
        self.searched += end as u32 + 1;
        self.place = Place::Text;
        let unit = self.searched(buf);
        let start = memchr::memrchr(b'<', unit).map_or(2, |at| at + 2);
        let name = name_hash(unit.get(start..).unwrap_or_default());
        if self.depth > 0 && !self.names.close(name) {
            return Err(Error::MismatchedTag);
        }
        match self.depth {
            0 if name == self.header_name => {
                self.phase = Phase::Closed;
                Ok(Some(Step::Close(unit.len())))
            }
            0 => Err(Error::MismatchedTag),
            1 => {
                self.depth = 0;
                Ok(Some(Step::Element(unit.len())))
            }
            _ => {
                self.depth -= 1;
                Ok(None)
            }
        }
    }

    fn declaration(&mut self, buf: &[u8], rest: &[u8]) -> Result<Option<Step>, Error> {
        let step = self.until(rest, b"?>", Place::Between);
        if step.is_none() {
            split_declaration(self.searched(buf))?;
        }
        Ok(step)
    }

    /// Searches for `end` and continues after it.
    fn until(&mut self, rest: &[u8], end: &[u8], next: Place) -> Option<Step> {
        match memchr::memmem::find(rest, end) {
            Some(at) => {
                self.searched += (at + end.len()) as u32;
                self.place = next;
                None
            }
            None => {
                // The last bytes may be the beginning of `end`.
                self.searched += rest.len().saturating_sub(end.len() - 1) as u32;
                Some(Step::Incomplete)
            }
        }
    }
}

/// The names of the innermost open elements, one byte of hash each, so that most mismatched end tags are found before the
/// unit is complete. Some are missed (one in 255, and those above the fourth level): the reader compares
/// whole names.
#[derive(Clone, Copy, Default, Debug)]
struct Names([u8; 4]);

impl Names {
    fn open(&mut self, hash: u32) {
        let [a, b, c, _] = self.0;
        self.0 = [Self::byte(hash), a, b, c];
    }

    /// Whether the innermost open element may have this name.
    fn close(&mut self, hash: u32) -> bool {
        let [innermost, a, b, c] = self.0;
        self.0 = [a, b, c, UNKNOWN_NAME];
        innermost == UNKNOWN_NAME || innermost == Self::byte(hash)
    }

    fn byte(hash: u32) -> u8 {
        (hash % 255) as u8 + 1
    }
}

/// Stands for an unknown name.
const UNKNOWN_NAME: u8 = 0;

/// The hash of the name of the tag that a header unit ends with.
fn header_name(unit: &[u8]) -> u32 {
    let start = match memchr::memmem::find(unit, b"?>") {
        Some(at) if unit.starts_with(b"<?") => at + 2,
        _ => 0,
    };
    let header = unit.get(start..).unwrap_or_default();
    let tag = memchr::memchr(b'<', header).and_then(|at| header.get(at + 1..));
    name_hash(tag.unwrap_or(unit))
}

/// A hash (FNV-1a) of the bytes before the first space, `/` or `>`.
fn name_hash(tag: &[u8]) -> u32 {
    tag.iter()
        .take_while(|b| !is_space(**b) && !matches!(**b, b'/' | b'>'))
        .fold(0x811C_9DC5, |hash, b| (hash ^ u32::from(*b)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
#[path = "tcp_tests.rs"]
mod tests;
