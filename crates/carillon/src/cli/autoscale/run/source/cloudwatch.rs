//! What a table of DynamoDB consumed, and what was refused: both are asked for.

use super::super::driver::Edge;
use super::{Reading, Source};
use crate::aws::{Aws, Capacity, Region};
use carillon_core::model::UnixMs;
use carillon_scale::Observation;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// `[source]` of kind `cloudwatch`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct CloudwatchSettings {
    table: String,
    #[serde(default)]
    capacity: Capacity,
    #[serde(flatten)]
    region: Region,
}

/// The figures of a table.
pub(super) struct Cloudwatch {
    aws: Aws,
    table: String,
    capacity: Capacity,
}

/// CloudWatch has a figure per minute.
const PERIOD: Duration = Duration::from_secs(60);
/// How far back the newest minute may be.
const BACK: Duration = Duration::from_secs(600);

impl Cloudwatch {
    pub(super) fn new(settings: CloudwatchSettings) -> Result<Self, String> {
        let CloudwatchSettings { table, capacity, region } = settings;
        Ok(Self { aws: Aws::new("monitoring", region)?, table, capacity })
    }

    fn metric(&self, id: &str, name: &str) -> Value {
        json!({
            "Id": id,
            "MetricStat": {
                "Metric": {
                    "Namespace": "AWS/DynamoDB",
                    "MetricName": name,
                    "Dimensions": [{"Name": "TableName", "Value": self.table}],
                },
                "Period": PERIOD.as_secs(),
                "Stat": "Sum",
            },
        })
    }
}

impl Source for Cloudwatch {
    fn read(&mut self, now: Duration, _: &[Edge]) -> Result<Reading, String> {
        let (consumed, throttled) = match self.capacity {
            Capacity::Read => ("ConsumedReadCapacityUnits", "ReadThrottleEvents"),
            Capacity::Write => ("ConsumedWriteCapacityUnits", "WriteThrottleEvents"),
        };
        // Whole minutes only: the one that goes on says too little.
        let end = now.as_secs() / PERIOD.as_secs() * PERIOD.as_secs();
        let request = json!({
            "StartTime": end - BACK.as_secs(),
            "EndTime": end,
            "ScanBy": "TimestampDescending",
            "MetricDataQueries": [self.metric("consumed", consumed), self.metric("throttled", throttled)],
        });
        let answer = self.aws.call("GraniteServiceVersion20100801.GetMetricData", &request, now)?;
        let results = answer["MetricDataResults"].as_array().ok_or("an answer without MetricDataResults")?;
        let newest = |id: &str| {
            let result = results.iter().find(|result| result["Id"] == id)?;
            Some((moment(&result["Timestamps"][0])?, result["Values"][0].as_f64()?))
        };
        let (began, consumed) = newest("consumed").ok_or_else(|| {
            format!("CloudWatch has no {consumed} of the table {} in the last ten minutes", self.table)
        })?;
        // No throttle events in a minute is no figure at all.
        let throttled = newest("throttled").filter(|(at, _)| *at == began).map_or(0.0, |(_, sum)| sum);
        let seconds = PERIOD.as_secs_f64();
        let observation = Observation {
            from: began,
            until: began + PERIOD,
            demand: (consumed + throttled) / seconds,
            consumed: consumed / seconds,
        };
        let measures = [("consumed".to_owned(), consumed), ("throttled".to_owned(), throttled)].into();
        Ok(Reading { observation, measures })
    }
}

/// A time as CloudWatch's JSON has it: seconds, or RFC 3339.
fn moment(value: &Value) -> Option<Duration> {
    match value {
        Value::String(text) => UnixMs::from_rfc3339(text).map(|at| Duration::from_millis(at.0)),
        number => Duration::try_from_secs_f64(number.as_f64()?).ok(),
    }
}
