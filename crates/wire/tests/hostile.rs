//! What attackers send, and the stream error each gets.

use carillon_wire::frame::tcp::{Framer, Step};
use carillon_wire::stanza::{Context, Unit, read};
use carillon_wire::stream::{Condition, HeaderOut, write_header};
use carillon_wire::xml::{Element, Error, Limits};
use carillon_wire::{Framing, ns};

/// Sends `bytes` on an open stream, as the server takes them: framed first, then read. Gives the first error.
fn send(bytes: &[u8]) -> Result<Vec<Unit>, Error> {
    let mut stream = Vec::new();
    write_header(&mut stream, &HeaderOut::default());
    stream.extend_from_slice(bytes);
    let context = Context::new(Framing::Tcp, Limits::default());
    let mut framer = Framer::new(Limits::default());
    let mut rest = &stream[..];
    let mut units = Vec::new();
    loop {
        let length = match framer.poll(rest)? {
            Step::Incomplete => return Ok(units),
            Step::Whitespace(n) | Step::Header(n) | Step::Close(n) => n,
            Step::Element(n) => {
                units.push(read(&rest[..n], &context)?);
                n
            }
        };
        rest = &rest[length..];
    }
}

/// Expects the same refusal on TCP and in a WebSocket message, and of a tree.
#[track_caller]
fn refuse(text: &str, condition: Condition) {
    refuse_bytes(text.as_bytes(), condition);
}

#[track_caller]
fn refuse_bytes(bytes: &[u8], condition: Condition) {
    let name = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
    assert_eq!(send(bytes).map_err(|e| e.condition()), Err(condition), "TCP: {name}");
    let message = read(bytes, &Context::new(Framing::WebSocket, Limits::default()));
    assert_eq!(message.map_err(|e| e.condition()), Err(condition), "WebSocket: {name}");
}

/// A message with this payload.
fn message(inner: &str) -> String {
    format!("<message xmlns='jabber:client'>{inner}</message>")
}

#[test]
fn document_types() {
    for text in [
        "<!DOCTYPE a>",
        "<!DOCTYPE a SYSTEM 'file:///etc/passwd'>",
        "<!ENTITY a 'b'>",
        &message("<!DOCTYPE a>"),
        &message("<![INCLUDE[x]]>"),
        &message("<![cdata[x]]>"),
    ] {
        refuse(text, Condition::RestrictedXml);
    }
}

#[test]
fn billion_laughs() {
    let laughs =
        "<!DOCTYPE lolz [<!ENTITY lol 'lol'><!ENTITY lol1 '&lol;&lol;&lol;&lol;'>]><message>&lol1;</message>";
    refuse(laughs, Condition::RestrictedXml);
    refuse(&message("&lol9;"), Condition::RestrictedXml);
    refuse("<message xmlns='jabber:client' id='&lol9;'/>", Condition::RestrictedXml);
}

#[test]
fn processing_instructions() {
    for text in [
        "<?php system() ?>",
        "<?xml version='1.0'?><message/>",
        &message("<?x?>"),
        &message("<?xml version='1.0'?>"),
    ] {
        refuse(text, Condition::RestrictedXml);
    }
}

#[test]
fn comments() {
    for text in ["<!-- x -->", &message("<!-- x -->"), &message("<body><!----></body>")] {
        refuse(text, Condition::RestrictedXml);
    }
}

#[test]
fn other_entities() {
    for reference in ["&nbsp;", "&AMP;", "&external;"] {
        refuse(&message(reference), Condition::RestrictedXml);
    }
}

#[test]
fn malformed_references() {
    for reference in [
        "&;",
        "& ",
        "&amp",
        "&#;",
        "&#x;",
        "&#-1;",
        "&#+1;",
        "&#x41",
        "&#0;",
        "&#8;",
        "&#xD800;",
        "&#xFFFE;",
        "&#x110000;",
    ] {
        refuse(&message(&format!("{reference}<a/>")), Condition::NotWellFormed);
        refuse(&message(&format!("<a b='{reference}'/>")), Condition::NotWellFormed);
    }
}

#[test]
fn undeclared_prefixes() {
    for text in [
        "<p:message/>",
        "<message xmlns='jabber:client' p:a='1'/>",
        "<xmlns:a/>",
        &message("<p:a/>"),
        &message("<a p:b='1'/>"),
        &message("<a xmlns:p='urn:p'/><p:a/>"),
    ] {
        refuse(text, Condition::NotWellFormed);
    }
}

#[test]
fn misuse_of_reserved_prefixes() {
    for declaration in [
        "xmlns:xml='urn:x'",
        "xmlns:xml=''",
        "xmlns:xmlns='urn:x'",
        "xmlns:xmlns='http://www.w3.org/2000/xmlns/'",
        "xmlns:p='http://www.w3.org/XML/1998/namespace'",
        "xmlns:p='http://www.w3.org/2000/xmlns/'",
        "xmlns='http://www.w3.org/XML/1998/namespace'",
        "xmlns='http://www.w3.org/2000/xmlns/'",
        // In disguise.
        "xmlns:p='http://www.w3.org/2000/xmlns&#x2F;'",
    ] {
        refuse(&message(&format!("<a {declaration}/>")), Condition::NotWellFormed);
    }
    let allowed = message("<a xmlns:xml='http://www.w3.org/XML/1998/namespace' xml:lang='en'/>");
    assert!(matches!(send(allowed.as_bytes()).as_deref(), Ok([Unit::Stanza(_)])));
}

