use super::*;

const HEADER: &str =
    "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='a'>";

fn open() -> Framer {
    let mut framer = Framer::new(Limits::default());
    assert_eq!(framer.poll(HEADER.as_bytes()), Ok(Step::Header(HEADER.len())));
    framer
}

/// Polls `text` as the only thing after a header.
fn poll(text: &[u8]) -> Result<Step, Error> {
    open().poll(text)
}

#[test]
fn a_whole_stream() {
    let stream =
        format!("<?xml version='1.0'?>\n{HEADER} <message><body>a>b</body></message>\n<r/></stream:stream> ");
    let mut framer = Framer::new(Limits::default());
    let mut rest = stream.as_bytes();
    let mut steps = Vec::new();
    loop {
        let step = framer.poll(rest).unwrap();
        let (Step::Whitespace(n) | Step::Header(n) | Step::Element(n) | Step::Close(n)) = step else {
            break;
        };
        steps.push(step);
        rest = &rest[n..];
    }
    assert_eq!(
        steps,
        [
            Step::Header(22 + HEADER.len()),
            Step::Whitespace(1),
            Step::Element(35),
            Step::Whitespace(1),
            Step::Element(4),
            Step::Close(16),
            Step::Whitespace(1),
        ]
    );
    assert!(framer.is_idle());
}

#[test]
fn finds_the_end_of_an_element() {
    for unit in [
        "<a/>",
        "<a></a>",
        "<a ></a >",
        "<a b='/>' c=\"/a>\"/>",
        "<a b='>'><a><a/></a></a>",
        "<a>text &lt; &#x3c; ]] > </a>",
        "<a><![CDATA[</a> <b> ]] ]>]]]]></a>",
        "<a><![CDATA[]]></a>",
        "<é>ü</é>",
    ] {
        assert_eq!(poll(unit.as_bytes()), Ok(Step::Element(unit.len())), "{unit}");
        let more = format!("{unit}<b/>");
        assert_eq!(poll(more.as_bytes()), Ok(Step::Element(unit.len())), "{more}");
    }
}

#[test]
fn what_follows_a_unit_is_not_looked_at() {
    assert_eq!(poll(b"<starttls/>\x16\x03\x01\x02\xFF"), Ok(Step::Element(11)));
    assert_eq!(poll(b" \xFF"), Ok(Step::Whitespace(1)));
}

#[test]
fn incomplete_units_wait() {
    let unit = "<a b='c'>é&amp;<![CDATA[x]]><b/></a>".as_bytes();
    for length in 0..unit.len() {
        assert_eq!(poll(&unit[..length]), Ok(Step::Incomplete), "{length}");
    }
}

#[test]
fn refuses_restricted_xml_at_its_first_bytes() {
    let restricted = |kind| Err(Error::Restricted(kind));
    assert_eq!(poll(b"<!D"), restricted(Restriction::DocumentType));
    assert_eq!(poll(b"<!-"), restricted(Restriction::Comment));
    assert_eq!(poll(b"<?x"), restricted(Restriction::ProcessingInstruction));
    assert_eq!(poll(b"<a><!E"), restricted(Restriction::DocumentType));
    assert_eq!(poll(b"<a><!-"), restricted(Restriction::Comment));
    assert_eq!(poll(b"<a><?"), restricted(Restriction::ProcessingInstruction));
    assert_eq!(poll(b"<a>&nbsp;"), restricted(Restriction::Entity));
    let mut fresh = Framer::new(Limits::default());
    assert_eq!(fresh.poll(b"<?php"), restricted(Restriction::ProcessingInstruction));
    let mut fresh = Framer::new(Limits::default());
    assert_eq!(fresh.poll(b"<!DOCTYPE"), restricted(Restriction::DocumentType));
    let mut fresh = Framer::new(Limits::default());
    let twice = b"<?xml version='1.0'?><?xml version='1.0'?>";
    assert_eq!(fresh.poll(twice), restricted(Restriction::ProcessingInstruction));
}

#[test]
fn refuses_what_is_not_well_formed_early() {
    assert_eq!(poll(b"x"), Err(Error::TextAtStreamLevel));
    assert_eq!(poll(b"&amp;"), Err(Error::TextAtStreamLevel));
    assert_eq!(poll(b"<![CDATA["), Err(Error::TextAtStreamLevel));
    assert_eq!(poll(b"<1"), Err(Error::Name));
    assert_eq!(poll(b"< "), Err(Error::Name));
    assert_eq!(poll(b"<a <"), Err(Error::Tag));
    assert_eq!(poll(b"<a b='<"), Err(Error::Tag));
    assert_eq!(poll(b"<a>& "), Ok(Step::Incomplete));
    assert_eq!(poll(b"<a>& b;"), Err(Error::Reference));
    assert_eq!(poll(b"<a>&<"), Err(Error::Reference));
    assert_eq!(poll(b"<a>&aaaaaaaaaaaaaaaaa"), Err(Error::Reference));
    assert_eq!(poll(b"<a>&#0;"), Err(Error::IllegalCharacter));
    assert_eq!(poll(b"<a>\xC3("), Err(Error::InvalidUtf8));
    assert_eq!(poll(b"<a>\xFF"), Err(Error::InvalidUtf8));
    assert_eq!(poll(b"<a b='\xC0\x80"), Err(Error::InvalidUtf8));
    assert_eq!(poll(b"<a>\x00"), Err(Error::IllegalCharacter));
    assert_eq!(poll("<a>\u{FFFF}".as_bytes()), Err(Error::IllegalCharacter));
    assert_eq!(poll(b"\xFF"), Err(Error::InvalidUtf8));
    assert_eq!(poll(b"\x01"), Err(Error::IllegalCharacter));
    assert_eq!(poll(b"</stream>"), Err(Error::MismatchedTag));
    assert_eq!(poll(b"<message><body>x</message>"), Err(Error::MismatchedTag));
    assert_eq!(poll(b"<message><body>x</bo<dy>"), Err(Error::Tag));
}

