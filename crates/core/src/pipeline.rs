//! THE ORDER of features. Every hook runs in the order of [`ORDER`]; there are no priorities anywhere else.

use crate::features::*;
use crate::hook::*;
use crate::model::Map;
use crate::node::Cx;
use carillon_wire::stanza::{IqType, Kind};
use carillon_wire::xml::Element;

/// All features, in the order in which their hooks run.
pub const ORDER: &[&Feature] = &[
    // Counts what came in before anything may refuse it, and what goes out after everything has let it pass.
    &stream_management::FEATURE,
    // Stamps ids before anything copies or keeps a message.
    &stanza_ids::FEATURE,
    // Takes what is addressed to the services before it would be routed.
    &pubsub::FEATURE,
    &notifications::FEATURE,
    // Presence decides who is available; what waits for that comes after it: offline messages, pending notifications and
    // last items are delivered in this order (see `presence::State::initial`).
    &presence::FEATURE,
    // Copies what was sent, when everything else has let it pass.
    &carbons::FEATURE,
    &receipts::FEATURE,
    // Keeps what nobody takes.
    &offline::FEATURE,
    // Last on the way out: what it holds back was otherwise decided.
    &csi::FEATURE,
    &ping::FEATURE,
    &registration::FEATURE,
    &session_establishment::FEATURE,
    &json::FEATURE,
    &stream_limits::FEATURE,
    // Describes the others.
    &disco::FEATURE,
];

/// The hooks of the enabled features, each list in [`ORDER`].
pub struct Pipeline {
    features: Vec<&'static Feature>,
    pub(crate) offer: Vec<OfferHook>,
    pub(crate) open: Vec<OpenHook>,
    pub(crate) close: Vec<CloseHook>,
    pub(crate) receive: Vec<ReceiveHook>,
    submit_message: Vec<SubmitHook>,
    submit_presence: Vec<SubmitHook>,
    submit_iq: Vec<SubmitHook>,
    iq: Map<(&'static str, &'static str), Vec<&'static IqHandler>>,
    nonza: Map<(&'static str, &'static str), &'static NonzaHandler>,
    pub(crate) routed: Vec<RoutedHook>,
    pub(crate) absent: Vec<AbsentHook>,
    pub(crate) deliver: Vec<DeliverHook>,
    pub(crate) emit: Vec<EmitHook>,
    pub(crate) emitted: Vec<EmittedHook>,
    pub(crate) flushed: Vec<FlushedHook>,
    pub(crate) unacked: Vec<UnackedHook>,
    pub(crate) wake: Vec<WakeHook>,
}

impl Pipeline {
    /// The pipeline of all features but those named.
    pub fn new(disabled: &[String]) -> Pipeline {
        let features: Vec<_> =
            ORDER.iter().copied().filter(|f| !disabled.iter().any(|d| d == f.name)).collect();
        let mut iq: Map<_, Vec<&'static IqHandler>> = Map::default();
        let mut nonza = Map::default();
        for feature in &features {
            for handler in feature.hooks.iq {
                iq.entry((handler.name, handler.ns)).or_default().push(handler);
            }
            for handler in feature.hooks.nonza {
                nonza.insert((handler.name, handler.ns), handler);
            }
        }
        fn hooks<H>(features: &[&'static Feature], hook: impl Fn(&Hooks) -> Option<H>) -> Vec<H> {
            features.iter().filter_map(|f| hook(&f.hooks)).collect()
        }
        Pipeline {
            offer: hooks(&features, |h| h.offer),
            open: hooks(&features, |h| h.open),
            close: hooks(&features, |h| h.close),
            receive: hooks(&features, |h| h.receive),
            submit_message: hooks(&features, |h| h.submit_message),
            submit_presence: hooks(&features, |h| h.submit_presence),
            submit_iq: hooks(&features, |h| h.submit_iq),
            routed: hooks(&features, |h| h.routed),
            absent: hooks(&features, |h| h.absent),
            deliver: hooks(&features, |h| h.deliver),
            emit: hooks(&features, |h| h.emit),
            emitted: hooks(&features, |h| h.emitted),
            flushed: hooks(&features, |h| h.flushed),
            unacked: hooks(&features, |h| h.unacked),
            wake: hooks(&features, |h| h.wake),
            features,
            iq,
            nonza,
        }
    }

    /// The enabled features.
    pub fn features(&self) -> &[&'static Feature] {
        &self.features
    }

    /// Namespaces that may come inline in Bind 2.
    pub fn inline_features(&self) -> impl Iterator<Item = &'static str> {
        self.features.iter().flat_map(|f| f.inline_features).copied()
    }

    /// The bounds that are told to a client before it is authenticated, when that feature is on.
    pub(crate) fn limits_before_auth(&self, cx: &Cx<'_>) -> Option<Element> {
        let on = self.features.iter().any(|f| f.name == stream_limits::FEATURE.name);
        on.then(|| stream_limits::before_auth(cx))
    }

    pub(crate) fn submit(&self, kind: &Kind) -> &[SubmitHook] {
        match kind {
            Kind::Message(_) => &self.submit_message,
            Kind::Presence(_) => &self.submit_presence,
            Kind::Iq(_) => &self.submit_iq,
        }
    }

    pub(crate) fn iq(&self, kind: IqType, name: &str, ns: &str, at: At) -> Option<IqHandle> {
        let fits = |h: &&&IqHandler| h.kind == kind && (h.at == at || h.at == At::Both);
        self.iq.get(&(name, ns))?.iter().find(fits).map(|h| h.handle)
    }

    pub(crate) fn nonza(&self, name: &str, ns: &str) -> Option<NonzaHandle> {
        self.nonza.get(&(name, ns)).map(|h| h.handle)
    }

    /// The reply to an element that came before a resource was bound.
    pub(crate) fn unbound(&self, element: &Element) -> Option<Element> {
        self.nonza.get(&(element.name(), element.ns())).and_then(|h| h.unbound).map(|reply| reply())
    }
}
