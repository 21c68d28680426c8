//! `carillon serve`: runs a node until it is told to end.

use crate::assemble;
use crate::config::{Config, Origin, SETTINGS, Source};
use crate::files::{AdminKey, NodeFile, Ready};
use crate::preflight::{self, Finding, Purpose, Severity};
use crate::signal::{Signals, Wish};
use crate::supervisor::Supervisor;
use crate::telemetry::Telemetry;
use crate::upgrade::control::{Asked, Control};
use crate::upgrade::{self, Departure, Gone, Guardian, HandOverError, Handed, Remains};
use crate::welcome::Welcome;
use carillon_core::model::{Policy, Scope, Scopes, UnixMs};
use carillon_core::ports::store::domains::{Domains, PutDomain};
use carillon_core::ports::store::keys::{CreateKey, CreateKeyAnswer, Key};
use carillon_core::ports::{Question, Store};
use carillon_server::handover::TakeOver;
use carillon_server::{Server, tls};
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// What `carillon serve` is told.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Where its settings come from
    #[command(flatten)]
    pub source: Source,
    /// File to write once the node takes sessions: JSON with its process id and its ports
    #[arg(long, value_name = "PATH")]
    pub ready_file: Option<PathBuf>,
}

/// Runs a node until a signal ends it, or another process goes on with it.
pub fn run(args: &Args) -> ExitCode {
    if upgrade::is_successor() {
        return upgrade::run(args);
    }
    let Started { mut running, signals, telemetry } = match start(&args.source) {
        Ok(started) => started,
        Err(code) => return code,
    };
    if let Some(path) = &args.ready_file
        && let Err(error) = running.ready().write(path)
    {
        return failed(&format!("cannot write {}: {error}", path.display()));
    }
    match Supervisor::from_env() {
        Ok(supervisor) => running.report_to(supervisor),
        Err(error) => return failed(&format!("NOTIFY_SOCKET cannot be used: {error}")),
    }
    running.welcome();
    running.until_told(signals, &telemetry)
}

/// A node that runs, and what its process does with signals and its log.
pub struct Started {
    /// The node.
    pub running: Running,
    /// Signals sent from now on.
    pub signals: Signals,
    /// The log.
    pub telemetry: Telemetry,
}

/// Reads the settings and starts a node. What is wrong is told on standard error; then the exit code is the error.
pub fn start(source: &Source) -> Result<Started, ExitCode> {
    let config = Config::load(source).map_err(|problems| {
        eprintln!("{problems}");
        ExitCode::from(2)
    })?;
    let telemetry = Telemetry::start(&config.settings.log).map_err(|error| failed(&error.to_string()))?;
    preflight::descriptors::raise();
    let findings = preflight::inspect(&config, Purpose::Start);
    tell(&findings);
    if findings.iter().any(|finding| finding.stops) {
        return Err(ExitCode::FAILURE);
    }
    let prepared = Prepared::new(config).map_err(|error| failed(&error))?;
    let running = Running::start(prepared, None).map_err(|error| failed(&error))?;
    // Before anyone can know that the node is there: a signal from now on is ours.
    let signals = running.listen().map_err(|error| failed(&error.to_string()))?;
    Ok(Started { running, signals, telemetry })
}

/// Says what was found before or at the start: what stops it to whoever started it, all else to the log.
fn tell(findings: &[Finding]) {
    for finding in findings {
        let sentence = finding.sentence();
        match finding.severity {
            Severity::Error if finding.stops => eprintln!("carillon: {sentence}"),
            Severity::Error => tracing::error!("{sentence}"),
            Severity::Warning => tracing::warn!("{sentence}"),
        }
    }
}

fn failed(error: &str) -> ExitCode {
    eprintln!("carillon: {error}");
    ExitCode::FAILURE
}

/// Everything that a node needs and that touches nothing: another process may still have its store.
pub struct Prepared {
    config: Config,
    secret: [u8; 32],
    tls: tls::Settings,
    webhook_roots: carillon_http::WebhookRoots,
    runtime: tokio::runtime::Runtime,
}

