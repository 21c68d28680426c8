use super::*;
use crate::stream::Header;
use crate::xml::{Error, Limits};
use bytes::Bytes;

fn tcp() -> Context {
    Context::new(Framing::Tcp, Limits::default())
}

fn unit(text: &str) -> Unit {
    read(text.as_bytes(), &tcp()).unwrap()
}

fn stanza(text: &str) -> Stanza {
    match unit(text) {
        Unit::Stanza(stanza) => stanza,
        other => panic!("{text}: {other:?}"),
    }
}

fn written(stanza: &Stanza, framing: Framing) -> String {
    let mut out = Vec::new();
    stanza.write(&mut out, framing);
    String::from_utf8(out).unwrap()
}

fn payload(stanza: &Stanza) -> &str {
    std::str::from_utf8(stanza.payload.bytes()).unwrap()
}

#[test]
fn a_message() {
    let text = "<message to='bob@example.com' from='alice@example.com/x' id='a&amp;1' type='chat' xml:lang='en'>\
                <body>Hi &amp; bye</body><request xmlns='urn:xmpp:receipts'/></message>";
    let message = stanza(text);
    assert_eq!(message.kind, Kind::Message(MessageType::Chat));
    assert_eq!(message.to, Some(Jid::new("bob@example.com").unwrap()));
    assert_eq!(message.from, Some(Jid::new("alice@example.com/x").unwrap()));
    assert_eq!((message.id.as_deref(), message.lang.as_deref()), (Some("a&1"), Some("en")));
    let children: Vec<_> = message.payload.children().map(|c| (c.name(), c.ns())).collect();
    assert_eq!(children, [("body", ns::CLIENT), ("request", ns::RECEIPTS)]);
    let body = message.payload.find("body", ns::CLIENT).unwrap();
    assert_eq!((body.bytes(), &*body.element().text()), (&b"<body>Hi &amp; bye</body>"[..], "Hi & bye"));
    assert_eq!(written(&message, Framing::Tcp), text);
    assert_eq!(written(&message, Framing::WebSocket), text.replacen(' ', " xmlns='jabber:client' ", 1));
}

#[test]
fn types() {
    let kind = |text: &str| stanza(text).kind;
    assert_eq!(kind("<message/>"), Kind::Message(MessageType::Normal));
    assert_eq!(kind("<message type='new'/>"), Kind::Message(MessageType::Normal));
    for &t in MessageType::ALL {
        assert_eq!(kind(&format!("<message type='{t}'/>")), Kind::Message(t));
    }
    assert_eq!(kind("<presence/>"), Kind::Presence(PresenceType::Available));
    for &t in &PresenceType::ALL[1..] {
        assert_eq!(kind(&format!("<presence type='{t}'/>")), Kind::Presence(t));
    }
    for &t in IqType::ALL {
        assert_eq!(kind(&format!("<iq type='{t}' id='1'><a/></iq>")), Kind::Iq(t));
    }
}

#[test]
fn unusable_stanzas_are_refused() {
    let refused = |text: &str| match unit(text) {
        Unit::Refused { reply, error } => (written(&reply, Framing::Tcp), error.condition),
        other => panic!("{other:?}"),
    };
    for (text, reply, condition) in [
        ("<message to='@' id='1'/>", "<message id='1'/>", Condition::JidMalformed),
        ("<message to=''/>", "<message/>", Condition::JidMalformed),
        ("<message from='a b@c'/>", "<message/>", Condition::JidMalformed),
        ("<presence type='x' to='a'/>", "<presence to='a'/>", Condition::BadRequest),
        ("<presence type='available'/>", "<presence/>", Condition::BadRequest),
        ("<iq type='get'><a/></iq>", "<iq type='get'><a/></iq>", Condition::BadRequest),
        ("<iq id='1'><a/></iq>", "<iq id='1' type='get'><a/></iq>", Condition::BadRequest),
        ("<iq id='1' type='x'/>", "<iq id='1' type='get'/>", Condition::BadRequest),
        ("<iq id='1' type='set'/>", "<iq id='1' type='set'/>", Condition::BadRequest),
        ("<iq id='1' type='get'><a/><b/></iq>", "<iq id='1' type='get'><a/><b/></iq>", Condition::BadRequest),
    ] {
        assert_eq!(refused(text), (reply.to_owned(), condition), "{text}");
    }
}

