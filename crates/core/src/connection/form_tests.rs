//! A connection that goes on in another process.

use super::*;
use crate::form::testing::{AT_ONCE, NOW_MS, proves};
use crate::form::{Clock, decode, encode};
use crate::model::Mono;
use crate::settings::{Limits, Rates};
use carillon_wire::Framing;

const HEADER: &str = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='a' xmlns:x='urn:x'>";

fn io(reader: Reader) -> Io {
    let (conn, address) = (ConnId { slot: 0, generation: 0 }, IpAddr::from([127, 0, 0, 1]));
    Io { conn, address, framing: Framing::Tcp, tls: None, via: None, reader, noted: Noted::Begun }
}

/// Takes all frames out of what was read, and keeps what is left.
fn frames(io: &mut Io, new: &[u8]) -> Vec<String> {
    let limits = Limits::default();
    let mut bytes = io.reader.take_rest().map(|rest| *rest).unwrap_or_default();
    bytes.extend_from_slice(new);
    let (mut frames, mut at) = (Vec::new(), 0);
    loop {
        let (frame, length) = io.next_frame(&bytes[at..], &limits, true).unwrap();
        at += length;
        let Some(frame) = frame else { break };
        if let Frame::Header(header) = &frame {
            io.reader.declare(header);
        }
        frames.push(format!("{frame:?}"));
    }
    io.reader.keep(&bytes[at..]);
    frames
}

#[test]
fn input_goes_on_from_any_byte() {
    let limits = Limits::default();
    let stream = format!(
        "{HEADER} <message id='1'><x:y>a&amp;b</x:y></message>\n<iq type='set' id='2'><a/></iq></stream:stream>"
    );
    let bytes = stream.as_bytes();
    let whole = frames(&mut io(Reader::new(&limits)), bytes);
    assert_eq!(whole.len(), 4, "{whole:?}");
    for cut in 0..=bytes.len() {
        let mut first = io(Reader::new(&limits));
        first.reader.trust(&limits);
        let mut all = frames(&mut first, &bytes[..cut]);
        let mut reader: Reader = decode(&encode(&first.reader, NOW_MS), AT_ONCE).unwrap();
        reader.trust(&limits);
        all.extend(frames(&mut io(reader), &bytes[cut..]));
        assert_eq!(all, whole, "cut at {cut}");
    }
}

#[test]
fn the_forms_of_input() {
    let mut io = io(Reader::new(&Limits::default()));
    frames(&mut io, [HEADER, "<message><bo"].concat().as_bytes());
    // The framer of what was read begins anew with the message.
    let reader: Reader = decode(&encode(&io.reader, NOW_MS), AT_ONCE).unwrap();
    assert!(reader.has_more_than_space());
    proves("Reader", &reader);
    let mut input = PausedInput::default();
    proves("PausedInput, empty", &input);
    input.push(b"<a/>");
    input.end();
    proves("PausedInput", &input);
}

#[test]
fn the_forms_of_output() {
    let mut queue = SendQueue::default();
    proves("SendQueue, empty", &queue);
    queue.wrote(b"abcdef", 2);
    queue.watch();
    proves("SendQueue", &queue);
    // What the socket has is not written, and what is watched is still the last byte.
    assert!(!queue.sent(3));
    let mut read: SendQueue = decode(&encode(&queue, NOW_MS), AT_ONCE).unwrap();
    assert_eq!((read.unsent(), read.queued()), (&b"f"[..], 1));
    assert!(read.sent(1) && read.is_idle());
    let mut full = SendQueue::default();
    full.hold(b"ab");
    full.sent(1);
    assert_eq!(full.offer(10, 5), Offered::Overflowed { first: true });
    proves("SendQueue, overflowed", &decode::<SendQueue>(&encode(&full, NOW_MS), AT_ONCE).unwrap());
    full.overflow_reported();
    let mut full: SendQueue = decode(&encode(&full, NOW_MS), AT_ONCE).unwrap();
    full.sent(1);
    assert_eq!(full.unacked(|| Some(0)), u64::MAX, "that bytes were dropped is known for ever");
}

#[test]
fn an_allowance_is_paid_back_meanwhile() {
    let rates = Rates { stanzas_per_second: 10, stanzas_burst: 5, bytes_per_second: 0, bytes_burst: 0 };
    let mut spent = Allowance::new(Mono(NOW_MS - 50));
    let stanza = Received { counts: true, bytes: 100 };
    (0..5).for_each(|_| assert_eq!(spent.debit(Mono(NOW_MS - 50), stanza, &rates), None));
    proves("Allowance", &spent);
    let bytes = encode(&spent, NOW_MS);
    // 50 ms before it was written and 50 ms after make room for one stanza, whatever the clocks say.
    let read = |elapsed_ms| decode::<Allowance>(&bytes, Clock { now_ms: 7, elapsed_ms }).unwrap();
    assert_eq!(read(50).debit(Mono(7), stanza, &rates), None);
    assert_eq!(read(49).debit(Mono(7), stanza, &rates), Some(1));
    assert_eq!(read(u64::MAX).debit(Mono(7), stanza, &rates), None);
}
