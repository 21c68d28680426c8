//! What is noted of a session that is followed (`carillon trace`). None of it runs for the others.

use super::{BoundSession, Cx};
use crate::model::PubsubEvent;
use crate::session::hook::Outgoing;
use crate::tap::{Happening, Kind, Sketch};
use carillon_wire::Framing;
use carillon_wire::stanza::{Stanza, Unit};
use carillon_wire::xml::Element;

impl BoundSession {
    /// A unit of this many bytes came from the client.
    #[cold]
    pub(super) fn tap_in(&self, unit: &Unit, bytes: usize, cx: &mut Cx<'_>) {
        self.tap(Kind::In, cx, &|whole| {
            let mut sketch = match unit {
                Unit::Stanza(stanza) => Sketch::of(stanza, Some(bytes), whole),
                Unit::Nonza(element) => Sketch::of_element(element, whole),
                Unit::Refused { reply, .. } => Sketch::of(reply, Some(bytes), whole),
            };
            sketch.bytes = bytes;
            Happening::In(sketch)
        });
    }

    /// The client was sent a stanza; or it is kept for it, because the session is parked.
    #[cold]
    pub(super) fn tap_out(&self, stanza: &Stanza, cx: &mut Cx<'_>) {
        match self.io {
            Some(_) => self.tap(Kind::Out, cx, &|whole| Happening::Out(Sketch::of(stanza, None, whole))),
            None => self.tap_stored("queued", 1, cx),
        }
    }

    /// The client was sent an event of a topic.
    #[cold]
    pub(super) fn tap_event(&self, event: &PubsubEvent, cx: &mut Cx<'_>) {
        if self.io.is_none() {
            return self.tap_stored("queued", 1, cx);
        }
        self.tap(Kind::Out, cx, &|whole| {
            let mut written = Vec::new();
            event.write(&mut written, self.jid.as_str(), Framing::Tcp);
            Happening::Out(Sketch::of_written(&written, event.names(), whole))
        });
    }

    /// The client was sent an element that is no stanza.
    #[cold]
    pub fn tap_element(&self, element: &Element, cx: &mut Cx<'_>) {
        self.tap(Kind::Out, cx, &|whole| Happening::Out(Sketch::of_element(element, whole)));
    }

    /// What was to be sent waits with a feature.
    #[cold]
    pub(super) fn tap_held(&self, outgoing: &Outgoing<'_>, why: &'static str, cx: &mut Cx<'_>) {
        match outgoing {
            Outgoing::Stanza(stanza, _) => self.tap_route(stanza, "held", why, cx),
            Outgoing::Shared(shared, to) => {
                self.tap_route(&self.shared_for_it(shared, *to), "held", why, cx);
            }
            Outgoing::PubsubEvent(_) => {}
        }
    }

    /// What became of a stanza of the client's, or of one for it.
    #[cold]
    pub(crate) fn tap_route(&self, stanza: &Stanza, outcome: &'static str, detail: &str, cx: &mut Cx<'_>) {
        self.tap(Kind::Route, cx, &|whole| routed(stanza, outcome, detail, whole));
    }

    /// So many stanzas were settled, acknowledged or kept.
    #[cold]
    pub fn tap_stored(&self, what: &'static str, count: u32, cx: &mut Cx<'_>) {
        self.tap(Kind::Store, cx, &|_| Happening::Store { what, count });
    }

    /// The session opened, closed, was parked or was resumed.
    #[cold]
    pub(crate) fn tap_session(&self, what: &'static str, reason: &'static str, cx: &mut Cx<'_>) {
        self.tap(Kind::Session, cx, &|_| Happening::Session { what, reason });
    }

    fn tap(&self, kind: Kind, cx: &mut Cx<'_>, make: &dyn Fn(bool) -> Happening) {
        let whom = (self.bare.as_str(), Some(&self.jid));
        cx.shard.taps.note(cx.now, whom, kind, &mut cx.out.tape, make);
    }
}

/// What became of a stanza at the home of the account that it is for.
#[cold]
pub(crate) fn note_route(stanza: &Stanza, outcome: &'static str, detail: &str, cx: &mut Cx<'_>) {
    let Some(to) = &stanza.to else { return };
    let make = |whole| routed(stanza, outcome, detail, whole);
    cx.shard.taps.note(cx.now, (to.bare_str(), None), Kind::Route, &mut cx.out.tape, &make);
}

fn routed(stanza: &Stanza, outcome: &'static str, detail: &str, whole: bool) -> Happening {
    Happening::Route { stanza: Sketch::of(stanza, None, whole), outcome, detail: detail.into() }
}