#[test]
fn a_refused_stanza_is_answered_unless_it_is_an_answer() {
    let answer = |text: &str| match unit(text) {
        Unit::Refused { reply, error } => reply.error_reply(&error).map(|r| written(&r, Framing::Tcp)),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        answer("<iq type='get' id='1' to='@'><a/></iq>").unwrap(),
        "<iq id='1' type='error'><a/><error type='modify'>\
         <jid-malformed xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>\
         <text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas' xml:lang='en'>the address in &apos;to&apos; is malformed</text>\
         </error></iq>"
            .replace("&apos;", "'")
    );
    assert_eq!(answer("<iq type='result' id='1' to='@'/>"), None);
    assert_eq!(answer("<message type='error' to='@'/>"), None);
}

#[test]
fn other_elements_are_trees() {
    let nonza = |text: &str| match unit(text) {
        Unit::Nonza(element) => element,
        other => panic!("{other:?}"),
    };
    assert!(nonza("<r xmlns='urn:xmpp:sm:3'/>").is("r", ns::SM));
    assert!(nonza("<foo><bar/></foo>").is("foo", ns::CLIENT));
    let features =
        nonza("<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>");
    assert!(features.is("features", ns::STREAMS) && features.child("bind", ns::BIND).is_some());
}

#[test]
fn stanzas_belong_to_the_client_namespace() {
    let error =
        |text: &str, framing| read(text.as_bytes(), &Context::new(framing, Limits::default())).unwrap_err();
    assert_eq!(error("<message xmlns='jabber:server'/>", Framing::Tcp), Error::InvalidNamespace);
    assert_eq!(error("<message xmlns=''/>", Framing::Tcp), Error::InvalidNamespace);
    assert_eq!(error("<message/>", Framing::WebSocket), Error::InvalidNamespace);
    assert_eq!(error("<iq xmlns='urn:x'/>", Framing::Tcp), Error::UnsupportedStanza);
    assert_eq!(error("<stream:presence/>", Framing::WebSocket), Error::UndeclaredPrefix);
}

#[test]
fn on_a_websocket_a_stanza_declares_its_namespace() {
    let context = Context::new(Framing::WebSocket, Limits::default());
    let text = "<message xmlns='jabber:client' to='a'><body>x</body></message>";
    let Unit::Stanza(message) = read(text.as_bytes(), &context).unwrap() else { panic!() };
    assert_eq!(payload(&message), "<body>x</body>");
    assert_eq!(written(&message, Framing::WebSocket), text);
    assert_eq!(written(&message, Framing::Tcp), "<message to='a'><body>x</body></message>");
}

#[test]
fn a_self_contained_payload_is_handed_on_as_it_came() {
    for inner in [
        "<body  a = \"1\" >x<![CDATA[<]]>&#x41;</body >",
        "<x xmlns:p='urn:p' p:a='1'><p:b/></x>",
        "<p:x xmlns:p='urn:p'/>",
        "<x xmlns=''/>",
        "<x xml:lang='de'/>",
        "\n  <body/>\n",
        "<x xmlns='urn:x&amp;y'/>",
        "<xml:x/>",
    ] {
        let message = stanza(&format!("<message>{inner}</message>"));
        assert_eq!(payload(&message), inner);
        assert_eq!(message.payload.children().count(), 1);
        let child = message.payload.children().next().unwrap();
        assert_eq!(child.bytes(), inner.trim().as_bytes());
        let element = child.element();
        assert_eq!((child.name(), child.ns()), (element.name(), element.ns()));
    }
}

