//! A notification as it goes from a front to a cell, and from a cell to another: whole, with its id and its times.

use crate::app::App;
use crate::problem::{Code, Problem};
use crate::values::payload;
use crate::values::time::Time;
use carillon_core::model::{
    Audience, Domain, Notification, NotificationId, Payload, Priority, UnixMs, bucket,
};
use carillon_wire::jid::BareJid;
use serde_json::value::RawValue;

/// A notification as a front or another cell has accepted it.
#[derive(Debug, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    /// Its id.
    id: String,
    /// Its target, as a bare JID.
    pub(super) to: String,
    /// When it is worth delivering.
    #[schema(value_type = crate::values::schema::Audience)]
    audience: Audience,
    /// Which of a device's waiting notifications goes first.
    #[schema(value_type = crate::values::schema::Priority)]
    priority: Priority,
    /// When it was taken from its sender.
    accepted_at: Time,
    /// When it stops being worth delivering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<Time>,
    /// When it is to be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    send_at: Option<Time>,
    /// A newer notification with the same key replaces it while it is undelivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    collapse_key: Option<String>,
    /// What it carries: any JSON value.
    #[serde(default, deserialize_with = "payload::present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// What it carries instead: one XML element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload_xml: Option<String>,
}

impl Document {
    /// That of a notification.
    pub(super) fn of(notification: &Notification) -> Document {
        let (payload, payload_xml) = match &notification.payload {
            Payload::Json(json) => (RawValue::from_string(json.to_string()).ok(), None),
            Payload::Xml(xml) => (None, Some(String::from_utf8_lossy(xml).into_owned())),
            // Endpoints are those of their cell: elsewhere it is an element as any.
            Payload::Request(request) => (None, Some(String::from_utf8_lossy(&request.element).into_owned())),
        };
        Document {
            id: notification.id.to_string(),
            to: notification.to.as_str().to_owned(),
            audience: notification.audience,
            priority: notification.priority,
            accepted_at: Time(notification.accepted),
            expires_at: notification.expires.map(Time),
            send_at: notification.send_at.map(Time),
            collapse_key: notification.collapse_key.as_deref().map(str::to_owned),
            payload,
            payload_xml,
        }
    }

    /// The notification, to an account of this domain. Who sent it another node knows.
    pub(super) fn read(&self, app: &App, domain: &Domain) -> Result<Notification, Problem> {
        let to =
            BareJid::new(&self.to).ok().filter(|jid| jid.local().is_some() && *jid.domain() == *domain.name);
        let to = to.ok_or_else(|| {
            Problem::new(Code::InvalidJid, format!("`{}` is no account of `{}`", self.to, domain.name))
                .at("/to")
        })?;
        let id = self.id.parse().ok().filter(|id: &NotificationId| id.bucket() == bucket(to.as_str()));
        let id = id.ok_or_else(|| {
            Problem::new(Code::InvalidValue, "it is no id of a notification to this account").at("/id")
        })?;
        let bytes_max = app.options.settings.payload_bytes_max;
        let at = |time: Option<Time>| time.map(|Time(at)| at);
        Ok(Notification {
            id,
            domain: domain.id,
            to,
            audience: self.audience,
            priority: self.priority,
            expires: at(self.expires_at),
            collapse_key: self.collapse_key.as_deref().map(Into::into),
            key: None,
            payload: payload::read(self.payload.as_deref(), self.payload_xml.as_deref(), bytes_max)?,
            accepted: self.accepted_at.0,
            send_at: at(self.send_at),
        })
    }

    /// The same as JSON.
    pub(super) fn to_json(&self) -> bytes::Bytes {
        serde_json::to_vec(self).expect("texts, times and checked JSON").into()
    }
}

/// When a notification that is held is not wanted any more. One that is not kept, and has no end of its own, is for who is there about now.
pub(super) fn held_until(notification: &Notification) -> UnixMs {
    notification.expires.unwrap_or_else(|| notification.accepted.plus(UNKEPT_MS))
}

/// How long a notification that nobody keeps is worth holding, in milliseconds.
const UNKEPT_MS: u64 = 60_000;
