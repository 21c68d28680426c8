//! What came of a probe: its steps, and those that did not happen.

use crate::app::App;
use crate::cluster::locate;
use crate::values::schema;
use crate::values::time::Time;
use carillon_core::event::end_word;
use carillon_core::model::{
    AcknowledgedBy, DropReason, HopStep, Notification, NotificationState, Trace, TraceContext, UnixMs,
};
use carillon_server::HopSeen;
use std::time::{Duration, SystemTime};

/// A step of a probe.
#[derive(Debug, Default, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct HopView {
    /// `request` (the node has taken the HTTP request), `home` (the home of the account has it), `committed` (the store has committed it), `withheld` (no session is given
    /// it now), `given` (to a session, which sends it), `written` (the socket has taken all of it, under TLS), `arrived` (the peer's TCP has acknowledged it),
    /// `carried` (the connection is on another node, which writes it), `acknowledged` (the device has), `ended` (nothing more becomes of it).
    hop: &'static str,
    /// When, in microseconds since the request was taken.
    at_us: u64,
    /// In a cell: the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// The shard of the node.
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<u16>,
    /// The session, as a full JID.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// Of `acknowledged`: by what.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::AcknowledgedBy>)]
    by: Option<AcknowledgedBy>,
    /// Of `ended`: how.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::NotificationState>)]
    state: Option<NotificationState>,
    /// Of `withheld` and `ended`: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::DropReason>)]
    reason: Option<DropReason>,
}

/// A step that did not happen in time.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct MissingHop {
    /// The step.
    hop: &'static str,
    /// Why it did not happen, as far as that is known.
    reason: String,
}

/// What came of a probe.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ProbeView {
    /// The account.
    to: String,
    /// The notification's id.
    #[schema(example = "01KAG8X4RZ5T9V7Q2M3N6P8W0Y")]
    id: String,
    /// The trace that its spans belong to, where spans are exported.
    #[schema(example = "4bf92f3577b34da6a3ce929d0e0e4736")]
    trace_id: String,
    /// When the request was taken.
    began: Time,
    /// In a cell: the node that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// In a cell: the node that the account is at home on.
    #[serde(skip_serializing_if = "Option::is_none")]
    home: Option<String>,
    /// How far it came.
    #[schema(value_type = schema::NotificationState)]
    state: NotificationState,
    /// Its steps, in the order in which they happened.
    hops: Vec<HopView>,
    /// The steps that did not happen in time.
    missing: Vec<MissingHop>,
}

/// What is known of a probe at its end.
pub(super) struct Probe<'a> {
    pub(super) began: SystemTime,
    pub(super) notification: &'a Notification,
    pub(super) context: TraceContext,
    pub(super) trace: Trace,
    pub(super) seen: Vec<HopSeen>,
    /// In a cell: the node that was asked, and the home.
    pub(super) places: Option<(String, String)>,
}

