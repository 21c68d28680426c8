//! The lines of a trace.

use crate::values::time::{Time, now};
use bytes::Bytes;
use carillon_core::model::UnixMs;
use carillon_core::tap::{Entry, Happening, Kind, Sketch};
use carillon_wire::jid::{BareJid, Jid};
use std::time::Duration;

/// A line of a trace. Which members it has depends on its kind.
#[derive(Debug, Default, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) struct TraceLine {
    /// When it happened.
    at: Option<Time>,
    /// `begun`, `in`, `out`, `route`, `store`, `session`, `missed` or `ended`.
    kind: &'static str,
    /// Of `begun`: the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    account: Option<String>,
    /// Of `begun`, in a cell: the node that is seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// Of `begun`, in a cell: the node that the account is at home on. What happens to its sessions is seen there, and nowhere else.
    #[serde(skip_serializing_if = "Option::is_none")]
    home: Option<String>,
    /// Of `begun`: when it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Time>,
    /// The session, by its full JID. Left out where it is about the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// The element's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Box<str>>,
    /// The stanza's type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind_of_stanza: Option<Box<str>>,
    /// The stanza's id; for an item, its topic and id.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Box<str>>,
    /// The stanza's sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// The stanza's recipient.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// Name and namespace of what is in the stanza, eight at most; of another element its namespace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    payload: Vec<Box<str>>,
    /// Size in bytes of XML.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    /// The element, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    xml: Option<Box<str>>,
    /// Of `route`: `posted` (to the recipient's home), `delivered` (to sessions), `taken`, `held`, `refused`. Of `store`: `settled` (what the client sent is kept or
    /// arrived), `acknowledged` (by the client), `queued` (for a parked session). Of `session`: `opened`, `closed`, `parked`, `resumed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<&'static str>,
    /// Where to, by whom, or why. Of `ended`: `time`, `count`, `key` (it was deleted), `closing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<Box<str>>,
    /// How many: of `store` stanzas, of `missed` entries that are not told.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
}

pub(super) fn begun(account: &BareJid, own_and_home: Option<(String, String)>, ends_in: Duration) -> Bytes {
    let (at, (node, home)) = (now(), own_and_home.unzip());
    written(&TraceLine {
        at: Some(Time(at)),
        kind: "begun",
        account: Some(account.as_str().to_owned()),
        node,
        home,
        until: Some(Time(UnixMs(at.0 + ends_in.as_millis() as u64))),
        ..TraceLine::default()
    })
}

pub(super) fn missed(count: u64) -> Bytes {
    written(&TraceLine { at: Some(Time(now())), kind: "missed", count: Some(count), ..TraceLine::default() })
}

pub(super) fn ended(reason: &'static str) -> Bytes {
    let detail = Some(reason.into());
    written(&TraceLine { at: Some(Time(now())), kind: "ended", detail, ..TraceLine::default() })
}

pub(super) fn entry(entry: &Entry) -> Bytes {
    let line = match &entry.what {
        Happening::In(sketch) => sketched(Kind::In, sketch),
        Happening::Out(sketch) => sketched(Kind::Out, sketch),
        Happening::Route { stanza, outcome, detail } => {
            let detail = Some(detail.clone());
            TraceLine { what: Some(outcome), detail, ..sketched(Kind::Route, stanza) }
        }
        Happening::Store { what, count } => {
            let kind = Kind::Store.word();
            TraceLine { kind, what: Some(what), count: Some((*count).into()), ..TraceLine::default() }
        }
        Happening::Session { what, reason } => {
            let (kind, detail) = (Kind::Session.word(), Some((*reason).into()));
            TraceLine { kind, what: Some(what), detail, ..TraceLine::default() }
        }
    };
    let session = entry.session.as_ref().map(text);
    written(&TraceLine { at: Some(Time(entry.at)), session, ..line })
}

fn sketched(kind: Kind, sketch: &Sketch) -> TraceLine {
    let Sketch { name, kind: kind_of_stanza, id, from, to, payload, bytes, xml } = sketch.clone();
    TraceLine {
        kind: kind.word(),
        name: Some(name),
        kind_of_stanza,
        id,
        from: from.as_ref().map(text),
        to: to.as_ref().map(text),
        payload,
        bytes: Some(bytes),
        xml,
        ..TraceLine::default()
    }
}

fn text(jid: &Jid) -> String {
    jid.as_str().to_owned()
}

fn written(line: &TraceLine) -> Bytes {
    let mut bytes = serde_json::to_vec(line).expect("a line is strings and numbers");
    bytes.push(b'\n');
    bytes.into()
}
