//! What a sender says: the body of a notification, read and checked.

use super::targets::Targets;
use crate::app::App;
use crate::links::Shortened;
use crate::problem::{Code, Problem};
use crate::values::payload;
use crate::values::text::fits;
use crate::values::time::Time;
use carillon_core::model::{
    Audience, DomainId, KeyId, Notification, NotificationId, Payload, Priority, UnixMs,
};
use carillon_wire::jid::BareJid;
use serde_json::value::RawValue;
use std::sync::Arc;

/// A notification to be sent.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotificationBody {
    /// Who is to have it: one device or a list of them, each as a bare JID or as a local part of the domain.
    pub(crate) to: Targets,
    /// When it is worth delivering: `active` while someone uses the device, `connected` also while it sleeps, `always`
    /// also kept for when it returns.
    #[serde(default = "always")]
    #[schema(value_type = crate::values::schema::Audience, default = "always")]
    audience: Audience,
    /// How long it may wait, in seconds from its acceptance or from `send_at`. A longer time than the maximum, which the
    /// node's setting `notifications.ttl_max_ms` gives, is refused. By default what is left of the maximum.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 2_592_000)]
    ttl: Option<u64>,
    /// Which of a device's waiting notifications goes first.
    #[serde(default)]
    #[schema(value_type = crate::values::schema::Priority, default = "normal")]
    priority: Priority,
    /// A newer notification with the same key replaces an undelivered older one.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 64)]
    collapse_key: Option<String>,
    /// What it carries: any JSON value.
    #[serde(default, deserialize_with = "payload::present")]
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// What it carries instead: one XML element in a namespace of its own.
    #[serde(default)]
    payload_xml: Option<String>,
    /// A URL that is shortened for each target: the member `link` of what it carries, which has to be a JSON object or nothing then. Who
    /// follows it has opened the notification. Takes scope `links`, and a notification that is kept: `audience` `always`, or `send_at`.
    #[serde(default)]
    #[schema(max_length = 2048, example = "https://example.com/orders/17")]
    pub(crate) link: Option<String>,
    /// When it is to be sent: at the latest `notifications.ttl_max_ms` from now. At once by default. A time in the past is
    /// refused, unless it is less than 60 seconds ago: then it means at once.
    #[serde(default)]
    send_at: Option<Time>,
    /// Check everything, also that the devices are there, and send nothing.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

/// A notification that lacks only its target and its id.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    audience: Audience,
    priority: Priority,
    expires: Option<UnixMs>,
    collapse_key: Option<Arc<str>>,
    key: KeyId,
    payload: Payload,
    /// The link of those to accounts of each domain.
    links: ShortLinks,
    accepted: UnixMs,
    send_at: Option<UnixMs>,
}

/// The link of notifications to accounts of each domain that they are for.
pub(crate) type ShortLinks = Vec<(DomainId, Shortened)>;

/// How far `send_at` may lie in the past, milliseconds.
const SEND_AT_LATE_MS: u64 = 60_000;

fn always() -> Audience {
    Audience::Always
}

impl NotificationBody {
    /// The draft of a notification that `key` sends, accepted at `accepted`.
    pub(crate) fn draft(&self, app: &App, key: KeyId, accepted: UnixMs) -> Result<Draft, Problem> {
        let longest = accepted.plus(app.options.core.notification_ttl_max_ms);
        let send_at = self.due(accepted, longest)?;
        let collapse_key = self.collapse_key.as_deref().map(collapse_key).transpose()?;
        let bytes_max = app.options.settings.payload_bytes_max;
        let payload = match &self.link {
            None => payload::read(self.payload.as_deref(), self.payload_xml.as_deref(), bytes_max)?,
            Some(_) => {
                self.is_kept_for_link()?;
                payload::read_for_link(self.payload.as_deref(), self.payload_xml.as_deref(), bytes_max)?
            }
        };
        let expires = self.expiry(send_at.unwrap_or(accepted), longest)?;
        Ok(Draft {
            audience: self.audience,
            priority: self.priority,
            expires,
            collapse_key,
            key,
            payload,
            links: ShortLinks::new(),
            accepted,
            send_at,
        })
    }

    /// Whether the store keeps it.
    pub(crate) fn is_kept(&self) -> bool {
        self.audience == Audience::Always || self.send_at.is_some()
    }

    /// What is not kept leaves its trace in memory, where no click finds it.
    fn is_kept_for_link(&self) -> Result<(), Problem> {
        if self.is_kept() {
            return Ok(());
        }
        let detail = "a notification with `link` has the `audience` `always`, or a `send_at`: others leave no lasting trace";
        Err(Problem::new(Code::InvalidValue, detail).at("/link"))
    }

    fn due(&self, accepted: UnixMs, longest: UnixMs) -> Result<Option<UnixMs>, Problem> {
        match self.send_at {
            Some(Time(at)) if at >= longest => Err(Problem::new(
                Code::InvalidValue,
                format!("`send_at` must be before {}", longest.to_xmpp()),
            )
            .at("/send_at")),
            // The sender's clock may be a little slow, and the request was on its way.
            Some(Time(at)) if at.plus(SEND_AT_LATE_MS) < accepted => Err(Problem::new(
                Code::InvalidValue,
                format!("`send_at` is in the past: it is {} now", accepted.to_xmpp()),
            )
            .at("/send_at")),
            Some(Time(at)) => Ok((at > accepted).then_some(at)),
            None => Ok(None),
        }
    }

    fn expiry(&self, from: UnixMs, longest: UnixMs) -> Result<Option<UnixMs>, Problem> {
        let Some(ttl) = self.ttl else {
            // What is kept is kept for a bounded time; what is not kept needs no end.
            return Ok(self.is_kept().then_some(longest));
        };
        let expires = from.plus(ttl.saturating_mul(1000));
        if ttl == 0 || expires > longest {
            let max = (longest.0 - from.0) / 1000;
            return Err(
                Problem::new(Code::InvalidValue, format!("`ttl` is from 1 to {max} seconds")).at("/ttl")
            );
        }
        Ok(Some(expires))
    }
}

impl Draft {
    /// When it was accepted.
    pub(crate) fn accepted(&self) -> UnixMs {
        self.accepted
    }

    /// The same, with a link for each target.
    pub(crate) fn with_links(self, links: ShortLinks) -> Draft {
        Draft { links, ..self }
    }

    /// What is sent to an account of a domain.
    fn payload(&self, domain: DomainId, id: NotificationId) -> Payload {
        match self.links.iter().find(|(of, _)| *of == domain) {
            Some((_, link)) => payload::with_link(&self.payload, &link.of(id)),
            None => self.payload.clone(),
        }
    }

    /// The notification for one target.
    pub(crate) fn to(&self, to: BareJid, domain: DomainId, id: NotificationId) -> Notification {
        Notification {
            id,
            domain,
            to,
            audience: self.audience,
            priority: self.priority,
            expires: self.expires,
            collapse_key: self.collapse_key.clone(),
            key: Some(self.key),
            payload: self.payload(domain, id),
            accepted: self.accepted,
            send_at: self.send_at,
        }
    }
}

fn collapse_key(key: &str) -> Result<Arc<str>, Problem> {
    if fits(key, 1..=64) {
        return Ok(key.into());
    }
    let detail = "`collapse_key` has 1 to 64 bytes, none of them a control character";
    Err(Problem::new(Code::InvalidValue, detail).at("/collapse_key"))
}
