//! Broadcasts as they are shown.

use super::body::WindowBody;
use crate::app::App;
use crate::values::schema;
use crate::values::time::Time;
use carillon_core::model::{
    AcknowledgedBy, Audience, Broadcast, BroadcastEnd, BroadcastReport, BroadcastState, Priority,
};
use carillon_wire::jid::BareJid;

/// A broadcast, and how far it has come.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct BroadcastView {
    /// Its id, which is that of the notification that each device is given.
    #[schema(example = "01KAG8X4RZ00007Q2M3N6P8W0Y")]
    id: String,
    /// Its domain.
    domain: String,
    /// What it does.
    #[schema(value_type = schema::BroadcastState)]
    state: &'static str,
    /// Who is given it.
    #[schema(value_type = schema::Audience)]
    audience: Audience,
    /// What clients are told of its priority.
    #[schema(value_type = schema::Priority)]
    priority: Priority,
    /// Times that it was given to a connection, as of a second ago.
    given: u64,
    /// Accounts that acknowledged it while it was open.
    acknowledged: u64,
    /// When it was accepted.
    accepted_at: Time,
    /// When it ends by itself.
    expires_at: Time,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Time>,
    /// The topic whose followers it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    /// Deliveries per second at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<u32>,
    /// When it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<Time>,
    /// The hours of the day at which it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<WindowBody>,
    /// The number of the API key that sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<u32>,
}

/// Broadcasts of a domain.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct BroadcastList {
    /// Newest first.
    pub(super) broadcasts: Vec<BroadcastView>,
    /// The value of `after` for the next page; none when there are no more.
    pub(super) next: Option<String>,
}

/// What a rehearsal of a broadcast counted.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct BroadcastRehearsal {
    /// That it was only a rehearsal.
    pub(super) dry_run: bool,
    /// Accounts of the domain, whatever topics they follow; left out where it is for those who are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) accounts: Option<u64>,
    /// Accounts that would be given it now.
    pub(super) reached_now: u64,
}

/// What became of a broadcast at one device.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct BroadcastDeviceView {
    /// The broadcast.
    id: String,
    /// The device, as a bare JID.
    device: String,
    /// `acknowledged`; `waiting` while it may be given; `ended` if the broadcast has ended: then nothing is known of single devices.
    state: &'static str,
    /// When the device acknowledged it.
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged_at: Option<Time>,
    /// Who says that the device has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::AcknowledgedBy>)]
    acknowledged_by: Option<AcknowledgedBy>,
}

impl BroadcastView {
    pub(super) fn of(app: &App, report: &BroadcastReport) -> BroadcastView {
        let BroadcastReport { broadcast, progress } = report;
        BroadcastView {
            id: broadcast.id.to_string(),
            domain: app.domain_name(broadcast.domain).to_string(),
            state: state_word(broadcast.state),
            audience: broadcast.audience,
            priority: broadcast.priority,
            given: progress.given,
            acknowledged: progress.acknowledged,
            accepted_at: Time(broadcast.created),
            expires_at: Time(broadcast.expires),
            ended_at: broadcast.ended.map(Time),
            topic: broadcast.topic.as_ref().map(|topic| topic.name.to_string()),
            rate: broadcast.pace.rate,
            not_before: broadcast.pace.not_before.map(Time),
            window: broadcast.pace.window.map(WindowBody::from),
            key: broadcast.key.map(|key| key.0),
        }
    }
}

impl BroadcastDeviceView {
    pub(super) fn of(
        broadcast: &Broadcast,
        device: &BareJid,
        end: Option<BroadcastEnd>,
    ) -> BroadcastDeviceView {
        let state = match end {
            Some(_) => "acknowledged",
            None if broadcast.is_open() => "waiting",
            None => "ended",
        };
        BroadcastDeviceView {
            id: broadcast.id.to_string(),
            device: device.as_str().to_owned(),
            state,
            acknowledged_at: end.map(|end| Time(end.at)),
            acknowledged_by: end.map(|end| end.by),
        }
    }
}

/// What a broadcast does, in a word.
pub(super) fn state_word(state: BroadcastState) -> &'static str {
    match state {
        BroadcastState::Running => "running",
        BroadcastState::Paused => "paused",
        BroadcastState::Aborted => "aborted",
        BroadcastState::Finished => "finished",
    }
}
