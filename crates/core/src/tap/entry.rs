//! What is told of an account.

use crate::model::UnixMs;
use carillon_wire::jid::Jid;
use carillon_wire::stanza::{Framing, Stanza};
use carillon_wire::xml::Element;

/// Something that happened to an account that is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The tap that it is for.
    pub tap: u64,
    /// When it happened.
    pub at: UnixMs,
    /// The session; none where it is about the account.
    pub session: Option<Jid>,
    /// What happened.
    pub what: Happening,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A client sent this.
    In(Sketch),
    /// A client was sent this.
    Out(Sketch),
    /// What became of a stanza.
    Route {
        /// The stanza.
        stanza: Sketch,
        /// What became of it.
        outcome: &'static str,
        /// Where it went, or why.
        detail: Box<str>,
    },
    /// Something was settled, acknowledged or kept.
    Store {
        /// What was done.
        what: &'static str,
        /// With how many stanzas.
        count: u32,
    },
    /// A session opened, closed, was parked or was resumed.
    Session {
        /// Which of these.
        what: &'static str,
        /// Why, or over what.
        reason: &'static str,
    },
}

/// An element without its contents: names, addresses and size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    /// Its name.
    pub name: Box<str>,
    /// Its type, where it has one.
    pub kind: Option<Box<str>>,
    /// Its id.
    pub id: Option<Box<str>>,
    /// Its sender.
    pub from: Option<Jid>,
    /// Its recipient.
    pub to: Option<Jid>,
    /// What is in it: name and namespace of its first children.
    pub payload: Vec<Box<str>>,
    /// Its size, in bytes of XML.
    pub bytes: usize,
    /// All of it, where that is wanted and allowed.
    pub xml: Option<Box<str>>,
}

/// Names and ids are cut after so many bytes.
const TEXT_BYTES_MAX: usize = 128;
/// Children that are named.
const CHILDREN_MAX: usize = 8;

impl Sketch {
    /// A stanza of this size; with all of it, where that is wanted.
    pub fn of(stanza: &Stanza, bytes: Option<usize>, whole: bool) -> Sketch {
        let mut xml = Vec::new();
        if whole || bytes.is_none() {
            stanza.write(&mut xml, Framing::Tcp);
        }
        let children = stanza.payload.children().take(CHILDREN_MAX);
        Sketch {
            name: stanza.name().into(),
            kind: stanza.kind.type_word().map(Into::into),
            id: stanza.id.as_deref().map(clip),
            from: stanza.from.clone(),
            to: stanza.to.clone(),
            payload: children.map(|child| named(child.name(), child.ns())).collect(),
            bytes: bytes.unwrap_or(xml.len()),
            xml: whole.then(|| text(&xml)),
        }
    }

    /// An element that is no stanza.
    pub fn of_element(element: &Element, whole: bool) -> Sketch {
        let xml = element.to_string_in("");
        Sketch {
            name: clip(element.name()),
            payload: vec![clip(element.ns())],
            bytes: xml.len(),
            xml: whole.then(|| xml.into()),
            ..Sketch::default()
        }
    }

    /// A message that was written: the event of a topic, which is its id.
    pub fn of_written(written: &[u8], id: Option<(&str, &str)>, whole: bool) -> Sketch {
        Sketch {
            name: "message".into(),
            id: id.map(|(topic, item)| clip(&format!("{topic} {item}"))),
            bytes: written.len(),
            xml: whole.then(|| text(written)),
            ..Sketch::default()
        }
    }

    fn memory_bytes(&self) -> usize {
        let jids = [&self.from, &self.to].into_iter().flatten().map(|jid| jid.as_str().len());
        let texts = [&self.kind, &self.id, &self.xml].into_iter().flatten().map(|text| text.len());
        let children = self.payload.iter().map(|child| size_of::<Box<str>>() + child.len());
        self.name.len() + jids.sum::<usize>() + texts.sum::<usize>() + children.sum::<usize>()
    }
}

impl Entry {
    /// Bytes that it takes in memory.
    pub fn memory_bytes(&self) -> usize {
        let what = match &self.what {
            Happening::In(sketch) | Happening::Out(sketch) => sketch.memory_bytes(),
            Happening::Route { stanza, detail, .. } => stanza.memory_bytes() + detail.len(),
            Happening::Store { .. } | Happening::Session { .. } => 0,
        };
        size_of::<Entry>() + self.session.as_ref().map_or(0, |jid| jid.as_str().len()) + what
    }
}

fn named(name: &str, ns: &str) -> Box<str> {
    clip(&format!("{name} {ns}"))
}

/// What is longer is cut: names and ids are as long as their sender likes.
fn clip(text: &str) -> Box<str> {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or(text).into()
}

fn text(xml: &[u8]) -> Box<str> {
    String::from_utf8_lossy(xml).into()
}
