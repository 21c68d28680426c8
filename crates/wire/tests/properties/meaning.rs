//! What is handed on means for its recipient what it meant for its sender, and is one stanza, never more.

use bytes::Bytes;
use carillon_wire::Framing;
use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::stanza::{Context, Payload, Stanza, Unit, read};
use carillon_wire::xml::{Element, Limits};
use proptest::prelude::*;

use crate::oracle::{Piece, Tree, alone, inside_stream};
use crate::{cases, generate};

fn write(stanza: &Stanza, framing: Framing) -> Vec<u8> {
    let mut out = Vec::new();
    stanza.write(&mut out, framing);
    out
}

/// The stanza as sent and received: its children must be the same. (Text between them means nothing and may go.)
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    let tcp = Context::new(Framing::Tcp, Limits::default());
    let Ok(Unit::Stanza(stanza) | Unit::Refused { reply: stanza, .. }) = read(bytes, &tcp) else {
        return Ok(());
    };
    let sent = children(inside_stream(bytes.trim_ascii()).unwrap());
    let on_tcp = inside_stream(&write(&stanza, Framing::Tcp)).expect("one element inside a stream");
    prop_assert_eq!(&on_tcp.name, &(ns::CLIENT.to_owned(), stanza.name().to_owned()));
    prop_assert_eq!(children(on_tcp), sent.clone());
    let on_websocket = alone(&write(&stanza, Framing::WebSocket)).expect("one document");
    prop_assert_eq!(&on_websocket.name, &(ns::CLIENT.to_owned(), stanza.name().to_owned()));
    prop_assert_eq!(children(on_websocket), sent.clone());

    // The index agrees with the tree.
    let indexed: Vec<_> = stanza.payload.children().map(|c| Tree::of(&c.element())).collect();
    prop_assert_eq!(&indexed, &sent);
    for child in stanza.payload.children() {
        let element = child.element();
        prop_assert_eq!((child.ns(), child.name()), (element.ns(), element.name()));
    }
    // A stored payload is the same payload.
    let stored = Payload::parse(stanza.payload.bytes().clone()).unwrap();
    prop_assert_eq!(stored.children().count(), sent.len());
    Ok(())
}

fn children(tree: Tree) -> Vec<Tree> {
    let trees = tree.nodes.into_iter().filter_map(|piece| match piece {
        Piece::Tree(tree) => Some(tree),
        Piece::Text(_) => None,
    });
    trees.collect()
}

proptest! {
    #![proptest_config(cases(4000))]

    #[test]
    fn of_stanzas(text in generate::stanza()) {
        check(text.as_bytes())?;
    }

    #[test]
    fn of_broken_stanzas(bytes in generate::broken()) {
        check(&bytes)?;
    }

    /// What was written and read is written the same again.
    #[test]
    fn writing_is_stable(text in generate::stanza()) {
        for framing in [Framing::Tcp, Framing::WebSocket] {
            let Ok(Unit::Stanza(first)) = read(text.as_bytes(), &Context::new(Framing::Tcp, Limits::default())) else {
                return Ok(());
            };
            let written = write(&first, framing);
            let again = read(&written, &Context::new(framing, Limits::default()));
            prop_assert_eq!(again, Ok(Unit::Stanza(first)));
        }
    }

    /// A payload that is taken for our own cannot leave its stanza either.
    #[test]
    fn of_payloads(bytes in generate::broken()) {
        if let Ok(payload) = Payload::parse(Bytes::from(bytes)) {
            let mut out = b"<message>".to_vec();
            out.extend_from_slice(payload.bytes());
            out.extend_from_slice(b"</message>");
            let tree = inside_stream(&out).expect("one element");
            prop_assert_eq!(children(tree).len(), payload.children().count());
        }
    }

    #[test]
    fn of_trees(text in generate::element()) {
        if let Ok(element) = Element::parse(text.as_bytes(), ns::CLIENT) {
            let written = element.to_string_in(ns::CLIENT);
            prop_assert_eq!(Element::parse(written.as_bytes(), ns::CLIENT).unwrap(), element.clone());
            prop_assert_eq!(inside_stream(written.as_bytes()).unwrap(), Tree::of(&element));
        }
    }

    #[test]
    fn of_any_text(text in any::<String>()) {
        let element = Element::new("a", "urn:x").with_attr("b", text.clone()).with_text(text.clone());
        let read = Element::parse(element.to_string_in("").as_bytes(), "").unwrap();
        let legal: String = text.chars().map(|c| if c < ' ' && !"\t\n\r".contains(c) || matches!(c, '\u{FFFE}' | '\u{FFFF}') { '\u{FFFD}' } else { c }).collect();
        prop_assert_eq!(read.attr("b"), Some(&*legal));
        prop_assert_eq!(read.text(), legal);
    }

    /// An address that was prepared is prepared.
    #[test]
    fn of_addresses(text in "\\PC{0,8}@?\\PC{1,8}/?\\PC{0,8}") {
        if let Ok(jid) = Jid::new(&text) {
            prop_assert_eq!(&Jid::new(jid.as_str()).unwrap(), &jid);
            let parts = Jid::from_parts(jid.local(), jid.domain(), jid.resource()).unwrap();
            prop_assert_eq!(&parts, &jid);
            let bare = jid.bare().to_jid();
            prop_assert_eq!(bare.as_str(), jid.bare_str());
        }
    }
}
