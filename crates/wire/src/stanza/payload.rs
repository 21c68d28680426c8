//! The content of a stanza: bytes that are forwarded as they are, with an index of the children.

use std::ops::Range;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::ns;
use crate::xml::writer::Writer;
use crate::xml::{Element, Error, Lexer, Limits, Outer, SizeLimit, Token};

/// The content of a stanza: well-formed, and meaning the same wherever `jabber:client` is the default namespace and
/// no prefix is declared.
///
/// Up to two children are indexed without allocating. A clone shares the bytes.
#[derive(Clone, Default)]
pub struct Payload {
    bytes: Bytes,
    index: SmallVec<[ChildSpan; 2]>,
}

/// The place of a child. Offsets are relative to the payload.
#[derive(Clone, Debug)]
struct ChildSpan {
    start: u32,
    end: u32,
    /// The name without prefix.
    name: Range<u32>,
    ns: Namespace,
}

/// The namespace of a child, by reference where that is possible.
#[derive(Clone, Debug)]
enum Namespace {
    /// `jabber:client`
    Client,
    /// Written out in the payload.
    At(Range<u32>),
    /// Any other.
    Owned(Box<str>),
}

impl Payload {
    /// An empty payload.
    pub fn empty() -> Self {
        Self::default()
    }

    /// A payload with one child.
    pub fn from_element(child: &Element) -> Self {
        let mut payload = Self::empty();
        payload.push_element(child);
        payload
    }

