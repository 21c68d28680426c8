//! Figures of the server under test: from `/proc` if it runs on this machine, or from its own metrics.

use std::time::Duration;

use super::process::{KernelMemory, ProcessError, Processes, Usage};

/// The time limit for reading the metrics.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The largest page of metrics.
const PAGE_BYTES_MAX: u64 = 16 << 20;

/// CPU time and memory of the server at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// CPU time so far, in seconds.
    pub cpu_s: f64,
    /// Memory: the proportional set size of its processes, or the resident memory in its own metrics.
    pub memory_bytes: u64,
}

/// Where a server's figures come from.
#[derive(Clone, Debug, Default)]
pub enum Server {
    /// Its processes are on this machine.
    Processes(Processes),
    /// It exposes them at this URL as Prometheus text.
    Metrics(String),
    /// There is no source.
    #[default]
    Unseen,
}

/// The server's figures cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A process cannot be measured.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The metrics cannot be read.
    #[error("{url} cannot be read: {why}")]
    Unreachable {
        /// Their URL.
        url: String,
        /// The error.
        why: String,
    },
    /// A metric is missing.
    #[error("{url} has no {name}")]
    Missing {
        /// Their URL.
        url: String,
        /// The name of the missing metric.
        name: &'static str,
    },
}

impl Server {
    /// The processes if there are any, or else the metrics; an error if they cannot be read now.
    pub fn new(pids: Vec<u32>, metrics_url: Option<String>) -> Result<Self, ServerError> {
        let server = match metrics_url {
            _ if !pids.is_empty() => Self::Processes(Processes::new(pids)?),
            Some(url) => Self::Metrics(url),
            None => Self::Unseen,
        };
        server.read()?;
        Ok(server)
    }

    /// The current figures; `None` without a source. Blocks.
    pub fn read(&self) -> Result<Option<Reading>, ServerError> {
        match self {
            Self::Processes(processes) => {
                let reading =
                    |usage: Usage| Reading { cpu_s: usage.cpu.as_secs_f64(), memory_bytes: usage.pss_bytes };
                Ok(processes.usage()?.map(reading))
            }
            Self::Metrics(url) => {
                let page = fetch(url).map_err(|why| ServerError::Unreachable { url: url.clone(), why })?;
                let value = |name| sample(&page, name).ok_or(ServerError::Missing { url: url.clone(), name });
                Ok(Some(Reading {
                    cpu_s: value("process_cpu_seconds_total")?,
                    memory_bytes: value("process_resident_memory_bytes")? as u64,
                }))
            }
            Self::Unseen => Ok(None),
        }
    }

    /// The kernel's memory, if the server runs on this machine.
    pub fn kernel(&self) -> Option<KernelMemory> {
        match self {
            Self::Processes(_) => KernelMemory::now().ok(),
            Self::Metrics(_) | Self::Unseen => None,
        }
    }
}

/// An HTTP client with a timeout, for which every status is an answer.
pub(crate) fn agent(timeout: Duration) -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None);
    config.timeout_global(Some(timeout)).build().new_agent()
}

/// A short text for an HTTP error.
pub(crate) fn why(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}

fn fetch(url: &str) -> Result<String, String> {
    let mut response = agent(TIMEOUT).get(url).call().map_err(|error| why(&error))?;
    if !response.status().is_success() {
        return Err(format!("it answers {}", response.status()));
    }
    let body = response.body_mut().with_config().limit(PAGE_BYTES_MAX).lossy_utf8(true);
    body.read_to_string().map_err(|error| why(&error))
}

/// The value of a metric without labels in the Prometheus text format.
fn sample(page: &str, name: &str) -> Option<f64> {
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_found_by_their_whole_name() {
        let page = "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total_x 9\n\
                    process_cpu_seconds_total 12.5 1700000000\n";
        assert_eq!(sample(page, "process_cpu_seconds_total"), Some(12.5));
        assert_eq!(sample(page, "process_resident_memory_bytes"), None);
    }

    #[test]
    fn a_server_that_is_not_there_is_an_error_at_once() {
        assert!(matches!(Server::new(vec![u32::MAX], None), Err(ServerError::Process(_))));
        let nowhere = Some("http://127.0.0.1:1/metrics".to_owned());
        assert!(matches!(Server::new(Vec::new(), nowhere), Err(ServerError::Unreachable { .. })));
        assert!(Server::default().read().expect("nothing to read").is_none());
    }
}
