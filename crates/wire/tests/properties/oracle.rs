//! XML as rxml sees it.
//!
//! Two faults of rxml 0.14 are taken out of the way before it judges:
//! - It does not know the range U+FDF0..=U+FFFD of XML 1.0 §2.3 in names; other characters stand in for it.
//! - It loses or refuses a CR in an attribute's value that no LF follows; XML 1.0 §2.11 makes it LF.

use std::collections::BTreeMap;

use carillon_wire::ns;
use carillon_wire::xml::{Element, Node};
use rxml::{Event, Parse, Parser};

/// The stream in which a client of ours reads: what it knows is `jabber:client` and the prefix `stream`.
const HEADER: &str =
    "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>";
const END: &str = "</stream:stream>";

/// A tree without anything that does not matter: prefixes, order of attributes, how text is cut up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tree {
    pub name: (String, String),
    pub attributes: BTreeMap<(String, String), String>,
    pub nodes: Vec<Piece>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Piece {
    Tree(Tree),
    Text(String),
}

impl Tree {
    fn push_text(&mut self, text: &str) {
        match self.nodes.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Text(before)) => before.push_str(text),
            _ => self.nodes.push(Piece::Text(text.to_owned())),
        }
    }

    pub(crate) fn of(element: &Element) -> Self {
        let attributes = element.attrs().map(|a| {
            let local = a.name().split_once(':').map_or(a.name(), |(_, local)| local);
            ((stand_in(a.ns().unwrap_or_default()), stand_in(local)), stand_in(a.value()))
        });
        let mut tree = Self {
            name: (stand_in(element.ns()), stand_in(element.name())),
            attributes: attributes.collect(),
            nodes: Vec::new(),
        };
        for node in element.nodes() {
            match node {
                Node::Element(child) => tree.nodes.push(Piece::Tree(Self::of(child))),
                Node::Text(text) => tree.push_text(&stand_in(text)),
            }
        }
        tree
    }
}

/// What a client reads when `bytes` come inside its stream: the tree, if they are exactly one element.
pub(crate) fn inside_stream(bytes: &[u8]) -> Option<Tree> {
    let stream = whole(&[HEADER.as_bytes(), bytes, END.as_bytes()].concat())?;
    assert_eq!(stream.name, (ns::STREAMS.to_owned(), "stream".to_owned()));
    only(stream)
}

/// What a client reads when `bytes` are a WebSocket message.
pub(crate) fn alone(bytes: &[u8]) -> Option<Tree> {
    whole(bytes)
}

fn only(tree: Tree) -> Option<Tree> {
    match <[Piece; 1]>::try_from(tree.nodes) {
        Ok([Piece::Tree(tree)]) => Some(tree),
        _ => None,
    }
}

/// Other characters for those that rxml does not know in names.
fn stand_in(text: &str) -> String {
    text.chars().map(|c| if ('\u{FDF0}'..='\u{FFFD}').contains(&c) { '\u{F900}' } else { c }).collect()
}

/// Reads a document.
fn whole(bytes: &[u8]) -> Option<Tree> {
    let text = stand_in(std::str::from_utf8(bytes).ok()?);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut bytes = text.as_bytes();
    let mut parser = Parser::new();
    let mut open = vec![Tree { name: Default::default(), attributes: BTreeMap::new(), nodes: Vec::new() }];
    while let Some(event) = parser.parse(&mut bytes, true).ok()? {
        match event {
            Event::XmlDeclaration(..) => {}
            Event::StartElement(_, (ns, name), attributes) => open.push(Tree {
                name: (ns.to_string(), name.to_string()),
                attributes: attributes
                    .into_iter()
                    .map(|((ns, name), value)| ((ns.to_string(), name.to_string()), value.clone()))
                    .collect(),
                nodes: Vec::new(),
            }),
            Event::Text(_, text) => open.last_mut()?.push_text(&text),
            Event::EndElement(_) => {
                let done = open.pop()?;
                open.last_mut()?.nodes.push(Piece::Tree(done));
            }
        }
    }
    only(open.pop()?)
}
