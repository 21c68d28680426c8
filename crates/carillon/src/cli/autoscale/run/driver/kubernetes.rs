//! The replicas of a StatefulSet or a Deployment, by the subresource `scale` of Kubernetes' API.

use super::{Driver, Renew};
use crate::web::{Answer, Web, secret};
use carillon_scale::Granted;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// `[driver]` of kind `kubernetes`. In a pod, `server`, `token_file` and `ca_file` are those of its service account.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct KubernetesSettings {
    resource: Resource,
    name: String,
    namespace: String,
    server: Option<String>,
    token_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Resource {
    Statefulset,
    Deployment,
}

/// A workload in Kubernetes.
pub(super) struct Kubernetes {
    web: Web,
    url: String,
    token_file: Option<PathBuf>,
    /// What the subresource said last.
    scale: Option<Scale>,
    /// The API server asked to be left alone until then.
    wait_until: Option<Instant>,
}

#[derive(Debug, Deserialize)]
struct Scale {
    metadata: Metadata,
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

#[derive(Debug, Deserialize)]
struct Spec {
    /// Nothing is none, as the API server leaves out what is 0.
    #[serde(default)]
    replicas: u32,
}

#[derive(Debug, Default, Deserialize)]
struct Status {
    #[serde(default)]
    replicas: u32,
}

/// Where a pod has what it speaks to the API with.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How often a change is tried when somebody else changed the workload meanwhile.
const TRIES: u32 = 3;
/// The longest that the API server can have the driver wait.
const WAIT_MAX: Duration = Duration::from_secs(3600);

impl Kubernetes {
    pub(super) fn new(settings: KubernetesSettings) -> Result<Self, String> {
        let KubernetesSettings { resource, name, namespace, server, token_file, ca_file } = settings;
        let in_pod = server.is_none();
        let server = match server {
            Some(server) => server.trim_end_matches('/').to_owned(),
            None => in_cluster()?,
        };
        for (key, value) in [("name", &name), ("namespace", &namespace)] {
            let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
            if value.is_empty() || !value.chars().all(is_name) {
                return Err(format!("driver.{key}: {value:?} is no name in Kubernetes"));
            }
        }
        let own = |file: &str| in_pod.then(|| Path::new(ACCOUNT).join(file));
        let plural = match resource {
            Resource::Statefulset => "statefulsets",
            Resource::Deployment => "deployments",
        };
        Ok(Self {
            web: Web::new(ca_file.or_else(|| own("ca.crt")).as_deref())
                .map_err(|why| format!("driver.ca_file: {why}"))?,
            url: format!("{server}/apis/apps/v1/namespaces/{namespace}/{plural}/{name}/scale"),
            token_file: token_file.or_else(|| own("token")),
            scale: None,
            wait_until: None,
        })
    }

    fn ask(&mut self, method: &str, body: Option<&Value>) -> Result<Answer, String> {
        let left = self.wait_until.map(|until| until.saturating_duration_since(Instant::now()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            return Err(format!("the API server asked to wait; {} s of it are left", left.as_secs() + 1));
        }
        // It is renewed while the pod runs.
        let token =
            self.token_file.as_deref().map(secret).transpose()?.map(|token| format!("Bearer {token}"));
        let mut headers = vec![("accept", "application/json")];
        headers.extend(token.iter().map(|token| ("authorization", token.as_str())));
        headers.extend(body.iter().map(|_| ("content-type", "application/merge-patch+json")));
        let answer = self.web.ask(method, &self.url, &headers, body.map(Value::to_string).as_deref())?;
        let wait = answer.retry_after.map(|seconds| Duration::from_secs(seconds).min(WAIT_MAX));
        self.wait_until = wait.and_then(|wait| Instant::now().checked_add(wait));
        Ok(answer)
    }

    fn read(&mut self) -> Result<&Scale, String> {
        let answer = self.ask("GET", None)?;
        if answer.status != 200 {
            return Err(refusal(&answer, "get"));
        }
        let scale = serde_json::from_str(&answer.body).map_err(|error| format!("{}: {error}", self.url))?;
        Ok(self.scale.insert(scale))
    }
}

impl Driver for Kubernetes {
    fn granted(&mut self, _: Duration) -> Result<Granted, String> {
        let scale = self.read()?;
        Ok(Granted { in_force: scale.status.replicas, ..Granted::steady(scale.spec.replicas) })
    }

    fn scale(&mut self, units: u32, _: Renew<'_>) -> Result<(), String> {
        let decided_on = self.scale.as_ref().map(|scale| scale.spec.replicas);
        for _ in 0..TRIES {
            let scale = self.scale.as_ref().ok_or("the workload was not read")?;
            if Some(scale.spec.replicas) != decided_on {
                return Err(format!("somebody else set {} replicas meanwhile", scale.spec.replicas));
            }
            // With the version, or it would undo what somebody else did since it was read.
            let change = json!({
                "metadata": {"resourceVersion": scale.metadata.resource_version},
                "spec": {"replicas": units},
            });
            let answer = self.ask("PATCH", Some(&change))?;
            match answer.status {
                200 => return Ok(()),
                409 => self.read()?,
                _ => return Err(refusal(&answer, "patch")),
            };
        }
        Err(format!("{TRIES} conflicts in a row: somebody else keeps changing the workload"))
    }
}

/// Where the API server is, from within a pod.
fn in_cluster() -> Result<String, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    match (variable("KUBERNETES_SERVICE_HOST"), variable("KUBERNETES_SERVICE_PORT")) {
        (Some(host), Some(port)) if host.contains(':') => Ok(format!("https://[{host}]:{port}")),
        (Some(host), Some(port)) => Ok(format!("https://{host}:{port}")),
        _ => Err(
            "driver.server: this is no pod, so it must be given; `kubectl proxy` serves one on this machine"
                .to_owned(),
        ),
    }
}

/// What an answer that is no success says.
fn refusal(answer: &Answer, verb: &str) -> String {
    let status: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let message = status["message"].as_str().unwrap_or("no reason given");
    match (answer.status, answer.retry_after) {
        (401 | 403, _) => format!("{message}: the role needs the verb `{verb}` on the subresource `scale`"),
        (429, Some(seconds)) => format!("the API server asks to wait {seconds} s: {message}"),
        (status, _) => format!("the API server answers {status}: {message}"),
    }
}