#[test]
fn a_payload_that_needs_its_surroundings_is_rewritten() {
    for (text, expected) in [
        ("<message xmlns:p='urn:p'><p:x/></message>", "<x xmlns='urn:p'/>"),
        ("<message xmlns:p='urn:p'><x p:a='1'/></message>", "<x xmlns:p='urn:p' p:a='1'/>"),
        ("<message xmlns:p='jabber:client'><p:body>x</p:body></message>", "<body>x</body>"),
        ("<c:message xmlns:c='jabber:client' xmlns='urn:x'><body/></c:message>", "<body xmlns='urn:x'/>"),
        ("<c:message xmlns:c='jabber:client' xmlns=''><body/></c:message>", "<body xmlns=''/>"),
        ("<message><stream:error/></message>", "<error xmlns='http://etherx.jabber.org/streams'/>"),
        (
            "<message xmlns:p='urn:p'><x><y xmlns:q='urn:q'><p:z/></y></x></message>",
            "<x><y><z xmlns='urn:p'/></y></x>",
        ),
    ] {
        assert_eq!(payload(&stanza(text)), expected, "{text}");
    }
    // Declared, but not needed.
    let unneeded = "<message xmlns:p='urn:p' xmlns='jabber:client'><body  /></message>";
    assert_eq!(payload(&stanza(unneeded)), "<body  />");
}

#[test]
fn prefixes_of_the_header_are_in_force() {
    let header = Header::parse(
        b"<s:stream xmlns:s='http://etherx.jabber.org/streams' xmlns:p='urn:p' xmlns='jabber:client' version='1.0'>",
    )
    .unwrap();
    let context = Context::of_header(&header, Limits::default());
    let Unit::Stanza(message) = read(b"<message><p:x/></message>", &context).unwrap() else { panic!() };
    assert_eq!(payload(&message), "<x xmlns='urn:p'/>");
    assert_eq!(read(b"<stream:error/>", &context), Err(Error::UndeclaredPrefix));
    assert!(matches!(read(b"<s:error/>", &context), Ok(Unit::Nonza(_))));
}

#[test]
fn rewriting_does_not_exceed_the_limit() {
    let ns = "u".repeat(250);
    let text = format!("<message xmlns:p='{ns}'><y>{}</y></message>", "<p:x/>".repeat(2000));
    assert_eq!(read(text.as_bytes(), &tcp()), Err(Error::TooLarge));
    // Each element declares anew what one declared for all.
    let nested = |depth| {
        let start = "<p:a><q:a>".repeat(depth);
        let text =
            format!("<message xmlns:p='p' xmlns:q='q'>{start}{}</message>", "</q:a></p:a>".repeat(depth));
        let limits = Limits { namespaces_in_scope: 32, ..Limits::default() };
        read(text.as_bytes(), &Context::new(Framing::Tcp, limits)).map(|_| ())
    };
    assert_eq!((nested(16), nested(17)), (Ok(()), Err(Error::TooManyNamespaces)));
}

#[test]
fn payloads_are_edited() {
    let body = Element::new("body", ns::CLIENT).with_text("x");
    let hint = Element::new("no-store", ns::HINTS);
    let mut payload = Payload::from_elements([&body, &hint, &body]);
    assert_eq!(&payload.bytes()[..], b"<body>x</body><no-store xmlns='urn:xmpp:hints'/><body>x</body>");
    assert_eq!(payload.remove("store", ns::HINTS), 0);
    assert_eq!(payload.remove("body", ns::CLIENT), 2);
    assert_eq!(&payload.bytes()[..], b"<no-store xmlns='urn:xmpp:hints'/>");
    payload.push_element(&body);
    assert_eq!(payload.find("no-store", ns::HINTS).unwrap().element(), hint);
    assert_eq!(payload.find("body", ns::CLIENT).unwrap().element(), body);
    assert_eq!(payload.remove("no-store", ns::HINTS), 1);
    assert_eq!(payload.find("body", ns::CLIENT).unwrap().element(), body);

    // Also where the index refers to what was read.
    let mut read = Payload::from_raw("<a xmlns='urn:a'/> <b xmlns='urn:b'/><c xmlns='urn:c'/>".into());
    assert_eq!(read.remove("b", "urn:b"), 1);
    let children: Vec<_> = read.children().map(|c| (c.name(), c.ns(), c.bytes())).collect();
    assert_eq!(children, [("a", "urn:a", &b"<a xmlns='urn:a'/>"[..]), ("c", "urn:c", b"<c xmlns='urn:c'/>")]);
}

#[test]
fn broken_payloads_are_told() {
    for text in ["<a>", "</p><p>", "<p:a/>", "<a/></p><p>", "&x;", "<!-- -->"] {
        assert!(Payload::parse(text.into()).is_err(), "{text}");
    }
    assert!(Payload::parse("".into()).unwrap().is_empty());
}

