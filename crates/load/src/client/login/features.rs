//! What a server offers in `<stream:features/>` (RFC 6120 §4.3.2), as far as a login is concerned.

use carillon_wire::ns;
use carillon_wire::xml::Element;

use crate::client::sasl::Offer;

/// One `<stream:features/>`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Features {
    pub(super) starttls: bool,
    /// Classic SASL.
    pub(super) sasl: Option<Offer>,
    pub(super) sasl2: Option<Sasl2Offer>,
    pub(super) bind: bool,
    pub(super) stream_management: bool,
}

/// What SASL2 offers, and what may go along with it (XEP-0388 §2.1).
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sasl2Offer {
    pub(super) offer: Offer,
    /// Bind 2 (XEP-0386) may go along.
    pub(super) bind2: bool,
    /// Stream management may be switched on along with Bind 2.
    pub(super) inline_stream_management: bool,
    /// An earlier stream may be resumed along with SASL2.
    pub(super) inline_resumption: bool,
    /// Mechanisms for tokens (XEP-0484).
    pub(super) tokens: Vec<String>,
}

impl Features {
    pub(super) fn parse(element: &Element) -> Self {
        let bindings = element.child("sasl-channel-binding", ns::SASL_CB).map(bindings).unwrap_or_default();
        let offer = |list: &Element| Offer { mechanisms: mechanisms(list), bindings: bindings.clone() };
        Self {
            starttls: element.child("starttls", ns::TLS).is_some(),
            sasl: element.child("mechanisms", ns::SASL).map(offer),
            sasl2: element
                .child("authentication", ns::SASL2)
                .map(|authentication| Sasl2Offer::parse(authentication, offer(authentication))),
            bind: element.child("bind", ns::BIND).is_some(),
            stream_management: element.child("sm", ns::SM).is_some(),
        }
    }
}

impl Sasl2Offer {
    fn parse(authentication: &Element, offer: Offer) -> Self {
        let inline =
            |name, ns| authentication.child("inline", ns::SASL2).and_then(|inline| inline.child(name, ns));
        let bind = inline("bind", ns::BIND2);
        let along = |namespace: &str| {
            let inline = bind.and_then(|bind| bind.child("inline", ns::BIND2));
            inline
                .is_some_and(|inline| inline.children().any(|feature| feature.attr("var") == Some(namespace)))
        };
        Self {
            offer,
            bind2: bind.is_some(),
            inline_stream_management: along(ns::SM),
            inline_resumption: inline("sm", ns::SM).is_some(),
            tokens: inline("fast", ns::FAST).map(mechanisms).unwrap_or_default(),
        }
    }
}

// Both classic SASL and SASL2 name each in a <mechanism/> of their own namespace.
fn mechanisms(list: &Element) -> Vec<String> {
    list.children().filter(|child| child.is("mechanism", list.ns())).map(Element::text).collect()
}

fn bindings(list: &Element) -> Vec<String> {
    let names = list.children().filter(|child| child.is("channel-binding", ns::SASL_CB));
    names.filter_map(|child| child.attr("type")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_is_found() {
        let element = Element::parse(
            b"<features xmlns='http://etherx.jabber.org/streams'>\
              <starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>\
              <mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>\
              <authentication xmlns='urn:xmpp:sasl:2'><mechanism>SCRAM-SHA-1</mechanism>\
              <inline><bind xmlns='urn:xmpp:bind:0'><inline><feature var='urn:xmpp:sm:3'/></inline></bind><sm xmlns='urn:xmpp:sm:3'/><fast xmlns='urn:xmpp:fast:0'>\
              <mechanism>HT-SHA-256-NONE</mechanism></fast></inline>\
              </authentication>\
              <sasl-channel-binding xmlns='urn:xmpp:sasl-cb:0'><channel-binding type='tls-exporter'/>\
              </sasl-channel-binding><sm xmlns='urn:xmpp:sm:3'/></features>",
            "",
        )
        .expect("well-formed");
        let offer = |name: &str| Offer {
            mechanisms: vec![name.to_owned()],
            bindings: vec!["tls-exporter".to_owned()],
        };
        let expected = Features {
            starttls: true,
            sasl: Some(offer("PLAIN")),
            sasl2: Some(Sasl2Offer {
                offer: offer("SCRAM-SHA-1"),
                bind2: true,
                inline_stream_management: true,
                inline_resumption: true,
                tokens: vec!["HT-SHA-256-NONE".to_owned()],
            }),
            bind: false,
            stream_management: true,
        };
        assert_eq!(Features::parse(&element), expected);
        assert_eq!(Features::parse(&Element::new("features", ns::STREAMS)), Features::default());
    }
}
