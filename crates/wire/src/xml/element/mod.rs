//! A small owned tree, built only where a feature needs one.

use std::sync::Arc;

use smallvec::SmallVec;

use super::chars;
use super::error::Error;
use super::lexer::{Lexer, Token};
use super::limits::Limits;
use super::name::is_qualified;
use super::reference::{push_normalised, push_resolved};
use super::scope::Outer;
use super::writer::Writer;
use crate::ns;

/// An element with its resolved namespace, its attributes and its content.
///
/// Prefixes of elements are not kept: each element is written unprefixed with the default namespace it needs (`xml:`
/// alone stays). Prefixes of attributes are kept, and declared again where they are used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element {
    name: Box<str>,
    /// Shared by the elements of one text.
    ns: Arc<str>,
    attributes: Vec<Attribute>,
    nodes: Vec<Node>,
}

/// The content of an element.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Node {
    /// A child.
    Element(Element),
    /// Text with its references resolved; a tree that was read has no two adjacent texts.
    Text(String),
}

/// An attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attribute {
    name: Box<str>,
    /// Present if and only if the name has a prefix.
    ns: Option<Arc<str>>,
    value: String,
}

impl Attribute {
    /// The name as written, with its prefix if it has one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace of a prefixed attribute.
    pub fn ns(&self) -> Option<&str> {
        self.ns.as_deref()
    }

    /// The value, with references resolved.
    pub fn value(&self) -> &str {
        &self.value
    }

    fn prefix(&self) -> Option<&str> {
        self.name.split_once(':').map(|(prefix, _)| prefix)
    }
}

impl Element {
    /// An empty element. `name` is a name without prefix, written as it is.
    pub fn new(name: &str, ns: &str) -> Self {
        debug_assert!(is_qualified(name) && !name.contains(':'), "not a name: {name:?}");
        Self { name: name.into(), ns: ns.into(), attributes: Vec::new(), nodes: Vec::new() }
    }

    /// Reads one element that stands where `default_ns` is the default namespace and no prefix is declared. White
    /// space around it is ignored.
    ///
    /// # Errors
    /// If the bytes are not exactly one well-formed element under RFC 6120's restrictions, or nest deeper than
    /// [`Limits::DEPTH_MAX`].
    pub fn parse(bytes: &[u8], default_ns: &str) -> Result<Self, Error> {
        let outer = Outer::default_ns(default_ns);
        let mut lexer = Lexer::new(chars::trim(bytes), &Limits::trusted(), &outer)?;
        lexer.token()?;
        Self::build(&mut lexer)
    }

    /// Builds the tree whose root's start tag is the lexer's last token, and reads to the end of the input.
    pub(crate) fn build(lexer: &mut Lexer<'_>) -> Result<Self, Error> {
        let mut root = Self::of_tag(lexer);
        // The open elements inside the root.
        let mut open: Vec<Self> = Vec::new();
        while let Some(token) = lexer.token()? {
            let top = open.last_mut().unwrap_or(&mut root);
            match token {
                Token::Start => open.push(Self::of_tag(lexer)),
                Token::Cdata("") => {}
                Token::Cdata(text) => push_normalised(top.text_mut(), text),
                Token::Text(text) => push_resolved(top.text_mut(), text),
                Token::End => {
                    if let Some(done) = open.pop() {
                        open.last_mut().unwrap_or(&mut root).push(done);
                    }
                }
            }
        }
        Ok(root)
    }

    fn of_tag(lexer: &Lexer<'_>) -> Self {
        let tag = lexer.tag();
        Self {
            name: tag.local().into(),
            ns: lexer.shared_element_ns(),
            attributes: tag
                .attributes
                .iter()
                .map(|a| Attribute {
                    name: a.name.into(),
                    ns: lexer.shared_attribute_ns(a),
                    value: a.value().into_owned(),
                })
                .collect(),
            nodes: Vec::new(),
        }
    }

    /// The name, without prefix.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace; empty for none.
    pub fn ns(&self) -> &str {
        &self.ns
    }

    /// Whether the element has this name and namespace.
    pub fn is(&self, name: &str, ns: &str) -> bool {
        *self.name == *name && *self.ns == *ns
    }

