//! The hooks of the enabled features, list by list.

use super::hook::*;
use crate::features::state::PerAccount;
use crate::model::{LoginParts, Map, RecordParts};
use crate::shard::{Timer, Tracked};
use carillon_wire::jid::Jid;
use carillon_wire::stanza::{IqType, Kind};
use carillon_wire::xml::Element;

/// The hooks of the enabled features, each list in the order of [`crate::pipeline`].
pub struct Pipeline {
    features: Vec<&'static Feature>,
    services: Vec<&'static Service>,
    pub(crate) offer_before_auth: Vec<OfferBeforeAuthHook>,
    pub(crate) offer_inline: Vec<OfferInlineHook>,
    proofs: Vec<&'static ProofHandler>,
    pub(crate) success: Vec<SuccessHook>,
    pub(crate) stanza_before_auth: Vec<StanzaBeforeAuthHook>,
    pub(crate) offer: Vec<OfferHook>,
    pub(crate) login: Vec<LoginPart>,
    login_parts: LoginParts,
    pub(crate) open: Vec<OpenHook>,
    pub(crate) close: Vec<CloseHook>,
    pub(crate) parked: Vec<ParkedHook>,
    pub(crate) leaves: Vec<LeavesHook>,
    pub(crate) resumed: Vec<ResumedHook>,
    pub(crate) restored: Vec<RestoredHook>,
    pub(crate) taken: Vec<TakenHook>,
    pub(crate) resumption: Option<&'static ResumptionHandler>,
    pub(crate) record: Vec<RecordPart>,
    record_parts: RecordParts,
    pub(crate) arrived: Option<ArrivedHook>,
    filter: Vec<FilterHook>,
    pub(crate) seen: Vec<SeenHook>,
    pub(crate) letter: Vec<LetterHook>,
    pub(crate) missed: Vec<MissedHook>,
    pub(crate) announced: Vec<AnnouncedHook>,
    pub(crate) discover: Option<DiscoverHook>,
    pub(crate) capable: Vec<CapableHook>,
    pub(crate) response: Vec<ResponseHook>,
    pub(crate) repeated: Vec<RepeatedHook>,
    pub(crate) receive: Vec<ReceiveHook>,
    pub(crate) acted: Vec<ActedHook>,
    submit_message: Vec<SubmitHook>,
    submit_presence: Vec<SubmitHook>,
    iq: Map<(&'static str, &'static str), Vec<&'static IqHandler>>,
    pub(crate) node_info: Option<IqHandle>,
    asked: Vec<&'static AskedHandler>,
    nonza: Map<(&'static str, &'static str), &'static NonzaHandler>,
    pub(crate) unsettled: Vec<UnsettledHook>,
    pub(crate) settled: Vec<SettledHook>,
    pub(crate) routed: Vec<RoutedHook>,
    pub(crate) must_wait: Vec<MustWaitHook>,
    pub(crate) absent: Vec<AbsentHook>,
    pub(crate) keep: Option<&'static KeepHandler>,
    pub(crate) deliver: Vec<DeliverHook>,
    pub(crate) emit: Vec<EmitHook>,
    pub(crate) emitted: Vec<EmittedHook>,
    pub(crate) given: Option<GivenHook>,
    pub(crate) available: Vec<AvailableHook>,
    pub(crate) catch_up: Vec<CatchUpHook>,
    pub(crate) awaits_arrival: Vec<AwaitsArrivalHook>,
    pub(crate) in_flight: Vec<InFlightHook>,
    pub(crate) unacked: Vec<UnackedHook>,
    tracked: Vec<&'static TrackedHandler>,
    timers: Vec<&'static TimerHandler>,
    pub(crate) describe: Vec<DescribeHook>,
    pub(crate) publication: Vec<PublicationHook>,
    pub(crate) command: Vec<CommandHook>,
    pub(crate) message: Vec<MessageHook>,
    pub(crate) retry: Vec<RetryHook>,
    pub(crate) tick: Vec<TickHook>,
    pub(crate) topic_answer: Option<TopicAnswerHook>,
}