#[test]
fn a_header_comes_first_and_once() {
    let mut framer = Framer::new(Limits::default());
    assert_eq!(framer.poll(b" \n"), Ok(Step::Whitespace(2)));
    assert_eq!(framer.poll(b"</a>"), Err(Error::MismatchedTag));
    let mut framer = open();
    framer.restart();
    let header = format!("<?xml version='1.0' encoding='utf-8'?>{HEADER}");
    assert_eq!(framer.poll(header.as_bytes()), Ok(Step::Header(header.len())));
    assert_eq!(framer.poll(b"</stream:stream >"), Ok(Step::Close(17)));
    assert_eq!(framer.poll(b"<a/>"), Err(Error::NotOneElement));
}

#[test]
fn another_encoding_is_refused() {
    let mut framer = Framer::new(Limits::default());
    let error = framer.poll(b"<?xml version='1.0' encoding='latin-1'?>");
    assert_eq!(error, Err(Error::UnsupportedEncoding));
}

#[test]
fn limits_hold_before_more_is_buffered() {
    let limits = Limits { stanza_bytes: 100, depth: 3, ..Limits::default() };
    let polls = |text: &str| {
        let mut framer = open();
        framer.set_limits(limits);
        framer.poll(text.as_bytes())
    };
    let fits = format!("<a>{}</a>", "x".repeat(93));
    assert_eq!(polls(&fits), Ok(Step::Element(100)));
    assert_eq!(polls(fits.get(..99).unwrap()), Ok(Step::Incomplete));
    assert_eq!(polls(&format!("<a>{}", "x".repeat(97))), Err(Error::TooLarge));
    assert_eq!(polls(&format!("<a>{}</a>", "x".repeat(94))), Err(Error::TooLarge));
    assert_eq!(polls(&" ".repeat(99)), Ok(Step::Whitespace(99)));
    assert_eq!(polls("<a><a><a/></a></a>"), Ok(Step::Element(18)));
    assert_eq!(polls("<a><a><a><a"), Err(Error::TooDeep));
}

#[test]
fn limits_may_shrink_inside_a_unit() {
    for unit in ["<a>&am", "<a>xxx", "<a><!", "<a b='", "<a></a", "<a><![CDATA[ ]"] {
        let mut framer = open();
        assert_eq!(framer.poll(unit.as_bytes()), Ok(Step::Incomplete));
        framer.set_limits(Limits { stanza_bytes: 2, ..Limits::default() });
        assert_eq!(framer.poll(unit.as_bytes()), Err(Error::TooLarge), "{unit}");
    }
}

#[test]
fn stays_small() {
    assert!(size_of::<Framer>() <= 48, "{}", size_of::<Framer>());
}

/// What a fuzzer found: the error must not depend on how much had arrived when it was noticed.
#[test]
fn the_error_does_not_depend_on_the_cut() {
    for bytes in
        [&b"<a \x03='\xE0\xC3'><"[..], b"<![CDATE", b"<?xml?>\xFF", b"<a b='\x80'<", b"<a>&\xFF<;", b"<\x01"]
    {
        for mut framer in [open(), Framer::new(Limits::default())] {
            let whole = framer.clone().poll(bytes);
            let cut = (0..=bytes.len())
                .map(|length| framer.poll(&bytes[..length]))
                .find(|step| *step != Ok(Step::Incomplete));
            assert_eq!(cut, Some(whole), "{bytes:?}");
        }
    }
}

/// All units of a buffer, and how many bytes they have.
fn units(framer: &mut Framer, mut rest: &[u8]) -> (Vec<Step>, usize) {
    let (mut steps, length) = (Vec::new(), rest.len());
    loop {
        let step = framer.poll(rest).unwrap();
        let (Step::Whitespace(n) | Step::Header(n) | Step::Element(n) | Step::Close(n)) = step else {
            return (steps, length - rest.len());
        };
        steps.push(step);
        rest = &rest[n..];
    }
}

#[test]
fn another_framer_goes_on_from_any_byte() {
    let stanzas = "<message><body>a&amp;b</body><x a='>'/></message><a><![CDATA[</a>]]></a>";
    let stream = format!("<?xml version='1.0'?>\n{HEADER}{stanzas}</stream:stream>");
    let bytes = stream.as_bytes();
    let whole = units(&mut Framer::new(Limits::default()), bytes).0;
    for cut in 0..=bytes.len() {
        let mut framer = Framer::new(Limits::default());
        let (mut steps, consumed) = units(&mut framer, &bytes[..cut]);
        let mut other = Framer::resume(framer.state(), Limits::default());
        steps.extend(units(&mut other, &bytes[consumed..]).0);
        assert_eq!(steps, whole, "cut at {cut}");
        assert_eq!(other.state(), StreamState::Closed);
    }
}

#[test]
fn another_framer_knows_how_the_stream_ends() {
    let mut other = Framer::resume(open().state(), Limits::default());
    assert_eq!(other.poll(b"</stream>"), Err(Error::MismatchedTag));
}
