//! A node, and the program that is let loose on it.

use carillon::config::{Config, Source};
use carillon::serve::{Prepared, Running};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A node with accounts `u0` to `u19`, and a directory for files.
pub(crate) struct World {
    running: Option<Running>,
    dir: TempDir,
}

/// What came of a run: its exit status, what it said, and its report.
pub(crate) struct Outcome {
    pub status: i32,
    pub out: String,
    pub errors: String,
    pub report: Option<Value>,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(&[])
    }

    /// With settings of its own.
    pub(crate) fn with(settings: &[String]) -> World {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let ports = ["c2s.port=0", "c2s_tls.port=0", "websocket.port=0", "http.port=0"];
        let mut overrides: Vec<String> = ports.map(str::to_owned).to_vec();
        overrides.extend([format!("data_dir={}", data.display()), "limits.profile=benchmark".to_owned()]);
        overrides.extend_from_slice(settings);
        let config = Config::load(&Source { overrides, ..Source::default() }).unwrap();
        let running = Running::start(Prepared::new(config).unwrap(), None).unwrap();
        let world = World { running: Some(running), dir };
        world.import();
        world
    }

    fn import(&self) {
        let mut lines = String::from("{\"jid\":\"publisher\",\"password\":\"pw\"}\n");
        (0..20).for_each(|at| writeln!(lines, "{{\"jid\":\"u{at}\",\"password\":\"pw\"}}").unwrap());
        let request = ureq::post(format!("{}/v1/admin/accounts/import", self.http()))
            .header("authorization", format!("Bearer {}", self.key()));
        let mut answer = request.content_type("application/x-ndjson").send(lines).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        assert!(!text.contains("\"code\""), "{text}");
    }

    /// Puts something by the API.
    pub(crate) fn put(&self, path: &str, body: &str) {
        let request = ureq::put(format!("{}{path}", self.http()))
            .header("authorization", format!("Bearer {}", self.key()));
        assert!(request.content_type("application/json").send(body).unwrap().status().is_success());
    }

    fn running(&self) -> &Running {
        self.running.as_ref().expect("it runs until it is dropped")
    }

    pub(crate) fn target(&self) -> String {
        format!("127.0.0.1:{}", self.running().ready().c2s.unwrap())
    }

    pub(crate) fn http(&self) -> String {
        format!("http://127.0.0.1:{}", self.running().ready().http.unwrap())
    }

    pub(crate) fn key(&self) -> String {
        self.running().admin_key().as_str().to_owned()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file; gives its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// A run of a scenario, which the arguments may change.
    pub(crate) fn command(&self, scenario: &str, more: &[&str]) -> Command {
        let mut command = load();
        command.args(["run", scenario, "--domain", "localhost", "--report"]).arg(self.path("report.json"));
        if !more.contains(&"--target") {
            command.args(["--target", &self.target()]);
        }
        if !more.contains(&"--password") {
            command.args(["--password", "pw"]);
        }
        command.args(more).stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, scenario: &str, more: &[&str]) -> Outcome {
        self.outcome(&self.command(scenario, more).output().unwrap())
    }

    pub(crate) fn outcome(&self, output: &Output) -> Outcome {
        let report = std::fs::read_to_string(self.path("report.json")).ok();
        Outcome {
            status: output.status.code().expect("it was not ended by a signal"),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
            report: report.map(|text| serde_json::from_str(&text).unwrap()),
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.drain();
        }
    }
}

impl Outcome {
    /// A value of the report.
    #[track_caller]
    pub(crate) fn at(&self, pointer: &str) -> &Value {
        let report = self.report.as_ref().unwrap_or_else(|| panic!("no report: {}", self.errors));
        report.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {report}"))
    }

    /// The report's sentence on why it ended early.
    #[track_caller]
    pub(crate) fn reason(&self) -> &str {
        self.at("/reason").as_str().expect("a sentence")
    }
}

/// The load tester.
pub(crate) fn load() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_carillon"));
    command.arg("load");
    command
}

/// Process ids of a process's children.
pub(crate) fn children(of: &Child) -> Vec<u32> {
    let path = format!("/proc/{0}/task/{0}/children", of.id());
    let text = std::fs::read_to_string(Path::new(&path)).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}
