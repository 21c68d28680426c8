//! Hashes of capabilities, and what they are of.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use carillon_wire::ns;
use carillon_wire::stanza::Payload;
use carillon_wire::xml::Element;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// A hash in a presence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hash {
    form: Form,
    /// The name of the function (XEP-0300); empty in a presence that says none.
    function: String,
    /// In Base64.
    pub(super) value: String,
}

/// What the hash is made of.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    /// XEP-0115, of a client that calls itself so.
    Ver { node: String },
    /// XEP-0390.
    Set,
}

/// Names of nodes that one client may want, and their bytes.
const WANTS_MAX: usize = 64;
const WANTS_BYTES_MAX: usize = 4096;

impl Hash {
    /// That of a presence.
    pub(super) fn of(presence: &Payload) -> Option<Hash> {
        if let Some(c) = presence.find("c", ns::CAPS) {
            let c = c.element();
            let (node, value) = (c.attr("node")?.to_owned(), c.attr("ver")?.to_owned());
            let function = c.attr("hash").unwrap_or_default().to_owned();
            return Some(Hash { form: Form::Ver { node }, function, value });
        }
        let set = presence.find("c", ns::CAPS_2)?.element();
        let mut hashes = set.children().filter(|child| child.is("hash", ns::HASHES));
        let hash = hashes.find(|hash| hash.attr("algo") == Some("sha-256"))?;
        Some(Hash { form: Form::Set, function: "sha-256".into(), value: hash.text() })
    }

    /// What tells it from other hashes with the same value.
    pub(super) fn algorithm(&self) -> String {
        match &self.form {
            // Where the function is not said, hashes of two clients are nothing alike.
            Form::Ver { node } if self.function.is_empty() => format!("{node}#"),
            Form::Ver { .. } => self.function.clone(),
            Form::Set => format!("{}:{}", ns::CAPS_2, self.function),
        }
    }

    /// The node at which its client tells what it is of.
    pub(super) fn node(&self) -> String {
        match &self.form {
            Form::Ver { node } => format!("{node}#{}", self.value),
            Form::Set => format!("{}#{}.{}", ns::CAPS_2, self.function, self.value),
        }
    }

    /// Whether it is that of this disco#info, and of no other that somebody could think of: only then does it say something of other
    /// clients that have it.
    pub(super) fn is_only_of(&self, query: &Element) -> bool {
        let input = match self.form {
            Form::Ver { .. } => ver(query).filter(|_| is_unambiguous(query)),
            Form::Set => set(query),
        };
        input.is_some_and(|input| self.is_of(&input))
    }

    fn is_of(&self, input: &str) -> bool {
        let hash = match &*self.function {
            "sha-1" => BASE64.encode(Sha1::digest(input)),
            "sha-256" => BASE64.encode(Sha256::digest(input)),
            _ => return false,
        };
        hash == self.value
    }
}

/// The question what a client can do.
pub(super) fn request(node: &str) -> Element {
    Element::new("query", ns::DISCO_INFO).with_attr("node", node)
}

/// The nodes whose events a client wants (XEP-0163 §4): not more than are sensible.
pub(super) fn wants(query: &Element) -> Vec<Box<str>> {
    let names = features(query).filter_map(|var| var.strip_suffix("+notify"));
    let names: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    let mut bytes = 0;
    let fits = names.into_iter().take(WANTS_MAX).take_while(|name| {
        bytes += name.len();
        bytes <= WANTS_BYTES_MAX
    });
    fits.map(Box::from).collect()
}

fn features(query: &Element) -> impl Iterator<Item = &str> {
    query.children().filter(|child| child.is("feature", ns::DISCO_INFO)).filter_map(|child| child.attr("var"))
}

/// Category, type, language and name of each identity.
fn identities(query: &Element) -> impl Iterator<Item = [&str; 4]> {
    let identities = query.children().filter(|child| child.is("identity", ns::DISCO_INFO));
    identities.map(|identity| {
        ["category", "type", "xml:lang", "name"].map(|name| identity.attr(name).unwrap_or_default())
    })
}