impl Prepared {
    /// Reads the files that the settings name.
    pub fn new(config: Config) -> Result<Prepared, String> {
        let settings = &config.settings;
        let data_dir = &settings.node.data_dir;
        std::fs::create_dir_all(data_dir).map_err(|e| format!("cannot make {}: {e}", data_dir.display()))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("http")
            .enable_all()
            .build()
            .map_err(|e| e.to_string())?;
        Ok(Prepared {
            secret: assemble::secret(data_dir).map_err(|e| e.to_string())?,
            tls: assemble::certificate(settings).map_err(|e| e.to_string())?,
            webhook_roots: assemble::webhook_roots(settings)?,
            runtime,
            config,
        })
    }

    /// Opens the TLS session tickets of another process, whose keys these are.
    pub fn take_ticket_keys(&mut self, keys: &[u8]) -> Result<(), tls::MalformedTicketKeys> {
        self.tls = self.tls.with_ticket_keys(keys)?;
        Ok(())
    }
}

/// What another process left to this one.
pub struct Heritage {
    /// Sessions and the listeners of clients.
    pub take_over: TakeOver,
    /// The listeners of the HTTP APIs.
    pub http: Vec<std::net::TcpListener>,
}

/// A node with its HTTP side.
pub struct Running {
    config: Config,
    secret: [u8; 32],
    server: Server,
    runtime: tokio::runtime::Runtime,
    http: HttpSide,
    admin_key: AdminKey,
    supervisor: Supervisor,
    control: Control,
    /// The process that stays for whoever watches it, since an earlier upgrade.
    guardian: Option<u32>,
    /// Why it is never handed over, if it is not.
    upgrade_refusal: Option<&'static str>,
    is_new: bool,
    /// Sessions that another process left.
    inherited: u64,
    /// The binary of this process.
    binary: PathBuf,
}

/// What became of a node that was handed over.
pub(crate) enum Left {
    /// The other process serves it.
    Served {
        /// The process.
        pid: u32,
        /// Sessions that it serves.
        sessions: u64,
        /// How long clients waited.
        silence_ms: u64,
        /// What is left for this process to do.
        remains: Remains,
    },
    /// The other process took it and does not serve it: the node is down.
    Lost(String),
}

/// The HTTP APIs.
struct HttpSide {
    at: SocketAddr,
    options: carillon_http::Options,
    /// The listening sockets once more, for a process that takes over.
    listeners: Vec<std::net::TcpListener>,
    /// What ends them, and what tells that they ended.
    serving: Option<(oneshot::Sender<()>, oneshot::Receiver<()>)>,
}

impl Running {
    /// Starts a node: opens the store, makes sure that its domain and admin key are there, binds every port.
    pub fn start(prepared: Prepared, heritage: Option<Heritage>) -> Result<Running, String> {
        let Prepared { config, secret, tls, webhook_roots, runtime } = prepared;
        let settings = &config.settings;
        let data_dir = &settings.node.data_dir;
        let (take_over, left) = heritage.map(|left| (left.take_over, left.http)).unzip();
        // What another process had open until now is not searched for damage: clients wait.
        let store = assemble::open_store(settings, take_over.is_none()).map_err(|e| e.to_string())?;
        let watch = assemble::watch(&store);
        let is_new = ensure_domain(&*store, &config)?;
        let admin_key = ensure_admin_key(&*store, data_dir)?;
        let core = Arc::new(assemble::core(settings, secret));
        let listeners = runtime.block_on(bind_http(settings, left.unwrap_or_default()))?;
        let at = listeners[0].local_addr().map_err(|e| e.to_string())?;
        let inherited = take_over.as_ref().map_or(0, |take_over| take_over.sessions() as u64);
        let server = Server::start_after(&assemble::server(settings), &tls, &core, store, take_over)
            .map_err(|e| e.to_string())?;
        tell(&uncovered(settings, &tls, &server));
        let options = assemble::http(settings, core, server.ports(), watch, webhook_roots);
        let http = HttpSide::start(&runtime, listeners, at, &server, options).map_err(|e| e.to_string())?;
        let client_at = |port: u16| reachable(SocketAddr::new(settings.server.addresses[0], port));
        let node = NodeFile {
            pid: std::process::id(),
            http: format!("http://{}", reachable(at)),
            c2s: server.ports().c2s.map(client_at),
            c2s_tls: server.ports().c2s_tls.map(client_at),
            ports: ready(&server, at).ports(),
        };
        node.write(data_dir).map_err(|e| e.to_string())?;
        let control = Control::listen(data_dir, runtime.handle());
        Ok(Running {
            config,
            secret,
            server,
            runtime,
            http,
            admin_key,
            is_new,
            supervisor: Supervisor::default(),
            control,
            guardian: None,
            upgrade_refusal: None,
            inherited,
            binary: binary(),
        })
    }

