//! What the API is told at start.

use crate::objects::ObjectStore;
use crate::push_settings::apps::PushApps;
use crate::push_settings::templates::PushTemplates;
use crate::push_settings::vapid::VapidKey;
use carillon_core::model::PushShown;
use carillon_core::ports::Queue;
use carillon_server::TrustedProxies;
use ipnet::IpNet;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// What the API is started with: its own settings, and what others have decided.
#[derive(Clone, Debug)]
pub struct Options {
    /// What an operator decides about the API alone.
    pub settings: Settings,
    /// The core's settings: how long a notification may wait, and how costly the keys of passwords are, is said there.
    pub core: Arc<carillon_core::settings::Settings>,
    /// The domain a node-wide key acts in when the request names none.
    pub default_domain: String,
    /// How long open requests are waited for at shutdown, in milliseconds.
    pub drain_timeout_ms: u64,
    /// Where devices connect.
    pub endpoints: Endpoints,
    /// Whose certificates the receivers of webhooks may have besides those that the system trusts.
    pub webhook_roots: WebhookRoots,
    /// The key by which push services know this server.
    pub vapid: VapidKey,
    /// Apps that push services of makers of devices know, the newest.
    pub push_apps: watch::Receiver<PushApps>,
    /// What devices show of pushes, the newest.
    pub push_templates: watch::Receiver<PushTemplates>,
    /// Queues whose messages are taken in.
    pub queues: Vec<IntakeQueue>,
    /// Where the contents of uploaded files are; none for a folder.
    pub objects: Option<Arc<dyn ObjectStore>>,
    /// How long the trace of a notification is kept after its end, in milliseconds: so long a notification is known again.
    pub traces_kept_ms: u64,
    /// Proxies that are believed whose request they forward, where people without a key may do so much per address.
    pub trusted_proxies: TrustedProxies,
}

/// A durable queue whose messages are taken in.
#[derive(Clone, Debug)]
pub struct IntakeQueue {
    /// Its name in the settings.
    pub name: Arc<str>,
    /// The queue.
    pub queue: Arc<dyn Queue>,
    /// Name of the API key as which its messages are sent.
    pub sender: Box<str>,
    /// The domain to act in, for a key of the whole node; by default the node's first.
    pub domain: Option<Box<str>>,
    /// Messages that are dealt with at once, at most.
    pub messages_max: usize,
    /// What their bodies may take together, in bytes; the last of them may be over it.
    pub bytes_max: usize,
}

/// What an operator decides about the API. Types and defaults are declared here and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Largest body of a request that is not a stream, in bytes.
    pub body_bytes_max: usize,
    /// What such bodies may take together, in bytes; more are refused.
    pub bodies_bytes_max: usize,
    /// Largest line of an NDJSON or CSV stream, in bytes.
    pub batch_line_bytes_max: usize,
    /// Largest payload of a notification or item, in bytes of compact JSON or XML.
    pub payload_bytes_max: usize,
    /// Targets one request may name.
    pub targets_max: usize,
    /// Notifications one request may have in flight at once.
    pub pending_max: usize,
    /// HTTP connections open at once; more wait in the backlog.
    pub connections_max: usize,
    /// Bytes that are kept for the idempotency keys of one API key.
    pub idempotency_bytes_max: u64,
    /// Event streams open at once.
    pub streams_max: usize,
    /// Days for which administrative acts are kept.
    pub audit_days: u32,
    /// Events a slow stream may be behind before it loses the oldest.
    pub stream_events_max: usize,
    /// How long a request may take to send its head, and its body if it is not a stream, in milliseconds.
    pub read_timeout_ms: u64,
    /// How long the node may take to answer a question, in milliseconds.
    pub answer_timeout_ms: u64,
    /// Whether `/metrics` needs a key with scope `admin`.
    pub metrics_key_required: bool,
    /// Requests to webhooks.
    pub webhooks: WebhookSettings,
    /// Waking apps by push services.
    pub push: PushSettings,
    /// Short links.
    pub links: LinkSettings,
    /// Notifications for every account of a domain.
    pub broadcasts: BroadcastSettings,
    /// Where the files of clients are.
    pub upload: UploadSettings,
    /// Whether the demo of real-time matches is served, which gives seats without a key.
    pub match_demo: bool,
    /// Other cells, where the node is their front.
    pub cells: CellsSettings,
    /// Spans of OpenTelemetry.
    pub otel: OtelSettings,
}