fn forms(query: &Element) -> impl Iterator<Item = &Element> {
    query.children().filter(|child| child.is("x", ns::DATA_FORMS))
}

fn fields(form: &Element) -> impl Iterator<Item = (&Element, &str, Vec<String>)> {
    form.children().filter(|child| child.is("field", ns::DATA_FORMS)).map(|field| {
        let values = field.children().filter(|child| child.is("value", ns::DATA_FORMS));
        let mut values: Vec<String> = values.map(Element::text).collect();
        values.sort();
        (field, field.attr("var").unwrap_or_default(), values)
    })
}

/// What is hashed by XEP-0115 §5.1; none where §5.4 calls it ill-formed.
fn ver(query: &Element) -> Option<String> {
    let mut out = String::new();
    // What ends a part must not be in it: something else could have the same hash.
    let mut part = |part: &str| {
        out.push_str(part);
        out.push('<');
        !part.contains('<')
    };
    let mut identities: Vec<[&str; 4]> = identities(query).collect();
    identities.sort_unstable();
    let mut features: Vec<&str> = features(query).collect();
    features.sort_unstable();
    let is_unique = identities.is_sorted_by(|a, b| a < b) && features.is_sorted_by(|a, b| a < b);
    if !is_unique {
        return None;
    }
    let mut is_plain = identities.into_iter().all(|identity| part(&identity.join("/")));
    is_plain &= features.into_iter().all(&mut part);
    let mut typed: Vec<(String, &Element)> = Vec::new();
    for form in forms(query) {
        let form_type = fields(form).find(|(_, var, _)| *var == "FORM_TYPE");
        let Some((field, _, values)) = form_type else { continue };
        if field.attr("type") != Some("hidden") {
            continue;
        }
        if values.first() != values.last() {
            return None;
        }
        typed.push((values.into_iter().next()?, form));
    }
    typed.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    if !typed.is_sorted_by(|a, b| a.0 < b.0) {
        return None;
    }
    for (form_type, form) in typed {
        is_plain &= part(&form_type);
        let mut fields: Vec<_> = fields(form).filter(|(_, var, _)| *var != "FORM_TYPE").collect();
        fields.sort_by(|a, b| a.1.cmp(b.1));
        for (_, var, values) in fields {
            is_plain &= part(var) && values.iter().all(|value| part(value));
        }
    }
    is_plain.then_some(out)
}

/// Whether what is hashed by XEP-0115 can be read in one way only. There is nothing in it that tells an identity, a feature and the parts of a form
/// from each other: without forms, an identity must be one by its looks, and a feature must not.
fn is_unambiguous(query: &Element) -> bool {
    let looks_like_an_identity = |part: &str| {
        let mut parts = part.splitn(4, '/');
        let mut next = || parts.next();
        match (next(), next(), next(), next()) {
            // XEP-0030 §3.1: neither is empty.
            (Some(category), Some(kind), Some(_), Some(_)) => !category.is_empty() && !kind.is_empty(),
            _ => false,
        }
    };
    let is_plain = |[category, kind, lang, name]: [&str; 4]| {
        let is_whole = [category, kind, lang].iter().all(|part| !part.contains('/'));
        is_whole && looks_like_an_identity(&[category, kind, lang, name].join("/"))
    };
    let mut features = features(query);
    forms(query).next().is_none() && identities(query).all(is_plain) && !features.any(looks_like_an_identity)
}

/// What is hashed by XEP-0390 §4.1; none where it is ill-formed.
fn set(query: &Element) -> Option<String> {
    let known = |child: &Element| {
        child.is("identity", ns::DISCO_INFO)
            || child.is("feature", ns::DISCO_INFO)
            || child.is("x", ns::DATA_FORMS)
    };
    let is_plain = |form: &Element| {
        form.children().all(|child| child.is("field", ns::DATA_FORMS))
            && fields(form).any(|(_, var, _)| var == "FORM_TYPE")
    };
    if !query.children().all(known) || !forms(query).all(is_plain) {
        return None;
    }
    let features = sorted(features(query).map(|var| format!("{var}\x1f")));
    let identities = sorted(identities(query).map(|identity| format!("{}\x1f\x1e", identity.join("\x1f"))));
    let field = |(_, var, values): (&Element, &str, Vec<String>)| {
        let values: String = values.into_iter().map(|value| value + "\x1f").collect();
        format!("{var}\x1f{values}\x1e")
    };
    let forms = sorted(forms(query).map(|form| format!("{}\x1d", sorted(fields(form).map(field)))));
    Some(format!("{features}\x1c{identities}\x1c{forms}\x1c"))
}