    /// Sessions that another process left.
    pub fn sessions(&self) -> u64 {
        self.inherited
    }

    /// The ports in use.
    pub fn ready(&self) -> Ready {
        ready(&self.server, self.http.at)
    }

    /// Prints where it listens, where the key is, and what to type next.
    pub fn welcome(&self) {
        let (config, ready) = (&self.config, self.ready());
        Welcome { config, ready, http: reachable(self.http.at), is_new: self.is_new }.print();
    }

    /// The key with every right on the node.
    pub fn admin_key(&self) -> &AdminKey {
        &self.admin_key
    }

    /// Tells a service manager from now on how the node is, beginning with that it is ready.
    pub fn report_to(&mut self, supervisor: Supervisor) {
        self.supervisor = supervisor;
        self.supervisor.ready(&self.ready().sentence());
        self.runtime.spawn(self.supervisor.clone().keep_alive(self.server.node()));
    }

    /// The data folder.
    pub fn data_dir(&self) -> &Path {
        &self.config.settings.node.data_dir
    }

    /// Takes over the handling of signals.
    pub fn listen(&self) -> std::io::Result<Signals> {
        self.runtime.block_on(async { Signals::listen() })
    }

    /// Serves until a signal ends it.
    pub fn until_told(mut self, mut signals: Signals, telemetry: &Telemetry) -> ExitCode {
        loop {
            let Running { runtime, control, .. } = &mut self;
            let wish = runtime.block_on(async {
                tokio::select! {
                    wish = signals.next() => Ok(wish),
                    asked = control.next() => Err(asked),
                }
            });
            let asked = match wish {
                Ok(Wish::Reload) => {
                    self.supervisor.reloading();
                    self.reload(telemetry);
                    self.supervisor.ready(&self.ready().sentence());
                    continue;
                }
                Ok(Wish::Upgrade) => match self.control.by_signal() {
                    Some(asked) => asked,
                    // It is the next one.
                    None => continue,
                },
                Ok(Wish::Drain) => break,
                Ok(Wish::Quit) => return ExitCode::FAILURE,
                Err(asked) => asked,
            };
            match self.obey(asked) {
                ControlFlow::Continue(running) => self = *running,
                ControlFlow::Break(Some(remains)) => return remains.run(signals),
                ControlFlow::Break(None) => return ExitCode::FAILURE,
            }
        }
        self.control.close();
        self.retire(&mut signals);
        tracing::info!("draining; another signal ends the node at once");
        self.runtime.spawn(async move {
            quit(&mut signals).await;
            std::process::exit(1);
        });
        self.drain()
    }

    /// Another process stays for whoever watches it: this one need not, after a further upgrade.
    pub fn guard(&mut self, guardian: Option<u32>) {
        self.guardian = guardian;
    }

    /// From now on nobody can have it handed over.
    pub fn refuse_upgrades(&mut self, why: &'static str) {
        self.upgrade_refusal = Some(why);
    }

    /// Hands the node over as it was asked to, or goes on.
    fn obey(self, mut asked: Asked) -> ControlFlow<Option<Remains>, Box<Running>> {
        let handed = match self.upgrade_refusal {
            Some(why) => Err((Box::new(self), why.to_owned())),
            None => self.upgrade(asked.binary().as_deref(), &mut |step| asked.step(step)),
        };
        match handed {
            Ok(Left::Served { pid, sessions, silence_ms, remains }) => {
                asked.done(pid, sessions, silence_ms);
                ControlFlow::Break(Some(remains))
            }
            Ok(Left::Lost(why)) => {
                asked.failed(&format!("the node is down: {why}"));
                failed(&why);
                ControlFlow::Break(None)
            }
            Err((running, why)) => {
                tracing::error!(%why, "not handed over; this process goes on");
                asked.failed(&format!("{why}; the node goes on as it was"));
                ControlFlow::Continue(running)
            }
        }
    }

