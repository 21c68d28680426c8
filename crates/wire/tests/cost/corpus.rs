//! What a client can send to make the reader work: each text is valid, or refused only at its end.

/// About this many bytes each.
pub(crate) const BYTES: usize = 64 * 1024;

/// What clients send: a pubsub event, many times.
pub(crate) fn common() -> Vec<u8> {
    const EVENT: &str = "<message from='pubsub.example.com' to='device-1234@example.com/phone' \
        type='headline' id='0123456789abcdef'><event xmlns='http://jabber.org/protocol/pubsub#event'>\
        <items node='offers/berlin'><item id='2024-05-01T12:00:00Z'><json xmlns='urn:xmpp:json:0'>\
        {\"title\":\"Half price today, all shoes!!\",\"url\":\"/o/1\"}</json></item></items></event></message>";
    EVENT.repeat(BYTES / EVENT.len()).into_bytes()
}

/// A message full of `inner`.
fn message(attributes: &str, inner: &str) -> Vec<u8> {
    full(&format!("<message{attributes}><x>"), inner, "</x></message>")
}

/// As [`message`] for an IQ, of which a tree is made.
fn iq(inner: &str) -> Vec<u8> {
    full("<iq type='set' id='1'><query xmlns='u'>", inner, "</query></iq>")
}

/// As [`message`] for an element that is no stanza.
fn nonza(declarations: &str, inner: &str) -> Vec<u8> {
    full(&format!("<q xmlns='u'{declarations}>"), inner, "</q>")
}

fn full(start: &str, inner: &str, end: &str) -> Vec<u8> {
    let times = (BYTES - start.len() - end.len()) / inner.len();
    assert!(times > 0, "there is room for it once");
    [start, &*inner.repeat(times), end].concat().into_bytes()
}

/// Declarations of `count` prefixes that begin with `first`, each of a namespace of `length` bytes.
fn declarations(first: &str, count: usize, length: usize) -> String {
    let namespace = "n".repeat(length.saturating_sub(4));
    (0..count).map(|i| format!(" xmlns:{first}{i}='{namespace}{first}{i:03}'")).collect()
}

/// As many attributes as an element may have, with the shortest names.
pub(crate) fn attributes() -> Vec<u8> {
    let names = (b'a'..=b'z').chain(b'A'..=b'Z').map(|b| (b as char).to_string());
    let names: Vec<String> = names.chain((0..12).map(|i| format!("a{i}"))).take(64).collect();
    let attributes: String = names.iter().map(|name| format!(" {name}=''")).collect();
    message("", &format!("<e{attributes}/>"))
}

/// The same in a tree.
pub(crate) fn attributes_in_a_tree() -> Vec<u8> {
    let attributes: String = (0..64).map(|i| format!(" a{i}=''")).collect();
    iq(&format!("<e{attributes}/>"))
}

/// Attributes that differ only in the namespace, and that only at its end.
pub(crate) fn attributes_with_prefixes() -> Vec<u8> {
    let attributes: String = (0..16).map(|i| format!(" p{i}:a=''")).collect();
    message(&declarations("p", 16, 256), &format!("<e{attributes}/>"))
}

/// The same, where the declarations are part of what is handed on.
pub(crate) fn attributes_with_own_prefixes() -> Vec<u8> {
    let attributes: String = (0..64).map(|i| format!(" p{}:a{}=''", i % 16, i / 16)).collect();
    let element = format!("<e{attributes}/>").repeat(100);
    message("", &format!("<e{}>{element}</e>", declarations("p", 16, 256)))
}

/// As many declarations in force as there may be, and names that the first of them are for.
pub(crate) fn declarations_in_force() -> Vec<u8> {
    let (mut start, mut end) = (String::new(), String::new());
    for level in [b'a', b'b', b'c', b'd', b'e', b'f', b'g'] {
        let first = (level as char).to_string();
        start += &format!("<e{}>", declarations(&first, 16, 4));
        end += "</e>";
    }
    message("", &[&start, &*"<a0:a/>".repeat(7000), &end].concat())
}

/// As many declarations in force as there may be, and attributes of as many as an element may have, alike but for these.
pub(crate) fn attributes_with_outer_prefixes() -> Vec<u8> {
    let (mut start, mut end) = (String::new(), String::new());
    for level in [b'a', b'b', b'c', b'd', b'e', b'f', b'g'] {
        let first = (level as char).to_string();
        start += &format!("<e{}>", declarations(&first, 16, 4));
        end += "</e>";
    }
    let attributes: String =
        (0..64).map(|i| format!(" {}{}:x=''", (b'a' + i / 16) as char, i % 16)).collect();
    let element = format!("<e{attributes}/>");
    message("", &[&start, &*element.repeat((BYTES - 5000) / element.len()), &end].concat())
}