fn sorted(parts: impl Iterator<Item = String>) -> String {
    let mut parts: Vec<String> = parts.collect();
    parts.sort_unstable();
    parts.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(xml: &str) -> Element {
        Element::parse(xml.as_bytes(), ns::DISCO_INFO).expect("XML")
    }

    fn hash(form: Form, function: &str, value: &str) -> Hash {
        Hash { form, function: function.into(), value: value.into() }
    }

    fn of_ver(value: &str) -> Hash {
        hash(Form::Ver { node: "n".into() }, "sha-1", value)
    }

    /// XEP-0115 §5.2.
    const SIMPLE: &str = "<query><identity category='client' name='Exodus 0.9.1' type='pc'/>\
        <feature var='http://jabber.org/protocol/caps'/><feature var='http://jabber.org/protocol/disco#info'/>\
        <feature var='http://jabber.org/protocol/disco#items'/><feature var='http://jabber.org/protocol/muc'/></query>";

    /// XEP-0115 §5.3.
    const COMPLEX: &str = "<query><identity xml:lang='en' category='client' name='Psi 0.11' type='pc'/>\
        <identity xml:lang='el' category='client' name='\u{3a8} 0.11' type='pc'/>\
        <feature var='http://jabber.org/protocol/caps'/><feature var='http://jabber.org/protocol/disco#info'/>\
        <feature var='http://jabber.org/protocol/disco#items'/><feature var='http://jabber.org/protocol/muc'/>\
        <x xmlns='jabber:x:data' type='result'>\
        <field var='FORM_TYPE' type='hidden'><value>urn:xmpp:dataforms:softwareinfo</value></field>\
        <field var='ip_version' type='text-multi'><value>ipv4</value><value>ipv6</value></field>\
        <field var='os'><value>Mac</value></field><field var='os_version'><value>10.5.1</value></field>\
        <field var='software'><value>Psi</value></field>\
        <field var='software_version'><value>0.11</value></field></x></query>";

    #[test]
    fn hashes_are_those_of_the_specification() {
        let is_of = |hash: &Hash, xml| hash.is_of(&ver(&info(xml)).expect("well-formed"));
        let (simple, complex) =
            (of_ver("QgayPKawpkPSDYmwT/WM94uAlu0="), of_ver("q07IKJEyjvHSyhy//CH0CxmKi8w="));
        assert!(is_of(&simple, SIMPLE) && is_of(&complex, COMPLEX) && !is_of(&complex, SIMPLE));
        assert!(simple.is_only_of(&info(SIMPLE)));
        // There is a form in it.
        assert!(!complex.is_only_of(&info(COMPLEX)));
        // XEP-0390 §4.4.1
        let features = "http://jabber.org/protocol/si http://jabber.org/protocol/bytestreams http://jabber.org/protocol/chatstates \
            http://jabber.org/protocol/disco#info http://jabber.org/protocol/disco#items urn:xmpp:ping jabber:iq:time jabber:iq:privacy \
            jabber:iq:version http://jabber.org/protocol/rosterx urn:xmpp:time jabber:x:oob http://jabber.org/protocol/ibb \
            http://jabber.org/protocol/si/profile/file-transfer urn:xmpp:receipts jabber:iq:roster jabber:iq:last";
        let mut query = info("<query><identity category='client' name='BombusMod' type='mobile'/></query>");
        for var in features.split_whitespace() {
            query.push(Element::new("feature", ns::DISCO_INFO).with_attr("var", var));
        }
        assert!(
            hash(Form::Set, "sha-256", "kzBZbkqJ3ADrj7v08reD1qcWUwNGHaidNUgD7nHpiw8=").is_only_of(&query)
        );
    }

    #[test]
    fn what_is_ill_formed_proves_nothing() {
        let twice = SIMPLE.replace("</query>", "<feature var='http://jabber.org/protocol/muc'/></query>");
        assert_eq!(ver(&info(&twice)), None);
        let twice =
            SIMPLE.replace("<feature", "<identity category='client' name='Exodus 0.9.1' type='pc'/><feature");
        assert_eq!(ver(&info(&twice)), None);
        let form =
            "<x xmlns='jabber:x:data'><field var='FORM_TYPE' type='hidden'><value>a</value></field></x>";
        assert!(ver(&info(&SIMPLE.replace("</query>", &format!("{form}</query>")))).is_some());
        assert_eq!(ver(&info(&SIMPLE.replace("</query>", &format!("{form}{form}</query>")))), None);
        let two = form.replace("</field>", "<value>b</value></field>");
        assert_eq!(ver(&info(&SIMPLE.replace("</query>", &format!("{two}</query>")))), None);
        // One feature in place of two that has their hash.
        let (a, b) = (
            info("<query><feature var='a'/><feature var='b'/></query>"),
            info("<query><feature var='a&lt;b'/></query>"),
        );
        assert!(ver(&a).is_some_and(|input| input == "a<b<") && ver(&b).is_none());
        assert_eq!(set(&info("<query><other/></query>")), None);
    }

    /// Each pair has one hash; nobody is to take the one for the other.
    #[test]
    fn what_can_be_read_in_two_ways_says_nothing_of_others() {
        let identity = "<identity category='client' type='pc'/>";
        let form = |var: &str, values: &str| {
            format!(
                "<x xmlns='jabber:x:data'><field var='FORM_TYPE' type='hidden'><value>urn:a</value></field>\
                 <field var='{var}'>{values}</field></x>"
            )
        };
        let features = "<feature var='urn:a'/><feature var='urn:b+notify'/><feature var='urn:c+notify'/>";
        let pairs = [
            // The features of one are the form of the other.
            (features.into(), form("urn:b+notify", "<value>urn:c+notify</value>")),
            // They are values of one field, or fields without values.
            (form("b", "<value>c</value>"), form("b", "").replace("</x>", "<field var='c'/></x>")),
            // A feature of one is an identity of the other.
            (
                "<feature var='urn:a/b/c/d+notify'/>".into(),
                "<identity category='urn:a' type='b' xml:lang='c' name='d+notify'/>".into(),
            ),
            (
                "<feature var='http://a/b+notify'/>".into(),
                "<identity category='http:' xml:lang='a' name='b+notify'/>".into(),
            ),
            // The parts of an identity.
            (
                "<identity category='client' type='pc/en' xml:lang='x' name='y'/>".into(),
                "<identity category='client' type='pc' xml:lang='en/x' name='y'/>".into(),
            ),
        ];
        let believed: Vec<[bool; 2]> = pairs
            .into_iter()
            .map(|(one, other): (String, String)| {
                let queries = [one, other].map(|xml| info(&format!("<query>{identity}{xml}</query>")));
                let inputs = queries.each_ref().map(|query| ver(query).expect("well-formed"));
                assert_eq!(inputs[0], inputs[1]);
                let value = BASE64.encode(Sha1::digest(&inputs[0]));
                queries.map(|query| of_ver(&value).is_only_of(&query))
            })
            .collect();
        assert_eq!(believed, [[true, false], [false, false], [false, true], [true, false], [false, false]]);
    }

    #[test]
    fn nobody_wants_more_than_is_sensible() {
        let mut query = info(
            "<query><feature var='b+notify'/><feature var='a+notify'/><feature var='+notify'/><feature var='c'/></query>",
        );
        assert_eq!(wants(&query), [Box::from("a"), Box::from("b")]);
        for n in 0..100 {
            query.push(Element::new("feature", ns::DISCO_INFO).with_attr("var", format!("{n:0100}+notify")));
        }
        assert_eq!(wants(&query).len(), WANTS_BYTES_MAX / 100);
    }
}