    /// Lets load balancers notice that the node is about to end, before it refuses anyone. One more signal ends the wait.
    fn retire(&self, signals: &mut Signals) {
        let delay_ms = self.config.settings.node.drain_delay_ms;
        if delay_ms == 0 {
            return;
        }
        let node = &self.config.settings.node;
        let ending_ms = delay_ms + node.drain_spread_ms + node.drain_timeout_ms;
        self.supervisor.stopping(Duration::from_millis(ending_ms));
        self.server.node().retire();
        tracing::info!(delay_ms, "not ready any more, still taking sessions; another signal ends the wait");
        let wait = async { tokio::time::timeout(Duration::from_millis(delay_ms), quit(signals)).await };
        let _ = self.runtime.block_on(wait);
    }

    /// Ends: no new sessions, the present ones are told, the store is flushed. HTTP ends last, so that `/readyz` answers 503
    /// for as long as the sessions take.
    pub fn drain(mut self) -> ExitCode {
        let node = &self.config.settings.node;
        let timeout = Duration::from_millis(node.drain_timeout_ms);
        let spread = Duration::from_millis(node.drain_spread_ms);
        self.supervisor.stopping(spread + timeout);
        self.http.listeners.clear();
        let all_gone = self.server.drain(timeout, spread);
        self.http.end(&self.runtime, timeout);
        self.runtime.shutdown_timeout(Duration::from_millis(100));
        if let Err(error) = NodeFile::remove(&self.config.settings.node.data_dir) {
            tracing::warn!(%error, "cannot remove node.json");
        }
        if !all_gone {
            tracing::warn!("some connections did not end in time and were closed");
        }
        ExitCode::SUCCESS
    }

    /// Hands the node over to a process of `binary`, or of this one's own; `told` hears of the steps. The node goes on here if that
    /// fails.
    fn upgrade(
        mut self,
        binary: Option<&Path>,
        told: &mut dyn FnMut(&str),
    ) -> Result<Left, (Box<Running>, String)> {
        let binary = binary.unwrap_or(&self.binary).to_owned();
        match self.hand_over(&binary, told) {
            Ok(handed) => Ok(self.leave(handed)),
            Err(error) => Err((Box::new(self), error.to_string())),
        }
    }

    /// Gives all sessions to another process, which waits for a last word.
    fn hand_over(&mut self, binary: &Path, told: &mut dyn FnMut(&str)) -> Result<Handed, HandOverError> {
        if self.server.node().drain_progress().is_some() {
            return Err(HandOverError::Draining);
        }
        let timeouts = self.config.settings.upgrade.timeouts();
        told(&format!("starting {}", binary.display()));
        let mut departure = Departure::begin(binary, self.data_dir(), self.guardian(), timeouts)?;
        told(&format!("process {} of release {} is ready to take over", departure.pid, departure.release));
        departure.listeners(&self.server, &self.http.listeners, timeouts)?;
        self.server.set_accepting(false);
        self.http.end(&self.runtime, timeouts.requests);
        let handed = departure.sessions(&self.server, timeouts);
        if handed.is_err() {
            self.server.set_accepting(true);
            if let Err(error) = self.http.resume(&self.runtime, &self.server) {
                tracing::error!(%error, "the HTTP APIs are not served any more; restart the node");
            }
        }
        handed
    }

    fn guardian(&self) -> Guardian {
        Guardian::of(self.guardian, self.config.settings.upgrade.stay)
    }