#[test]
fn replies() {
    let iq = stanza(
        "<iq type='get' id='1' to='example.com' from='a@example.com/x'><ping xmlns='urn:xmpp:ping'/></iq>",
    );
    assert_eq!(
        written(&iq.result_reply(), Framing::Tcp),
        "<iq to='a@example.com/x' from='example.com' id='1' type='result'/>"
    );
    let error = StanzaError::new(Condition::Forbidden).with_app(Element::new("x", "urn:x"));
    assert_eq!(
        written(&iq.error_reply(&error).unwrap(), Framing::Tcp),
        "<iq to='a@example.com/x' from='example.com' id='1' type='error'><ping xmlns='urn:xmpp:ping'/>\
         <error type='auth'><forbidden xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/><x xmlns='urn:x'/></error></iq>"
    );
    assert_eq!(iq.result_reply().error_reply(&error), None);
    let large = stanza(&format!("<message><body>{}</body></message>", "x".repeat(1024)));
    assert_eq!(large.error_reply(&error).unwrap().payload.children().count(), 1);
}

#[test]
fn errors_are_read_back() {
    for &condition in Condition::ALL {
        let error = StanzaError::new(condition).with_text("why").with_app(Element::new("x", "urn:x"));
        assert_eq!(StanzaError::parse(&error.to_element()), Some(error));
    }
    assert_eq!(StanzaError::parse(&Element::new("error", ns::STREAMS)), None);
    let unknown = Element::new("error", ns::CLIENT).with_child(Element::new("new", ns::STANZA_ERRORS));
    assert_eq!(StanzaError::parse(&unknown), Some(StanzaError::new(Condition::UndefinedCondition)));
}

#[test]
fn built_stanzas_are_escaped() {
    let message = Stanza::message(MessageType::Headline)
        .with_to(Jid::new("a@b/<'\"&>").unwrap())
        .with_id("x' y='z'><evil/>")
        .with_payload(Element::new("body", ns::CLIENT).with_text("</body></message><evil/>"));
    let text = written(&message, Framing::Tcp);
    assert_eq!(stanza(&text), message);
}

#[test]
fn what_it_takes_in_memory_is_all_that_its_sender_filled_it_with() {
    let bytes = |text: &str| stanza(text).memory_bytes();
    let least = bytes("<presence/>");
    assert_eq!(least, size_of::<Stanza>());
    let text = "x".repeat(1000);
    for filled in [
        format!("<presence to='{text}@d'/>"),
        format!("<presence from='d/{text}'/>"),
        format!("<presence id='{text}'/>"),
        format!("<presence xml:lang='{text}'/>"),
        format!("<presence><status>{text}</status></presence>"),
    ] {
        assert!((least + 1000..least + 1100).contains(&bytes(&filled)), "{filled}");
    }
    let children = |count: usize| format!("<presence>{}</presence>", "<a/>".repeat(count));
    assert!(bytes(&children(200)) > least + 200 * size_of::<std::ops::Range<u32>>(), "the index counts, too");
    assert!(bytes(&children(2)) < least + 10, "of two children it is in the stanza itself");
}

/// A leaf reads as the same element, and the payload is indexed as if it had been read.
#[test]
fn a_leaf_is_written_as_its_element() {
    let body = Payload::parse(Bytes::from_static(b"<body>hi</body>")).unwrap();
    let attributes = [("id", "a'<&"), ("by", "\u{e4}@d")];
    let (mut by_leaf, mut by_element) = (body.clone(), body);
    by_leaf.push_leaf("stanza-id", "urn:xmpp:sid:0", &attributes);
    let element =
        attributes.iter().fold(Element::new("stanza-id", "urn:xmpp:sid:0"), |element, (name, value)| {
            element.with_attr(name, *value)
        });
    by_element.push_element(&element);
    assert_eq!(by_leaf.bytes(), by_element.bytes());
    let child = by_leaf.find("stanza-id", "urn:xmpp:sid:0").expect("it is found by its name and namespace");
    assert_eq!((child.name(), child.ns()), ("stanza-id", "urn:xmpp:sid:0"));
    assert_eq!(by_leaf.remove("stanza-id", "urn:xmpp:sid:0"), 1);
    assert_eq!(&by_leaf.bytes()[..], b"<body>hi</body>");
}