impl Probe<'_> {
    /// What the sender is told.
    pub(super) fn view(self, app: &App) -> ProbeView {
        let node_of = |seen: &HopSeen| self.places.is_some().then(|| locate::name_of(app, seen.place.node));
        let request = HopView { hop: "request", node: self.own(), ..HopView::default() };
        let mut hops: Vec<HopView> = self.seen.iter().map(|seen| self.hop(seen, node_of(seen))).collect();
        if self.is_far() {
            hops.extend(self.traced());
        }
        // What happens at once may have been told in another order.
        hops.sort_by_key(|hop| hop.at_us);
        hops.insert(0, request);
        let missing = self.missing(&hops);
        let Probe { began, notification, context, trace, places, .. } = self;
        let (node, home) = places.unzip();
        let since = began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        ProbeView {
            to: notification.to.as_str().to_owned(),
            id: notification.id.to_string(),
            trace_id: format!("{:032x}", context.trace),
            began: Time(UnixMs(since.as_millis() as u64)),
            node,
            home,
            state: trace.state,
            hops,
            missing,
        }
    }

    fn own(&self) -> Option<String> {
        self.places.as_ref().map(|(own, _)| own.clone())
    }

    /// Whether the account's home is another node, whose steps are not seen.
    fn is_far(&self) -> bool {
        self.places.is_some() && self.seen.is_empty()
    }

    fn hop(&self, seen: &HopSeen, node: Option<String>) -> HopView {
        let step = &seen.hop.step;
        let (mut by, mut state, mut reason) = (None, None, None);
        match step {
            HopStep::Acknowledged { by: means, .. } => by = Some(*means),
            HopStep::Withheld(why) => reason = Some(*why),
            HopStep::Ended(end, why) => (state, reason) = (Some(*end), *why),
            HopStep::Home
            | HopStep::Committed
            | HopStep::Given { .. }
            | HopStep::Carried { .. }
            | HopStep::Written { .. }
            | HopStep::Arrived { .. } => {}
        }
        HopView {
            hop: step.word(),
            at_us: micros(seen.at.duration_since(self.began).unwrap_or_default()),
            node,
            shard: Some(seen.place.shard.0),
            session: step.session().map(|session| session.as_str().to_owned()),
            by,
            state,
            reason,
        }
    }

    /// The steps that its trace tells of, to the millisecond.
    fn traced(&self) -> Vec<HopView> {
        let Trace { stored, sent, ended, state, reason, acknowledged_by, .. } = self.trace;
        let node = self.places.as_ref().map(|(_, home)| home.clone());
        let at = |hop, at: UnixMs| {
            let at = SystemTime::UNIX_EPOCH + Duration::from_millis(at.0);
            let at_us = micros(at.duration_since(self.began).unwrap_or_default());
            HopView { hop, at_us, node: node.clone(), ..HopView::default() }
        };
        let is_kept = self.notification.is_kept();
        let committed = stored.filter(|_| is_kept).map(|when| at("committed", when));
        let given = sent.map(|when| at("given", when));
        let acknowledged = ended.filter(|_| state == NotificationState::Acknowledged);
        let acknowledged =
            acknowledged.map(|when| HopView { by: acknowledged_by, ..at("acknowledged", when) });
        let ended = ended.map(|when| HopView { state: Some(state), reason, ..at("ended", when) });
        [committed, given, acknowledged, ended].into_iter().flatten().collect()
    }

    /// The steps that are not among these, each with the reason.
    fn missing(&self, hops: &[HopView]) -> Vec<MissingHop> {
        let find = |word: &str| hops.iter().find(|hop| hop.hop == word);
        let far = self.places.as_ref().filter(|_| self.is_far()).map(|(_, home)| home);
        let mut missing = Vec::new();
        let steps = ["home", "committed", "given", "written", "arrived", "acknowledged"];
        for hop in steps.into_iter().filter(|word| find(word).is_none()) {
            let reason = match hop {
                "home" | "written" | "arrived" if far.is_some() => {
                    let home = far.map_or("another node", String::as_str);
                    format!(
                        "it happens on {home}, where the account is at home: send the probe there to see it"
                    )
                }
                "home" => "the home of the account did not take it".to_owned(),
                "committed" if !self.notification.is_kept() => continue,
                "committed" => self.ended_or("the store did not answer"),
                "given" => match find("withheld").and_then(|hop| hop.reason) {
                    Some(reason) => format!("the account has no session that it is for: {}", word(reason)),
                    None => self.ended_or("it did not come to a session"),
                },
                _ if find("given").is_none() => "it was not given to a session".to_owned(),
                "written" | "arrived" if find("carried").is_some() => {
                    "the connection is on another node, which does not tell".to_owned()
                }
                "written" => "the socket did not take all of it: the client does not read".to_owned(),
                "arrived" if find("written").is_none() => "it was not written".to_owned(),
                "arrived" => "the TCP of the client did not acknowledge it".to_owned(),
                _ => "the device acknowledged it neither by stream management nor by a receipt".to_owned(),
            };
            missing.push(MissingHop { hop, reason });
        }
        missing
    }

    fn ended_or(&self, otherwise: &str) -> String {
        match self.trace.reason {
            Some(reason) => format!("it was dropped: {}", word(reason)),
            None => otherwise.to_owned(),
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A reason, as in the API.
fn word(reason: DropReason) -> &'static str {
    end_word(NotificationState::Dropped, Some(reason))
}