    /// Has the other process go on, and ends.
    fn leave(mut self, handed: Handed) -> Left {
        let settings = &self.config.settings;
        let relayed = Duration::from_millis(settings.upgrade.relay_timeout_ms);
        let closing = Duration::from_millis(settings.core.timeouts.close_ms);
        let node = &settings.node;
        let drained =
            Duration::from_millis(node.drain_delay_ms + node.drain_spread_ms + node.drain_timeout_ms);
        let pid = handed.pid();
        let guarded = (self.guardian() == Guardian::Own).then(|| node.data_dir.clone());
        let (gone, sessions) = match handed.go(&mut self.server, &self.supervisor) {
            Ok(gone) => gone,
            Err(why) => {
                return Left::Lost(format!("the new process, which was to serve: {why}; see its log"));
            }
        };
        let Gone { sessions: count, silence } = gone;
        let silence_ms = silence.as_millis() as u64;
        tracing::info!(pid, sessions = count, silence_ms, "handed over");
        let relays = self.server.leave(sessions, closing);
        self.runtime.shutdown_timeout(Duration::from_millis(100));
        let remains = Remains { relays, relayed, drained, node: pid, guarded };
        Left::Served { pid, sessions: count, silence_ms, remains }
    }

    /// Reads the configuration again and applies what can be applied.
    fn reload(&mut self, telemetry: &Telemetry) {
        let reloaded = match self.config.reload() {
            Ok(reloaded) => reloaded,
            Err(problems) => {
                tracing::error!(%problems, "the configuration was not reloaded");
                return;
            }
        };
        self.config = reloaded.config;
        let settings = &self.config.settings;
        telemetry.set_level(settings.log.level);
        self.server.reload_settings(&Arc::new(assemble::core(settings, self.secret)));
        self.server.reload_bounds(settings.server.bounds, settings.server.out_queue_bytes);
        self.server.reload_events(settings.server.event_log.kinds);
        match assemble::certificate(settings) {
            Ok(tls) => self.server.reload_tls(&tls),
            Err(error) => tracing::error!(%error, "the certificate was not reloaded"),
        }
        self.reload_policy();
        for key in reloaded.needs_restart {
            tracing::warn!(key, "changed, but only a restart applies it");
        }
        tracing::info!(changed = ?reloaded.changed, "reloaded");
    }

    fn reload_policy(&self) {
        let domain = self.config.settings.node.domain.clone();
        let Some(present) = self.server.node().domains().named(&domain).map(|d| d.policy) else { return };
        let put = PutDomain { name: domain.into(), policy: policy(&self.config, present) };
        let node = self.server.node();
        self.server.node().ask(put, move |answer| match answer {
            Ok(_) => node.reload_domains(Box::new(|()| {})),
            Err(fault) => tracing::error!(%fault, "the domain's policy was not reloaded"),
        });
    }
}

/// The policy of the configured domain: what the configuration says, and where it says nothing, what is in force.
fn policy(config: &Config, present: Policy) -> Policy {
    let set = |key: &str| {
        let setting = SETTINGS.iter().find(|s| s.key == key).expect("a key of this program");
        *config.origin(setting) != Origin::Default
    };
    let wanted = config.settings.policy;
    Policy {
        sessions: if set("sessions.policy") { wanted.sessions } else { present.sessions },
        registration: if set("registration.in_band") { wanted.registration } else { present.registration },
        pubsub_create: if set("pubsub.create") { wanted.pubsub_create } else { present.pubsub_create },
        sessions_max: if set("sessions.max_per_account") {
            wanted.sessions_max
        } else {
            present.sessions_max
        },
        messages_durable: if set("messages.durable") {
            wanted.messages_durable
        } else {
            present.messages_durable
        },
        // The node's own setting bounds it for all domains.
        resumption_ms_max: present.resumption_ms_max,
    }
}

/// The binary of this process, as it was named before another file is put in its place.
fn binary() -> PathBuf {
    // A container may have no /proc, by which the system tells it; then it is found as whoever started it found it.
    std::env::current_exe().unwrap_or_else(|_| std::env::args_os().next().unwrap_or_default().into())
}

/// Waits for the signal that ends the node at once.
async fn quit(signals: &mut Signals) {
    while signals.next().await != Wish::Quit {}
}

/// The ports in use.
fn ready(server: &Server, http: SocketAddr) -> Ready {
    let ports = server.ports();
    Ready {
        pid: std::process::id(),
        c2s: ports.c2s,
        c2s_tls: ports.c2s_tls,
        websocket: ports.websocket,
        light: ports.light,
        http: Some(http.port()),
    }
}

