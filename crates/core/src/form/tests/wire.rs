//! What `wire` has.

use super::*;
use carillon_wire::Framing;
use carillon_wire::frame::tcp::StreamState;
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{IqType, Kind, MessageType, Payload, PresenceType, Stanza};
use carillon_wire::xml::Element;

fn child() -> impl Strategy<Value = Element> {
    ("[a-z]{1,8}", "[a-z:]{0,12}", "\\PC{0,20}")
        .prop_map(|(name, ns, text)| Element::new(&name, &ns).with_text(text))
}

fn kind() -> impl Strategy<Value = Kind> {
    let messages = MessageType::ALL.iter().map(|of| Kind::Message(*of));
    let presences = PresenceType::ALL.iter().map(|of| Kind::Presence(*of));
    let iqs = IqType::ALL.iter().map(|of| Kind::Iq(*of));
    proptest::sample::select(messages.chain(presences).chain(iqs).collect::<Vec<_>>())
}

fn jid() -> impl Strategy<Value = Jid> {
    let resource = proptest::option::of("[a-zA-Zäß /@]{1,20}");
    (proptest::option::of("[a-zé]{1,8}"), "[a-z]{1,8}(\\.[a-z]{1,3})?", resource)
        .prop_map(|(local, domain, resource)| Jid::from_parts(local.as_deref(), &domain, resource.as_deref()))
        .prop_filter_map("an address", Result::ok)
}

proptest! {
    #[test]
    fn any_stanza(
        kind in kind(),
        to in proptest::option::of(jid()),
        from in proptest::option::of(jid()),
        id: Option<String>,
        lang in proptest::option::of("[a-z]{2}"),
        children in proptest::collection::vec(child(), 0..4),
    ) {
        let (id, lang) = (id.map(Box::from), lang.map(Box::from));
        let stanza = Stanza { kind, to, from, id, lang, payload: Payload::from_elements(&children) };
        let read: Stanza = decode(&encode(&stanza, 0), Clock::default()).unwrap();
        prop_assert_eq!(read.payload.children().count(), children.len());
        for (child, element) in read.payload.children().zip(&children) {
            prop_assert_eq!(&child.element(), element);
        }
        prop_assert_eq!(read, stanza);
    }
}

#[test]
fn every_type_of_stanza() {
    let messages = MessageType::ALL.iter().map(|of| Kind::Message(*of));
    let presences = PresenceType::ALL.iter().map(|of| Kind::Presence(*of));
    let iqs = IqType::ALL.iter().map(|of| Kind::Iq(*of));
    proves("Kind", &messages.chain(presences).chain(iqs).collect::<Vec<_>>());
}

#[test]
fn stanzas_and_addresses() {
    let to = Jid::new("ann@example.org/péché").unwrap();
    let body = Element::new("body", "jabber:client").with_text("a < b");
    let custom = Element::new("x", "urn:x").with_attr("a", "'");
    let stanza = Stanza::message(MessageType::Chat).with_to(to.clone()).with_id("1").with_payload(body);
    let stanza = Stanza { lang: Some("en".into()), ..stanza.with_from(Jid::new("example.org").unwrap()) };
    proves("Stanza", &stanza.with_payload(custom));
    proves("Jid", &to);
    proves("BareJid", &to.bare());
    proves("Framing", &vec![Framing::Tcp, Framing::WebSocket]);
    let states = [StreamState::BeforeHeader, StreamState::Open { header_name: 1 << 20 }, StreamState::Closed];
    proves("StreamState", &states.to_vec());
}

#[test]
fn an_address_is_prepared() {
    let read = |text: &str| decode::<Jid>(&encode(&text.to_owned(), 0), AT_ONCE).map(drop);
    let refused = Err(Unreadable::Malformed(Malformed { at: 5, what: "a text is not a prepared address" }));
    assert_eq!(read("ann@example.org"), Ok(()));
    assert_eq!(read("Ann@example.org"), refused, "it is prepared otherwise");
    assert_eq!(read("ann@"), refused);
    let bare = encode(&"ann@example.org/r".to_owned(), 0);
    assert_eq!(decode::<BareJid>(&bare, AT_ONCE).map(drop), refused);
}

#[test]
fn the_content_of_a_stanza_is_checked() {
    let read =
        |xml: &'static str| decode::<Payload>(&encode(&Bytes::from_static(xml.as_bytes()), 0), AT_ONCE);
    let refused =
        Unreadable::Malformed(Malformed { at: 5, what: "the content of a stanza is not well-formed" });
    assert_eq!(read("<a/>text<b xmlns='x'/>").unwrap().children().count(), 2);
    for xml in ["<a>", "</p><p>", "<x:a/>", "&nbsp;", "<!-- -->"] {
        assert_eq!(read(xml), Err(refused), "{xml}");
    }
}

#[test]
fn recipients_share_the_content_of_a_stanza() {
    let payload = Payload::from_element(&Element::new("body", "jabber:client").with_text("x".repeat(1000)));
    let for_one = |to: &str| {
        let stanza = Stanza::message(MessageType::Chat).with_to(Jid::new(to).unwrap());
        Stanza { payload: payload.clone(), ..stanza }
    };
    let stanzas = ["a@b/1", "a@b/2", "a@b/3"].map(for_one);
    let (bytes, read) = together(&stanzas);
    assert!(bytes.len() < 1100, "{}", bytes.len());
    assert_eq!(read, stanzas);
    assert_eq!(read[0].payload.bytes().as_ptr(), read[2].payload.bytes().as_ptr());
}