#[test]
fn a_prefix_cannot_be_unbound() {
    refuse(&message("<a xmlns:p=''/>"), Condition::NotWellFormed);
    refuse(&message("<a xmlns:p='urn:p'><b xmlns:p=''/></a>"), Condition::NotWellFormed);
    assert!(send(message("<a xmlns=''/>").as_bytes()).is_ok());
}

#[test]
fn duplicate_attributes() {
    for attributes in [
        "a='1' a='2'",
        "a='1' b='2' a='1'",
        "xmlns='urn:a' xmlns='urn:b'",
        "xmlns:p='urn:a' xmlns:p='urn:b'",
        "xmlns:p='urn:a' p:b='1' p:b='2'",
        "xmlns:p='urn:a' xmlns:q='urn:a' p:b='1' q:b='2'",
        "xml:lang='a' xml:lang='b'",
    ] {
        refuse(&message(&format!("<x {attributes}/>")), Condition::NotWellFormed);
    }
    // Without prefix an attribute has no namespace.
    assert!(send(message("<x xmlns='urn:a' xmlns:p='urn:a' b='1' p:b='2'/>").as_bytes()).is_ok());
}

#[test]
fn duplicate_recipients() {
    refuse("<message xmlns='jabber:client' to='a' to='b'/>", Condition::NotWellFormed);
}

#[test]
fn malformed_tags() {
    for tag in [
        "<a b/>",
        "<a b=/>",
        "<a b=c/>",
        "<a b='1'c='2'/>",
        "<a/ ></a>",
        "<a / b='1'/>",
        "<a b='1'/ ></a>",
        "<a =''/>",
        "<1/>",
        "<-/>",
        "<a:/>",
        "<:a/>",
        "<a:b:c/>",
        "<a:1/>",
        "<a b:='1'/>",
        "<a>x</a b='1'>",
        "<a>x</ a>",
        "<a>x</a/>",
        "<a b=''''/>",
        "<a b='1' / ></a>",
        "< a/>",
        "<a\u{B}/>",
    ] {
        refuse(&message(tag), Condition::NotWellFormed);
    }
}

#[test]
fn a_less_than_sign_in_an_attribute() {
    refuse(&message("<a b='<'/>"), Condition::NotWellFormed);
    refuse(&message("<a b='x<c/>'/>"), Condition::NotWellFormed);
    assert!(send(message("<a b='>&lt;'/>").as_bytes()).is_ok());
}

#[test]
fn the_end_of_a_cdata_section_in_text() {
    refuse(&message("]]>"), Condition::NotWellFormed);
    refuse(&message("<a>x]]]]>y</a>"), Condition::NotWellFormed);
    refuse(&message("<![CDATA[]]>]]>"), Condition::NotWellFormed);
    assert!(send(message("]] > ]]&gt; <![CDATA[]]]]><a b=']]>'/>").as_bytes()).is_ok());
}

#[test]
fn mismatched_tags() {
    refuse(&message("<a></b>"), Condition::NotWellFormed);
    refuse(&message("<a xmlns:p='urn:p' xmlns:q='urn:p'><p:b></q:b></a>"), Condition::NotWellFormed);
    refuse("</message>", Condition::NotWellFormed);
    refuse("<message xmlns='jabber:client'></presence>", Condition::NotWellFormed);
}

#[test]
fn invalid_utf8() {
    for bytes in [
        &b"\xFF"[..],
        b"\xC0\x80",
        b"\xED\xA0\x80",
        b"\xF5\x80\x80\x80",
        b"\xE2\x28\xA1",
        b"\x80",
        b"\xF4\x90\x80\x80",
    ] {
        for (before, after) in [("<a>", "</a>"), ("<a b='", "'/>"), ("<", "/>"), ("<![CDATA[", "]]>")] {
            let inner = [before.as_bytes(), bytes, after.as_bytes()].concat();
            let text = [b"<message xmlns='jabber:client'>", &inner[..], b"</message>"].concat();
            refuse_bytes(&text, Condition::UnsupportedEncoding);
        }
    }
}

#[test]
fn control_characters() {
    for c in (0..0x20).filter(|c| !b"\t\n\r".contains(c)).map(char::from).chain(['\u{FFFE}', '\u{FFFF}']) {
        refuse(&message(&format!("<body>{c}</body>")), Condition::NotWellFormed);
        refuse(&message(&format!("<a b='{c}'/>")), Condition::NotWellFormed);
        refuse(&message(&format!("<![CDATA[{c}]]>")), Condition::NotWellFormed);
    }
}