    /// The value of the attribute with this name as written, such as `id` or `xml:lang`.
    pub fn attr(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|a| *a.name == *name).map(Attribute::value)
    }

    /// All attributes.
    pub fn attrs(&self) -> impl Iterator<Item = &Attribute> {
        self.attributes.iter()
    }

    /// Sets an attribute. `name` has no prefix or the prefix `xml`, or the element has the attribute already.
    pub fn set_attr(&mut self, name: &str, value: impl Into<String>) {
        debug_assert!(is_qualified(name), "not a name: {name:?}");
        if let Some(found) = self.attributes.iter_mut().find(|a| *a.name == *name) {
            found.value = value.into();
            return;
        }
        let ns = match name.split_once(':') {
            Some((prefix, _)) => {
                debug_assert!(prefix == "xml", "nothing declares the prefix of {name:?}");
                Some(ns::XML.into())
            }
            None => None,
        };
        self.attributes.push(Attribute { name: name.into(), ns, value: value.into() });
    }

    /// The element with an attribute: see [`Element::set_attr`].
    #[must_use]
    pub fn with_attr(mut self, name: &str, value: impl Into<String>) -> Self {
        self.set_attr(name, value);
        self
    }

    /// The element with another child.
    #[must_use]
    pub fn with_child(mut self, child: Self) -> Self {
        self.push(child);
        self
    }

    /// The element with more text.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.push_text(text);
        self
    }

    /// Adds a child.
    pub fn push(&mut self, child: Self) {
        self.nodes.push(Node::Element(child));
    }

    /// Adds text; characters that XML forbids are written as U+FFFD.
    pub fn push_text(&mut self, text: impl Into<String>) {
        let text = text.into();
        match self.nodes.last_mut() {
            _ if text.is_empty() => {}
            Some(Node::Text(before)) => before.push_str(&text),
            _ => self.nodes.push(Node::Text(text)),
        }
    }

    /// The text at the end of the nodes, added if there is none.
    fn text_mut(&mut self) -> &mut String {
        if !matches!(self.nodes.last(), Some(Node::Text(_))) {
            self.nodes.push(Node::Text(String::new()));
        }
        match self.nodes.last_mut() {
            Some(Node::Text(text)) => text,
            _ => unreachable!("a text was pushed just above"),
        }
    }

    /// The first child with this name and namespace.
    pub fn child(&self, name: &str, ns: &str) -> Option<&Self> {
        self.children().find(|child| child.is(name, ns))
    }

    /// Takes the first child with this name and namespace out.
    pub fn take_child(&mut self, name: &str, ns: &str) -> Option<Self> {
        let fits = |node: &Node| matches!(node, Node::Element(child) if child.is(name, ns));
        let at = self.nodes.iter().position(fits)?;
        match self.nodes.remove(at) {
            Node::Element(child) => Some(child),
            Node::Text(_) => None,
        }
    }

    /// The children, without the text between them.
    pub fn children(&self) -> impl Iterator<Item = &Self> {
        self.nodes.iter().filter_map(|node| match node {
            Node::Element(child) => Some(child),
            Node::Text(_) => None,
        })
    }

    /// Children and text in order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The element's own text, without that of its children.
    pub fn text(&self) -> String {
        let mut all = String::new();
        for node in &self.nodes {
            if let Node::Text(text) = node {
                all.push_str(text);
            }
        }
        all
    }

    /// Appends the element as it stands where `parent_ns` is the default namespace and no prefix is declared.
    pub fn write(&self, out: &mut Vec<u8>, parent_ns: &str) {
        let written = self.print(&mut Writer::new(out), parent_ns, SizeLimit::NONE);
        debug_assert_eq!(written, Ok(()), "there is no limit");
    }

    /// As [`Element::write`], but stops at a limit: a short prefix that stands for a long namespace makes the text much
    /// longer than what was read.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::TooManyNamespaces`]; then only a part is appended.
    pub(crate) fn write_within(
        &self,
        out: &mut Vec<u8>,
        parent_ns: &str,
        limit: SizeLimit,
    ) -> Result<(), Error> {
        self.print(&mut Writer::new(out), parent_ns, limit)
    }

    fn print(&self, writer: &mut Writer<'_>, parent_ns: &str, mut limit: SizeLimit) -> Result<(), Error> {
        // The `xml` namespace must not be a default namespace.
        let (prefix, default_ns): (&[u8], _) =
            if *self.ns == *ns::XML { (b"xml:", parent_ns) } else { (b"", &*self.ns) };
        writer.raw(b"<").raw(prefix).raw(self.name.as_bytes());
        let mut declared = 0;
        if *default_ns != *parent_ns {
            writer.attr("xmlns", default_ns);
            declared += 1;
        }
        declared += self.print_attributes(writer);
        limit.declarations = limit.declarations.checked_sub(declared).ok_or(Error::TooManyNamespaces)?;
        if writer.position() > limit.end {
            return Err(Error::TooLarge);
        }
        if self.nodes.is_empty() {
            writer.close_empty();
            return Ok(());
        }
        writer.close_start();
        for node in &self.nodes {
            match node {
                Node::Element(child) => child.print(writer, default_ns, limit)?,
                Node::Text(text) => {
                    writer.text(text);
                }
            }
        }
        writer.raw(b"</").raw(prefix).raw(self.name.as_bytes()).raw(b">");
        Ok(())
    }

    /// Returns the number of prefixes that had to be declared.
    fn print_attributes(&self, writer: &mut Writer<'_>) -> usize {
        let mut declared: SmallVec<[&str; 8]> = SmallVec::new();
        for attribute in &self.attributes {
            if let (Some(prefix), Some(ns)) = (attribute.prefix(), attribute.ns())
                && prefix != "xml"
                && !declared.contains(&prefix)
            {
                writer.attr(&["xmlns:", prefix].concat(), ns);
                declared.push(prefix);
            }
            writer.attr(&attribute.name, &attribute.value);
        }
        declared.len()
    }

    /// As [`Element::write`], as a string.
    pub fn to_string_in(&self, parent_ns: &str) -> String {
        let mut out = Vec::new();
        self.write(&mut out, parent_ns);
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// How much may be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SizeLimit {
    /// The largest length of the buffer, in bytes.
    pub(crate) end: usize,
    /// Namespace declarations that may still come into force.
    pub(crate) declarations: usize,
}

impl SizeLimit {
    const NONE: Self = Self { end: usize::MAX, declarations: usize::MAX };
}

#[cfg(test)]
mod tests;
