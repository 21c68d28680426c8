//! XML, nearly XML, and what is neither.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const NAMES: &[&str] = &[
    "a",
    "b",
    "body",
    "message",
    "iq",
    "é",
    "p:a",
    "q:b",
    "p:message",
    "stream:error",
    "xml:a",
    "xmlns:a",
    "a.-1",
    "1a",
];

const ATTRIBUTES: &[&str] = &[
    " x='1'",
    " y=\"2\"",
    " x = '3'",
    "\n\tz='>'",
    " to='a@b/c'",
    " to='@'",
    " type='chat'",
    " type='get'",
    " id='1'",
    " xml:lang='en'",
    " xml:space='preserve'",
    " p:x='1'",
    " q:x='2'",
    " xmlns='urn:d'",
    " xmlns=''",
    " xmlns='jabber:client'",
    " xmlns:p='urn:p'",
    " xmlns:q='urn:p'",
    " xmlns:q='urn:q'",
    " xmlns:p='jabber:client'",
    " v='&lt;&#x41;&apos;'",
    " v='a\tb\r\nc'",
    " v=\"'\"",
    " v='\"'",
    " v='é\u{1F600}'",
    " xmlns:p='urn:x?&amp;y'",
];

const BAD_ATTRIBUTES: &[&str] = &[
    "x='1'",
    " x",
    " x=1",
    " x='<'",
    " x='&'",
    " x='&n;'",
    " x='&#0;'",
    " xmlns:p=''",
    " xmlns:xml='urn:x'",
    " xmlns:xmlns='urn:x'",
    " xmlns:xml='http://www.w3.org/XML/1998/namespace'",
    " xmlns='http://www.w3.org/XML/1998/namespace'",
    " xmlns:p='http://www.w3.org/2000/xmlns/'",
    " :x='1'",
    " x:='1'",
    " xmlns:='urn:x'",
    " x=''x='2'",
    " x='\u{FFFE}'",
    " a:b:c='1'",
    " xmlns:1='urn:x'",
    "/",
    " /",
    " '",
    " \"",
];

const TEXTS: &[&str] = &[
    "x",
    " ",
    "\n",
    "\r\n",
    "\r",
    "é",
    "\u{1F600}",
    "\u{FFFD}",
    "&amp;",
    "&lt;",
    "&#13;",
    "&#x10FFFF;",
    "]]",
    ">",
    "]",
    "<![CDATA[]]>",
    "<![CDATA[<a>&x;]]>",
    "<![CDATA[]]]]>",
    "'",
    "\"",
    "/>",
    "--",
    "\u{7F}",
    "\u{85}",
];

const BAD_TEXTS: &[&str] = &[
    "&",
    "&;",
    "&nbsp;",
    "&#xFFFE;",
    "&#x0;",
    "&#55296;",
    "]]>",
    "<",
    "<>",
    "</>",
    "<!-- x -->",
    "<!---->",
    "<?x?>",
    "<?xml version='1.0'?>",
    "<!DOCTYPE a>",
    "<!DOCTYPE a [<!ENTITY b 'c'>]>",
    "<![cdata[x]]>",
    "<![CDATA[",
    "\0",
    "\u{1F}",
    "\u{FFFF}",
    "</a>",
    "<a>",
    "</message>",
    "<message>",
    "</stream:stream>",
    "&#38;#38;",
    "&#x26;lt;",
];

/// A well-formed element, or one that only its names and attributes make wrong.
pub(crate) fn element() -> impl Strategy<Value = String> {
    tag(NAMES, leaf().boxed()).prop_recursive(4, 24, 4, |inner| {
        let inner = vec(prop_oneof![inner, leaf()], 0..4).prop_map(|nodes| nodes.concat());
        tag(NAMES, inner.boxed())
    })
}

/// A stanza with a payload of such elements.
pub(crate) fn stanza() -> impl Strategy<Value = String> {
    let payload = vec(prop_oneof![3 => element(), 1 => leaf()], 0..4).prop_map(|nodes| nodes.concat());
    tag(&["message", "message", "presence", "iq", "p:message"], payload.boxed())
}

/// A stanza or element with something wrong in it, most of the time.
pub(crate) fn broken() -> impl Strategy<Value = Vec<u8>> {
    let base = prop_oneof![stanza(), element()];
    (base, vec(damage(), 0..3)).prop_map(|(text, damages)| {
        damages.iter().fold(text.into_bytes(), |bytes, damage| damage.apply(bytes))
    })
}

fn leaf() -> impl Strategy<Value = String> {
    vec(select(TEXTS), 0..3).prop_map(|texts| texts.concat())
}

fn tag(names: &'static [&'static str], inner: BoxedStrategy<String>) -> BoxedStrategy<String> {
    (select(names), vec(select(ATTRIBUTES), 0..4), inner, any::<bool>())
        .prop_map(|(name, attributes, inner, space)| {
            let attributes = attributes.concat();
            let space = if space { " " } else { "" };
            if inner.is_empty() {
                format!("<{name}{attributes}{space}/>")
            } else {
                format!("<{name}{attributes}{space}>{inner}</{name}{space}>")
            }
        })
        .boxed()
}

#[derive(Clone, Debug)]
enum Damage {
    Insert(prop::sample::Index, &'static str),
    Remove(prop::sample::Index, usize),
    Replace(prop::sample::Index, u8),
}

fn damage() -> impl Strategy<Value = Damage> {
    let pieces = [ATTRIBUTES, BAD_ATTRIBUTES, TEXTS, BAD_TEXTS, NAMES].concat();
    let at = any::<prop::sample::Index>;
    prop_oneof![
        4 => (at(), select(pieces)).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        2 => (at(), 1..4usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        1 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        1 => (at(), select(b"<>&;'\"/ =:!?[]-x".as_slice())).prop_map(|(at, byte)| Damage::Replace(at, byte)),
    ]
}

impl Damage {
    fn apply(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if bytes.is_empty() {
            return bytes;
        }
        match self {
            Self::Insert(at, piece) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, piece.bytes());
            }
            Self::Remove(at, length) => {
                let at = at.index(bytes.len());
                bytes.drain(at..bytes.len().min(at + length));
            }
            Self::Replace(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
        }
        bytes
    }
}