/// What an operator decides about spans of OpenTelemetry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtelSettings {
    /// The URL of the receiver, without `/v1/traces`; empty for none.
    pub endpoint: String,
    /// Of a million requests that do not say whether they are sampled, so many are.
    pub sample_per_million: u64,
}

/// What an operator decides about a front and its cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellsSettings {
    /// Whether the node is a front.
    pub front: bool,
    /// How long a request to a cell may take, in milliseconds.
    pub timeout_ms: u64,
    /// Requests to one cell that may be under way at once.
    pub requests_max: usize,
    /// What may be held for one cell, in bytes.
    pub held_bytes_max: u64,
    /// How long items are held for a cell that is away, in milliseconds.
    pub items_held_ms: u64,
    /// Devices that may be moving at once.
    pub moves_max: usize,
}

impl Default for CellsSettings {
    fn default() -> CellsSettings {
        CellsSettings {
            front: false,
            timeout_ms: 5000,
            requests_max: 64,
            held_bytes_max: 256 << 20,
            items_held_ms: 24 * 60 * 60 * 1000,
            moves_max: 16,
        }
    }
}

/// What an operator decides about broadcasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BroadcastSettings {
    /// Broadcasts of a domain that have not ended.
    pub per_domain_max: u32,
    /// What they may take up, in bytes.
    pub bytes_per_domain_max: u64,
}

impl Default for BroadcastSettings {
    fn default() -> BroadcastSettings {
        BroadcastSettings { per_domain_max: 20, bytes_per_domain_max: 1024 * 1024 }
    }
}

/// What an operator decides about where the files of clients are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadSettings {
    /// The folder of what is in them.
    pub folder: PathBuf,
    /// How long uploading a file may take, in milliseconds.
    pub put_ms: u64,
    /// How often what has expired is removed, in milliseconds.
    pub sweep_ms: u64,
    /// A bucket of S3 for what is in them, instead of the folder.
    pub s3: S3Settings,
}

/// A bucket of S3, or of what speaks its protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct S3Settings {
    /// Its name; empty for none.
    pub bucket: String,
    /// What the names of objects begin with.
    pub prefix: String,
    /// Its region; empty for that of the environment.
    pub region: String,
    /// The URL of another service than AWS; empty for AWS.
    pub endpoint: String,
    /// A file with the certificates that the service is known by; empty for those of the system.
    pub ca_file: PathBuf,
}

impl Default for UploadSettings {
    fn default() -> UploadSettings {
        UploadSettings {
            folder: PathBuf::new(),
            put_ms: 3_600_000,
            sweep_ms: 30_000,
            s3: S3Settings::default(),
        }
    }
}

/// What an operator decides about short links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// The hosts of short links, and the domain that each belongs to: `HOST=DOMAIN`.
    pub hosts: Vec<String>,
    /// Schemes of apps that links may lead to.
    pub app_schemes: Vec<String>,
    /// Whether people without a key may make links.
    pub public: bool,
    /// The hosts that their links may lead to.
    pub public_targets: Vec<String>,
    /// How many of them an address may make per minute.
    pub public_per_minute: u32,
    /// What links in memory may take, in bytes.
    pub cache_bytes: usize,
    /// Links that a domain may have.
    pub per_domain_max: u64,
    /// What their codes and URLs may take, in bytes.
    pub bytes_per_domain_max: u64,
}

impl Default for LinkSettings {
    fn default() -> LinkSettings {
        LinkSettings {
            hosts: Vec::new(),
            app_schemes: Vec::new(),
            public: false,
            public_targets: Vec::new(),
            public_per_minute: 10,
            cache_bytes: 64 * 1024 * 1024,
            per_domain_max: 1_000_000,
            bytes_per_domain_max: 512 * 1024 * 1024,
        }
    }
}