    /// A payload with several children.
    pub fn from_elements<'e>(children: impl IntoIterator<Item = &'e Element>) -> Self {
        let mut payload = Self::empty();
        payload.append(children);
        payload
    }

    /// The same within the limits of a stanza.
    pub(super) fn from_elements_within<'e>(
        children: impl IntoIterator<Item = &'e Element>,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let limit =
            SizeLimit { end: limits.stanza_bytes, declarations: usize::from(limits.namespaces_in_scope) };
        let (mut bytes, mut index) = (Vec::new(), SmallVec::new());
        for child in children {
            let start = bytes.len();
            child.write_within(&mut bytes, ns::CLIENT, limit)?;
            index.push(ChildSpan::written(child, start, bytes.len()));
        }
        if bytes.len() > limit.end { Err(Error::TooLarge) } else { Ok(Self { bytes: bytes.into(), index }) }
    }

    /// Indexes bytes that the server produced itself or has read before, such as a stored payload.
    ///
    /// If the bytes are not well-formed after all, the payload is empty: nothing malformed leaves the server. To detect
    /// that, use [`Payload::parse`].
    pub fn from_raw(bytes: Bytes) -> Self {
        let parsed = Self::parse(bytes);
        debug_assert!(parsed.is_ok(), "a payload of our own is {parsed:?}");
        parsed.unwrap_or_default()
    }

    /// Checks and indexes the content of a stanza.
    ///
    /// # Errors
    /// If the bytes are not well-formed or use prefixes that they do not declare themselves.
    pub fn parse(bytes: Bytes) -> Result<Self, Error> {
        Self::parse_by(bytes, &Limits::trusted())
    }

    /// The same with what a client could have sent, as far as the stanza's content goes.
    ///
    /// # Errors
    /// Those of [`Payload::parse`], and if the content exceeds the limits, or has more than [`Limits::CHILDREN_MAX`] children.
    pub fn parse_within(bytes: Bytes, limits: &Limits) -> Result<Self, Error> {
        let payload = Self::parse_by(bytes, limits)?;
        if payload.index.len() > Limits::CHILDREN_MAX { Err(Error::TooManyChildren) } else { Ok(payload) }
    }

    fn parse_by(bytes: Bytes, limits: &Limits) -> Result<Self, Error> {
        const WRAPPER: (&[u8], &[u8]) = (b"<p>", b"</p>");
        let wrapped = [WRAPPER.0, &bytes, WRAPPER.1].concat();
        let mut lexer = Lexer::new(&wrapped, limits, &Outer::default_ns(ns::CLIENT))?;
        lexer.token()?;
        let mut indexer = Indexer::new(lexer.position());
        while let Some(token) = lexer.token()? {
            indexer.see(token, &lexer);
        }
        Ok(Self { bytes, index: indexer.index })
    }

    /// The content as it is written inside the stanza.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Bytes that it takes in memory, beyond its own size: the content and the index of the children.
    pub(super) fn memory_bytes(&self) -> usize {
        let index = if self.index.spilled() { self.index.capacity() * size_of::<ChildSpan>() } else { 0 };
        let names = self.index.iter().map(|entry| match &entry.ns {
            Namespace::Owned(ns) => ns.len(),
            Namespace::Client | Namespace::At(_) => 0,
        });
        self.bytes.len() + index + names.sum::<usize>()
    }

    /// Whether there is no child. (There may be text, which has no meaning in a stanza.)
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The children in order.
    pub fn children(&self) -> impl Iterator<Item = Child<'_>> {
        self.index.iter().map(|entry| Child { bytes: &self.bytes, entry })
    }

    /// The first child with this name and namespace.
    pub fn find(&self, name: &str, ns: &str) -> Option<Child<'_>> {
        self.children().find(|child| child.is(name, ns))
    }

    /// Adds a child at the end. Copies the bytes, because clones may share them.
    pub fn push_element(&mut self, child: &Element) {
        self.append([child]);
    }

    /// Adds a child at the end that has attributes alone, written without an [`Element`] in between. `ns` is no text of others: it is not
    /// escaped.
    pub fn push_leaf(&mut self, name: &str, ns: &str, attributes: &[(&str, &str)]) {
        let lengths = attributes.iter().map(|(name, value)| name.len() + value.len() + LEAF_PARTS);
        let mut bytes = Vec::with_capacity(
            self.bytes.len() + name.len() + ns.len() + LEAF_PARTS + lengths.sum::<usize>(),
        );
        bytes.extend_from_slice(&self.bytes);
        let start = bytes.len();
        let mut writer = Writer::new(&mut bytes);
        writer.start_in(name, ns);
        for (name, value) in attributes {
            writer.attr(name, value);
        }
        writer.close_empty();
        let name_at = (start + "<".len()) as u32;
        let name_end = name_at + name.len() as u32;
        let ns_at = name_end + " xmlns='".len() as u32;
        let ns = Namespace::At(ns_at..ns_at + ns.len() as u32);
        self.index.push(ChildSpan {
            start: start as u32,
            end: bytes.len() as u32,
            name: name_at..name_end,
            ns,
        });
        self.bytes = bytes.into();
    }

    fn append<'e>(&mut self, children: impl IntoIterator<Item = &'e Element>) {
        let mut bytes = Vec::with_capacity(self.bytes.len() + 256);
        bytes.extend_from_slice(&self.bytes);
        for child in children {
            let start = bytes.len();
            child.write(&mut bytes, ns::CLIENT);
            self.index.push(ChildSpan::written(child, start, bytes.len()));
        }
        self.bytes = bytes.into();
    }

    /// Removes all children with this name and namespace; returns their number.
    pub fn remove(&mut self, name: &str, ns: &str) -> usize {
        let before = self.index.len();
        let removed: SmallVec<[(u32, u32); 2]> = self
            .children()
            .filter(|child| child.is(name, ns))
            .map(|c| (c.entry.start, c.entry.end))
            .collect();
        if removed.is_empty() {
            return 0;
        }
        let mut bytes = Vec::with_capacity(self.bytes.len());
        let mut kept_to = 0;
        for &(start, end) in &removed {
            bytes.extend_from_slice(self.bytes.get(kept_to..start as usize).unwrap_or_default());
            kept_to = end as usize;
        }
        bytes.extend_from_slice(self.bytes.get(kept_to..).unwrap_or_default());
        // Both are in the order of the payload.
        let (mut next, mut gone) = (removed.iter().peekable(), 0);
        self.index.retain(|entry| {
            if let Some((start, end)) = next.next_if(|(start, _)| *start == entry.start) {
                gone += end - start;
                return false;
            }
            entry.shift_back(gone);
            true
        });
        self.bytes = bytes.into();
        before - self.index.len()
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Payload {}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({:?})", self.bytes)
    }
}

/// Bytes of a leaf, or of one of its attributes, besides names and values: at least, so that its buffer need not grow.
const LEAF_PARTS: usize = "< xmlns=''/>".len();

