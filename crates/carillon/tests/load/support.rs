//! A node to be loaded, and an engine that is led through a scenario as an orchestrator would.

use carillon::config::{Config, Source};
use carillon::serve::{Prepared, Running};
use carillon_load::control::{Fault, Job, Position, Progress};
use carillon_load::plan::{Scenario, Target, TransportKind};
use carillon_load::worker::Engine;
use std::fmt::Write as _;
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;

/// How long a step may take before the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const PASSWORD: &str = "secret";

/// A node with accounts `u0`, `u1` and so on, and one of a publisher.
pub(crate) struct World {
    running: Option<Running>,
    pub target: Target,
    _dir: TempDir,
}

/// What came of a run: the progress of each step that was told, added up.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub total: Progress,
    /// Players in session at the end of each phase.
    pub online: Vec<u32>,
}

impl World {
    /// A node with so many accounts.
    pub(crate) fn new(accounts: u32, settings: &[&str]) -> World {
        let dir = tempfile::tempdir().unwrap();
        let mut overrides = vec![
            format!("data_dir={}", dir.path().display()),
            "c2s.port=0".into(),
            "c2s_tls.port=0".into(),
            "websocket.port=0".into(),
            "http.port=0".into(),
            "shards=2".into(),
            "limits.profile=benchmark".into(),
        ];
        overrides.extend(settings.iter().map(|setting| (*setting).to_owned()));
        let config = Config::load(&Source { overrides, ..Source::default() }).unwrap();
        let running = Running::start(Prepared::new(config).unwrap(), None).unwrap();
        let ready = running.ready();
        let target = Target {
            address: format!("127.0.0.1:{}", ready.c2s.unwrap()),
            domain: "localhost".to_owned(),
            password: PASSWORD.to_owned(),
            http: Some(format!("http://127.0.0.1:{}", ready.http.unwrap())),
            key: Some(running.admin_key().as_str().to_owned()),
            ..empty_target()
        };
        let world = World { running: Some(running), target, _dir: dir };
        world.import(accounts);
        world
    }

    fn import(&self, accounts: u32) {
        let mut lines = format!("{{\"jid\":\"publisher\",\"password\":\"{PASSWORD}\"}}\n");
        for number in 0..accounts {
            writeln!(lines, "{{\"jid\":\"u{number}\",\"password\":\"{PASSWORD}\"}}").unwrap();
        }
        let url = format!("{}/v1/admin/accounts/import", self.target.http.as_deref().unwrap());
        let request = ureq::post(&url)
            .header("authorization", format!("Bearer {}", self.target.key.as_deref().unwrap()));
        let mut answer = request.content_type("application/x-ndjson").send(lines).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        assert!(!text.contains("\"code\""), "{text}");
    }

    /// Where a transport is served.
    pub(crate) fn address(&self, transport: TransportKind) -> Option<String> {
        let ready = self.running.as_ref()?.ready();
        let port = match transport {
            TransportKind::Starttls => ready.c2s?,
            TransportKind::Tls => ready.c2s_tls?,
            TransportKind::Ws => ready.websocket?,
            TransportKind::Plain | TransportKind::Wss | TransportKind::Quic => return None,
        };
        Some(format!("127.0.0.1:{port}"))
    }

    /// Makes sure that there were so many logins; a node's figures may be 100 ms old.
    #[track_caller]
    pub(crate) fn logins_are(&self, count: u64) {
        let began = Instant::now();
        let mut logins = 0;
        while logins != count {
            assert!(began.elapsed() < PATIENCE, "{logins} logins");
            logins = self.logins();
        }
    }

    fn logins(&self) -> u64 {
        let request = ureq::get(format!("{}/v1/admin/status", self.target.http.as_deref().unwrap()))
            .header("authorization", format!("Bearer {}", self.target.key.as_deref().unwrap()));
        let status: serde_json::Value = request.call().unwrap().body_mut().read_json().unwrap();
        status["logins"].as_u64().unwrap()
    }

    /// One worker's job: all players of a scenario.
    pub(crate) fn job(&self, scenario: &str) -> Job {
        let scenario = Scenario::parse(scenario).unwrap();
        Job {
            test: "test-1".to_owned(),
            first: 0,
            count: scenario.players.count,
            total: scenario.players.count,
            scenario,
            target: self.target.clone(),
            publishes: true,
            threads: 2,
            event: None,
            clock_offset_ns: 0,
        }
    }

    /// Runs a scenario with one worker.
    pub(crate) fn run(&self, scenario: &str) -> Outcome {
        run(vec![self.job(scenario)])
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.drain();
        }
    }
}

/// Leads workers through their scenario, step by step.
pub(crate) fn run(jobs: Vec<Job>) -> Outcome {
    let scenario = jobs[0].scenario.clone();
    let mut engines: Vec<_> = jobs.into_iter().map(|job| Engine::prepare(job).unwrap()).collect();
    let mut outcome = Outcome::default();
    for (phase, of_phase) in scenario.phases.iter().enumerate() {
        for step in 1..=of_phase.action.steps() {
            let position = Position { phase: phase as u32, step };
            engines.iter_mut().for_each(|engine| engine.begin(position, now()));
            for engine in &mut engines {
                assert!(engine.wait(PATIENCE), "{position:?} of {}: {:?}", scenario.name, engine.progress());
            }
        }
        let mut online = 0;
        for engine in &mut engines {
            let progress = engine.progress();
            assert!(progress.done && progress.fault.is_none(), "{progress:?}");
            online += progress.online;
            outcome.add(progress);
        }
        outcome.online.push(online);
    }
    for engine in engines {
        outcome.add(engine.finish());
    }
    outcome
}

/// Begins a phase of one step.
pub(crate) fn lead(engine: &mut Engine, phase: u32) {
    engine.begin(Position { phase, step: 1 }, now());
}

/// Why a job cannot be run.
pub(crate) fn fault(job: Job) -> Fault {
    Engine::prepare(job).expect_err("it cannot be run")
}

impl Outcome {
    pub(crate) fn add(&mut self, progress: Progress) {
        for (name, many) in progress.counts {
            *self.total.counts.entry(name).or_default() += many;
        }
        for (name, many) in progress.errors {
            *self.total.errors.entry(name).or_default() += many;
        }
        for (name, digest) in progress.metrics {
            self.total.metrics.entry(name).or_default().merge(digest);
        }
        for (name, largest) in progress.largest {
            let all = self.total.largest.entry(name).or_default();
            for (item, value) in largest {
                let most = all.entry(item).or_default();
                *most = most.max(value);
            }
        }
        self.total.failed += progress.failed;
    }

    /// How many of something were counted.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.total.counts.get(name).copied().unwrap_or(0)
    }

    /// Makes sure that nothing went wrong.
    #[track_caller]
    pub(crate) fn clean(&self) -> &Outcome {
        assert!(self.total.errors.is_empty() && self.total.failed == 0, "{:?}", self.total);
        assert_eq!((self.count("lost"), self.count("missing")), (0, 0));
        self
    }

    /// Whether a metric has values.
    pub(crate) fn has(&self, metric: &str) -> bool {
        self.total.metrics.get(metric).is_some_and(|digest| !digest.is_empty())
    }
}

fn now() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64
}

fn empty_target() -> Target {
    serde_json::from_str(r#"{ "address": "", "domain": "", "password": "" }"#).unwrap()
}
