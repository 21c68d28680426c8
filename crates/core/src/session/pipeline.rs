//! The hooks of the enabled features, list by list.

use super::hook::*;
use super::{BoundSession, Resume};
use crate::error::StanzaError;
use crate::feature_state::PerAccount;
use crate::model::{LoginParts, Map, RecordParts, StanzaKind};
use crate::shard::{Timer, Tracked};
use carillon_wire::jid::Jid;
use carillon_wire::stanza::{Child, IqType, Kind, Stanza};
use carillon_wire::xml::Element;
use smallvec::SmallVec;

/// Makes the pipeline: of each hook those that the enabled features have.
macro_rules! of_pipeline {
    ($($(#[doc = $about:literal])+ $kind:ident $name:ident: $hook:ty;)*) => {
        /// The hooks of the enabled features, each list in the order of [`crate::features::ORDER`].
        pub struct Pipeline {
            features: Vec<&'static Feature>,
            services: Vec<&'static Service>,
            login_parts: LoginParts,
            record_parts: RecordParts,
            /// The handlers of `iq`, `at_home`, `asked` and `nonza`, by the payload's or the element's name and namespace.
            iq_by_name: Map<(&'static str, &'static str), Vec<&'static IqHandler>>,
            at_home_by_name: Map<(&'static str, &'static str), Vec<&'static HomeHandler>>,
            asked_by_name: Map<(&'static str, &'static str), Vec<&'static AskedHandler>>,
            nonza_by_name: Map<(&'static str, &'static str), &'static NonzaHandler>,
            $($(#[doc = $about])+ pub(crate) $name: of_pipeline!(@field $kind $hook),)*
        }

        impl Pipeline {
            /// The pipeline of these features, in this order.
            ///
            /// # Panics
            /// If several have a hook that is for one.
            pub fn new(features: Vec<&'static Feature>) -> Pipeline {
                assert_eq!(taken_twice(&features), None, "a hook for one feature has several");
                $(let $name = of_pipeline!(@join $kind $name features);)*
                Pipeline {
                    services: features.iter().flat_map(|f| f.services).collect(),
                    login_parts: LoginParts::NONE,
                    record_parts: RecordParts::NONE,
                    iq_by_name: Map::default(),
                    at_home_by_name: Map::default(),
                    asked_by_name: Map::default(),
                    nonza_by_name: Map::default(),
                    features,
                    $($name,)*
                }
                .indexed()
            }
        }
    };
    (@field each $hook:ty) => { Vec<$hook> };
    (@field one $hook:ty) => { Option<$hook> };
    (@field list $hook:ty) => { Vec<&'static $hook> };
    (@join each $name:ident $features:ident) => { $features.iter().filter_map(|f| f.hooks.$name).collect() };
    (@join one $name:ident $features:ident) => { $features.iter().find_map(|f| f.hooks.$name) };
    (@join list $name:ident $features:ident) => { $features.iter().flat_map(|f| f.hooks.$name).collect::<Vec<_>>() };
}

each_hook!(of_pipeline);

impl Pipeline {
    /// With what is looked up by name, and what the store is asked for.
    fn indexed(mut self) -> Pipeline {
        for handler in &self.iq {
            self.iq_by_name.entry((handler.name, handler.ns)).or_default().push(handler);
        }
        for handler in self.at_home.iter().chain(&self.node_info) {
            self.at_home_by_name.entry((handler.name, handler.ns)).or_default().push(handler);
        }
        for handler in &self.asked {
            self.asked_by_name.entry((handler.name, handler.ns)).or_default().push(handler);
        }
        self.nonza_by_name =
            self.nonza.iter().map(|handler| ((handler.name, handler.ns), *handler)).collect();
        let (login, record) = (self.login.iter(), self.record.iter());
        self.login_parts = login.map(|part| part.wanted()).fold(LoginParts::NONE, LoginParts::and);
        self.record_parts = record.map(|part| part.wanted()).fold(RecordParts::NONE, RecordParts::and);
        self
    }

    /// The enabled features.
    pub fn features(&self) -> &[&'static Feature] {
        &self.features
    }

    /// Namespaces that may come inline in Bind 2.
    pub fn inline_features(&self) -> impl Iterator<Item = &'static str> {
        self.features.iter().flat_map(|f| f.inline_features).copied()
    }

    /// What is read of an account at its login.
    pub(crate) fn login_parts(&self) -> LoginParts {
        self.login_parts
    }

    /// What is read of an account's record at its home.
    pub(crate) fn record_parts(&self) -> RecordParts {
        self.record_parts
    }

    /// Whether any feature needs a part of an account's record.
    pub(crate) fn keeps_records(&self) -> bool {
        !self.record.is_empty()
    }

    /// Whether any feature has stanzas not pass.
    pub(crate) fn filters(&self) -> bool {
        !self.filter.is_empty()
    }

    /// Why a stanza of this kind, to or from this address, does not pass, by the record of an account; `list`: what its session has chosen
    /// ([`Pipeline::list_of`]).
    pub fn denies(
        &self,
        record: &PerAccount,
        (direction, kind): (Direction, StanzaKind),
        other: &Jid,
        list: Option<&str>,
    ) -> Option<Denial> {
        let (contacts, blocks) = (self.contacts, self.blocks);
        let passing = Passing { direction, kind, other, list, contacts, blocks };
        self.filter.iter().find_map(|hook| hook(record, &passing))
    }

    /// The list that a session has chosen, if lists are enabled.
    pub fn list_of<'a>(&self, session: &'a BoundSession) -> Option<&'a str> {
        self.session_list.and_then(|hook| hook(session))
    }

    /// Whether a session is not given a stanza of this kind from this address, which passes for its account or for others of its sessions.
    pub fn withholds(
        &self,
        record: &PerAccount,
        session: &BoundSession,
        kind: StanzaKind,
        other: &Jid,
    ) -> bool {
        let Some(list_of) = self.session_list else { return false };
        self.denies(record, (Direction::In, kind), other, list_of(session)).is_some()
    }

    /// Who carries out the rules of a stanza, if it carries any: one look into the index of its children.
    pub(crate) fn rules_of(&self, stanza: &Stanza) -> Option<&'static RulesHandler> {
        let is_message = matches!(stanza.kind, Kind::Message(_));
        self.rules.filter(|rules| is_message && (rules.has)(stanza))
    }

    /// The error for a sender to whom the rules of its message would tell more of an account than the account's record shows it.
    pub(crate) fn refused_rules(&self, stanza: &Stanza, record: &PerAccount) -> Option<StanzaError> {
        let error = self.rules_would_reveal(stanza)?;
        let sender = stanza.from.as_ref()?;
        let sees = self.contacts.is_some_and(|contacts| (contacts.standing)(record, sender.bare_str()).from);
        (!sees).then_some(error)
    }

    /// The same for a sender of whom it is not known yet what it is shown. Where there are no subscriptions, nothing is hidden.
    pub(crate) fn rules_would_reveal(&self, stanza: &Stanza) -> Option<StanzaError> {
        let rules = self.rules_of(stanza).filter(|_| self.contacts.is_some())?;
        (rules.reveals)(stanza)
    }

    /// What a node of the server says.
    pub fn server_node(&self, node: &str) -> Option<&'static ServerNode> {
        self.features.iter().flat_map(|feature| feature.server_nodes).find(|known| known.node == node)
    }

    /// The addresses of the features.
    pub fn services(&self) -> impl Iterator<Item = &'static Service> {
        self.services.iter().copied()
    }

    /// The service with this first label of its host name.
    pub fn service(&self, host: &str) -> Option<&'static Service> {
        self.services().find(|service| service.host == host)
    }

    /// Who logs clients in by mechanisms of their own.
    pub(crate) fn proofs(&self) -> &[&'static ProofHandler] {
        &self.proof
    }

    /// Who checks a proof of this kind.
    pub(crate) fn proof_handler(&self, kind: ProofKind) -> Option<&'static ProofHandler> {
        self.proof.iter().copied().find(|handler| handler.kind == kind)
    }

    pub(crate) fn submit(&self, kind: &Kind) -> &[SubmitHook] {
        match kind {
            Kind::Message(_) => &self.submit_message,
            Kind::Presence(_) => &self.submit_presence,
            Kind::Iq(_) => &[],
        }
    }

    /// Whether an account's home answers an IQ request of the account's own session.
    pub(crate) fn is_for_home(&self, kind: IqType, payload: &Child<'_>) -> bool {
        // A node is described only where service discovery asks for it.
        let is_node_info = |h: &HomeHandler| self.node_info.is_some_and(|info| std::ptr::eq(info, h));
        self.home_handler(kind, payload.name(), payload.ns()).is_some_and(|h| !is_node_info(h))
    }

    /// The handler of an IQ request at one of the server's addresses.
    pub(crate) fn iq_handler(&self, kind: IqType, name: &str, ns: &str, at: At) -> Option<IqHandle> {
        let fits =
            |h: &&&IqHandler| h.kind == kind && (h.at == at || (h.at == At::Both && at != At::Service));
        self.iq_by_name.get(&(name, ns))?.iter().find(fits).map(|h| h.handle)
    }

    /// Whether a request of an account's own session is answered by another feature than the one that it is for.
    pub(crate) fn answers_instead(&self, kind: IqType, payload: &Child<'_>) -> bool {
        self.instead.is_some_and(|instead| (instead.takes)(kind, payload))
    }

    /// Who answers, at an account's home, an IQ request of one of its sessions.
    pub(crate) fn home_handler(&self, kind: IqType, name: &str, ns: &str) -> Option<&'static HomeHandler> {
        let handlers = self.at_home_by_name.get(&(name, ns))?;
        handlers.iter().copied().find(|handler| handler.kind == kind)
    }

    /// Who may answer an IQ request of another on behalf of an account, in their order.
    pub(crate) fn asked_handlers(
        &self,
        kind: IqType,
        name: &str,
        ns: &str,
    ) -> SmallVec<[&'static AskedHandler; 2]> {
        let handlers = self.asked_by_name.get(&(name, ns)).map(Vec::as_slice).unwrap_or_default();
        handlers.iter().copied().filter(|handler| handler.kind == kind).collect()
    }

    /// The handler for a kind of tracked stanza.
    pub(crate) fn tracked_handler(&self, kind: Tracked) -> Option<&'static TrackedHandler> {
        self.tracked.iter().copied().find(|handler| handler.kind == kind)
    }

    /// The hook for a timer of a feature; none when that feature is disabled.
    pub(crate) fn timer(&self, timer: Timer) -> Option<WakeHook> {
        self.timers.iter().find(|handler| handler.timer == timer).map(|handler| handler.handle)
    }

    /// The handler of an element that is no stanza.
    pub(crate) fn nonza_handler(&self, name: &str, ns: &str) -> Option<NonzaHandle> {
        self.nonza_by_name.get(&(name, ns)).map(|h| h.handle)
    }

    /// The answer to an element that came before authentication.
    pub(crate) fn unauthenticated(&self, element: &Element) -> Option<fn() -> Element> {
        self.nonza_by_name.get(&(element.name(), element.ns())).and_then(|h| h.unauthenticated)
    }

    /// What the client wants to resume by an element that came before a resource was bound, or the reply to it.
    pub(crate) fn unbound(&self, element: &Element) -> Option<Result<Resume, Element>> {
        let handler = self.nonza_by_name.get(&(element.name(), element.ns()))?;
        Some(match handler.unbound? {
            Unbound::Reply(reply) => Err(reply()),
            Unbound::Resume(read) => read(element),
        })
    }
}
