//! What a table of DynamoDB consumed, and what was refused: both are asked for.

use super::super::driver::Edge;
use super::{Reading, Source};
use crate::aws::{Aws, Capacity, Region};
use carillon_core::model::UnixMs;
use carillon_scale::Observation;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
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
    /// When the newest minute began that was told.
    told: Option<Duration>,
}

/// CloudWatch has a figure per minute.
const PERIOD: Duration = Duration::from_secs(60);
/// How far back is asked: minutes come late, and some at once.
const BACK: Duration = Duration::from_secs(600);

impl Cloudwatch {
    pub(super) fn new(settings: CloudwatchSettings) -> Result<Self, String> {
        let CloudwatchSettings { table, capacity, region } = settings;
        Ok(Self { aws: Aws::new("monitoring", region)?, table, capacity, told: None })
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
        let minutes = |id: &str| -> BTreeMap<Duration, f64> {
            let result = results.iter().find(|result| result["Id"] == id);
            let list =
                |key: &str| result.and_then(|result| result[key].as_array()).map_or(&[][..], Vec::as_slice);
            let pairs = list("Timestamps").iter().zip(list("Values"));
            pairs.filter_map(|(at, value)| Some((moment(at)?, value.as_f64()?))).collect()
        };
        let (done, refused) = (minutes("consumed"), minutes("throttled"));
        let (&newest, &sum) = done.last_key_value().ok_or_else(|| {
            format!("CloudWatch has no {consumed} of the table {} in the last ten minutes", self.table)
        })?;
        // No throttle events in a minute is no figure at all.
        let throttled_in = |minute: &Duration| refused.get(minute).copied().unwrap_or(0.0);
        let observation = |(&from, &consumed): (&Duration, &f64)| Observation {
            from,
            until: from + PERIOD,
            demand: (consumed + throttled_in(&from)) / PERIOD.as_secs_f64(),
            consumed: consumed / PERIOD.as_secs_f64(),
        };
        let is_new = |minute: &Duration| self.told.is_none_or(|told| *minute > told);
        let earlier = done.iter().filter(|(minute, _)| **minute < newest && is_new(minute)).map(observation);
        let reading = Reading {
            observation: observation((&newest, &sum)),
            earlier: earlier.collect(),
            measures: [("consumed".to_owned(), sum), ("throttled".to_owned(), throttled_in(&newest))].into(),
        };
        self.told = self.told.max(Some(newest));
        Ok(reading)
    }
}

/// A time as CloudWatch's JSON has it: seconds, or RFC 3339.
fn moment(value: &Value) -> Option<Duration> {
    match value {
        Value::String(text) => UnixMs::from_rfc3339(text).map(|at| Duration::from_millis(at.0)),
        number => Duration::try_from_secs_f64(number.as_f64()?).ok(),
    }
}