/// Declarations, over and over.
pub(crate) fn declarations_everywhere() -> Vec<u8> {
    message("", &format!("<e{}/>", declarations("p", 16, 4)))
}

/// Elements as deep as they may be, each with a default namespace of its own.
pub(crate) fn depth() -> Vec<u8> {
    let start: String = (0..60).map(|i| format!("<a xmlns='{i}'>")).collect();
    message("", &[start, "</a>".repeat(60)].concat())
}

/// The same without declarations.
pub(crate) fn depth_alone() -> Vec<u8> {
    message("", &["<a>".repeat(60), "</a>".repeat(60)].concat())
}

/// The smallest elements.
pub(crate) fn elements() -> Vec<u8> {
    message("", "<a/>")
}

/// The same in a tree.
pub(crate) fn elements_in_a_tree() -> Vec<u8> {
    iq("<a/>")
}

/// The same in an element that is no stanza.
pub(crate) fn elements_in_a_nonza() -> Vec<u8> {
    nonza("", "<a/>")
}

/// The smallest elements in the longest namespaces, by turns.
pub(crate) fn elements_in_long_namespaces() -> Vec<u8> {
    nonza(&declarations("p", 8, 256), "<p0:a/><p1:a/>")
}

/// The same in a stanza, whose payload must declare them again.
pub(crate) fn elements_with_outer_prefixes() -> Vec<u8> {
    message(&declarations("p", 2, 8), "<p0:a/><p1:a/>")
}

/// The same with namespaces so long that the payload becomes too large.
pub(crate) fn elements_that_grow() -> Vec<u8> {
    message(&declarations("p", 2, 256), "<p0:a/><p1:a/>")
}

/// Attributes whose prefixes must be declared again, so that the payload becomes too large.
pub(crate) fn attributes_that_grow() -> Vec<u8> {
    let attributes: String = (0..16).map(|i| format!(" p{i}:a=''")).collect();
    message(&declarations("p", 16, 256), &format!("<p0:e{attributes}/>"))
}

/// Names that differ at their end only.
pub(crate) fn long_names() -> Vec<u8> {
    let name = "n".repeat(400);
    let attributes: String = (0..64).map(|i| format!(" {name}{i}=''")).collect();
    message("", &format!("<e{attributes}/>"))
}

/// Names of letters that take longer to judge.
pub(crate) fn foreign_names() -> Vec<u8> {
    message("", &format!("<{0}></{0}>", "\u{3001}".repeat(300)))
}

/// The smallest references.
pub(crate) fn references() -> Vec<u8> {
    message("", "&lt;")
}

/// The longest references.
pub(crate) fn references_by_number() -> Vec<u8> {
    iq("&#x0000010FFFF;")
}

/// References in an attribute's value.
pub(crate) fn references_in_attributes() -> Vec<u8> {
    iq(&format!("<a b='{}'/>", "&lt;".repeat(1000)))
}

/// Empty CDATA sections.
pub(crate) fn cdata() -> Vec<u8> {
    iq("<![CDATA[]]>")
}

/// The start of the end of a CDATA section.
pub(crate) fn cdata_that_nearly_ends() -> Vec<u8> {
    iq(&format!("<![CDATA[{}]]>", "]]".repeat(4000)))
}

/// Text that is nearly forbidden.
pub(crate) fn text() -> Vec<u8> {
    message("", "]>")
}

/// Text of characters of which some are forbidden.
pub(crate) fn foreign_text() -> Vec<u8> {
    message("", "\u{FFFD}\u{10FFFF}")
}

/// Line ends that are normalised.
pub(crate) fn line_ends() -> Vec<u8> {
    iq("\r\n\r")
}

/// Addresses that take long to prepare.
pub(crate) fn addresses() -> Vec<u8> {
    presences(&"\u{391}".repeat(300))
}

/// Addresses of characters that stand for whole sentences.
pub(crate) fn addresses_that_grow() -> Vec<u8> {
    presences(&"\u{FDFA}".repeat(340))
}

fn presences(part: &str) -> Vec<u8> {
    let one = format!("<presence to='{part}@{part}/{part}' from='{part}@{part}/{part}'/>");
    one.repeat(BYTES / one.len()).into_bytes()
}
