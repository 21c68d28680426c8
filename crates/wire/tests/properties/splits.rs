//! However the network cuts the bytes, the same units come out.

use carillon_wire::frame::tcp::{Framer, Step};
use carillon_wire::frame::websocket::{Decoder, FrameEvent, Opcode, Role, encode_masked};
use carillon_wire::stanza::{Context, read};
use carillon_wire::xml::{Error, Limits};
use carillon_wire::{Framing, stream};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::{cases, generate};

/// Feeds pieces as a connection does: what is not consumed comes again with more behind it. Gives the units as steps
/// with their bytes, runs of white space joined, and the error at the end, if there is one.
fn frame<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<(Step, Vec<u8>)>, Option<Error>) {
    let mut framer = Framer::new(Limits::default());
    let mut buffer: Vec<u8> = Vec::new();
    let mut units: Vec<(Step, Vec<u8>)> = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let step = match framer.poll(&buffer) {
                Ok(step) => step,
                Err(error) => return (units, Some(error)),
            };
            let (Step::Whitespace(n) | Step::Header(n) | Step::Element(n) | Step::Close(n)) = step else {
                break;
            };
            let bytes: Vec<u8> = buffer.drain(..n).collect();
            match units.last_mut() {
                Some((Step::Whitespace(length), before)) if matches!(step, Step::Whitespace(_)) => {
                    *length += n;
                    before.extend(bytes);
                }
                _ => units.push((step, bytes)),
            }
        }
    }
    (units, None)
}

fn header() -> Vec<u8> {
    let mut out = Vec::new();
    stream::write_header(&mut out, &stream::HeaderOut::default());
    out
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn of_a_tcp_stream(units in vec(prop_oneof![4 => generate::stanza().prop_map(String::into_bytes), 1 => generate::broken()], 0..4)) {
        let stream = [header(), units.concat(), b" </stream:stream>".to_vec()].concat();
        let whole = frame(std::iter::once(&stream[..]));
        prop_assert_eq!(&frame(stream.chunks(1)), &whole);
        for at in 0..stream.len() {
            prop_assert_eq!(&frame([&stream[..at], &stream[at..]].into_iter()), &whole, "cut at {}", at);
        }
    }

    /// What the reader accepts, the framer finds as one unit; what the framer refuses, the reader refuses.
    #[test]
    fn framer_and_reader_agree(bytes in generate::broken()) {
        let stream = [header(), bytes.clone(), b" ".to_vec()].concat();
        let (units, error) = frame(std::iter::once(&stream[..]));
        let read = read(&bytes, &Context::new(Framing::Tcp, Limits::default()));
        if read.is_ok() {
            prop_assert_eq!(error, None);
            let elements: Vec<_> = units.into_iter().filter(|u| matches!(u.0, Step::Element(_))).collect();
            let unit = bytes.trim_ascii().to_vec();
            prop_assert_eq!(elements, vec![(Step::Element(unit.len()), unit)]);
        } else if units.len() == 1 {
            prop_assert!(read.is_err());
        }
    }

    #[test]
    fn of_websocket_frames(
        messages in vec((vec("[a-é]{0,40}", 1..4), any::<[u8; 4]>(), any::<bool>()), 0..5),
        size in 1..40usize,
    ) {
        let mut bytes = Vec::new();
        let mut expected = Vec::new();
        for (fragments, mask, ping) in &messages {
            for (at, fragment) in fragments.iter().enumerate() {
                let start = bytes.len();
                let opcode = if at == 0 { Opcode::Text } else { Opcode::Continuation };
                encode_masked(&mut bytes, opcode, fragment.as_bytes(), *mask);
                if at + 1 < fragments.len() {
                    bytes[start] &= 0x7F;
                }
                if *ping && at + 1 < fragments.len() {
                    encode_masked(&mut bytes, Opcode::Ping, b"p", *mask);
                    expected.push(FrameEvent::Ping(b"p".to_vec()));
                }
            }
            expected.push(FrameEvent::Text(fragments.concat().into_bytes()));
        }
        let mut decoder = Decoder::new(Role::Server, Limits::default());
        let mut events = Vec::new();
        for mut piece in bytes.chunks(size) {
            while let Some(event) = decoder.poll(&mut piece).unwrap() {
                events.push(event);
            }
            prop_assert!(piece.is_empty());
        }
        prop_assert_eq!(events, expected);
        prop_assert!(decoder.is_idle());
    }

    #[test]
    fn bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        let mut decoder = Decoder::new(Role::Server, Limits::default());
        let mut input = &bytes[..];
        while let Ok(Some(_)) = decoder.poll(&mut input) {}
        frame(bytes.chunks(3));
    }
}
