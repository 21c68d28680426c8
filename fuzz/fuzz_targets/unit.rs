//! One unit: whatever is accepted is written as something that is accepted again, that rxml takes for exactly one
//! element, and that reads the same.
#![no_main]

use carillon_wire::Framing;
use carillon_wire::stanza::{Context, Unit, read};
use carillon_wire::xml::{Element, Limits};
use libfuzzer_sys::fuzz_target;
use rxml::{Event, Parse, Parser};

const HEADER: &[u8] =
    b"<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>";

fuzz_target!(|bytes: &[u8]| {
    let tcp = Context::new(Framing::Tcp, Limits::default());
    let element = Element::parse(bytes, "jabber:client").ok();
    if let Some(element) = &element {
        let written = element.to_string_in("jabber:client");
        assert_eq!(Element::parse(written.as_bytes(), "jabber:client").as_ref(), Ok(element));
    }
    if let Ok(Unit::Stanza(stanza)) = read(bytes, &tcp) {
        for framing in [Framing::Tcp, Framing::WebSocket] {
            let mut out = Vec::new();
            stanza.write(&mut out, framing);
            let again = read(&out, &Context::new(framing, Limits::trusted()));
            assert_eq!(again, Ok(Unit::Stanza(stanza.clone())));
            // rxml 0.14 lacks a range of characters in names, mishandles CR and limits tokens to 8 KiB.
            let text = std::str::from_utf8(&out).expect("UTF-8 is written");
            let foreign = |c| c == '\r' || ('\u{FDF0}'..='\u{FFFD}').contains(&c);
            if framing == Framing::Tcp && text.len() < 8000 && !text.contains(foreign) {
                assert_eq!(top_level_elements(&out), Some(1), "{text}");
            }
        }
    }
});

/// How many elements stand in a stream; `None` if that is not well-formed or there is text between them.
fn top_level_elements(bytes: &[u8]) -> Option<usize> {
    let stream = [HEADER, bytes, b"</stream:stream>"].concat();
    let mut rest = &stream[..];
    let mut parser = Parser::new();
    let (mut depth, mut elements) = (0, 0);
    while let Some(event) = parser.parse(&mut rest, true).ok()? {
        match event {
            Event::StartElement(..) => {
                elements += usize::from(depth == 1);
                depth += 1;
            }
            Event::EndElement(_) => depth -= 1,
            Event::Text(..) if depth == 1 => return None,
            _ => {}
        }
    }
    Some(elements)
}
