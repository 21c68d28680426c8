//! The wiring: settings become what each crate is started with. The only place that knows every concrete type.

use crate::config::Settings;
use crate::options::Queue;
use carillon_backend::StoreOptions;
use carillon_core::model::Epoch;
use carillon_core::ports::modules::Runtime;
use carillon_core::ports::{self, Members, Store};
use carillon_core::settings as core;
use carillon_http::{IntakeQueue, PushApps, PushTemplates, VapidKey, WebhookRoots};
use carillon_server::Options;
use carillon_server::tls::{self, SettingsError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(any(feature = "aws", feature = "nats"))]
use std::time::Duration;
use tokio::sync::watch;

/// What the core is started with: its settings, and what follows from others. `secret` is the node's own, the same after a
/// restart; `vapid` is the key by which push services know it.
pub fn core(settings: &Settings, secret: [u8; 32], vapid: &str) -> core::Settings {
    let mut core = core::Settings { secret, ..settings.core.clone() };
    core.push.vapid = vapid.into();
    core.push.apps = push_app_names(settings);
    let light = &mut core.light.domain;
    let named = if light.is_empty() { settings.node.domain.as_str() } else { &**light };
    // A domain's name as the node knows it; one that is no name is found nowhere, and the clients are told so.
    *light = carillon_wire::jid::prepare_domain(named).unwrap_or_default().into();
    if !settings.node.stream_management {
        core.features_disabled.push("stream_management".to_owned());
    }
    core
}

/// The certificates: the operator's, or a self-signed one of the data folder, and those for further hosts.
pub fn certificates(settings: &Settings) -> Result<tls::Settings, SettingsError> {
    let node = &settings.node;
    let tls = match (&node.certificate, &node.certificate_key) {
        (Some(certificate), Some(key)) => tls::Settings::load(certificate, key)?,
        _ => tls::Settings::self_signed_in(&node.data_dir, &certified_names(settings))?,
    };
    match &node.certificates {
        Some(folder) => tls.with_certificates(&tls::certificate_files(folder)?),
        None => Ok(tls),
    }
}