impl ChildSpan {
    /// The entry of an element that [`Element::write`] has put at `start..end`, inside `jabber:client`.
    fn written(element: &Element, start: usize, end: usize) -> Self {
        let name = start + if element.ns() == ns::XML { "<xml:".len() } else { "<".len() };
        let name_end = name + element.name().len();
        let ns = match element.ns() {
            ns::CLIENT => Namespace::Client,
            ns => Namespace::Owned(ns.into()),
        };
        Self { start: start as u32, end: end as u32, name: name as u32..name_end as u32, ns }
    }

    fn shift_back(&mut self, by: u32) {
        self.start -= by;
        self.end -= by;
        self.name = self.name.start - by..self.name.end - by;
        if let Namespace::At(range) = &mut self.ns {
            *range = range.start - by..range.end - by;
        }
    }
}

/// A direct child of a stanza.
#[derive(Clone, Copy, Debug)]
pub struct Child<'a> {
    bytes: &'a Bytes,
    entry: &'a ChildSpan,
}

impl<'a> Child<'a> {
    /// The name, without prefix.
    pub fn name(&self) -> &'a str {
        self.text(&self.entry.name)
    }

    /// The namespace; empty for none.
    pub fn ns(&self) -> &'a str {
        match &self.entry.ns {
            Namespace::Client => ns::CLIENT,
            Namespace::At(range) => self.text(range),
            Namespace::Owned(ns) => ns,
        }
    }

    /// Whether the child has this name and namespace.
    pub fn is(&self, name: &str, ns: &str) -> bool {
        self.name() == name && self.ns() == ns
    }

    /// The child as it is written where `jabber:client` is the default namespace.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes.get(self.entry.start as usize..self.entry.end as usize).unwrap_or_default()
    }

    /// The child as a tree.
    pub fn element(&self) -> Element {
        let parsed = Element::parse(self.bytes(), ns::CLIENT);
        debug_assert!(parsed.is_ok(), "an indexed child is {parsed:?}");
        parsed.unwrap_or_else(|_| Element::new(self.name(), self.ns()))
    }

    fn text(&self, range: &Range<u32>) -> &'a str {
        let bytes = self.bytes.get(range.start as usize..range.end as usize);
        std::str::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
    }
}

/// Builds the index while a stanza is read.
pub(super) struct Indexer {
    /// Where the payload begins in the lexer's input.
    origin: usize,
    index: SmallVec<[ChildSpan; 2]>,
}

impl Indexer {
    /// `origin` is where the stanza's start tag ends.
    pub(super) fn new(origin: usize) -> Self {
        Self { origin, index: SmallVec::new() }
    }

    /// Processes a token inside the stanza, which the lexer has just returned.
    pub(super) fn see(&mut self, token: Token<'_>, lexer: &Lexer<'_>) {
        match token {
            Token::Start if lexer.depth() == 2 => self.start(lexer),
            Token::End if lexer.depth() == 1 => {
                if let Some(entry) = self.index.last_mut() {
                    entry.end = (lexer.position() - self.origin) as u32;
                }
            }
            _ => {}
        }
    }

    fn start(&mut self, lexer: &Lexer<'_>) {
        let tag = lexer.tag();
        // `Limits::stanza_bytes` keeps offsets within 32 bits.
        let start = (lexer.start() - self.origin) as u32;
        let name_end = start + 1 + tag.name.len() as u32;
        let ns = match lexer.element_ns() {
            ns::CLIENT => Namespace::Client,
            ns => match lexer.element_ns_range() {
                Some(range) => {
                    Namespace::At((range.start - self.origin) as u32..(range.end - self.origin) as u32)
                }
                None => Namespace::Owned(ns.into()),
            },
        };
        self.index.push(ChildSpan {
            start,
            end: start,
            name: name_end - tag.local().len() as u32..name_end,
            ns,
        });
    }

    /// The number of children so far.
    pub(super) fn children(&self) -> usize {
        self.index.len()
    }

    /// The payload, which consists of these bytes from the origin on.
    pub(super) fn finish(self, bytes: Bytes) -> Payload {
        Payload { bytes, index: self.index }
    }
}
