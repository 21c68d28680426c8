//! Reads one unit of XML as a sequence of checked tokens.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use quick_xml::parser::{ElementParser, Parser};
use smallvec::SmallVec;

use super::chars::{check_legal, is_space};
use super::error::{Error, Restriction};
use super::limits::Limits;
use super::reference::check_references;
use super::scope::{Declaration, Outer, Scope};
use super::tag::{RawAttribute, Tag};
use crate::ns;

const CDATA_START: &str = "<![CDATA[";
const CDATA_END: &str = "]]>";

/// A token. An empty-element tag is a `Start` and an `End`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Token<'a> {
    /// A start tag: see [`Lexer::tag`].
    Start,
    /// An end tag.
    End,
    /// Text up to the next tag; its references are checked, but not resolved.
    Text(&'a str),
    /// The inside of a CDATA section; line ends are not normalised yet.
    Cdata(&'a str),
}

/// Reads one element with its content. It borrows from the input, and up to 16 levels it allocates nothing.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    input: &'a str,
    limits: Limits,
    /// The start of the last token.
    start: usize,
    /// The start of the next token.
    position: usize,
    /// The qualified names of the open elements.
    open: SmallVec<[&'a str; 16]>,
    scope: Scope<'a>,
    tag: Tag<'a>,
    /// Whether the last start tag was an empty-element tag whose `End` follows.
    end_is_due: bool,
    depends_on_outside: bool,
}

impl<'a> Lexer<'a> {
    /// Checks size and characters of the whole unit.
    pub(crate) fn new(input: &'a [u8], limits: &Limits, outer: &Outer<'a>) -> Result<Self, Error> {
        if input.len() > limits.stanza_bytes {
            return Err(Error::TooLarge);
        }
        Ok(Self {
            input: check_legal(input)?,
            limits: *limits,
            start: 0,
            position: 0,
            open: SmallVec::new(),
            scope: Scope::new(outer, limits),
            tag: Tag::default(),
            end_is_due: false,
            depends_on_outside: false,
        })
    }

    /// The next token; `None` after the root's end, which must be the input's end.
    pub(crate) fn token(&mut self) -> Result<Option<Token<'a>>, Error> {
        self.start = self.position;
        if std::mem::take(&mut self.end_is_due) {
            return Ok(Some(self.close()));
        }
        let rest = self.input.get(self.position..).ok_or(Error::Incomplete)?;
        if self.open.is_empty() && (self.position > 0 || !rest.starts_with('<')) {
            let ended = self.position > 0 && rest.is_empty();
            return if ended { Ok(None) } else { Err(Error::NotOneElement) };
        }
        match memchr::memchr(b'<', rest.as_bytes()) {
            None => check_references(rest).and(Err(Error::Incomplete)),
            Some(0) => self.markup(rest).map(Some),
            Some(length) => self.text(rest.get(..length).unwrap_or_default()).map(Some),
        }
    }

    /// The start of the last token, in bytes.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// The end of the last token, in bytes.
    pub(crate) fn position(&self) -> usize {
        self.position
    }

    /// The number of open elements: 1 after the root's `Start`.
    pub(crate) fn depth(&self) -> usize {
        self.open.len()
    }

    /// The last start tag.
    pub(crate) fn tag(&self) -> &Tag<'a> {
        &self.tag
    }

    /// The namespace of the last start tag's element.
    pub(crate) fn element_ns(&self) -> &str {
        self.scope.ns(self.tag.place)
    }

    /// The same as a shared string, for a tree.
    pub(crate) fn shared_element_ns(&self) -> Arc<str> {
        self.scope.shared_ns(self.tag.place)
    }

    /// Where the input contains [`Lexer::element_ns`] literally inside the root, if it does.
    pub(crate) fn element_ns_range(&self) -> Option<Range<usize>> {
        match self.scope.at(self.tag.place) {
            Some(Declaration { ns: Cow::Borrowed(ns), depth: 2.., .. }) => {
                let start = (ns.as_ptr() as usize).checked_sub(self.input.as_ptr() as usize)?;
                Some(start..start + ns.len())
            }
            _ => None,
        }
    }

    /// The namespace of an attribute of the last start tag, if it has a prefix, for a tree.
    pub(crate) fn shared_attribute_ns(&self, attribute: &RawAttribute<'a>) -> Option<Arc<str>> {
        attribute.prefix().map(|_| self.scope.shared_ns(attribute.place))
    }

    /// Prefixes (empty for the default) and namespaces that the root declares.
    pub(crate) fn root_declarations(&self) -> impl Iterator<Item = (&str, &str)> {
        self.scope.declared_at(1)
    }

    /// Whether something inside the root so far takes its namespace from a declaration on the root or around it, other
    /// than `jabber:client` as the default namespace.
    pub(crate) fn depends_on_outside(&self) -> bool {
        self.depends_on_outside
    }

    /// `rest` begins with `<`.
    fn markup(&mut self, rest: &'a str) -> Result<Token<'a>, Error> {
        match rest.as_bytes().get(1) {
            None => Err(Error::Incomplete),
            Some(b'/') => self.end_tag(rest),
            Some(b'?') => Err(Error::Restricted(Restriction::ProcessingInstruction)),
            Some(b'!') if rest.starts_with(CDATA_START) => self.cdata(rest),
            Some(b'!') if rest.starts_with("<!-") => Err(Error::Restricted(Restriction::Comment)),
            Some(b'!') => Err(Error::Restricted(Restriction::DocumentType)),
            Some(_) => self.start_tag(rest),
        }
    }

    fn start_tag(&mut self, rest: &'a str) -> Result<Token<'a>, Error> {
        let end = ElementParser::Outside.feed(rest.as_bytes()).ok_or(Error::Incomplete)?;
        self.position += end + 1;
        let content = rest.get(1..end).ok_or(Error::Incomplete)?;
        let (content, empty) = match content.strip_suffix('/') {
            Some(content) => (content, true),
            None => (content, false),
        };
        if self.open.len() >= usize::from(self.limits.depth_max()) {
            return Err(Error::TooDeep);
        }
        self.tag.read(content, &self.limits)?;
        self.open.push(self.tag.name);
        self.end_is_due = empty;
        self.enter_scope()?;
        Ok(Token::Start)
    }

    /// Applies the declarations of the start tag and checks that its names are declared and its attributes differ.
    fn enter_scope(&mut self) -> Result<(), Error> {
        let depth = self.open.len() as u16;
        for declaration in &self.tag.declarations {
            let prefix = declaration.declares().unwrap_or_default();
            self.scope.declare(prefix, declaration.value(), depth)?;
        }
        self.tag.resolve(&self.scope)?;
        if depth > 1 {
            let outside = |place| self.scope.at(place).is_some_and(|declaration| declaration.depth <= 1);
            let Tag { place, attributes, .. } = &self.tag;
            self.depends_on_outside |= (outside(*place) && !self.is_portable())
                || attributes.iter().any(|a| a.prefix().is_some() && outside(a.place));
        }
        Ok(())
    }

    /// Whether the last start tag is an element of the default namespace that stanzas have everywhere.
    fn is_portable(&self) -> bool {
        self.tag.prefix().is_empty() && self.element_ns() == ns::CLIENT
    }

    fn end_tag(&mut self, rest: &'a str) -> Result<Token<'a>, Error> {
        let end = memchr::memchr(b'>', rest.as_bytes()).ok_or(Error::Incomplete)?;
        let tag = rest.get(2..end).unwrap_or_default();
        let space = self.open.last().and_then(|open| tag.strip_prefix(open)).ok_or(Error::MismatchedTag)?;
        if !space.bytes().all(is_space) {
            return Err(Error::MismatchedTag);
        }
        self.position += end + 1;
        Ok(self.close())
    }

    fn close(&mut self) -> Token<'a> {
        self.open.pop();
        self.scope.leave(self.open.len() as u16);
        Token::End
    }

    /// `rest` begins with `<![CDATA[`.
    fn cdata(&mut self, rest: &'a str) -> Result<Token<'a>, Error> {
        if self.open.is_empty() {
            return Err(Error::NotOneElement);
        }
        let inner = rest.get(CDATA_START.len()..).unwrap_or_default();
        let end = memchr::memmem::find(inner.as_bytes(), CDATA_END.as_bytes()).ok_or(Error::Incomplete)?;
        self.position += CDATA_START.len() + end + CDATA_END.len();
        Ok(Token::Cdata(inner.get(..end).unwrap_or_default()))
    }

    fn text(&mut self, text: &'a str) -> Result<Token<'a>, Error> {
        let bytes = text.as_bytes();
        // `]]>` is forbidden, and `>` is the rarest of the three.
        if memchr::memchr_iter(b'>', bytes)
            .any(|at| bytes.get(..at).is_some_and(|before| before.ends_with(b"]]")))
        {
            return Err(Error::CdataEndInText);
        }
        check_references(text)?;
        self.position += text.len();
        Ok(Token::Text(text))
    }
}