/// One hook of each of these features that has it.
fn hooks<H>(features: &[&'static Feature], hook: impl Fn(&Hooks) -> Option<H>) -> Vec<H> {
    features.iter().filter_map(|f| hook(&f.hooks)).collect()
}

/// Handlers of IQ requests by the payload's name and namespace.
fn iq_handlers(features: &[&'static Feature]) -> Map<(&'static str, &'static str), Vec<&'static IqHandler>> {
    let mut iq: Map<_, Vec<_>> = Map::default();
    for handler in features.iter().flat_map(|feature| feature.hooks.iq) {
        iq.entry((handler.name, handler.ns)).or_default().push(handler);
    }
    iq
}

fn nonza_handlers(features: &[&'static Feature]) -> Map<(&'static str, &'static str), &'static NonzaHandler> {
    let handlers = features.iter().flat_map(|feature| feature.hooks.nonza);
    handlers.map(|handler| ((handler.name, handler.ns), handler)).collect()
}

impl Pipeline {
    /// The pipeline of these features, in this order.
    pub fn new(features: Vec<&'static Feature>) -> Pipeline {
        let record = || features.iter().flat_map(|f| f.hooks.record).copied();
        let login = || features.iter().flat_map(|f| f.hooks.login).copied();
        Pipeline {
            services: features.iter().flat_map(|f| f.services).collect(),
            offer_before_auth: hooks(&features, |h| h.offer_before_auth),
            offer_inline: hooks(&features, |h| h.offer_inline),
            proofs: hooks(&features, |h| h.proof),
            success: hooks(&features, |h| h.success),
            stanza_before_auth: hooks(&features, |h| h.stanza_before_auth),
            offer: hooks(&features, |h| h.offer),
            login_parts: login().map(LoginPart::wanted).fold(LoginParts::NONE, LoginParts::and),
            login: login().collect(),
            open: hooks(&features, |h| h.open),
            close: hooks(&features, |h| h.close),
            parked: hooks(&features, |h| h.parked),
            leaves: hooks(&features, |h| h.leaves),
            resumed: hooks(&features, |h| h.resumed),
            restored: hooks(&features, |h| h.restored),
            taken: hooks(&features, |h| h.taken),
            resumption: features.iter().find_map(|f| f.hooks.resumption),
            record_parts: record().map(RecordPart::wanted).fold(RecordParts::default(), RecordParts::and),
            record: record().collect(),
            arrived: features.iter().find_map(|f| f.hooks.arrived),
            filter: hooks(&features, |h| h.filter),
            seen: hooks(&features, |h| h.seen),
            letter: hooks(&features, |h| h.letter),
            missed: hooks(&features, |h| h.missed),
            announced: hooks(&features, |h| h.announced),
            discover: features.iter().find_map(|f| f.hooks.discover),
            capable: hooks(&features, |h| h.capable),
            response: hooks(&features, |h| h.response),
            repeated: hooks(&features, |h| h.repeated),
            receive: hooks(&features, |h| h.receive),
            acted: hooks(&features, |h| h.acted),
            submit_message: hooks(&features, |h| h.submit_message),
            submit_presence: hooks(&features, |h| h.submit_presence),
            node_info: features.iter().find_map(|f| f.hooks.node_info),
            asked: features.iter().flat_map(|f| f.hooks.asked).collect(),
            unsettled: hooks(&features, |h| h.unsettled),
            settled: hooks(&features, |h| h.settled),
            routed: hooks(&features, |h| h.routed),
            must_wait: hooks(&features, |h| h.must_wait),
            absent: hooks(&features, |h| h.absent),
            keep: features.iter().find_map(|f| f.hooks.keep),
            deliver: hooks(&features, |h| h.deliver),
            emit: hooks(&features, |h| h.emit),
            emitted: hooks(&features, |h| h.emitted),
            given: features.iter().find_map(|f| f.hooks.given),
            available: hooks(&features, |h| h.available),
            catch_up: hooks(&features, |h| h.catch_up),
            awaits_arrival: hooks(&features, |h| h.awaits_arrival),
            in_flight: hooks(&features, |h| h.in_flight),
            unacked: hooks(&features, |h| h.unacked),
            tracked: features.iter().flat_map(|f| f.hooks.tracked).collect(),
            timers: features.iter().flat_map(|f| f.hooks.timers).collect(),
            describe: hooks(&features, |h| h.describe),
            publication: hooks(&features, |h| h.publication),
            command: hooks(&features, |h| h.command),
            message: hooks(&features, |h| h.message),
            retry: hooks(&features, |h| h.retry),
            tick: hooks(&features, |h| h.tick),
            topic_answer: features.iter().find_map(|f| f.hooks.topic_answer),
            nonza: nonza_handlers(&features),
            iq: iq_handlers(&features),
            features,
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

    /// Why a stanza to or from this address does not pass, by the record of an account.
    pub fn denies(&self, record: &PerAccount, direction: Direction, other: &Jid) -> Option<Denial> {
        self.filter.iter().find_map(|hook| hook(record, direction, other))
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
        &self.proofs
    }

    /// Who checks a proof of this kind.
    pub(crate) fn proof(&self, kind: ProofKind) -> Option<&'static ProofHandler> {
        self.proofs.iter().copied().find(|handler| handler.kind == kind)
    }

    pub(crate) fn submit(&self, kind: &Kind) -> &[SubmitHook] {
        match kind {
            Kind::Message(_) => &self.submit_message,
            Kind::Presence(_) => &self.submit_presence,
            Kind::Iq(_) => &[],
        }
    }

    pub(crate) fn iq(&self, kind: IqType, name: &str, ns: &str, at: At) -> Option<IqHandle> {
        let fits =
            |h: &&&IqHandler| h.kind == kind && (h.at == at || (h.at == At::Both && at != At::Service));
        self.iq.get(&(name, ns))?.iter().find(fits).map(|h| h.handle)
    }

    /// Who answers an IQ request of another on behalf of an account.
    pub(crate) fn asked(&self, kind: IqType, name: &str, ns: &str) -> Option<&'static AskedHandler> {
        let fits = |h: &&AskedHandler| h.kind == kind && h.name == name && h.ns == ns;
        self.asked.iter().copied().find(fits)
    }

    /// The handler for a kind of tracked stanza.
    pub(crate) fn tracked(&self, kind: Tracked) -> Option<&'static TrackedHandler> {
        self.tracked.iter().copied().find(|handler| handler.kind == kind)
    }

    /// The hook for a timer of a feature; none when that feature is disabled.
    pub(crate) fn timer(&self, timer: Timer) -> Option<WakeHook> {
        self.timers.iter().find(|handler| handler.timer == timer).map(|handler| handler.handle)
    }

    pub(crate) fn nonza(&self, name: &str, ns: &str) -> Option<NonzaHandle> {
        self.nonza.get(&(name, ns)).map(|h| h.handle)
    }

    /// The answer to an element that came before authentication.
    pub(crate) fn unauthenticated(&self, element: &Element) -> Option<fn() -> Element> {
        self.nonza.get(&(element.name(), element.ns())).and_then(|h| h.unauthenticated)
    }

    /// What becomes of an element that came before a resource was bound.
    pub(crate) fn unbound(&self, element: &Element) -> Option<Unbound> {
        self.nonza.get(&(element.name(), element.ns())).and_then(|h| h.unbound)
    }
}
