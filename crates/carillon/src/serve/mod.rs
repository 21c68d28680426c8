//! `carillon serve`: runs a node until it is told to end.

mod certificates;
mod http_side;
mod leave;
mod provision;
mod reload;
mod welcome;

use crate::assemble;
use crate::backends::{self, Opened};
use crate::cell::{GoesOn, Joined, Joining};
use crate::config::{Config, Source};
use crate::control::{Asked, Control};
use crate::files::{AdminKey, NodeFile, Ready};
use crate::preflight::{self, Finding, Purpose, Severity};
use crate::process::memory;
use crate::process::signal::{Signals, Wish};
use crate::process::supervisor::Supervisor;
use crate::process::telemetry::Telemetry;

use carillon_core::form;
use carillon_core::model::Epoch;
use carillon_server::handover::TakeOver;
use carillon_server::node::Node;
use carillon_server::{Beginning, Server, tls};
use certificates::CertificateFiles;
use http_side::{Clients, HttpSide};
use provision::{ensure_admin_key, ensure_domain};
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use welcome::Welcome;

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
    form::limit(config.settings.cell.form_max);
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
    vapid: carillon_http::VapidKey,
    pushes: Pushes,
    queues: Vec<carillon_http::IntakeQueue>,
    objects: Option<Arc<dyn carillon_http::ObjectStore>>,
    runtime: tokio::runtime::Runtime,
}

