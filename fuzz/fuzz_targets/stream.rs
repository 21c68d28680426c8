//! A stream, TCP and WebSocket: however it is cut, the same comes out. The first byte says where to cut.
#![no_main]

use carillon_wire::Framing;
use carillon_wire::frame::tcp::{Framer, Step};
use carillon_wire::frame::websocket::{self, Decoder, FrameEvent, Role};
use carillon_wire::stanza::{Context, read};
use carillon_wire::stream::Header;
use carillon_wire::xml::{Error, Limits};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((&cut, bytes)) = bytes.split_first() else { return };
    let size = usize::from(cut) + 1;
    assert_eq!(tcp(bytes.chunks(size)), tcp(std::iter::once(bytes)));
    for role in [Role::Server, Role::Client] {
        assert_eq!(web_socket(role, bytes.chunks(size)), web_socket(role, std::iter::once(bytes)));
    }
});

fn tcp<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, Option<Error>) {
    let context = Context::new(Framing::Tcp, Limits::default());
    let mut framer = Framer::new(Limits { stanza_bytes: 4096, ..Limits::default() });
    let (mut buffer, mut units) = (Vec::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            match framer.poll(&buffer) {
                Err(error) => return (units, Some(error)),
                Ok(Step::Incomplete) => break,
                Ok(Step::Whitespace(n)) => drop(buffer.drain(..n)),
                Ok(Step::Header(n) | Step::Close(n)) => {
                    let unit: Vec<u8> = buffer.drain(..n).collect();
                    Header::parse(&unit).ok();
                    units.push(unit);
                }
                Ok(Step::Element(n)) => {
                    let unit: Vec<u8> = buffer.drain(..n).collect();
                    read(&unit, &context).ok();
                    units.push(unit);
                }
            }
        }
    }
    (units, None)
}

fn web_socket<'a>(
    role: Role,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<FrameEvent>, Option<websocket::Error>) {
    let mut decoder = Decoder::new(role, Limits { stanza_bytes: 4096, ..Limits::default() });
    let mut events = Vec::new();
    for mut piece in pieces {
        loop {
            match decoder.poll(&mut piece) {
                Err(error) => return (events, Some(error)),
                Ok(None) => break,
                Ok(Some(event)) => events.push(event),
            }
        }
    }
    (events, None)
}