#[test]
fn a_byte_order_mark() {
    assert_eq!(send("\u{FEFF}<message/>".as_bytes()).map_err(|e| e.condition()), Err(Condition::BadFormat));
}

#[test]
fn text_at_stream_level() {
    for text in ["x", "GET / HTTP/1.1\r\n\r\n", "<message/>x", "&amp;", "<![CDATA[ ]]>", "\0"] {
        let condition = if text == "\0" { Condition::NotWellFormed } else { Condition::BadFormat };
        assert_eq!(send(text.as_bytes()).map_err(|e| e.condition()), Err(condition), "{text}");
    }
}

#[test]
fn depth() {
    let nested = |depth: usize| message(&["<a>".repeat(depth - 1), "</a>".repeat(depth - 1)].concat());
    assert!(send(nested(64).as_bytes()).is_ok());
    refuse(&nested(65), Condition::PolicyViolation);
    refuse(&"<a>".repeat(80_000), Condition::PolicyViolation);
    assert_eq!(Element::parse("<a>".repeat(100_000).as_bytes(), ""), Err(Error::TooDeep));
}

#[test]
fn size() {
    let limit = Limits::default().stanza_bytes;
    let sized = |size: usize| message(&"x".repeat(size - message("").len()));
    assert!(send(sized(limit).as_bytes()).is_ok());
    refuse(&sized(limit + 1), Condition::PolicyViolation);
    // Before it is complete.
    let endless = format!("<message><body>{}", "x".repeat(limit));
    assert_eq!(send(endless.as_bytes()), Err(Error::TooLarge));
    let endless_attribute = format!("<message to='{}", "x".repeat(limit));
    assert_eq!(send(endless_attribute.as_bytes()), Err(Error::TooLarge));
}

#[test]
fn many_attributes_and_declarations() {
    let attributes = |count: usize| {
        message(&format!("<a{}/>", (0..count).map(|n| format!(" a{n}=''")).collect::<String>()))
    };
    assert!(send(attributes(64).as_bytes()).is_ok());
    refuse(&attributes(65), Condition::PolicyViolation);
    let declarations = |count: usize| {
        message(&format!("<a{}/>", (0..count).map(|n| format!(" xmlns:p{n}='urn:x'")).collect::<String>()))
    };
    assert!(send(declarations(16).as_bytes()).is_ok());
    refuse(&declarations(17), Condition::PolicyViolation);
    // Within the limit of each element, but not of all together.
    let level: String = (0..16).map(|n| format!(" xmlns:p{n}='urn:x'")).collect();
    let nested = [format!("<a{level}>").repeat(20), "</a>".repeat(20)].concat();
    refuse(&message(&nested), Condition::PolicyViolation);
}

#[test]
fn long_namespaces() {
    assert!(send(message(&format!("<a xmlns='{}'/>", "u".repeat(256))).as_bytes()).is_ok());
    refuse(&message(&format!("<a xmlns='{}'/>", "u".repeat(257))), Condition::PolicyViolation);
}

#[test]
fn stanzas_in_other_namespaces() {
    refuse("<message xmlns='jabber:server'/>", Condition::InvalidNamespace);
    refuse("<message xmlns='urn:x'/>", Condition::UnsupportedStanzaType);
    let message = read(b"<message/>", &Context::new(Framing::WebSocket, Limits::default()));
    assert_eq!(message.map_err(|e| e.condition()), Err(Condition::InvalidNamespace));
}

#[test]
fn nothing_can_follow_in_a_websocket_message() {
    let context = Context::new(Framing::WebSocket, Limits::default());
    for text in ["", " ", "<a/><b/>", "<a/>x", "x<a/>", "<a/></a>", "<a", "<a>", "<?xml version='1.0'?><a/>"]
    {
        assert!(read(text.as_bytes(), &context).is_err(), "{text}");
    }
    assert!(read(b" <a/>\n", &context).is_ok());
}

/// Each tries to make its recipient see a second stanza, or another sender.
#[test]
fn stanza_injection() {
    for inner in [
        "</message><message from='admin@example.com'>",
        "<a></message><iq/><message></a>",
        "<a b='</message><iq/><message>'/>",
        "<![CDATA[</message>]]></message><iq/><message><![CDATA[]]>",
    ] {
        assert!(
            read(
                format!("<message>{inner}</message>").as_bytes(),
                &Context::new(Framing::Tcp, Limits::default())
            )
            .is_err(),
            "{inner}"
        );
    }
    // These are data, and stay data.
    for inner in
        ["<a>&lt;/message></a>", "<![CDATA[</message><iq/>]]>", "<a b='&lt;/message>'/>", "<a b=\"'/>\"/>"]
    {
        let units =
            send(format!("<message to='a'>{inner}</message><r xmlns='{}'/>", ns::SM).as_bytes()).unwrap();
        let [Unit::Stanza(stanza), Unit::Nonza(_)] = &units[..] else { panic!("{inner}: {units:?}") };
        let mut out = Vec::new();
        stanza.write(&mut out, Framing::Tcp);
        assert_eq!(send(&out).unwrap().len(), 1, "{inner}");
    }
}
