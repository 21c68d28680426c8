//! This server as a push service (RFC 8030): senders of Web Push push to the endpoints that clients asked for over XMPP, and what they push are notifications for
//! these clients.
//!
//! - `resource` are the routes of senders, who have no key: the token in the URL is their right to push.
//! - `headers` reads what they say, `sender` checks who they are (RFC 8292) where an endpoint is for one sender alone.
//! - `receipt` tells senders whether a client has acknowledged what they pushed.
//! - `api` is what operators see of endpoints.

pub(crate) mod api;
mod headers;
pub(crate) mod receipt;
pub(crate) mod resource;
mod sender;

use crate::app::App;
use crate::links::origin_of;
use crate::options::Options;
use crate::problem::Code;
use carillon_core::model::{DomainId, EndpointKey, NotificationId};
use carillon_core::settings;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the push service of this node works with.
pub(crate) struct PushService {
    /// What the URLs of endpoints begin with, without a slash at the end; none where there are no endpoints.
    url: Option<Box<str>>,
    key: EndpointKey,
    receipts: receipt::Receipts,
    counters: Counters,
}

impl App {
    /// The node as a push service.
    pub(crate) fn push_service(&self) -> &PushService {
        self.part()
    }
}

/// Counts for `/metrics`.
#[derive(Default)]
struct Counters {
    taken: AtomicU64,
    gone: AtomicU64,
    unauthorized: AtomicU64,
    too_many: AtomicU64,
    refused: AtomicU64,
}

/// Checks settings that have to fit together; else the key of one that does not, and why.
///
/// # Errors
/// The key of the setting that is wrong, and what it has to be.
pub fn check(settings: &settings::PushService) -> Result<(), (&'static str, String)> {
    if settings.url.is_empty() {
        return Ok(());
    }
    let wrong = || {
        (
            "push.service_url",
            "it is `https://` and a host, with a port and a path if these are needed".to_owned(),
        )
    };
    let (scheme, rest) = settings.url.split_once("://").ok_or_else(wrong)?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !matches!(scheme, "https" | "http") || path.contains(['?', '#']) {
        return Err(wrong());
    }
    origin_of(&format!("{scheme}://{host}")).map(|_| ()).map_err(|why| ("push.service_url", why))
}

impl PushService {
    /// The push service of a node with these options, which were checked.
    pub(crate) fn new(options: &Options) -> PushService {
        let url = options.core.push.service.url.trim_end_matches('/');
        let is_disabled = options.core.features_disabled.iter().any(|name| name == "web_push");
        PushService {
            url: (!url.is_empty() && !is_disabled).then(|| url.into()),
            key: EndpointKey::of(&options.core.secret),
            receipts: receipt::Receipts::default(),
            counters: Counters::default(),
        }
    }

    /// The origin of the endpoints' URLs, which is the audience that senders name (RFC 8292 §2).
    fn origin(&self) -> &str {
        let url = self.url.as_deref().unwrap_or_default();
        // Two slashes are before the host.
        url.match_indices('/').nth(2).and_then(|(end, _)| url.get(..end)).unwrap_or(url)
    }

    /// The URL of a push, at which its sender takes it back.
    fn message_url(&self, domain: DomainId, id: NotificationId) -> String {
        let url = self.url.as_deref().unwrap_or_default();
        format!("{url}/push/messages/{}", self.key.message(domain, id))
    }

    /// Counts what became of a push.
    fn count(&self, refused: Option<Code>) {
        let Counters { taken, gone, unauthorized, too_many, refused: other } = &self.counters;
        let counter = match refused {
            None => taken,
            Some(Code::UnknownEndpoint | Code::EndpointGone) => gone,
            Some(Code::MissingSender | Code::OtherSender) => unauthorized,
            Some(Code::TooManyRequests | Code::TooManyPushes) => too_many,
            Some(_) => other,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Pushes by what became of them, if there is a push service.
    pub(crate) fn figures(&self) -> Option<[(&'static str, u64); 5]> {
        self.url.as_ref()?;
        let Counters { taken, gone, unauthorized, too_many, refused } = &self.counters;
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Some([
            ("taken", of(taken)),
            ("gone", of(gone)),
            ("unauthorized", of(unauthorized)),
            ("too_many", of(too_many)),
            ("refused", of(refused)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str) -> settings::PushService {
        settings::PushService { url: url.to_owned(), ..settings::PushService::default() }
    }

    #[test]
    fn where_endpoints_are_is_a_url_without_a_query() {
        for url in ["", "https://push.example", "https://push.example:8443/", "http://localhost:5280/base"] {
            assert_eq!(check(&at(url)), Ok(()), "{url}");
        }
        for url in ["push.example", "ftp://push.example", "https://", "https://a/?b", "https://a b"] {
            let wrong = check(&at(url)).expect_err(url);
            assert_eq!(wrong.0, "push.service_url");
        }
    }

    #[test]
    fn the_audience_is_an_origin() {
        let service = |url: &str| PushService {
            url: Some(url.into()),
            key: EndpointKey::of(&[0; 32]),
            receipts: receipt::Receipts::default(),
            counters: Counters::default(),
        };
        assert_eq!(service("https://push.example").origin(), "https://push.example");
        assert_eq!(service("http://a:80/b/c").origin(), "http://a:80");
    }
}
