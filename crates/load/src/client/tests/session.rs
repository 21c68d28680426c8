//! What a client does by itself while in session.

use super::talk::*;
use crate::client::sasl::Mechanism;
use crate::client::{Settings, stanzas};

const ENABLED: &str = "<enabled xmlns='urn:xmpp:sm:3'/>";

#[test]
fn received_stanzas_are_counted_and_acknowledged() {
    let mut talk = Talk::session(managed());
    talk.server("<message/>").server(ENABLED);
    talk.server("<message/><presence/><iq type='result' id='1'/> \n<r xmlns='urn:xmpp:sm:3'/>");
    talk.client("<a xmlns='urn:xmpp:sm:3' h='3'/>");
    // A ping is a stanza, an acknowledgement is none.
    talk.server("<iq type='get' id='2'><ping xmlns='urn:xmpp:ping'/></iq><a xmlns='urn:xmpp:sm:3' h='7'/>");
    talk.server("<r xmlns='urn:xmpp:sm:3'/>");
    talk.client("<iq id='2' type='result'/><a xmlns='urn:xmpp:sm:3' h='4'/>").events(&[
        "<message/>",
        "managed None",
        "ready",
        "<message/>",
        "<presence/>",
        "<iq id='1' type='result'/>",
        "acknowledged 7",
    ]);
}

#[test]
fn without_stream_management_the_session_goes_on() {
    let mut talk = Talk::session(managed());
    assert!(talk.client.ready().is_none());
    talk.server(
        "<failed xmlns='urn:xmpp:sm:3'><service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></failed>",
    );
    talk.events(&["unmanaged service-unavailable", "ready"]);
    assert_eq!(talk.client.ready().map(ToString::to_string).as_deref(), Some("alice@example.org/r"));
    talk.server("<r xmlns='urn:xmpp:sm:3'/>").events(&["closed: unexpected <r/> while in session"]);
}

#[test]
fn receipts_are_sent_if_they_are_asked_for_and_wanted() {
    let asks = "<message from='bob@example.org/x' id='1' type='chat'><body>hi</body>\
        <request xmlns='urn:xmpp:receipts'/></message>";
    let receipt = "<message to='bob@example.org/x' type='chat'>\
        <received xmlns='urn:xmpp:receipts' id='1'/></message>";
    let mut talk = Talk::session(Settings { receipts: true, ..bare() });
    talk.server(asks).client(receipt).events(&[asks]);
    talk.server(receipt).client("");
    talk.server(asks.replace("chat", "error")).client("");
    Talk::session(bare()).server(asks).client("").events(&[asks]);
}

#[test]
fn stream_errors_end_the_session() {
    Talk::session(bare())
        .server(
            "<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>\
             <text xmlns='urn:ietf:params:xml:ns:xmpp-streams'>replaced</text></stream:error></stream:stream>",
        )
        .client("</stream:stream>")
        .events(&["stream error conflict", "closed: stream error conflict (replaced)"]);
}

#[test]
fn either_side_may_close() {
    Talk::session(bare())
        .server("</stream:stream>")
        .client("</stream:stream>")
        .events(&["closed: the server closed the stream"]);

    let mut talk = Talk::session(bare());
    talk.client.close(&mut talk.out);
    talk.client.close(&mut talk.out);
    talk.client("</stream:stream>").server("<message/>").events(&[]);
    talk.server("</stream:stream>").client("").events(&["closed: the client closed the stream"]);
    let message = stanzas::message(carillon_wire::jid::Jid::new("bob@example.org").expect("a JID"), "late");
    talk.client.send(&message, &mut talk.out);
    talk.client("");
}

#[test]
fn stanzas_are_sent_in_session_only() {
    let message = stanzas::message(carillon_wire::jid::Jid::new("bob@example.org").expect("a JID"), "a<b");
    let mut talk = Talk::new(bare());
    talk.client.send(&message, &mut talk.out);
    talk.client(OPEN);
    let mut talk = Talk::session(bare());
    talk.client.send(&message, &mut talk.out);
    talk.client("<message to='bob@example.org' type='chat'><body>a&lt;b</body></message>");
}

#[test]
fn an_idle_client_holds_no_buffers() {
    let mut talk = Talk::session(bare());
    talk.server("<message><body>a long one, cut ").server("in two</body></message>");
    assert_eq!(talk.client.rest.capacity(), 0);
    assert!(size_of_val(&talk.client) <= 256, "{}", size_of_val(&talk.client));
}

#[test]
fn no_bytes_make_it_panic() {
    let script =
        [HEADER, OFFER_PLAIN, SUCCESS, HEADER, OFFER_BIND, BOUND, ENABLED, "<r xmlns='urn:xmpp:sm:3'/>"];
    let script = script.concat().into_bytes();
    let mut random: u32 = 1;
    let mut draw = move |below: usize| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) as usize % below
    };
    for _ in 0..2000 {
        let mut mangled = script.clone();
        for _ in 0..=draw(3) {
            let at = draw(mangled.len());
            match draw(3) {
                0 => mangled[at] = draw(256) as u8,
                1 => drop(mangled.drain(at..(at + draw(20)).min(mangled.len()))),
                _ => mangled.extend_from_within(at..),
            }
        }
        let mut talk = Talk::new(Settings { mechanisms: vec![Mechanism::Plain], ..managed() });
        for piece in mangled.chunks(1 + draw(200)) {
            talk.server(piece);
        }
        talk.client.receive_end(&mut talk.out);
        assert!(talk.client.is_over());
    }
}
