//! What is offered to a client that is not authenticated yet.

use crate::connection::Io;
use crate::model::Domain;
use crate::sasl::{ChannelBinding, Mechanism, Protection};
use crate::session::Cx;
use crate::shard::OfferShape;
use carillon_wire::xml::Element;
use carillon_wire::{ns, stream};
use std::sync::Arc;

/// Sends the stream features before authentication.
pub fn send(io: &Io, domain: &Domain, protection: &Protection, cx: &mut Cx<'_>) {
    let shape = OfferShape::of(io, domain, protection);
    let text = cx.shard.logins.offers.find(&shape).unwrap_or_else(|| {
        let mut text = Vec::new();
        stream::write_features(&mut text, &features(domain, protection, cx), io.framing);
        let text: Arc<[u8]> = text.into();
        cx.shard.logins.offers.remember(shape, text.clone());
        text
    });
    cx.out.send(io.conn, |out| out.extend_from_slice(&text));
}

fn features(domain: &Domain, protection: &Protection, cx: &Cx<'_>) -> Vec<Element> {
    let list = |name, ns| {
        let offered = mechanisms(protection, ns, cx);
        let entry = |m: &Mechanism| Element::new("mechanism", ns).with_text(m.as_str());
        offered.iter().fold(Element::new(name, ns), |list, m| list.with_child(entry(m)))
    };
    let mut features = vec![
        list("mechanisms", ns::SASL),
        list("authentication", ns::SASL2).with_child(inline(protection, cx)),
    ];
    if let Protection::Tls(binding) = protection {
        features.push(channel_bindings(binding));
    }
    for offer in &cx.pipeline.offer_before_auth {
        offer(domain, cx, &mut features);
    }
    features
}

/// The mechanisms that fit what protects the stream, for SASL in the namespace of the `profile`.
pub fn mechanisms(protection: &Protection, profile: &str, cx: &Cx<'_>) -> Vec<Mechanism> {
    let tls = matches!(protection, Protection::Tls(_));
    let binds = binds(protection, profile);
    let fits = |m: &Mechanism| match m {
        // A password in clear needs TLS that ends here.
        Mechanism::Plain => tls,
        m => !m.binds_channel() || binds,
    };
    cx.shard.settings.mechanisms.iter().copied().filter(fits).collect()
}

/// Whether there are mechanisms with channel binding among them.
pub fn has_channel_binding(protection: &Protection, profile: &str, cx: &Cx<'_>) -> bool {
    binds(protection, profile) && cx.shard.settings.mechanisms.iter().any(|m| m.binds_channel())
}

/// Channel binding is offered where the client can be expected to know a type of it that there is: `tls-exporter` under TLS
/// 1.3, which has no older one. Under TLS 1.2 there is `tls-server-end-point` and not `tls-unique`; clients that were made
/// before XEP-0440 take the latter for granted, and those that speak SASL2 are told which types there are.
fn binds(protection: &Protection, profile: &str) -> bool {
    let binding = protection.binding();
    binding.exporter.is_some() || (binding.end_point.is_some() && profile == ns::SASL2)
}

/// What may come inline with SASL2: Bind 2 and inside it what the features take, and what else the features offer.
fn inline(protection: &Protection, cx: &Cx<'_>) -> Element {
    let features = cx.pipeline.inline_features();
    let list = features.fold(Element::new("inline", ns::BIND2), |list, var| {
        list.with_child(Element::new("feature", ns::BIND2).with_attr("var", var))
    });
    let bind = Element::new("bind", ns::BIND2).with_child(list);
    let inline = Element::new("inline", ns::SASL2).with_child(bind);
    let offered = cx.pipeline.offer_inline.iter().filter_map(|offer| offer(protection, cx));
    offered.fold(inline, Element::with_child)
}

/// XEP-0440: which types of channel binding there are.
fn channel_bindings(binding: &ChannelBinding) -> Element {
    let entry = |name| Element::new("channel-binding", ns::SASL_CB).with_attr("type", name);
    let mut list = Element::new("sasl-channel-binding", ns::SASL_CB);
    if binding.exporter.is_some() {
        list.push(entry("tls-exporter"));
    }
    if binding.end_point.is_some() {
        list.push(entry("tls-server-end-point"));
    }
    list
}
