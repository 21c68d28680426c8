use super::*;

const USUAL: &str = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' \
                     to='example.com' from='a@example.com' version='1.0' xml:lang='de'>";

fn error(text: &str) -> Error {
    Header::parse(text.as_bytes()).unwrap_err()
}

#[test]
fn the_usual_header() {
    for before in ["", "<?xml version='1.0'?>", "<?xml version='1.0'?>\n"] {
        let header = Header::parse(format!("{before}{USUAL}").as_bytes()).unwrap();
        let expected = Header {
            to: Some("example.com".into()),
            from: Some("a@example.com".into()),
            version: Some((1, 0)),
            lang: Some("de".into()),
            id: None,
            default_ns: "jabber:client".into(),
            extra: vec![],
        };
        assert_eq!(header, expected);
    }
}

#[test]
fn unusual_prefixes_are_told() {
    let header = Header::parse(
        b"<s:stream xmlns:s='http://etherx.jabber.org/streams' xmlns:db='jabber:server:dialback' xmlns='jabber:server'>",
    )
    .unwrap();
    assert_eq!(header.default_ns, "jabber:server");
    assert_eq!(header.version, None);
    let extra: Vec<_> = header.extra.iter().map(|(p, ns)| (&**p, &**ns)).collect();
    assert_eq!(extra, [("s", "http://etherx.jabber.org/streams"), ("db", "jabber:server:dialback")]);
}

#[test]
fn refuses_what_is_no_header() {
    const STREAMS: &str = "xmlns:stream='http://etherx.jabber.org/streams'";
    assert_eq!(error("<stream:stream xmlns:stream='http://example.com/'>"), Error::InvalidNamespace);
    assert_eq!(error("<stream xmlns='http://etherx.jabber.org/streams'>"), Error::HeaderPrefix);
    assert_eq!(error("<stream:stream>"), Error::UndeclaredPrefix);
    assert_eq!(error(&format!("<stream:other {STREAMS}>")), Error::Header);
    assert_eq!(error(&format!("<stream:stream {STREAMS}/>")), Error::Header);
    assert_eq!(error(&format!("<stream:stream {STREAMS}><a>")), Error::NotOneElement);
    assert_eq!(error(&format!("<stream:stream {STREAMS} version='1'>")), Error::HeaderVersion);
    assert_eq!(error(&format!("<stream:stream {STREAMS} version='1.x'>")), Error::HeaderVersion);
    assert_eq!(error(&format!("<stream:stream {STREAMS} version='256.0'>")), Error::HeaderVersion);
    assert_eq!(error("GET / HTTP/1.1"), Error::NotOneElement);
    assert_eq!(error(""), Error::NotOneElement);
    assert_eq!(error("<?xml version='1.0' encoding='EBCDIC'?><a>"), Error::UnsupportedEncoding);
}

#[test]
fn what_is_written_is_read_back() {
    let out = HeaderOut { from: Some("example.com"), to: Some("a@b"), id: Some("1'2"), lang: Some("en") };
    let mut bytes = Vec::new();
    write_header(&mut bytes, &out);
    let header = Header::parse(&bytes).unwrap();
    assert_eq!(
        (header.from.as_deref(), header.to.as_deref(), header.id.as_deref(), header.lang.as_deref()),
        (out.from, out.to, out.id, out.lang)
    );
    assert_eq!((header.version, &*header.default_ns), (Some((1, 0)), "jabber:client"));

    let mut bytes = Vec::new();
    write_open(&mut bytes, &out);
    let open = Header::parse_open(&Element::parse(&bytes, "").unwrap()).unwrap();
    assert_eq!(open, header);
    assert_eq!(Header::parse_open(&Element::new("open", ns::CLIENT)), Err(Error::InvalidNamespace));
}

#[test]
fn features_and_close() {
    let features = [
        Element::new("starttls", ns::TLS).with_child(Element::new("required", ns::TLS)),
        Element::new("x", ns::CLIENT),
    ];
    let write = |framing| {
        let mut out = Vec::new();
        write_features(&mut out, &features, framing);
        write_close(&mut out, framing);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        write(Framing::Tcp),
        "<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls><x/>\
         </stream:features></stream:stream>"
    );
    assert_eq!(
        write(Framing::WebSocket),
        "<stream:features xmlns:stream='http://etherx.jabber.org/streams'>\
         <starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls><x xmlns='jabber:client'/>\
         </stream:features><close xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>"
    );
}
