//! A JSON page that says how much is asked for.

use super::super::driver::Edge;
use super::{Reading, Source};
use crate::web::Web;
use carillon_core::model::UnixMs;
use carillon_scale::Observation;
use serde_json::Value;
use std::time::Duration;

/// Where in the page it stands (RFC 6901).
pub(super) struct Pointers {
    pub(super) demand: String,
    pub(super) consumed: Option<String>,
    pub(super) at: Option<String>,
}

/// A JSON page.
pub(super) struct Page {
    web: Web,
    url: String,
    key: Option<String>,
    pointers: Pointers,
    per_unit: f64,
    /// When what was read last was measured.
    last: Option<Duration>,
}

impl Page {
    pub(super) fn new(
        web: Web,
        url: String,
        key: Option<String>,
        pointers: Pointers,
        per_unit: f64,
    ) -> Result<Self, String> {
        let all = [
            ("demand", Some(&pointers.demand)),
            ("consumed", pointers.consumed.as_ref()),
            ("at", pointers.at.as_ref()),
        ];
        for (name, pointer) in all {
            if let Some(pointer) = pointer.filter(|pointer| !pointer.starts_with('/')) {
                return Err(format!("source.{name}: {pointer:?} is no place in a page such as \"/demand\""));
            }
        }
        Ok(Self { web, url, key, pointers, per_unit, last: None })
    }
}

impl Source for Page {
    fn read(&mut self, now: Duration, _: &[Edge]) -> Result<Reading, String> {
        let text = self.web.get(&self.url, self.key.as_deref())?;
        let page: Value =
            serde_json::from_str(&text).map_err(|error| format!("{}: not JSON: {error}", self.url))?;
        let number = |pointer: &str| {
            let value = page.pointer(pointer).and_then(Value::as_f64);
            value.ok_or_else(|| format!("{}: there is no number at {pointer}", self.url))
        };
        let demand = number(&self.pointers.demand)?;
        let consumed = self.pointers.consumed.as_deref().map(number).transpose()?.unwrap_or(demand);
        let moment = |pointer: &str| {
            let at = page.pointer(pointer).and_then(Value::as_str).and_then(UnixMs::from_rfc3339);
            at.map(|at| Duration::from_millis(at.0))
                .ok_or_else(|| format!("{}: there is no time at {pointer}", self.url))
        };
        let until = self.pointers.at.as_deref().map(moment).transpose()?.unwrap_or(now);
        let from =
            self.last.filter(|last| *last < until).unwrap_or(until.saturating_sub(Duration::from_secs(1)));
        self.last = Some(until);
        let observation =
            Observation { from, until, demand: demand / self.per_unit, consumed: consumed / self.per_unit };
        Ok(Reading { observation, earlier: Vec::new(), measures: [("demand".to_owned(), demand)].into() })
    }
}
