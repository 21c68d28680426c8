use super::*;
use crate::xml::Limits;

const MASK: [u8; 4] = [0x37, 0xFA, 0x21, 0x3D];

fn decode(role: Role, mut input: &[u8]) -> Result<Vec<FrameEvent>, Error> {
    let mut decoder = Decoder::new(role, Limits { stanza_bytes: 70_000, ..Limits::default() });
    let mut events = Vec::new();
    while let Some(event) = decoder.poll(&mut input)? {
        events.push(event);
    }
    assert!(input.is_empty());
    Ok(events)
}

/// A client's frame with this first byte.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    encode_masked(&mut frame, Opcode::Text, payload, MASK);
    frame[0] = first;
    frame
}

fn text(text: &str) -> FrameEvent {
    FrameEvent::Text(text.as_bytes().to_vec())
}

#[test]
fn the_examples_of_the_rfc() {
    // RFC 6455 §5.7
    assert_eq!(decode(Role::Client, b"\x81\x05Hello"), Ok(vec![text("Hello")]));
    assert_eq!(
        decode(Role::Server, b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"),
        Ok(vec![text("Hello")])
    );
    assert_eq!(decode(Role::Client, b"\x01\x03Hel\x80\x02lo"), Ok(vec![text("Hello")]));
    assert_eq!(decode(Role::Client, b"\x89\x05Hello"), Ok(vec![FrameEvent::Ping(b"Hello".to_vec())]));
    assert_eq!(
        decode(Role::Server, b"\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"),
        Ok(vec![FrameEvent::Pong(b"Hello".to_vec())])
    );
    let mut out = Vec::new();
    encode_text(&mut out, b"Hello");
    encode_control(&mut out, Opcode::Ping, b"Hello");
    encode_masked(&mut out, Opcode::Text, b"Hello", MASK);
    assert_eq!(out, b"\x81\x05Hello\x89\x05Hello\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58");
}

#[test]
fn every_form_of_length_is_read_back_however_it_is_cut() {
    for length in [0, 1, 125, 126, 127, 0xFFFF, 0x10000] {
        let payload = "x".repeat(length);
        let mut server = Vec::new();
        encode_text(&mut server, payload.as_bytes());
        assert_eq!(decode(Role::Client, &server), Ok(vec![text(&payload)]));
        let client = masked(0x81, payload.as_bytes());
        let mut decoder = Decoder::new(Role::Server, Limits { stanza_bytes: 70_000, ..Limits::default() });
        let mut events = Vec::new();
        for mut piece in client.chunks(7) {
            while let Some(event) = decoder.poll(&mut piece).unwrap() {
                events.push(event);
            }
        }
        assert_eq!(events, [text(&payload)]);
        assert!(decoder.is_idle());
    }
}

#[test]
fn control_frames_may_come_between_fragments() {
    let frames = [
        masked(0x01, b"Hel"),
        masked(0x89, b"ping"),
        masked(0x00, b"l"),
        masked(0x8A, b""),
        masked(0x80, b"o"),
        masked(0x81, "é".as_bytes()),
    ]
    .concat();
    let expected =
        vec![FrameEvent::Ping(b"ping".to_vec()), FrameEvent::Pong(vec![]), text("Hello"), text("é")];
    assert_eq!(decode(Role::Server, &frames), Ok(expected));
}

#[test]
fn a_character_may_be_cut_between_fragments() {
    let frames = [masked(0x01, b"\xC3"), masked(0x80, b"\xA9")].concat();
    assert_eq!(decode(Role::Server, &frames), Ok(vec![text("é")]));
}

#[test]
fn close_has_a_code_and_a_reason() {
    let close = |code, reason: &str| FrameEvent::Close { code, reason: reason.to_owned() };
    assert_eq!(decode(Role::Server, &masked(0x88, b"")), Ok(vec![close(None, "")]));
    assert_eq!(decode(Role::Server, &masked(0x88, b"\x03\xE8bye")), Ok(vec![close(Some(1000), "bye")]));
    let mut out = Vec::new();
    encode_close(&mut out, 1001, &"é".repeat(100));
    assert_eq!(decode(Role::Client, &out), Ok(vec![close(Some(1001), &"é".repeat(61))]));
    let after = [masked(0x88, b""), masked(0x81, b"x")].concat();
    assert_eq!(decode(Role::Server, &after), Err(Error::AfterClose));
}

#[test]
fn refuses_what_breaks_the_protocol() {
    use Error::{
        Binary, CloseCode, Control, Fragmentation, InvalidUtf8, Length, Masking, Opcode, ReservedBits,
        TooLarge,
    };
    let long = [0; 126];
    for (error, code, frame) in [
        (ReservedBits, 1002, masked(0xC1, b"")),
        (ReservedBits, 1002, masked(0x91, b"")),
        (Opcode, 1002, masked(0x83, b"")),
        (Opcode, 1002, masked(0x8B, b"")),
        (Binary, 1003, masked(0x82, b"")),
        (Masking, 1002, b"\x81\x05Hello".to_vec()),
        (Control, 1002, masked(0x09, b"")),
        (Control, 1002, masked(0x89, &long)),
        (Length, 1002, b"\x81\xFE\x00\x7D____".to_vec()),
        (Length, 1002, b"\x81\xFF\x00\x00\x00\x00\x00\x00\xFF\xFF____".to_vec()),
        (Length, 1002, b"\x81\xFF\x80\x00\x00\x00\x00\x01\x00\x00____".to_vec()),
        (Fragmentation, 1002, masked(0x80, b"")),
        (Fragmentation, 1002, [masked(0x01, b""), masked(0x81, b"")].concat()),
        (CloseCode, 1002, masked(0x88, b"\x03")),
        (CloseCode, 1002, masked(0x88, b"\x03\xED")),
        (CloseCode, 1002, masked(0x88, b"\x00\x00")),
        (InvalidUtf8, 1007, masked(0x88, b"\x03\xE8\xFF")),
        (InvalidUtf8, 1007, masked(0x81, b"\xFF")),
        (TooLarge, 1009, b"\x81\xFF\x00\x00\x00\x00\x00\x01\x11\x71____".to_vec()),
        (TooLarge, 1009, b"\x81\xFF\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF____".to_vec()),
        (TooLarge, 1009, [masked(0x01, &[b'x'; 69_999]), masked(0x80, b"xx")].concat()),
    ] {
        assert_eq!(decode(Role::Server, &frame), Err(error), "{:?}", &frame[..2]);
        assert_eq!(error.close_code(), code, "{error}");
    }
    assert_eq!(decode(Role::Client, &masked(0x81, b"x")), Err(Masking));
}

#[test]
fn a_large_promise_allocates_nothing() {
    let mut decoder = Decoder::new(Role::Server, Limits { stanza_bytes: usize::MAX, ..Limits::default() });
    let mut frame = &b"\x81\xFF\x00\x00\x00\x00\xFF\x00\x00\x00____x"[..];
    assert_eq!(decoder.poll(&mut frame), Ok(None));
    assert!(!decoder.is_idle());
}

#[test]
fn stays_small() {
    assert!(size_of::<Decoder>() <= 64, "{}", size_of::<Decoder>());
}

#[test]
fn another_decoder_goes_on_from_any_byte() {
    let server: Vec<u8> = [
        masked(0x01, &b"a".repeat(130)),
        masked(0x89, b"ping"),
        masked(0x00, b""),
        masked(0x80, b"end"),
        masked(0x81, "x".repeat(300).as_bytes()),
        masked(0x88, &1000u16.to_be_bytes()),
    ]
    .concat();
    let client = b"\x01\x03Hel\x89\x01p\x80\x02lo\x81\x00\x88\x00".to_vec();
    for (role, stream) in [(Role::Server, server), (Role::Client, client)] {
        let whole = decode(role, &stream).unwrap();
        for cut in 0..=stream.len() {
            let (mut before, mut after) = stream.split_at(cut);
            let mut first = Decoder::new(role, Limits::default());
            let mut events = Vec::new();
            while let Some(event) = first.poll(&mut before).unwrap() {
                events.push(event);
            }
            let replay = first.replay();
            assert_eq!(replay.is_empty(), first.is_idle(), "cut at {cut}");
            let mut second = Decoder::new(role, Limits::default());
            assert_eq!(second.poll(&mut replay.as_slice()), Ok(None));
            while let Some(event) = second.poll(&mut after).unwrap() {
                events.push(event);
            }
            assert_eq!(events, whole, "cut at {cut}");
        }
    }
}