/// The domains made at run time that the operator's certificate does not name; the configured one was looked at before.
fn uncovered(
    settings: &crate::config::Settings,
    certificate: &tls::Settings,
    server: &Server,
) -> Vec<Finding> {
    if settings.node.certificate.is_none() {
        return Vec::new();
    }
    let domains = server.node().domains();
    let names = domains.iter().map(|domain| &*domain.name);
    let others: Vec<&str> = names.filter(|name| *name != settings.node.domain).collect();
    preflight::uncovered(certificate, &others)
}

/// Makes sure that the configured domain is there, with its policy; whether it was not.
fn ensure_domain(store: &dyn Store, config: &Config) -> Result<bool, String> {
    let name = carillon_wire::jid::prepare_domain(&config.settings.node.domain)
        .map_err(|e| format!("domain: {e}"))?;
    let domains = ask(store, Domains)?;
    let present = domains.iter().find(|d| *d.name == *name).map(|d| d.policy);
    let policy = present.map_or(config.settings.policy, |present| policy(config, present));
    if present == Some(policy) {
        return Ok(false);
    }
    ask(store, PutDomain { name: name.into(), policy })?;
    Ok(present.is_none())
}

/// The key of the data folder, which the store knows then. One that the store knew before was removed: it may have leaked, so
/// another takes its place.
fn ensure_admin_key(store: &dyn Store, data_dir: &Path) -> Result<AdminKey, String> {
    let mut key = AdminKey::read_or_create(data_dir).map_err(|e| e.to_string())?;
    let mut hash = hash(&key)?;
    let known = ask(store, Key { hash })?.is_some();
    if !known && AdminKey::was_known(data_dir, &hash).map_err(|e| e.to_string())? {
        key = AdminKey::replace(data_dir).map_err(|e| e.to_string())?;
        hash = self::hash(&key)?;
        let path = AdminKey::path(data_dir);
        tracing::warn!(path = %path.display(), "the admin key was removed; another one was made");
    }
    if !known {
        create_admin_key(store, hash)?;
    }
    AdminKey::note_known(data_dir, &hash).map_err(|e| e.to_string())?;
    Ok(key)
}

fn hash(key: &AdminKey) -> Result<[u8; 32], String> {
    let hash = carillon_http::key_hash(key.as_str());
    hash.ok_or_else(|| "the admin key is not a key; remove the file to have a new one".to_owned())
}

fn create_admin_key(store: &dyn Store, hash: [u8; 32]) -> Result<(), String> {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = UnixMs(elapsed.as_millis() as u64);
    let scopes = Scopes::of(&[Scope::Admin]);
    let create = CreateKey { hash, name: "admin.key".into(), domain: None, scopes, now };
    match ask(store, create)? {
        CreateKeyAnswer::Created(_) => Ok(()),
        answer => Err(format!("the admin key cannot be written: {answer:?}")),
    }
}

/// Asks and waits: before anything else runs.
fn ask<Q: Question>(store: &dyn Store, question: Q) -> Result<Q::Answer, String> {
    let (sender, answers) = mpsc::sync_channel(1);
    store.ask(question.into(), Q::reply(move |answer| drop(sender.send(answer))));
    let answer = answers.recv().map_err(|_| "the store does not answer")?;
    answer.map_err(|fault| fault.to_string())
}

/// Binds the addresses of the HTTP APIs, unless another process left its sockets there.
async fn bind_http(
    settings: &crate::config::Settings,
    mut left: Vec<std::net::TcpListener>,
) -> Result<Vec<TcpListener>, String> {
    let addresses = match settings.node.http_addresses.as_slice() {
        [] => &settings.server.addresses,
        some => some,
    };
    let mut listeners: Vec<TcpListener> = Vec::new();
    let mut port = settings.node.http_port;
    for address in addresses {
        let at = SocketAddr::new(*address, port);
        let fits = |left: &std::net::TcpListener| {
            left.local_addr().is_ok_and(|bound| bound.ip() == at.ip() && (port == 0 || bound.port() == port))
        };
        let listener = match left.iter().position(fits) {
            Some(n) => TcpListener::from_std(left.swap_remove(n)),
            None => TcpListener::bind(at).await,
        };
        let listener = listener.map_err(|e| format!("cannot listen on {at} (http.port): {e}"))?;
        // Port 0: the first choice is good for all addresses.
        port = listener.local_addr().map_err(|e| e.to_string())?.port();
        listeners.push(listener);
    }
    if listeners.is_empty() { Err("no address to listen on (listen.address)".into()) } else { Ok(listeners) }
}

