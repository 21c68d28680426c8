//! Counting of the server's sessions: by Carillon's API, or by a command.

use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use crate::measure::{agent, why};
use crate::plan::Target;

/// The time limit of an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A way to count a server's sessions.
#[derive(Clone, Debug)]
pub enum Sessions {
    /// By `GET /v1/admin/status` with a key.
    Api {
        /// The API's URL.
        url: String,
        /// Its key.
        key: String,
    },
    /// By a command that prints a number.
    Command(String),
    /// Sessions cannot be counted.
    Unknown,
}

#[derive(Deserialize)]
struct Status {
    sessions: u64,
}

impl Sessions {
    /// The command if there is one, or else the target's API.
    pub(super) fn new(target: &Target, command: Option<&str>) -> Self {
        match (command, &target.http, &target.key) {
            (Some(command), _, _) => Self::Command(command.to_owned()),
            (None, Some(url), Some(key)) => {
                Self::Api { url: url.trim_end_matches('/').to_owned(), key: key.clone() }
            }
            _ => Self::Unknown,
        }
    }

    /// Whether there is a way to count them.
    pub(super) fn is_known(&self) -> bool {
        !matches!(self, Self::Unknown)
    }

    /// The current number, or why it is unknown. Blocks.
    pub(super) fn count(&self) -> Result<u64, String> {
        match self {
            Self::Api { url, key } => {
                let request = agent(TIMEOUT).get(format!("{url}/v1/admin/status"));
                let request = request.header("authorization", format!("Bearer {key}"));
                let mut response = request.call().map_err(|error| why(&error))?;
                if !response.status().is_success() {
                    return Err(format!("{url} answers {}", response.status()));
                }
                let status: Status = response.body_mut().read_json().map_err(|error| why(&error))?;
                Ok(status.sessions)
            }
            Self::Command(command) => {
                let output = Command::new("sh").arg("-c").arg(command).output();
                let output = output.map_err(|error| format!("{command}: {error}"))?;
                let text = String::from_utf8_lossy(&output.stdout);
                text.trim()
                    .parse()
                    .map_err(|_| format!("{command} printed {:?}, which is not a number", text.trim()))
            }
            Self::Unknown => Err("neither the HTTP API with a key (--http, --key) nor a command \
                                  (--sessions-command) was given to count sessions by"
                .to_owned()),
        }
    }
}
