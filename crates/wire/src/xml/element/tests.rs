use super::*;
use crate::ns;

fn parse(text: &str) -> Element {
    Element::parse(text.as_bytes(), ns::CLIENT).unwrap()
}

#[test]
fn builds_and_writes() {
    let element = Element::new("event", ns::PUBSUB_EVENT).with_child(
        Element::new("items", ns::PUBSUB_EVENT)
            .with_attr("node", "a&b")
            .with_child(Element::new("item", ns::PUBSUB_EVENT).with_attr("id", "1").with_text("x<y"))
            .with_child(Element::new("body", ns::CLIENT)),
    );
    assert_eq!(
        element.to_string_in(ns::CLIENT),
        "<event xmlns='http://jabber.org/protocol/pubsub#event'><items node='a&amp;b'>\
         <item id='1'>x&lt;y</item><body xmlns='jabber:client'/></items></event>"
    );
    assert_eq!(parse(&element.to_string_in(ns::CLIENT)), element);
}

#[test]
fn resolves_namespaces() {
    let element = parse("<a xmlns:p='urn:p'><p:b xmlns='urn:d'><c/><p:c/></p:b><d xmlns=''><e/></d></a>");
    assert!(element.is("a", ns::CLIENT));
    let b = element.child("b", "urn:p").unwrap();
    assert!(b.child("c", "urn:d").is_some() && b.child("c", "urn:p").is_some());
    assert!(element.child("d", "").unwrap().child("e", "").is_some());
    assert_eq!(
        element.to_string_in(ns::CLIENT),
        "<a><b xmlns='urn:p'><c xmlns='urn:d'/><c/></b><d xmlns=''><e/></d></a>"
    );
    assert_eq!(parse(&element.to_string_in(ns::CLIENT)), element);
}

#[test]
fn prefixed_attributes_are_declared_again() {
    let element = parse("<a xmlns:p='urn:p'><b p:x='1' p:y='2' x='3' xml:lang='de'/></a>");
    let b = element.child("b", ns::CLIENT).unwrap();
    assert_eq!((b.attr("p:x"), b.attr("x"), b.attr("xml:lang")), (Some("1"), Some("3"), Some("de")));
    assert_eq!(b.attrs().next().unwrap().ns(), Some("urn:p"));
    assert_eq!(
        element.to_string_in(ns::CLIENT),
        "<a><b xmlns:p='urn:p' p:x='1' p:y='2' x='3' xml:lang='de'/></a>"
    );
    assert_eq!(parse(&element.to_string_in(ns::CLIENT)), element);
}

#[test]
fn text_is_joined_and_normalised() {
    let element = parse("<a>x\r\ny&amp;<![CDATA[<z>\r]]>&#13;<b>not mine</b>!</a>");
    assert_eq!(element.text(), "x\ny&<z>\n\r!");
    assert_eq!(element.nodes().len(), 3);
    assert_eq!(parse(&element.to_string_in(ns::CLIENT)), element);
}

#[test]
fn attribute_values_keep_their_white_space_when_written() {
    let element = Element::new("a", ns::CLIENT).with_attr("b", "1\t2\n3\r4");
    assert_eq!(parse(&element.to_string_in(ns::CLIENT)), element);
    assert_eq!(parse("<a b='1\t2\r\n3'/>").attr("b"), Some("1 2 3"));
}

#[test]
fn attributes_are_set_and_replaced() {
    let mut element = Element::new("a", "").with_attr("id", "1").with_attr("xml:lang", "en");
    element.set_attr("id", "2");
    element.set_attr("xml:lang", "de");
    assert_eq!(element.to_string_in(""), "<a id='2' xml:lang='de'/>");
}

#[test]
fn whatever_text_is_put_in_is_well_formed_outside() {
    let element = Element::new("a", "").with_attr("b", "\0\u{FFFE}").with_text("\u{1}]]>\u{FFFF}");
    let read = Element::parse(element.to_string_in("").as_bytes(), "").unwrap();
    assert_eq!((read.attr("b"), &*read.text()), (Some("\u{FFFD}\u{FFFD}"), "\u{FFFD}]]>\u{FFFD}"));
}

#[test]
fn a_namespace_needs_escaping_too() {
    let element = parse("<a xmlns='urn:x?a&amp;b&apos;c'/>");
    assert_eq!(element.ns(), "urn:x?a&b'c");
    assert_eq!(parse(&element.to_string_in("")), element);
}

#[test]
fn space_around_is_ignored_but_nothing_else() {
    assert!(parse(" <a/>\n").is("a", ns::CLIENT));
    for text in ["", " ", "x", "<a/><b/>", "<a/>x", "<a/>\u{FEFF}", "\u{FEFF}<a/>", "<a>", "</a>"] {
        assert!(Element::parse(text.as_bytes(), "").is_err(), "{text:?}");
    }
}