impl HttpSide {
    /// Serves on these sockets.
    fn start(
        runtime: &tokio::runtime::Runtime,
        listeners: Vec<TcpListener>,
        at: SocketAddr,
        server: &Server,
        options: carillon_http::Options,
    ) -> std::io::Result<HttpSide> {
        let copy = |listener: &TcpListener| Ok(listener.as_fd().try_clone_to_owned()?.into());
        let copies = listeners.iter().map(copy).collect::<std::io::Result<_>>()?;
        let mut http = HttpSide { at, options, listeners: copies, serving: None };
        http.serve(runtime, listeners, server);
        Ok(http)
    }

    fn serve(&mut self, runtime: &tokio::runtime::Runtime, listeners: Vec<TcpListener>, server: &Server) {
        let (end, told) = oneshot::channel::<()>();
        let (sender, ended) = oneshot::channel();
        let serving = carillon_http::serve(listeners, server.node(), self.options.clone(), told);
        runtime.spawn(async move {
            serving.await;
            let _ = sender.send(());
        });
        self.serving = Some((end, ended));
    }

    /// Accepts no more connections and lets the requests end that are under way, for `timeout` at most.
    fn end(&mut self, runtime: &tokio::runtime::Runtime, timeout: Duration) {
        let Some((end, ended)) = self.serving.take() else { return };
        let _ = end.send(());
        let in_time = runtime.block_on(async { tokio::time::timeout(timeout, ended).await });
        if in_time.is_err() {
            tracing::warn!("requests are under way for too long; they may fail");
        }
    }

    /// Serves again.
    fn resume(&mut self, runtime: &tokio::runtime::Runtime, server: &Server) -> std::io::Result<()> {
        let _within = runtime.enter();
        let copy = |listener: &std::net::TcpListener| TcpListener::from_std(listener.try_clone()?);
        let listeners = self.listeners.iter().map(copy).collect::<std::io::Result<_>>()?;
        self.serve(runtime, listeners, server);
        Ok(())
    }
}

/// An address under which the commands of this machine reach a listener.
fn reachable(at: SocketAddr) -> SocketAddr {
    match at.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(IpAddr::from([127, 0, 0, 1]), at.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => {
            SocketAddr::new(IpAddr::V6(std::net::Ipv6Addr::LOCALHOST), at.port())
        }
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_backend::sqlite::{Options, SqliteStore};
    use carillon_core::ports::store::keys::DeleteKey;

    #[test]
    fn an_admin_key_that_was_removed_stays_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(Options::new(folder.path().join("carillon.db"))).expect("a store");
        let first = ensure_admin_key(&store, folder.path()).expect("made");
        assert_eq!(ensure_admin_key(&store, folder.path()).expect("known"), first);
        let hash = hash(&first).expect("a key");
        let Ok(Some(known)) = ask(&store, Key { hash }) else { panic!("the store knows it") };
        assert_eq!(ask(&store, DeleteKey { id: known.id }), Ok(Ok(())));
        let second = ensure_admin_key(&store, folder.path()).expect("another");
        assert_ne!(second, first);
        assert_eq!(AdminKey::read(folder.path()).expect("written"), second);
        assert_eq!(ask(&store, Key { hash }), Ok(None), "the first is gone for good");
        assert_eq!(ensure_admin_key(&store, folder.path()).expect("known"), second);
    }

    #[test]
    fn a_key_that_the_operator_put_there_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(Options::new(folder.path().join("carillon.db"))).expect("a store");
        let own = AdminKey::read_or_create(folder.path()).expect("made");
        assert_eq!(ensure_admin_key(&store, folder.path()).expect("taken"), own);
    }
}