/// What an operator decides about requests to webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Whether they may go to `http://`, too.
    pub allow_http: bool,
    /// Networks that they may go to besides the public Internet, by `http://`, too.
    pub allow_addresses: Vec<IpNet>,
    /// A file of certificates of authorities (PEM) that is trusted besides those of the system.
    pub ca_file: Option<PathBuf>,
    /// How long one may take, in milliseconds.
    pub timeout_ms: u64,
    /// How long is waited at most after the first failure, in milliseconds; twice as long after each further one.
    pub retry_first_ms: u64,
    /// How long an event is tried that a receiver cannot take, in milliseconds.
    pub give_up_after_ms: u64,
}

impl Default for WebhookSettings {
    fn default() -> WebhookSettings {
        WebhookSettings {
            allow_http: false,
            allow_addresses: Vec::new(),
            ca_file: None,
            timeout_ms: 10_000,
            retry_first_ms: 1000,
            give_up_after_ms: 24 * 60 * 60 * 1000,
        }
    }
}

/// Authorities that the receivers of webhooks may be certified by, besides those that the system trusts.
#[derive(Clone, Debug, Default)]
pub struct WebhookRoots(Arc<[CertificateDer<'static>]>);

impl WebhookRoots {
    /// Those of a file of certificates (PEM).
    ///
    /// # Errors
    /// When it cannot be read, or holds no certificate.
    pub fn load(path: &Path) -> Result<WebhookRoots, String> {
        let failed = |error: &dyn fmt::Display| format!("webhooks.ca_file: {}: {error}", path.display());
        let certificates = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
        let certificates: Vec<_> = certificates.collect::<Result<_, _>>().map_err(|error| failed(&error))?;
        match certificates.is_empty() {
            true => Err(failed(&"there is no certificate in it")),
            false => Ok(WebhookRoots(certificates.into())),
        }
    }

    /// These, and those that the system trusts now.
    pub(crate) fn certificates(&self) -> impl Iterator<Item = CertificateDer<'static>> {
        // Those that cannot be read are not trusted, which shows where they are needed.
        rustls_native_certs::load_native_certs().certs.into_iter().chain(self.0.iter().cloned())
    }
}

/// What an operator decides about pushes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushSettings {
    /// The most that a push tells of what waits.
    pub shown: PushShown,
    /// A file with the key by which push services know this server (RFC 8292); one that follows from the node's secret if there is none.
    pub vapid_key_file: Option<PathBuf>,
    /// Whom push services ask if something is wrong: a URI of `mailto:` or `https:`; made of the node's domain if it is empty.
    pub vapid_subject: String,
    /// Whether requests may go to `http://`, too.
    pub allow_http: bool,
    /// Networks that they may go to besides the public Internet, by `http://`, too.
    pub allow_addresses: Vec<IpNet>,
    /// How long one may take, in milliseconds.
    pub timeout_ms: u64,
}

impl Default for PushSettings {
    fn default() -> PushSettings {
        PushSettings {
            shown: PushShown::Whole,
            vapid_key_file: None,
            vapid_subject: String::new(),
            allow_http: false,
            allow_addresses: Vec::new(),
            timeout_ms: 10_000,
        }
    }
}

/// Where devices connect to, as shown to those that enrol.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct Endpoints {
    /// Host name for TCP; the domain's own name where none is set.
    pub host: Option<String>,
    /// Port for XMPP over TCP with STARTTLS.
    pub c2s_port: Option<u16>,
    /// Port for XMPP over direct TLS (XEP-0368).
    pub c2s_tls_port: Option<u16>,
    /// URL for XMPP over WebSocket (RFC 7395).
    pub websocket_url: Option<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            body_bytes_max: 1024 * 1024,
            bodies_bytes_max: 64 * 1024 * 1024,
            batch_line_bytes_max: 64 * 1024,
            payload_bytes_max: 32 * 1024,
            targets_max: 1000,
            pending_max: 1000,
            connections_max: 4096,
            idempotency_bytes_max: 256 << 20,
            streams_max: 64,
            audit_days: 400,
            stream_events_max: 4096,
            read_timeout_ms: 30_000,
            answer_timeout_ms: 30_000,
            metrics_key_required: false,
            webhooks: WebhookSettings::default(),
            push: PushSettings::default(),
            links: LinkSettings::default(),
            broadcasts: BroadcastSettings::default(),
            upload: UploadSettings::default(),
            match_demo: false,
            cells: CellsSettings::default(),
            otel: OtelSettings::default(),
        }
    }
}
