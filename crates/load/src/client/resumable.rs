//! What outlives a connection so that its stream can be resumed (XEP-0198 §5).

use std::time::Duration;

use carillon_wire::jid::Jid;
use carillon_wire::ns;
use carillon_wire::xml::Element;
use carillon_wire::xml::writer::Writer;

use super::unacknowledged::{OutOfRange, Unacknowledged};

/// The resumable state of a session: [`Client::take_resumable`] gives it when the connection is gone, and
/// [`Client::resuming`] goes on with it on another one, of any transport.
///
/// [`Client::take_resumable`]: super::Client::take_resumable
/// [`Client::resuming`]: super::Client::resuming
#[derive(Clone, Debug)]
pub struct Resumable {
    pub(super) jid: Jid,
    id: String,
    max: Option<Duration>,
    location: Option<String>,
    /// Stanzas received and handled, modulo 2^32.
    pub(super) handled: u32,
    pub(super) sent: Unacknowledged,
}

impl Resumable {
    /// Reads `<enabled/>`; `None` if the server does not allow resumption. `sent` is what was sent since `<enable/>`.
    pub(super) fn enabled(answer: &Element, jid: &Jid, sent: Unacknowledged) -> Option<Self> {
        let allowed = matches!(answer.attr("resume"), Some("true" | "1"));
        let id = answer.attr("id").filter(|_| allowed)?.to_owned();
        let max = answer.attr("max").and_then(|max| max.parse().ok()).map(Duration::from_secs);
        let location = answer.attr("location").map(str::to_owned);
        // XEP-0198 §4: the count of what is received starts when <enabled/> is received.
        Some(Self { jid: jid.clone(), id, max, location, handled: 0, sent })
    }

    /// The full JID of the session.
    pub fn jid(&self) -> &Jid {
        &self.jid
    }

    /// The id that the server gave the stream.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How long the server keeps the session after the connection is lost, if it said so.
    pub fn max(&self) -> Option<Duration> {
        self.max
    }

    /// The host, with or without a port, at which the server prefers the resumption, if it named one.
    pub fn location(&self) -> Option<&str> {
        self.location.as_deref()
    }

    /// How many stanzas were sent and not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.sent.stanzas().len()
    }

    /// Writes `<resume/>`.
    pub(super) fn write_request(&self, writer: &mut Writer<'_>) {
        let handled = self.handled.to_string();
        writer.start("resume").attr("xmlns", ns::SM);
        writer.attr("h", &handled).attr("previd", &self.id).close_empty();
    }

    /// Takes `<resumed/>`: drops what the server has handled. `None` if the answer is about another stream, or its `h` is not
    /// a number.
    pub(super) fn resumed(&mut self, answer: &Element) -> Option<Result<(), OutOfRange>> {
        if answer.attr("previd") != Some(&*self.id) {
            return None;
        }
        // XEP-0198 §5: without the attribute the server has no such number.
        match answer.attr("h") {
            Some(handled) => Some(self.sent.acknowledge(handled.parse().ok()?)),
            None => Some(Ok(())),
        }
    }

    /// Takes `<failed/>`: what the server had handled, if it knows, and the stanzas that it has not.
    pub(super) fn failed(mut self, answer: Option<&Element>) -> (Option<u32>, Vec<Box<[u8]>>) {
        let handled = answer.and_then(|answer| answer.attr("h")?.parse().ok());
        // A number that cannot be is no number.
        let handled = handled.filter(|handled| self.sent.acknowledge(*handled).is_ok());
        (handled, self.sent.into_stanzas())
    }
}
