//! What a sender says of a broadcast.

use crate::app::App;
use crate::problem::{Code, Problem};
use crate::values::payload;
use crate::values::time::Time;
use carillon_core::model::{
    Audience, Broadcast, BroadcastPace, BroadcastState, BroadcastTopic, DayWindow, DomainId, KeyId,
    NotificationId, Priority, UnixMs,
};
use carillon_core::ports::store::broadcasts::BroadcastChange;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A notification for every account of a domain.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BroadcastBody {
    /// Who is given it: `active` and `connected` whoever has such a session when it comes to them, `always` also whoever logs in before it
    /// expires.
    #[serde(default = "always")]
    #[schema(value_type = crate::values::schema::Audience, default = "always")]
    audience: Audience,
    /// How long it is given, in seconds from its acceptance or from `not_before`. A longer time than the maximum, which the node's setting
    /// `notifications.ttl_max_ms` gives, is refused. By default an hour for `active` and `connected`, and what is left of the maximum for
    /// `always`.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 2_592_000)]
    ttl: Option<u64>,
    /// What clients are told of its priority.
    #[serde(default)]
    #[schema(value_type = crate::values::schema::Priority, default = "normal")]
    priority: Priority,
    /// What it carries: any JSON value.
    #[serde(default, deserialize_with = "payload::present")]
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    /// What it carries instead: one XML element in a namespace of its own.
    #[serde(default)]
    payload_xml: Option<String>,
    /// Only sessions that follow this topic are given it.
    #[serde(default)]
    pub(super) topic: Option<String>,
    /// Deliveries per second at most, of all nodes together. By default as fast as connections take it.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1_000_000)]
    rate: Option<u32>,
    /// When it begins; at once by default.
    #[serde(default)]
    not_before: Option<Time>,
    /// The hours of the day at which it is given; all by default.
    #[serde(default)]
    window: Option<WindowBody>,
    /// Check everything, count, and send nothing.
    #[serde(default)]
    pub(crate) dry_run: bool,
}

/// Hours of the day.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WindowBody {
    /// When they begin, as `HH:MM`.
    #[schema(example = "09:00")]
    from: String,
    /// When they end, as `HH:MM`; before `from` where they include midnight.
    #[schema(example = "21:00")]
    to: String,
    /// How far the clock is ahead of UTC, as `+HH:MM` or `-HH:MM`.
    #[serde(default = "utc")]
    #[schema(example = "+09:00", default = "+00:00")]
    utc_offset: String,
}

/// What is to be changed of a broadcast: what is left out stays as it is, and `null` takes a bound away.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BroadcastPatch {
    /// Whether it is paused.
    #[serde(default)]
    paused: Option<bool>,
    /// Deliveries per second at most, of all nodes together.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1_000_000)]
    rate: Option<Option<u32>>,
    /// When it begins.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Time>)]
    not_before: Option<Option<Time>>,
    /// The hours of the day at which it is given.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<WindowBody>)]
    window: Option<Option<WindowBody>>,
}

/// A member that is there, `null` among its values.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

fn always() -> Audience {
    Audience::Always
}

fn utc() -> String {
    "+00:00".to_owned()
}

impl BroadcastBody {
    /// The broadcast, which lacks its id.
    pub(crate) fn draft(
        &self,
        app: &App,
        domain: DomainId,
        key: KeyId,
        topic: Option<BroadcastTopic>,
        now: UnixMs,
    ) -> Result<Broadcast, Problem> {
        let bytes_max = app.options.settings.payload_bytes_max;
        let payload = payload::read(self.payload.as_deref(), self.payload_xml.as_deref(), bytes_max)?;
        let longest = now.plus(app.options.core.notification_ttl_max_ms);
        let not_before = self.not_before.map(|Time(at)| at);
        if not_before.is_some_and(|at| at >= longest) {
            let detail = format!("`not_before` must be before {}", longest.to_xmpp());
            return Err(Problem::new(Code::InvalidValue, detail).at("/not_before"));
        }
        let pace = BroadcastPace {
            rate: self.rate.map(rate).transpose()?,
            not_before: not_before.filter(|at| *at > now),
            window: self.window.as_ref().map(window).transpose()?,
        };
        Ok(Broadcast {
            id: NotificationId(0),
            domain,
            audience: self.audience,
            priority: self.priority,
            payload,
            key: Some(key),
            created: now,
            expires: self.expiry(pace.not_before.unwrap_or(now), longest)?,
            topic,
            pace,
            state: BroadcastState::Running,
            ended: None,
            revision: 0,
        })
    }

