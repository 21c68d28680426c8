//! Which node a command speaks to: the options, and how the node is found.

use super::client::Client;
use super::failure::Failure;
use super::output::Output;
use crate::files::{AdminKey, KeyError, NodeFile};
use std::io::{self, Write};
use std::path::PathBuf;

/// Under which the help lists these options.
const NODE: &str = "Which node";

/// The options of every command that speaks to a node.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Remote {
    /// Data folder of a node on this machine, which holds its address and its admin key
    #[arg(long, value_name = "DIR", default_value = "./data", env = "CARILLON_DATA_DIR", global = true, help_heading = NODE)]
    data_dir: PathBuf,
    /// URL of the node's HTTP API, such as http://127.0.0.1:8080; by default the one in the data folder
    #[arg(long, env = "CARILLON_URL", global = true, help_heading = NODE)]
    url: Option<String>,
    /// API key; by default the admin key in the data folder
    #[arg(long, env = "CARILLON_KEY", hide_env_values = true, global = true, help_heading = NODE)]
    key: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

impl Remote {
    /// The client for the node.
    pub(super) fn client(&self) -> Result<Client, Failure> {
        let url = match &self.url {
            Some(url) => check_url(url)?,
            None => self.node_file()?.http,
        };
        Ok(Client::new(&url, &self.admin_key()?))
    }

    /// The options as words of a command line.
    pub(super) fn words(&self) -> Vec<String> {
        let option =
            |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("--{name}={value}"));
        let data_dir = Some(format!("--data-dir={}", self.data_dir.display()));
        let json = self.json.then(|| "--json".to_owned());
        [data_dir, option("url", &self.url), option("key", &self.key), json].into_iter().flatten().collect()
    }

    /// Whether it prints for programs.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Where the command prints to.
    pub(super) fn output<'a>(&self, out: &'a mut dyn Write) -> Output<'a> {
        Output::new(out, self.json)
    }

    fn node_file(&self) -> Result<NodeFile, Failure> {
        let dir = self.data_dir.display();
        match NodeFile::read(&self.data_dir) {
            Ok(Some(node)) => Ok(node),
            Ok(None) => Err(Failure::Unreachable(format!(
                "no node runs on {dir}: start one with `carillon serve`, or give --data-dir or --url and --key"
            ))),
            Err(e) => Err(Failure::Unreachable(format!("{dir}/node.json: {e}"))),
        }
    }

    fn admin_key(&self) -> Result<String, Failure> {
        if let Some(key) = &self.key {
            return Ok(key.clone());
        }
        match AdminKey::read(&self.data_dir) {
            Ok(key) => Ok(key.as_str().to_owned()),
            Err(KeyError::File { path, error }) if error.kind() == io::ErrorKind::NotFound => Err(
                Failure::Usage(format!("there is no key in {}: give --key or --data-dir", path.display())),
            ),
            Err(e) => Err(Failure::Usage(e.to_string())),
        }
    }
}

/// The URL without the slash at its end.
fn check_url(url: &str) -> Result<String, Failure> {
    if url.starts_with("http://") {
        return Ok(url.trim_end_matches('/').to_owned());
    }
    let why = if url.starts_with("https://") { "the commands speak plain HTTP" } else { "not a URL" };
    Err(Failure::Usage(format!("--url {url}: {why}; it takes one such as http://127.0.0.1:8080")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(dir: &std::path::Path, url: Option<&str>, key: Option<&str>) -> Remote {
        Remote {
            data_dir: dir.to_owned(),
            url: url.map(str::to_owned),
            key: key.map(str::to_owned),
            json: false,
        }
    }

    #[track_caller]
    fn failure(remote: &Remote) -> (u8, String) {
        let failure = remote.client().err().expect("no client");
        (failure.code(), failure.to_string())
    }

    #[test]
    fn what_is_missing_is_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().display();
        assert_eq!(
            failure(&remote(folder.path(), None, None)),
            (
                3,
                format!(
                    "no node runs on {dir}: start one with `carillon serve`, or give --data-dir or --url and --key"
                )
            )
        );
        assert_eq!(
            failure(&remote(folder.path(), Some("http://[::1]:80/"), None)),
            (2, format!("there is no key in {dir}/admin.key: give --key or --data-dir"))
        );
        assert_eq!(
            failure(&remote(folder.path(), Some("https://a.example"), Some("k"))),
            (
                2,
                "--url https://a.example: the commands speak plain HTTP; it takes one such as http://127.0.0.1:8080"
                    .to_owned()
            )
        );
        assert!(remote(folder.path(), Some("http://127.0.0.1:1"), Some("k")).client().is_ok());
    }
}