impl Prepared {
    /// Reads the files that the settings name.
    pub fn new(config: Config) -> Result<Prepared, String> {
        let settings = &config.settings;
        if !settings.node.core_dumps {
            memory::keep_private().map_err(|e| format!("cannot switch core dumps off (core_dumps): {e}"))?;
        }
        let data_dir = &settings.node.data_dir;
        std::fs::create_dir_all(data_dir).map_err(|e| format!("cannot make {}: {e}", data_dir.display()))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("http")
            .enable_all()
            .build()
            .map_err(|e| e.to_string())?;
        let secret = assemble::secret(settings)?;
        Ok(Prepared {
            vapid: assemble::vapid(settings, &secret)?,
            secret,
            tls: assemble::certificates(settings).map_err(|e| e.to_string())?,
            webhook_roots: assemble::webhook_roots(settings)?,
            pushes: Pushes::new(settings)?,
            queues: backends::queues::open(settings)?,
            objects: backends::objects::open(settings)?,
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
pub struct Inherited {
    /// Sessions and the listeners of clients.
    pub take_over: TakeOver,
    /// The listeners of the HTTP APIs.
    pub http: Vec<std::net::TcpListener>,
    /// The node of a cell that it was.
    pub(crate) cell: Option<GoesOn>,
}

/// What SIGHUP reads again of pushes.
struct Pushes {
    /// The apps that push services of makers of devices know.
    apps: watch::Sender<carillon_http::PushApps>,
    /// What devices show.
    templates: watch::Sender<carillon_http::PushTemplates>,
}

impl Pushes {
    fn new(settings: &crate::config::Settings) -> Result<Pushes, String> {
        let apps = watch::Sender::new(assemble::push_apps(settings)?);
        Ok(Pushes { apps, templates: watch::Sender::new(assemble::push_templates(settings)?) })
    }
}

/// A node with its HTTP side.
pub struct Running {
    config: Config,
    secret: [u8; 32],
    /// The public part of the key by which push services know it.
    vapid: String,
    pushes: Pushes,
    server: Server,
    runtime: tokio::runtime::Runtime,
    http: HttpSide,
    certificates: CertificateFiles,
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
    cell: Option<Joined>,
}

/// What a node reacts to beside its clients.
enum Event {
    Signal(Wish),
    Asked(Asked),
    /// A file of a certificate has changed.
    Certificates,
}

impl Running {
    /// Starts a node: opens the store, makes sure that its domain and admin key are there, binds every port.
    pub fn start(prepared: Prepared, inherited: Option<Inherited>) -> Result<Running, String> {
        let Prepared { config, secret, tls, webhook_roots, vapid, pushes, queues, objects, runtime } =
            prepared;
        let settings = &config.settings;
        let data_dir = &settings.node.data_dir;
        let (take_over, left, goes_on) =
            inherited.map_or((None, None, None), |left| (Some(left.take_over), Some(left.http), left.cell));
        let epoch = goes_on.as_ref().map(|goes_on| Epoch(goes_on.node.epoch));
        // What another process had open until now is not searched for damage: clients wait.
        let Opened { store, members } = backends::open_store(settings, take_over.is_none(), epoch)?;
        let joining = Joining::begin(&settings.cell, members, runtime.handle(), goes_on)?;
        let is_new = ensure_domain(&*store, &config)?;
        let admin_key = ensure_admin_key(&*store, data_dir)?;
        let core = Arc::new(assemble::core(settings, secret, &vapid.public()));
        let bound = runtime.block_on(http_side::bind(settings, left.unwrap_or_default()))?;
        let inherited = take_over.as_ref().map_or(0, |take_over| take_over.sessions() as u64);
        let cell = joining.as_ref().map(Joining::cell);
        let beginning = Beginning { take_over, cell, modules: assemble::modules() };
        let server = Server::start_after(&assemble::server(settings), &tls, &core, store, beginning)
            .map_err(|e| e.to_string())?;
        let joined = joining.map(|joining| joining.joined(&server)).transpose()?;
        tell(&uncovered(settings, &tls, &server));
        let mut options = assemble::http(
            settings,
            core,
            server.ports(),
            webhook_roots,
            vapid.clone(),
            pushes.apps.subscribe(),
            pushes.templates.subscribe(),
        );
        (options.queues, options.objects) = (queues, objects);
        let secured = (&tls, Clients::of(settings));
        let http = HttpSide::start(&runtime, bound, &server, secured, options).map_err(|e| e.to_string())?;
        let client_at = |port: u16| reachable(SocketAddr::new(settings.server.addresses[0], port));
        let node = NodeFile {
            pid: std::process::id(),
            http: format!("http://{}", reachable(http.at)),
            c2s: server.ports().c2s.map(client_at),
            c2s_tls: server.ports().c2s_tls.map(client_at),
            ports: ready(&server, &http).ports(),
        };
        node.write(data_dir).map_err(|e| e.to_string())?;
        let control = Control::listen(data_dir, runtime.handle());
        let certificates = runtime.block_on(async { CertificateFiles::new(&config.settings) });
        Ok(Running {
            certificates,
            config,
            secret,
            vapid: vapid.public(),
            pushes,
            server,
            runtime,
            http,
            admin_key,
            is_new,
            supervisor: Supervisor::default(),
            control,
            guardian: None,
            upgrade_refusal: None,
            cell: joined,
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
        ready(&self.server, &self.http)
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

    /// Whether the demo of real-time matches is served.
    pub fn has_match_demo(&self) -> bool {
        self.config.settings.http.match_demo
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
            let Running { runtime, control, server, certificates, config, .. } = &mut self;
            let node = server.node();
            let event = runtime.block_on(async {
                tokio::select! {
                    wish = signals.next() => Event::Signal(wish),
                    () = certificates.changed(&config.settings) => Event::Certificates,
                    asked = control.next() => Event::Asked(asked),
                    () = death(&node) => Event::Signal(Wish::Drain),
                }
            });
            let asked = match event {
                Event::Signal(Wish::Reload) => {
                    self.supervisor.reloading();
                    self.reload(telemetry);
                    self.supervisor.ready(&self.ready().sentence());
                    continue;
                }
                Event::Certificates => {
                    self.read_certificates();
                    continue;
                }
                Event::Signal(Wish::Upgrade) => match self.control.by_signal() {
                    Some(asked) => asked,
                    // It is the next one.
                    None => continue,
                },
                Event::Signal(Wish::Drain) => break,
                Event::Signal(Wish::Quit) => return ExitCode::FAILURE,
                Event::Asked(asked) => asked,
            };
            match self.obey(asked) {
                ControlFlow::Continue(running) => self = *running,
                ControlFlow::Break(Some(remains)) => return remains.run(signals),
                ControlFlow::Break(None) => return ExitCode::FAILURE,
            }
        }
        self.control.close();
        let has_died = self.server.node().has_died();
        if has_died {
            tracing::error!(
                "this process cannot serve any more: the node ends, to be started again by whoever watches it"
            );
        } else {
            self.retire(&mut signals);
        }
        tracing::info!("draining; another signal ends the node at once");
        self.runtime.spawn(async move {
            quit(&mut signals).await;
            std::process::exit(1);
        });
        let code = self.drain();
        if has_died { ExitCode::FAILURE } else { code }
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
        self.cell.iter_mut().for_each(Joined::leave);
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

/// Waits until a shard of the node has died of a fault: its accounts have no service until the process is started again.
async fn death(node: &Node) {
    let mut looks = tokio::time::interval(Duration::from_secs(1));
    while !node.has_died() {
        looks.tick().await;
    }
}

/// The ports in use.
fn ready(server: &Server, http: &HttpSide) -> Ready {
    let ports = server.ports();
    Ready {
        pid: std::process::id(),
        c2s: ports.c2s,
        c2s_tls: ports.c2s_tls,
        websocket: ports.websocket,
        light: ports.light,
        quic: ports.quic,
        http: Some(http.at.port()),
        https: http.ports.https,
        health: http.ports.health,
    }
}

/// The domains made at run time that the operator's certificate does not name; the configured one was looked at before.
fn uncovered(
    settings: &crate::config::Settings,
    certificate: &tls::Settings,
    server: &Server,
) -> Vec<Finding> {
    if settings.node.certificate.is_none() && settings.node.certificates.is_none() {
        return Vec::new();
    }
    let domains = server.node().domains();
    let names = domains.iter().map(|domain| &*domain.name);
    let others: Vec<&str> = names.filter(|name| *name != settings.node.domain).collect();
    preflight::uncovered(certificate, &others)
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
