//! The XML of what happens on a topic (XEP-0060).

use super::{Item, Shown, UnixMs};
use bytes::Bytes;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::xml::writer::Writer;
use std::ops::Range;

/// Appends `<item/>` (XEP-0060 §7.1.2.1) in the default namespace of its parent, and returns the range of the buffer that
/// holds the payload.
pub fn write_item(writer: &mut Writer<'_>, item: &Item) -> Range<usize> {
    writer.start("item").attr("id", &item.id);
    writer.attr_opt("publisher", item.publisher.as_ref().map(BareJid::as_str));
    if item.payload.is_empty() {
        writer.close_empty();
        return 0..0;
    }
    let start = writer.close_start().position();
    let payload = start..writer.raw(&item.payload).position();
    writer.end("item");
    payload
}

/// Appends `<items/>` with what followers are sent of an item (XEP-0060 §7.1.2), and returns the range of the buffer that holds the payload.
pub(super) fn write_items(writer: &mut Writer<'_>, item: &Item, shown: Shown) -> Range<usize> {
    writer.start("items").attr("node", &item.name);
    if shown == Shown::Nothing {
        writer.close_empty();
        return 0..0;
    }
    writer.close_start();
    let payload = match shown {
        Shown::Payload => write_item(writer, item),
        Shown::Id | Shown::Nothing => {
            writer.start("item").attr("id", &item.id).close_empty();
            0..0
        }
    };
    writer.end("items");
    payload
}

/// The message from its attribute `from` up to where `to` is added.
pub(super) fn head(domain: &str, id: &str) -> Bytes {
    let mut out = Vec::with_capacity(96);
    let mut writer = Writer::new(&mut out);
    writer.attr("from", &format!("pubsub.{domain}")).attr("type", "headline").attr("id", id);
    out.into()
}

/// The message from behind `to` to its end. `inside` writes the content of `<event/>`; `stamp` is the domain and the time of a XEP-0203 delay.
pub(super) fn tail(stamp: Option<(&str, UnixMs)>, inside: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    let mut out = Vec::with_capacity(512);
    let mut writer = Writer::new(&mut out);
    writer.close_start();
    let stamp = stamp.map(|(domain, at)| (format!("pubsub.{domain}"), at));
    write_event(&mut writer, stamp.as_ref().map(|(from, at)| (&**from, *at)), inside);
    writer.end("message");
    out.into()
}

/// Appends `<event/>` and the delay of an item that was published before, by `from` (XEP-0060 §6.1.7, XEP-0203 §4).
pub(super) fn write_event(
    writer: &mut Writer<'_>,
    stamp: Option<(&str, UnixMs)>,
    inside: impl FnOnce(&mut Writer<'_>),
) {
    writer.start_in("event", ns::PUBSUB_EVENT).close_start();
    inside(writer);
    writer.end("event");
    if let Some((from, at)) = stamp {
        writer.start_in("delay", ns::DELAY).attr("from", from).attr("stamp", &at.to_xmpp()).close_empty();
    }
}
