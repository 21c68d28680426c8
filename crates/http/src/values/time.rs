//! Times on the wire: RFC 3339 in UTC with milliseconds going out, any RFC 3339 time coming in.

use carillon_core::model::UnixMs;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::time::{SystemTime, UNIX_EPOCH};

/// A point in time as it stands in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, utoipa::ToSchema)]
#[schema(value_type = String, format = DateTime, example = "2026-11-20T09:30:00.125Z")]
pub(crate) struct Time(pub(crate) UnixMs);

/// The time now.
pub(crate) fn now() -> UnixMs {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMs(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_xmpp())
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        UnixMs::from_rfc3339(&text).map(Time).ok_or_else(|| {
            de::Error::custom("not an RFC 3339 time since 1970 such as `2026-11-20T09:30:00.125Z`")
        })
    }
}
