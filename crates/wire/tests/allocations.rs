//! How often reading and writing allocate: a guard against regressions, by counting.
#![expect(unsafe_code, reason = "a global allocator that counts is unsafe by its trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use carillon_wire::Framing;
use carillon_wire::frame::tcp::{Framer, Step};
use carillon_wire::jid::Jid;
use carillon_wire::stanza::{Context, Unit, read};
use carillon_wire::xml::Limits;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count<T>(work: impl FnOnce() -> T) -> usize {
    let before = ALLOCATIONS.with(Cell::get);
    let result = black_box(work());
    let after = ALLOCATIONS.with(Cell::get);
    drop(result);
    after - before
}

const MESSAGE: &[u8] = b"<message to='bob@example.com' from='alice@example.com/phone' id='a1' type='chat'>\
    <body>Hello, Bob &amp; others</body><request xmlns='urn:xmpp:receipts'/></message>";

fn context() -> Context {
    Context::new(Framing::Tcp, Limits::default())
}

#[test]
fn reading_a_message() {
    let context = context();
    // `to`, `from`, each joined and then shared; `id`; the payload.
    assert!(count(|| read(MESSAGE, &context)) <= 6);
}

#[test]
fn reading_a_message_without_addresses() {
    let context = context();
    assert_eq!(count(|| read(b"<message><body>x</body><a xmlns='urn:a'/></message>", &context)), 1);
    assert_eq!(count(|| read(b"<presence/>", &context)), 0);
}

#[test]
fn refusing() {
    let context = context();
    assert_eq!(count(|| read(b"<message><body></message>", &context)), 0);
}

#[test]
fn framing() {
    let mut framer = Framer::new(Limits::default());
    let header = b"<stream:stream xmlns:stream='http://etherx.jabber.org/streams'>";
    assert_eq!(framer.poll(header), Ok(Step::Header(header.len())));
    assert_eq!(count(|| framer.poll(&MESSAGE[..100])), 0);
    assert_eq!(count(|| framer.poll(MESSAGE)), 0);
}

#[test]
fn writing_and_looking_inside() {
    let Ok(Unit::Stanza(message)) = read(MESSAGE, &context()) else { panic!("a stanza") };
    let mut out = Vec::with_capacity(1024);
    assert_eq!(count(|| message.write(&mut out, Framing::WebSocket)), 0);
    assert_eq!(count(|| message.payload.find("request", "urn:xmpp:receipts").is_some()), 0);
    // The first clone of the payload begins to share it.
    drop(message.clone());
    assert_eq!(count(|| message.payload.clone()), 0);
}

#[test]
fn addresses() {
    assert!(count(|| Jid::new("alice@example.com/phone")) <= 2);
    let jid = Jid::new("alice@example.com").unwrap();
    assert_eq!(count(|| (jid.clone(), jid.bare(), jid.bare().to_jid())), 0);
}
