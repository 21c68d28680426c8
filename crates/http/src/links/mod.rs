//! Short links: on hosts of their own, so that `/` and `/{code}` meet no route of the API.
//!
//! - `front` looks at the `Host` of each request before any route does; `hosts` knows which are those of links.
//! - `redirect` answers `GET /{code}`: from `cache` at once, without a task, a lock that is waited for, or the store; else from the store.
//! - `create` makes links, for the page, the API and notifications alike: `url` reads what may be shortened, `code` derives the code.
//! - `clicks` gathers who followed what, and has the store count it some times per second; `agent` is all that is kept of a program.
//! - `page` is what people see, `files` what telephones fetch, `routes` puts these together for the hosts of links, and `document` describes them.
//! - `api` and `file_api` are the routes of the API.

mod agent;
pub(crate) mod api;
mod cache;
pub(crate) mod clicks;
mod code;
mod create;
mod document;
pub(crate) mod file_api;
mod file_rules;
mod files;
mod front;
mod headers;
mod hosts;
pub(crate) mod page;
mod public;
mod redirect;
mod routes;
mod url;

pub(crate) use create::Shortened;
pub use file_rules::check as check_file;
pub(crate) use front::Front;
pub(crate) use hosts::{Host, name_of, origin_of};

use crate::app::App;
use crate::options::LinkSettings;
use crate::problem::{Code, Problem};
use crate::random;
use axum::Router;
use axum::http::{HeaderMap, Uri};
use axum::routing::get;
use cache::{Cache, Key};
use carillon_core::model::{Domain, DomainId, Link};
use carillon_core::ports::Missing;
use carillon_core::ports::store::links::{LinkBounds, LinkSecret};
use clicks::Clicks;
use code::Secret;
use public::Senders;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What the hosts of links serve, and what describes it.
pub(crate) fn routes() -> Router<App> {
    routes::routes().route("/openapi.json", get(document::serve))
}

/// What the links of this node work with.
pub(crate) struct Links {
    hosts: Vec<Host>,
    cache: Cache,
    clicks: Clicks,
    figures: Figures,
    /// As many as there are domains with hosts.
    secrets: Mutex<HashMap<DomainId, Secret>>,
    senders: Senders,
    files: files::Files,
}

impl App {
    /// Short links.
    pub(crate) fn links(&self) -> &Links {
        self.part()
    }
}

/// Counts for `/metrics`.
#[derive(Default)]
pub(crate) struct Figures {
    /// Requests for a code that led somewhere.
    pub(crate) followed: AtomicU64,
    /// Requests for a code that is not there.
    pub(crate) unknown: AtomicU64,
    /// Requests for a code that is taken down, or whose time is over.
    pub(crate) gone: AtomicU64,
    /// Codes that were found in memory.
    pub(crate) hits: AtomicU64,
    /// Codes that the store was asked for.
    pub(crate) misses: AtomicU64,
    /// Clicks that were counted in the store.
    pub(crate) clicks: AtomicU64,
    /// Notifications that were opened.
    pub(crate) opened: AtomicU64,
    /// Clicks that were dropped, because there was no room for more.
    pub(crate) dropped: AtomicU64,
    /// Links that were created.
    pub(crate) created: AtomicU64,
}

/// Adds one.
fn count(figure: &AtomicU64) {
    figure.fetch_add(1, Ordering::Relaxed);
}

/// Checks settings that have to fit together; else the key of one that does not, and why.
///
/// # Errors
/// The key of the setting that is wrong, and what it has to be.
pub fn check(settings: &LinkSettings) -> Result<(), (&'static str, String)> {
    hosts::read(&settings.hosts).map_err(|why| ("links.hosts", why))?;
    if let Some(scheme) = settings.app_schemes.iter().find(|scheme| !url::is_app_scheme(scheme)) {
        let why = format!(
            "`{scheme}` cannot be the scheme of an app: small letters, digits, `+`, `-` and `.`, and none that browsers act on"
        );
        return Err(("links.app_schemes", why));
    }
    if let Some(why) = settings.public_targets.iter().find_map(|target| url::host_name(target).err()) {
        return Err(("links.public_targets", why));
    }
    if settings.public && settings.public_targets.is_empty() {
        let why =
            "it needs the hosts that links of people without a key may lead to, because links.public is true";
        return Err(("links.public_targets", why.into()));
    }
    Ok(())
}

/// Whether this is a host of links by these settings.
pub(crate) fn are_links_at(settings: &LinkSettings, host: &str) -> bool {
    hosts::read(&settings.hosts).is_ok_and(|hosts| hosts.iter().any(|known| *known.name == *host))
}

impl Links {
    /// The links of a node with these settings, which were checked.
    pub(crate) fn new(settings: &LinkSettings) -> Links {
        let hosts = hosts::read(&settings.hosts).unwrap_or_else(|error| {
            tracing::error!(error, "links.hosts cannot be read: there are no links");
            Vec::new()
        });
        Links {
            hosts,
            cache: Cache::new(settings.cache_bytes),
            clicks: Clicks::default(),
            figures: Figures::default(),
            secrets: Mutex::default(),
            senders: Senders::default(),
            files: files::Files::default(),
        }
    }

    /// Whether there is a host of links.
    pub(crate) fn are_on(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// What was counted.
    pub(crate) fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Bytes of links in memory.
    pub(crate) fn cache_bytes(&self) -> usize {
        self.cache.bytes()
    }

    /// The host that a request is for, if it is one of links.
    fn host(&self, uri: &Uri, headers: &HeaderMap) -> Option<&Host> {
        hosts::of(&self.hosts, uri, headers)
    }

    /// The first host of a domain: that of the short URLs that are made without one.
    fn host_of(&self, domain: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| *host.domain == *domain)
    }

    /// Forgets where a link leads, because it was changed.
    fn forget(&self, domain: &str, code: &str) {
        if let Some(key) = self.host_of(domain).and_then(|host| Key::new(host.number, code.as_bytes())) {
            self.cache.forget(&key);
        }
    }

    /// Forgets all links of a domain that is gone.
    pub(crate) fn forget_domain(&self, domain: &Domain) {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner).remove(&domain.id);
        if let Some(host) = self.host_of(&domain.name) {
            self.cache.forget_all(host.number);
        }
    }

    /// What the codes of a domain are derived with. Made when it is first asked for, and the same on every node.
    async fn secret(app: &App, domain: DomainId) -> Result<Secret, Problem> {
        let secrets = || app.links().secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(secret) = secrets().get(&domain).copied() {
            return Ok(secret);
        }
        let asked = app.ask(LinkSecret { domain, fresh: random::bytes() }).await?;
        let secret =
            asked.map_err(|Missing| Problem::new(Code::UnknownDomain, "the domain has just been deleted"))?;
        secrets().insert(domain, secret);
        Ok(secret)
    }
}

/// How many links a domain may have.
fn bounds(app: &App) -> LinkBounds {
    let settings = &app.options.settings.links;
    LinkBounds { links: settings.per_domain_max, bytes: settings.bytes_per_domain_max }
}

/// The short URL of a link.
fn short_url(host: &Host, link: &Link) -> String {
    format!("{}/{}", host.origin, link.code)
}
