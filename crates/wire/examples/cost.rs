//! Prints what one pubsub event of 354 bytes costs to frame, read and write, on this machine, right now.
//!
//! `cargo run --release -p carillon-wire --example cost`

use std::hint::black_box;
use std::time::Instant;

use carillon_wire::Framing;
use carillon_wire::frame::tcp::{Framer, Step};
use carillon_wire::jid::Jid;
use carillon_wire::stanza::{Context, Unit, read};
use carillon_wire::xml::{Element, Limits};

const EVENT: &str = "<message from='pubsub.example.com' to='device-1234@example.com/phone' \
    type='headline' id='0123456789abcdef'><event xmlns='http://jabber.org/protocol/pubsub#event'>\
    <items node='offers/berlin'><item id='2024-05-01T12:00:00Z'><json xmlns='urn:xmpp:json:0'>\
    {\"title\":\"Half price today, all shoes!!\",\"url\":\"/o/1\"}</json></item></items></event></message>";

const ROUNDS: u32 = 200_000;
const REPEATS: usize = 9;

/// The median of several runs, in µs for one call.
fn time(name: &str, mut work: impl FnMut()) {
    let mut runs: Vec<f64> = (0..REPEATS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                work();
            }
            start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS)
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    println!(
        "{name:<44} {:>6.3} µs   (fastest {:.3}, slowest {:.3})",
        runs[REPEATS / 2],
        runs[0],
        runs[REPEATS - 1]
    );
}

fn main() {
    let bytes = EVENT.as_bytes();
    println!("{} bytes, {REPEATS} runs of {ROUNDS}", bytes.len());
    let context = Context::new(Framing::Tcp, Limits::default());
    let mut framer = Framer::new(Limits::default());
    let header = b"<stream:stream xmlns:stream='http://etherx.jabber.org/streams'>";
    assert_eq!(framer.poll(header), Ok(Step::Header(header.len())));
    let Ok(Unit::Stanza(stanza)) = read(bytes, &context) else { panic!("the event is a stanza") };
    let mut out = Vec::with_capacity(1024);

    time("frame", || {
        black_box(framer.poll(black_box(bytes))).ok();
    });
    time("read: checked, addresses parsed, indexed", || {
        black_box(read(black_box(bytes), &context)).ok();
    });
    time("a tree of it", || {
        black_box(Element::parse(black_box(bytes), "jabber:client")).ok();
    });
    time("write", || {
        out.clear();
        black_box(&stanza).write(&mut out, Framing::Tcp);
    });
    time("one address parsed", || {
        black_box(Jid::new(black_box("device-1234@example.com/phone"))).ok();
    });
    time("for comparison: quick-xml's tokens only", || {
        let mut reader = quick_xml::Reader::from_str(black_box(EVENT));
        while !matches!(reader.read_event(), Ok(quick_xml::events::Event::Eof) | Err(_)) {}
    });
    time("for comparison: rxml's events", || {
        use rxml::Parse;
        let mut parser = rxml::Parser::new();
        let mut rest = black_box(bytes);
        while let Ok(Some(event)) = parser.parse(&mut rest, true) {
            black_box(event);
        }
    });
}