/// Whom the self-signed certificate is for: the domain, and the names and addresses by which clients reach this machine.
fn certified_names(settings: &Settings) -> Vec<String> {
    let mut names = vec![settings.node.domain.clone()];
    // A host name in other letters cannot be in a certificate, and its ASCII form may be.
    names.extend(Some(settings.node.host.clone()).filter(|host| !host.is_empty() && host.is_ascii()));
    names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
    let addresses = settings.server.addresses.iter().filter(|address| !address.is_unspecified());
    names.extend(addresses.map(ToString::to_string));
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// What the server is started with.
pub fn server(settings: &Settings) -> Options {
    let mut options = settings.server.clone();
    options.event_log.folder = event_folder(settings);
    if settings.http.cells.front {
        // Its devices connect to their cells.
        options.c2s.enabled = false;
        options.c2s_tls.enabled = false;
        options.websocket.enabled = false;
        options.light.port = None;
        options.quic = None;
    }
    options
}

/// The folder of the event log.
pub fn event_folder(settings: &Settings) -> PathBuf {
    let folder = &settings.server.event_log.folder;
    if folder.as_os_str().is_empty() { settings.node.data_dir.join("events") } else { folder.clone() }
}

/// A store, and who shares it if others can.
pub struct Opened {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The nodes that share it.
    pub members: Option<Arc<dyn Members>>,
}

/// Opens the store: the embedded one, searched for damage if that is wanted, or the one on the PostgreSQL that the settings name; there this process
/// goes on with the node that another was until now, if it is told its epoch.
pub fn open_store(settings: &Settings, is_searched: bool, goes_on: Option<Epoch>) -> Result<Opened, String> {
    if !settings.node.store_url.is_empty() {
        return open_postgres(settings, goes_on).map_err(|e| format!("store.url: {e}"));
    }
    let store = carillon_backend::open(StoreOptions { is_searched, ..store(settings) });
    Ok(Opened { store: store.map_err(|e| e.to_string())?, members: None })
}

#[cfg(feature = "postgres")]
fn open_postgres(settings: &Settings, goes_on: Option<Epoch>) -> Result<Opened, String> {
    let options = postgres_of_node(settings, goes_on)?;
    let store = carillon_backend::postgres::PostgresStore::open(options).map_err(|e| e.to_string())?;
    let members = Some(store.members());
    Ok(Opened { store: Arc::new(store), members })
}

/// Shows the others that the node of this epoch is not gone, while no process of it has the store.
#[cfg(feature = "postgres")]
pub fn show_node(settings: &Settings, epoch: Epoch) -> Result<carillon_backend::postgres::Presence, String> {
    let options = postgres_of_node(settings, Some(epoch))?;
    carillon_backend::postgres::show(options).map_err(|e| format!("store.url: {e}"))
}

/// Nobody is shown that the node is there: without PostgreSQL there are no others.
#[cfg(not(feature = "postgres"))]
#[derive(Debug)]
pub struct Presence;

/// Does nothing.
///
/// # Errors
/// None.
#[cfg(not(feature = "postgres"))]
pub fn show_node(_: &Settings, _: Epoch) -> Result<Presence, String> {
    Ok(Presence)
}

#[cfg(feature = "postgres")]
fn postgres_of_node(
    settings: &Settings,
    goes_on: Option<Epoch>,
) -> Result<carillon_backend::postgres::Options, String> {
    let mut options = postgres(settings)?;
    let name = node_name(settings, &settings.node.data_dir).map_err(|e| format!("node.name: {e}"))?;
    (options.node, options.goes_on) = (name.into(), goes_on);
    options.joins = joins(settings)?;
    Ok(options)
}

/// What the node says of itself to the others of its cell, if it is in one.
#[cfg(feature = "postgres")]
fn joins(settings: &Settings) -> Result<Option<carillon_backend::postgres::Joins>, String> {
    let cell = &settings.cell;
    if cell.nats.is_empty() || cell.secret_file.is_none() {
        return Ok(None);
    }
    let secret = carillon_backend::postgres::Joins::digest(&secret(settings)?);
    let redis = if cell.redis.is_empty() { "empty" } else { "set" };
    Ok(Some(carillon_backend::postgres::Joins {
        release: env!("CARGO_PKG_VERSION").into(),
        shared: vec![
            ("cell.secret_file".into(), secret),
            ("cell.prefix".into(), cell.prefix.as_str().into()),
            ("cell.redis".into(), redis.into()),
        ],
    }))
}

/// How the PostgreSQL that the settings name is connected to.
#[cfg(feature = "postgres")]
pub fn postgres(settings: &Settings) -> Result<carillon_backend::postgres::Options, String> {
    use std::os::unix::ffi::OsStrExt;
    let mut options =
        carillon_backend::postgres::Options::new(&settings.node.store_url).map_err(|e| e.to_string())?;
    options.readers = settings.store.readers;
    options.password_file.clone_from(&settings.node.store_password_file);
    if let Some(password) = std::env::var_os("PGPASSWORD").filter(|_| options.password_file.is_none()) {
        options.config.password(password.as_bytes());
    }
    Ok(options)
}

/// The node's name among those that share a database: the one that is set, or one that is made once and kept in its data folder. So a process
/// that is started again has the name of the one before it, and no other node has.
#[cfg(feature = "postgres")]
pub fn node_name(settings: &Settings, data_dir: &Path) -> std::io::Result<String> {
    if !settings.node.name.is_empty() {
        return Ok(settings.node.name.clone());
    }
    let path = data_dir.join("node.name");
    match std::fs::read_to_string(&path) {
        Ok(name) if (1..=255).contains(&name.trim().len()) => Ok(name.trim().to_owned()),
        Ok(_) => Err(std::io::Error::other(format!(
            "{} holds no name; remove it to have a new one",
            path.display()
        ))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let mut bytes = [0; 8];
            getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
            let name = format!("node-{:016x}", u64::from_be_bytes(bytes));
            crate::files::write_whole(&path, format!("{name}\n").as_bytes(), 0o644)?;
            Ok(name)
        }
        Err(e) => Err(e),
    }
}

#[cfg(not(feature = "postgres"))]
fn open_postgres(_: &Settings, _: Option<Epoch>) -> Result<Opened, String> {
    Err("this binary was built without PostgreSQL: build it with `--features postgres`".to_owned())
}

/// The database.
pub fn database(settings: &Settings) -> PathBuf {
    settings.node.data_dir.join("carillon.db")
}

fn store(settings: &Settings) -> StoreOptions {
    StoreOptions { path: database(settings), ..settings.store.clone() }
}

/// The key by which push services know this server: that of `push.vapid_key_file`, or one that follows from the node's secret.
pub fn vapid(settings: &Settings, secret: &[u8; 32]) -> Result<VapidKey, String> {
    settings
        .http
        .push
        .vapid_key_file
        .as_deref()
        .map_or_else(|| Ok(VapidKey::of_secret(secret)), VapidKey::load)
}

/// The apps that push services of makers of devices know, with what their files hold.
pub fn push_apps(settings: &Settings) -> Result<PushApps, String> {
    PushApps::load(&settings.push_apps)
}

/// What devices show of pushes.
pub fn push_templates(settings: &Settings) -> Result<PushTemplates, String> {
    PushTemplates::new(&settings.push_templates).map_err(|error| format!("push.templates.{error}"))
}

/// These apps as the core knows them.
fn push_app_names(settings: &Settings) -> Vec<core::PushApp> {
    let prepared = |domain: &String| carillon_wire::jid::prepare_domain(domain).unwrap_or_default().into();
    let apps = settings.push_apps.iter().map(|(name, app)| core::PushApp {
        name: name.as_str().into(),
        service: app.service,
        domains: app.domains.iter().map(prepared).collect(),
    });
    apps.collect()
}

/// The authorities of `webhooks.ca_file`.
pub fn webhook_roots(settings: &Settings) -> Result<WebhookRoots, String> {
    settings.http.webhooks.ca_file.as_deref().map_or_else(|| Ok(WebhookRoots::default()), WebhookRoots::load)
}

/// What compiles modules, where this is built with the feature `modules`.
pub fn modules() -> Option<Arc<dyn Runtime>> {
    #[cfg(feature = "modules")]
    {
        use carillon_modules::{Bounds, WasmRuntime};
        Some(Arc::new(WasmRuntime::new(Bounds::default())))
    }
    #[cfg(not(feature = "modules"))]
    {
        None
    }
}

/// What the HTTP side is started with. `ports` are those the server bound.
pub fn http(
    settings: &Settings,
    core: Arc<core::Settings>,
    ports: carillon_server::Ports,
    webhook_roots: WebhookRoots,
    vapid: VapidKey,
    push_apps: watch::Receiver<PushApps>,
    push_templates: watch::Receiver<PushTemplates>,
) -> carillon_http::Options {
    let (node, websocket) = (&settings.node, &settings.server.websocket);
    let host = if node.host.is_empty() { &node.domain } else { &node.host };
    let scheme = if websocket.tls { "wss" } else { "ws" };
    let made = ports.websocket.map(|port| format!("{scheme}://{host}:{port}{}", websocket.path));
    let mut http = settings.http.clone();
    if http.upload.folder.as_os_str().is_empty() {
        http.upload.folder = node.data_dir.join("uploads");
    }
    carillon_http::Options {
        settings: http,
        core,
        default_domain: node.domain.clone(),
        drain_timeout_ms: node.drain_timeout_ms,
        webhook_roots,
        vapid,
        push_apps,
        push_templates,
        queues: Vec::new(),
        objects: None,
        traces_kept_ms: settings.server.traces_kept_ms,
        trusted_proxies: carillon_server::TrustedProxies::new(&settings.server.trusted_proxies),
        endpoints: carillon_http::Endpoints {
            host: (!node.host.is_empty()).then(|| node.host.clone()),
            c2s_port: ports.c2s,
            c2s_tls_port: ports.c2s_tls,
            websocket_url: if node.websocket_url.is_empty() {
                made
            } else {
                Some(node.websocket_url.clone())
            },
        },
    }
}

/// The queues that messages are taken from.
pub fn queues(settings: &Settings) -> Result<Vec<IntakeQueue>, String> {
    let open = |(name, queue): (&String, &Queue)| {
        let opened = (if queue.is_sqs() { open_sqs(queue) } else { open_jetstream(name, queue) })
            .map_err(|e| format!("intake.queues.{name}: {e}"))?;
        Ok(IntakeQueue {
            name: name.as_str().into(),
            queue: opened,
            sender: queue.sender.as_str().into(),
            domain: Some(queue.domain.as_str()).filter(|domain| !domain.is_empty()).map(Into::into),
            messages_max: queue.messages_max,
            bytes_max: queue.bytes_max,
        })
    };
    settings.queues.iter().map(open).collect()
}

#[cfg(feature = "nats")]
fn open_jetstream(name: &str, queue: &Queue) -> Result<Arc<dyn ports::Queue>, String> {
    use carillon_backend::nats::{Auth, jetstream};
    let mut options = jetstream::Options::new("", &queue.stream, name);
    options.servers = queue.url.split(',').map(|server| server.trim().into()).collect();
    options.consumer = queue.consumer.as_str().into();
    options.subject = Some(queue.subject.as_str()).filter(|subject| !subject.is_empty()).map(Into::into);
    options.ack_wait = Duration::from_millis(queue.ack_wait_ms);
    options.unsettled_max = queue.unsettled_max;
    if let Some(file) = &queue.credentials {
        options.auth = Auth::Credentials(carillon_backend::Secret::File(file.clone()));
    }
    options.tls.authorities.clone_from(&queue.ca_file);
    for (named, to) in
        [(&queue.dead_stream, &mut options.dead_stream), (&queue.dead_subject, &mut options.dead_subject)]
    {
        if !named.is_empty() {
            *to = named.as_str().into();
        }
    }
    jetstream::open(options).map_err(|e| e.to_string())
}

#[cfg(not(feature = "nats"))]
fn open_jetstream(_: &str, _: &Queue) -> Result<Arc<dyn ports::Queue>, String> {
    Err("this binary was built without NATS: build it with `--features nats`".to_owned())
}

#[cfg(feature = "aws")]
fn open_sqs(queue: &Queue) -> Result<Arc<dyn ports::Queue>, String> {
    crate::aws::sqs::open(&queue.url, queue.ca_file.as_deref(), Duration::from_millis(queue.ack_wait_ms))
}

#[cfg(not(feature = "aws"))]
fn open_sqs(_: &Queue) -> Result<Arc<dyn ports::Queue>, String> {
    Err("this binary was built without AWS: build it with `--features aws`".to_owned())
}

/// Where the contents of uploaded files are, if that is a bucket.
pub fn objects(settings: &Settings) -> Result<Option<Arc<dyn carillon_http::ObjectStore>>, String> {
    let s3 = &settings.http.upload.s3;
    if s3.bucket.is_empty() || settings.core.upload.url.is_empty() {
        return Ok(None);
    }
    open_bucket(s3).map(Some).map_err(|error| format!("upload.s3_{error}"))
}

#[cfg(feature = "aws")]
fn open_bucket(s3: &carillon_http::S3Settings) -> Result<Arc<dyn carillon_http::ObjectStore>, String> {
    Ok(Arc::new(crate::aws::s3::Bucket::open(s3)?))
}

#[cfg(not(feature = "aws"))]
fn open_bucket(_: &carillon_http::S3Settings) -> Result<Arc<dyn carillon_http::ObjectStore>, String> {
    Err("bucket: this binary was built without AWS: build it with `--features aws`".to_owned())
}

/// The node's secret: that of its cell, or 32 bytes in the data folder, made once.
pub fn secret(settings: &Settings) -> Result<[u8; 32], String> {
    let Some(path) = &settings.cell.secret_file else {
        return own_secret(&settings.node.data_dir).map_err(|e| e.to_string());
    };
    let bytes = std::fs::read(path).map_err(|e| format!("cell.secret_file: {}: {e}", path.display()))?;
    let length = bytes.len();
    bytes.try_into().map_err(|_| format!("cell.secret_file: {} has {length} bytes, not 32", path.display()))
}

fn own_secret(data_dir: &Path) -> std::io::Result<[u8; 32]> {
    let path = data_dir.join("node.secret");
    match std::fs::read(&path) {
        Ok(bytes) if bytes.len() == 32 => Ok(bytes.try_into().expect("32 bytes")),
        Ok(_) => Err(std::io::Error::other(format!(
            "{} is not 32 bytes; remove it to have a new one",
            path.display()
        ))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let mut bytes = [0; 32];
            getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
            crate::files::write_whole(&path, &bytes, 0o600)?;
            Ok(bytes)
        }
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Source};
    use carillon_server::{Bounds, Ports};

    /// Nothing that an operator left alone is anything but what the crate that uses it says.
    #[test]
    fn a_default_configuration_is_the_default_of_every_crate() {
        let config = Config::load(&Source::default()).expect("valid");
        let settings = &config.settings;
        let light = core::Light { domain: "localhost".into(), ..core::Light::default() };
        let core = core(settings, [7; 32], "");
        assert_eq!(core, core::Settings { secret: [7; 32], light, ..core::Settings::default() });
        let mut options = Options::default();
        options.event_log.folder = "./data/events".into();
        assert_eq!(server(settings), options);
        assert_ne!(options.bounds, Bounds::NONE);
        assert_eq!(store(settings), StoreOptions::new("./data/carillon.db"));
        let core = Arc::new(core);
        let roots = webhook_roots(settings).expect("none are set");
        let (key, apps) = (VapidKey::of_secret(&[7; 32]), watch::channel(PushApps::default()).1);
        let templates = watch::channel(PushTemplates::default()).1;
        let options = http(settings, Arc::clone(&core), Ports::default(), roots, key, apps, templates);
        let mut http = carillon_http::Settings::default();
        http.upload.folder = "./data/uploads".into();
        assert_eq!(options.settings, http);
        assert!(Arc::ptr_eq(&options.core, &core), "what two crates read is one value");
    }

    /// Two nodes that share a database and name nothing must not end each other's writes; a node that is started again must those of the
    /// process before it.
    #[cfg(feature = "postgres")]
    #[test]
    fn a_node_keeps_its_name_and_no_other_has_it() {
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let name = |folder: &tempfile::TempDir, name: &str| {
            let mut settings = Settings::default();
            settings.node.data_dir = folder.path().into();
            settings.node.name = name.to_owned();
            node_name(&settings, &settings.node.data_dir).expect("a name")
        };
        let [one, other] = &folders;
        assert_eq!(name(one, "edge-1"), "edge-1");
        assert_eq!(name(one, ""), name(one, ""), "after a restart");
        assert_ne!(name(one, ""), name(other, ""));
        std::fs::write(one.path().join("node.name"), "\n").expect("written");
        let mut settings = Settings::default();
        settings.node.data_dir = one.path().into();
        assert!(
            node_name(&settings, &settings.node.data_dir).is_err(),
            "an empty file is no name that others could have, too"
        );
    }

    #[test]
    fn what_is_left_empty_follows_from_the_domain_and_the_data_folder() {
        let overrides =
            ["domain=Example.ORG", "data_dir=/d", "stream_management.enabled=false", "features.disabled=csi"];
        let source = Source { overrides: overrides.map(str::to_owned).to_vec(), file: None, data_dir: None };
        let settings = Config::load(&source).expect("valid").settings;
        let core = core(&settings, [0; 32], "");
        assert_eq!(&*core.light.domain, "example.org");
        assert_eq!(core.features_disabled, ["csi", "stream_management"]);
        assert_eq!(server(&settings).event_log.folder, Path::new("/d/events"));
        assert_eq!(store(&settings).path, Path::new("/d/carillon.db"));
    }
}
