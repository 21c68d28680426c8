//! The nodes: processes of this very binary, in folders of their own.

use super::super::api::Api;
use super::PATIENCE;
use super::engines::Engines;
use super::process::Program;
use crate::files::AdminKey;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A node that runs.
pub(super) struct Node {
    pub(super) name: String,
    pub(super) program: Program,
    pub(super) api: Api,
    /// Where its clients connect.
    pub(super) c2s: u16,
}

/// How often it is looked whether a node is ready.
const LOOK: Duration = Duration::from_millis(20);

impl Node {
    /// Starts a node, or one again in the folder that it had, and waits until the others know it.
    ///
    /// # Errors
    /// What it said.
    pub(super) fn start(
        name: &str,
        folder: &Path,
        engines: &Engines,
        overrides: &[String],
    ) -> Result<Node, String> {
        let own = folder.join(name);
        std::fs::create_dir_all(&own).map_err(|e| format!("{}: {e}", own.display()))?;
        let ready = own.join("ready.json");
        if let Err(error) = std::fs::remove_file(&ready)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(error.to_string());
        }
        let data = own.join("data");
        let binary = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut words: Vec<PathBuf> = vec![binary, "serve".into(), "--ready-file".into(), ready.clone()];
        let settings = [
            format!("data_dir={}", data.display()),
            format!("node.name={name}"),
            format!("store.url={}", engines.store_url),
            format!("cell.nats={}", engines.nats_url),
            format!("cell.secret_file={}", folder.join("secret").display()),
        ];
        let ports = ["c2s", "c2s_tls", "websocket", "http"].map(|port| format!("{port}.port=0"));
        let quiet = ["log.level=warn".to_owned(), "shards=1".to_owned()];
        for setting in settings.iter().chain(&ports).chain(&quiet).chain(overrides) {
            words.extend(["--set".into(), PathBuf::from(setting)]);
        }
        let log = own.join("log");
        let program = Program::start(&words, "TERM", &own, &log, None)?;
        let ports = wait(&ready, &program).ok_or_else(|| {
            format!("{name} does not start:\n{}", std::fs::read_to_string(&log).unwrap_or_default())
        })?;
        let port = |port: &str| ports[port].as_u64().and_then(|port| u16::try_from(port).ok());
        let (Some(http), Some(c2s)) = (port("http"), port("c2s")) else {
            return Err("the demo needs c2s and http".into());
        };
        let key = AdminKey::read(&data).map_err(|e| e.to_string())?;
        let api = Api { base: format!("http://127.0.0.1:{http}"), key: key.as_str().to_owned() };
        Ok(Node { name: name.to_owned(), program, api, c2s })
    }

    /// The nodes as this one sees them.
    pub(super) fn nodes(&self) -> Result<Vec<Value>, String> {
        let answer = self.api.call("GET", "/v1/cluster/nodes", None)?;
        answer["nodes"].as_array().cloned().ok_or_else(|| "no list of nodes".to_owned())
    }

    /// The home of an address.
    pub(super) fn home(&self, jid: &str) -> Result<String, String> {
        let place = self.api.call("GET", &format!("/v1/cluster/where/{jid}"), None)?;
        place["home"].as_str().map(str::to_owned).ok_or_else(|| "no home".to_owned())
    }

    /// Waits until all sees the node called `name` as is wanted.
    pub(super) fn until(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value, String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(node) = self.nodes()?.into_iter().find(|node| node["node"] == name)
                && wanted(&node)
            {
                return Ok(node);
            }
            if Instant::now() > deadline {
                return Err(format!("{} does not see {name} as expected", self.name));
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// The ports of a node once it is ready.
fn wait(ready: &Path, program: &Program) -> Option<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let ports = std::fs::read_to_string(ready).ok().and_then(|text| serde_json::from_str(&text).ok());
        if ports.is_some() {
            return ports;
        }
        if program.has_ended() || Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(LOOK);
    }
}
