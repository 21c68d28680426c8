//! The provisioned capacity of a table of DynamoDB.

use super::{Driver, Renew};
use crate::aws::{Aws, Capacity, Region};
use carillon_scale::Granted;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// `[driver]` of kind `dynamodb`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct DynamodbSettings {
    table: String,
    #[serde(default)]
    capacity: Capacity,
    /// Another URL of Application Auto Scaling than AWS', or than `endpoint`.
    autoscaling_endpoint: Option<String>,
    #[serde(flatten)]
    region: Region,
}

/// A table.
pub(super) struct Dynamodb {
    aws: Aws,
    autoscaling: Aws,
    /// Whether Application Auto Scaling is asked elsewhere than at AWS, where there may be none.
    is_elsewhere: bool,
    table: String,
    capacity: Capacity,
    /// What was read last: units for reading and for writing, and when.
    read: Option<(u32, u32, Duration)>,
}

/// So many decreases a day are taken whenever they come; then one when there was none for an hour.
const DECREASES_AT_ONCE: u64 = 4;
const DECREASE_PAUSE_S: f64 = 3600.0;

impl Dynamodb {
    pub(super) fn new(settings: DynamodbSettings) -> Result<Self, String> {
        let DynamodbSettings { table, capacity, autoscaling_endpoint, region } = settings;
        let aws = Aws::new("dynamodb", region.clone())?;
        let region = region.with_endpoint(autoscaling_endpoint);
        let is_elsewhere = region.is_elsewhere();
        let autoscaling = Aws::new("application-autoscaling", region)?;
        Ok(Self { aws, autoscaling, is_elsewhere, table, capacity, read: None })
    }

    /// Makes sure that AWS does not scale the table itself: two that scale one table undo each other's changes.
    fn alone(&self, now: Duration) -> Result<(), String> {
        let dimension = match self.capacity {
            Capacity::Read => "dynamodb:table:ReadCapacityUnits",
            Capacity::Write => "dynamodb:table:WriteCapacityUnits",
        };
        let resource = format!("table/{}", self.table);
        let request = json!({
            "ServiceNamespace": "dynamodb", "ResourceIds": [&resource], "ScalableDimension": dimension,
        });
        let answer = match self.autoscaling.call(DESCRIBE_TARGETS, &request, now) {
            Ok(answer) => answer,
            Err(why) if self.is_elsewhere && NOBODY.iter().any(|said| why.contains(said)) => return Ok(()),
            Err(why) => return Err(format!("whether AWS scales the table itself is not known: {why}")),
        };
        let targets = answer["ScalableTargets"].as_array().ok_or("an answer without ScalableTargets")?;
        match targets.iter().find(|target| !is_suspended(target)) {
            None => Ok(()),
            Some(target) => Err(format!(
                "AWS scales the table {} itself, from {} to {} units; `aws application-autoscaling deregister-scalable-target \
                 --service-namespace dynamodb --resource-id {resource} --scalable-dimension {dimension}` ends that",
                self.table, target["MinCapacity"], target["MaxCapacity"]
            )),
        }
    }
}

/// What a database says that speaks DynamoDB's API and nothing else.
const NOBODY: [&str; 2] = ["UnknownOperationException", "answers 404"];
const DESCRIBE_TARGETS: &str = "AnyScaleFrontendService.DescribeScalableTargets";

/// Whether AWS was told to leave it alone: no policy and no schedule changes it.
fn is_suspended(target: &Value) -> bool {
    let parts = ["DynamicScalingInSuspended", "DynamicScalingOutSuspended", "ScheduledScalingSuspended"];
    parts.iter().all(|part| target["SuspendedState"][*part] == true)
}

impl Driver for Dynamodb {
    fn granted(&mut self, now: Duration) -> Result<Granted, String> {
        let answer =
            self.aws.call("DynamoDB_20120810.DescribeTable", &json!({"TableName": self.table}), now)?;
        let table = &answer["Table"];
        let throughput = &table["ProvisionedThroughput"];
        let units =
            |key: &str| throughput[key].as_u64().and_then(|units| u32::try_from(units).ok()).unwrap_or(0);
        let (read, write) = (units("ReadCapacityUnits"), units("WriteCapacityUnits"));
        if read == 0 || write == 0 {
            return Err(format!(
                "the table {} is billed per request: there is no capacity to scale",
                self.table
            ));
        }
        self.read = Some((read, write, now));
        let decreases = throughput["NumberOfDecreasesToday"].as_u64().unwrap_or(0);
        let last = throughput["LastDecreaseDateTime"].as_f64();
        let has_paused = last.is_none_or(|last| now.as_secs_f64() - last >= DECREASE_PAUSE_S);
        let left = DECREASES_AT_ONCE.saturating_sub(decreases).max(u64::from(has_paused));
        let units = match self.capacity {
            Capacity::Read => read,
            Capacity::Write => write,
        };
        Ok(Granted {
            is_changing: table["TableStatus"] != "ACTIVE",
            decreases_left: u32::try_from(left).ok(),
            ..Granted::steady(units)
        })
    }

    fn scale(&mut self, units: u32, _: Renew<'_>) -> Result<(), String> {
        let (read, write, now) = self.read.ok_or("the table was not read")?;
        self.alone(now)?;
        let (read, write) = match self.capacity {
            Capacity::Read => (units, write),
            Capacity::Write => (read, units),
        };
        let change = json!({
            "TableName": self.table,
            "ProvisionedThroughput": {"ReadCapacityUnits": read, "WriteCapacityUnits": write},
        });
        self.aws.call("DynamoDB_20120810.UpdateTable", &change, now).map(|_: Value| ())
    }
}