    fn expiry(&self, from: UnixMs, longest: UnixMs) -> Result<UnixMs, Problem> {
        let Some(ttl) = self.ttl else {
            return Ok(match self.audience {
                Audience::Always => longest,
                Audience::Active | Audience::Connected => from.plus(HERE_MS).min(longest),
            });
        };
        let expires = from.plus(ttl.saturating_mul(1000));
        if ttl == 0 || expires > longest {
            let max = (longest.0 - from.0) / 1000;
            let detail = format!("`ttl` is from 1 to {max} seconds");
            return Err(Problem::new(Code::InvalidValue, detail).at("/ttl"));
        }
        Ok(expires)
    }
}

impl BroadcastPatch {
    /// The change.
    pub(super) fn change(&self) -> Result<BroadcastChange, Problem> {
        Ok(BroadcastChange::Steer {
            paused: self.paused,
            rate: self.rate.map(|given| given.map(rate).transpose()).transpose()?,
            not_before: self.not_before.map(|given| given.map(|Time(at)| at)),
            window: self.window.as_ref().map(|given| given.as_ref().map(window).transpose()).transpose()?,
        })
    }
}

fn rate(rate: u32) -> Result<u32, Problem> {
    if (1..=RATE_MAX).contains(&rate) {
        return Ok(rate);
    }
    let detail = format!("`rate` is from 1 to {RATE_MAX} deliveries per second");
    Err(Problem::new(Code::InvalidValue, detail).at("/rate"))
}

fn window(body: &WindowBody) -> Result<DayWindow, Problem> {
    let wrong = |what: &str, member: &str| {
        Problem::new(Code::InvalidValue, what.to_owned()).at(format!("/window/{member}"))
    };
    let time = |text: &str, member: &str| {
        minutes(text).ok_or_else(|| wrong("a time of the day is `HH:MM`, from `00:00` to `23:59`", member))
    };
    let (from, to) = (time(&body.from, "from")?, time(&body.to, "to")?);
    if from == to {
        return Err(wrong(
            "the hours begin and end at the same time: leave `window` out for all hours",
            "to",
        ));
    }
    let offset = body.utc_offset.split_at_checked(1).and_then(|(sign, time)| match sign {
        "+" => minutes(time),
        "-" => minutes(time).map(|minutes| (DAY_MINUTES - minutes) % DAY_MINUTES),
        _ => None,
    });
    let ahead = offset.ok_or_else(|| wrong("an offset is `+HH:MM` or `-HH:MM`", "utc_offset"))?;
    Ok(DayWindow { from, to, ahead })
}

/// Minutes after midnight.
fn minutes(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let number = |part: &str, below: u16| {
        let is_written_so = part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_digit());
        let number: u16 = part.parse().ok().filter(|_| is_written_so)?;
        (number < below).then_some(number)
    };
    Some(60 * number(hours, 24)? + number(minutes, 60)?)
}

impl From<DayWindow> for WindowBody {
    fn from(window: DayWindow) -> WindowBody {
        let text = |minutes: u16| format!("{:02}:{:02}", minutes / 60, minutes % 60);
        // No clock is more than 14 hours ahead.
        let (sign, offset) =
            if window.ahead <= 14 * 60 { ('+', window.ahead) } else { ('-', DAY_MINUTES - window.ahead) };
        WindowBody {
            from: text(window.from),
            to: text(window.to),
            utc_offset: format!("{sign}{}", text(offset)),
        }
    }
}

const DAY_MINUTES: u16 = 24 * 60;
/// The highest rate.
const RATE_MAX: u32 = 1_000_000;
/// How long one for those who are there is given by default.
const HERE_MS: u64 = 3_600_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(from: &str, to: &str, utc_offset: &str) -> Result<DayWindow, Code> {
        let body = WindowBody { from: from.into(), to: to.into(), utc_offset: utc_offset.into() };
        window(&body).map_err(|problem| problem.code())
    }

    #[test]
    fn hours_are_read_and_shown() {
        for (from, to, offset) in
            [("09:00", "21:00", "+00:00"), ("22:30", "06:00", "+14:00"), ("00:00", "23:59", "-09:30")]
        {
            let read = read(from, to, offset).unwrap();
            let shown = WindowBody::from(read);
            assert_eq!((&*shown.from, &*shown.to, &*shown.utc_offset), (from, to, offset));
        }
        assert_eq!(read("09:00", "21:00", "-01:00"), Ok(DayWindow { from: 540, to: 1260, ahead: 1380 }));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for (from, to, offset) in [
            ("9:00", "21:00", "+00:00"),
            ("09:00", "24:00", "+00:00"),
            ("+9:00", "21:00", "+00:00"),
            ("09:00", "09:00", "+00:00"),
            ("09:00", "21:60", "+00:00"),
            ("09:00", "21:00", "01:00"),
            ("09:00", "21:00", "é01:00"),
            ("09:00", "21:00", ""),
            ("", "21:00", "+00:00"),
        ] {
            assert_eq!(read(from, to, offset), Err(Code::InvalidValue), "{from} {to} {offset}");
        }
    }
}
