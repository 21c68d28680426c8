//! What is commanded: something that has units, and can be told to have another number of them.

#[cfg(feature = "aws")]
mod dynamodb;
mod edges;
mod exec;
mod keda;
#[cfg(feature = "kubernetes")]
mod kubernetes;

#[cfg(not(all(feature = "aws", feature = "kubernetes")))]
use super::unbuilt::Unbuilt;
use carillon_scale::Granted;
use serde::Deserialize;
use std::time::Duration;

/// Something that has units.
pub(super) trait Driver {
    /// What there is.
    ///
    /// # Errors
    /// It cannot be known: why not. Then nothing is decided.
    fn granted(&mut self, now: Duration) -> Result<Granted, String>;

    /// Data says that there are to be so many units, whether or not there are as many. Told before `scale`, and only if this scaler may act: a driver
    /// that does not know what there is takes this for known.
    fn keep(&mut self, _units: u32) {}

    /// This scaler may not act now, because another one does or nobody can say.
    fn stand_by(&mut self) {}

    /// Has so many units from now on; it does not wait until they are in force. What it does wait for may take longer than the right to act lasts, so
    /// that it renews this meanwhile, and stops when `renew` says that it may not act any more.
    ///
    /// # Errors
    /// It was refused: why. The next interval decides anew.
    fn scale(&mut self, units: u32, renew: Renew<'_>) -> Result<(), String>;

    /// What is in force after a decision, if the driver knows that at once.
    fn in_force(&self) -> Option<u32> {
        None
    }

    /// The edges that there are, if the units are edges.
    fn edges(&self) -> Vec<Edge> {
        Vec::new()
    }

    /// The edges that are being taken away.
    fn leaving(&self) -> Vec<String> {
        Vec::new()
    }

    /// Edges that the scaler before this one was taking away when it ended, at this time. They are no units any more.
    fn left(&mut self, _: Vec<String>, _at: Duration) {}

    /// Goes on with what was left: edges, or a number. Only a scaler that may act calls it, once it knows what there is.
    fn take_up(&mut self) {}

    /// What happened since this was asked last.
    fn notes(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Renews the right to act if it is time to; else says why there is none any more.
pub(super) type Renew<'a> = &'a mut dyn FnMut() -> Result<(), String>;

/// A unit that can be asked for its figures.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Edge {
    /// Its name, which commands are given.
    pub(super) id: String,
    /// URL of its HTTP API.
    pub(super) url: Option<String>,
    /// Where it runs.
    #[serde(default)]
    pub(super) zone: String,
    #[serde(default)]
    pub(super) state: EdgeState,
}

/// How far an edge is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum EdgeState {
    Starting,
    #[default]
    Running,
    Draining,
}

/// `[driver]`.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum DriverSettings {
    /// Edges that commands list, start, drain and stop.
    Exec(exec::ExecSettings),
    /// The replicas of a StatefulSet or a Deployment.
    #[cfg(feature = "kubernetes")]
    Kubernetes(kubernetes::KubernetesSettings),
    #[cfg(not(feature = "kubernetes"))]
    Kubernetes(Unbuilt),
    /// A page that KEDA reads.
    Keda(keda::KedaSettings),
    /// The provisioned capacity of a table.
    #[cfg(feature = "aws")]
    Dynamodb(dynamodb::DynamodbSettings),
    #[cfg(not(feature = "aws"))]
    Dynamodb(Unbuilt),
}

/// The driver that the settings name. `last` is what was decided before this scaler started.
///
/// # Errors
/// A setting cannot be.
pub(super) fn open(settings: DriverSettings, min: u32, last: Option<u32>) -> Result<Box<dyn Driver>, String> {
    Ok(match settings {
        DriverSettings::Exec(settings) => Box::new(exec::Exec::new(settings)?),
        #[cfg(feature = "kubernetes")]
        DriverSettings::Kubernetes(settings) => Box::new(kubernetes::Kubernetes::new(settings)?),
        DriverSettings::Keda(settings) => Box::new(keda::Keda::new(&settings, min, last)?),
        #[cfg(feature = "aws")]
        DriverSettings::Dynamodb(settings) => Box::new(dynamodb::Dynamodb::new(settings)?),
        #[cfg(not(feature = "kubernetes"))]
        DriverSettings::Kubernetes(unbuilt) => {
            return Err(unbuilt.why("driver.kind: kubernetes", "kubernetes"));
        }
        #[cfg(not(feature = "aws"))]
        DriverSettings::Dynamodb(unbuilt) => return Err(unbuilt.why("driver.kind: dynamodb", "aws")),
    })
}
