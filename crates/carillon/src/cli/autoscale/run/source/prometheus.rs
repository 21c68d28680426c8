//! What Prometheus answers to a query.

use super::super::driver::Edge;
use super::{Reading, Since, Source};
use crate::web::Web;
use crate::web::segment;
use carillon_scale::Observation;
use serde::Deserialize;
use std::time::Duration;

/// A server of Prometheus.
pub(super) struct Prometheus {
    web: Web,
    url: String,
    key: Option<String>,
    /// For what is asked for, and for what is done.
    queries: [Option<String>; 2],
    per_unit: f64,
    since: Since,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    error: String,
    data: Option<Data>,
}

#[derive(Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
enum Data {
    Vector(Vec<Sample>),
    Scalar((f64, String)),
    Matrix(serde::de::IgnoredAny),
    String(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
struct Sample {
    value: (f64, String),
}

impl Prometheus {
    pub(super) fn new(
        web: Web,
        url: &str,
        key: Option<String>,
        queries: [Option<String>; 2],
        per_unit: f64,
    ) -> Self {
        let url = url.trim_end_matches('/').to_owned();
        Self { web, url, key, queries, per_unit, since: Since::default() }
    }

    fn value(&self, query: &str) -> Result<f64, String> {
        let url = format!("{}/api/v1/query?query={}", self.url, segment(query));
        let page = self.web.get(&url, self.key.as_deref())?;
        let of = |why: String| format!("{query}: {why}");
        let answer: Answer =
            serde_json::from_str(&page).map_err(|error| of(format!("not an answer to a query: {error}")))?;
        let samples = match answer.data {
            Some(Data::Vector(samples)) => samples.into_iter().map(|sample| sample.value.1).collect(),
            Some(Data::Scalar(value)) => vec![value.1],
            Some(Data::Matrix(_) | Data::String(_)) => {
                return Err(of("expected an instant vector or a scalar".to_owned()));
            }
            None => return Err(of(answer.error)),
        };
        if samples.is_empty() {
            return Err(of("no series".to_owned()));
        }
        let sum = samples.iter().try_fold(0.0, |sum, text| Some(sum + text.parse::<f64>().ok()?));
        sum.filter(|sum| sum.is_finite()).ok_or_else(|| of(format!("{} is no number", samples.join(" + "))))
    }
}

impl Source for Prometheus {
    fn read(&mut self, now: Duration, _: &[Edge]) -> Result<Reading, String> {
        let [demand, consumed] = &self.queries;
        let demand = demand.as_deref().map(|query| self.value(query)).ok_or("no query")??;
        let consumed = consumed.as_deref().map(|query| self.value(query)).transpose()?.unwrap_or(demand);
        // A query has a range of its own; the first one stands for the interval before it.
        let from = self.since.read(now).unwrap_or(now.saturating_sub(Duration::from_secs(1)));
        let observation = Observation {
            from,
            until: now,
            demand: demand / self.per_unit,
            consumed: consumed / self.per_unit,
        };
        Ok(Reading { observation, earlier: Vec::new(), measures: [("demand".to_owned(), demand)].into() })
    }
}
