//! The HTTP client of webhooks and of pushes: restricted destinations, the system's roots, no redirects, and a time limit.

use super::rules::Outcome;
use super::signature;
use crate::options::{PushSettings, WebhookRoots, WebhookSettings};
use crate::outgoing::address::{is_among, is_public};
use crate::problem::{Code, Problem};
use crate::telemetry;
use crate::values::time::now;
use axum::http::Uri;
use carillon_core::model::{TraceContext, WebhookSecret};
use ipnet::IpNet;
use std::io::Read;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use ureq::config::Config;
use ureq::http::{Request, Response, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body};

/// The HTTP client of webhooks, or of pushes.
#[derive(Debug)]
pub(crate) struct Client {
    /// Made for the first request: until then nobody reads the system's certificates.
    agent: OnceLock<Agent>,
    rules: Rules,
    roots: WebhookRoots,
    timeout: Duration,
    /// Connections to one host that are kept for the next request.
    idle_per_host: usize,
}

/// A request as it is sent.
pub(crate) struct Call {
    pub(crate) url: Box<str>,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

/// What was answered to a request: the status, what describes it, and `Retry-After`; or why nothing was.
pub(crate) type Answered = Result<(u16, Box<str>, Option<Duration>), Box<str>>;

/// A request to a webhook.
pub(super) struct Message {
    pub(super) url: Box<str>,
    pub(super) id: String,
    pub(super) secret: WebhookSecret,
    pub(super) body: Vec<u8>,
    /// The span of the request, if it is sampled.
    pub(super) trace: Option<TraceContext>,
}

/// What came of a request.
pub(crate) struct Attempt {
    /// What it means.
    pub(crate) outcome: Outcome,
    /// The status of the response, if there was one.
    pub(crate) status: Option<u16>,
    /// How long it took.
    pub(crate) took: Duration,
}

/// Where requests may go.
#[derive(Clone, Debug)]
struct Rules {
    /// What the settings of these are called.
    section: &'static str,
    allow_http: bool,
    allow: Arc<[IpNet]>,
}

/// An address to which no request goes.
#[derive(Debug, thiserror::Error)]
enum NotAllowed {
    #[error("{0} is not a public address, nor one of `{1}.allow_addresses`")]
    Address(IpAddr, &'static str),
    #[error("`http` is not allowed for {0}, which is not one of `{1}.allow_addresses`")]
    Plain(IpAddr, &'static str),
}

impl Client {
    pub(super) fn new(settings: &WebhookSettings, roots: WebhookRoots) -> Client {
        let rules = Rules {
            section: "webhooks",
            allow_http: settings.allow_http,
            allow: settings.allow_addresses.clone().into(),
        };
        let timeout = Duration::from_millis(settings.timeout_ms);
        Client { agent: OnceLock::new(), rules, roots, timeout, idle_per_host: 2 }
    }

    /// The client of pushes: `idle_per_host` connections to one push service are kept for the next request.
    pub(crate) fn of_pushes(settings: &PushSettings, roots: WebhookRoots, idle_per_host: usize) -> Client {
        let rules = Rules {
            section: "push",
            allow_http: settings.allow_http,
            allow: settings.allow_addresses.clone().into(),
        };
        let timeout = Duration::from_millis(settings.timeout_ms);
        Client { agent: OnceLock::new(), rules, roots, timeout, idle_per_host }
    }

    /// Checks a URL as far as that can be done without asking for its host's address.
    pub(crate) fn check(&self, url: &str) -> Result<(), Problem> {
        let problem = |detail: String| Problem::new(Code::InvalidValue, detail).at("/url");
        if url.len() > URL_BYTES_MAX {
            return Err(problem(format!("`url` has at most {URL_BYTES_MAX} bytes")));
        }
        let uri: Uri = url.parse().map_err(|error| problem(format!("`url` is not a URL: {error}")))?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(problem("`url` begins with `https://`".to_owned())),
        };
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') || url.contains('#') {
            return Err(problem("`url` has no user name, no password and no fragment".to_owned()));
        }
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(problem("`url` names no host".to_owned()));
        }
        if !is_tls && !self.rules.allow_http && self.rules.allow.is_empty() {
            let section = self.rules.section;
            return Err(problem(format!("`url` begins with `https://`: `{section}.allow_http` is off")));
        }
        match host.parse::<IpAddr>() {
            Ok(address) => self.rules.check(is_tls, address).map_err(|error| problem(error.to_string())),
            Err(_) => Ok(()),
        }
    }

    /// Sends a request, on a thread of its own while it is under way. Whoever calls it bounds how many are.
    pub(super) async fn send(self: &Arc<Self>, message: Message) -> Attempt {
        let client = Arc::clone(self);
        let sending = tokio::task::spawn_blocking(move || client.exchange(&message));
        sending.await.unwrap_or_else(|_| Attempt {
            outcome: Outcome::Down("the request was not made".into(), None),
            status: None,
            took: Duration::ZERO,
        })
    }

    fn exchange(&self, message: &Message) -> Attempt {
        let (began, timestamp) = (Instant::now(), now().0 / 1000);
        let mut headers = signature::headers(&message.secret, &message.id, timestamp, &message.body);
        headers.extend(message.trace.map(|trace| (telemetry::TRACEPARENT, telemetry::traceparent(trace))));
        let (outcome, status) = match self.post(&message.url, &headers, &message.body) {
            Ok((status, said, retry_after)) => (Outcome::of(status, said, retry_after), Some(status)),
            Err(error) => (Outcome::Down(error, None), None),
        };
        Attempt { outcome, status, took: began.elapsed() }
    }

    /// Makes a request, on a thread of its own while it is under way. Whoever calls it bounds how many are.
    pub(crate) async fn call(self: &Arc<Self>, call: Call) -> Answered {
        let client = Arc::clone(self);
        let calling = tokio::task::spawn_blocking(move || client.post(&call.url, &call.headers, &call.body));
        calling.await.unwrap_or_else(|_| Err("the request was not made".into()))
    }

    fn post(&self, url: &str, headers: &[(&'static str, String)], body: &[u8]) -> Answered {
        let request =
            headers.iter().fold(Request::post(url), |request, (name, value)| request.header(*name, value));
        let response =
            request.body(body).map_err(ureq::Error::from).and_then(|request| self.agent().run(request));
        let response = response.map_err(|error| Box::<str>::from(explain(&error)))?;
        let (status, retry_after) = (response.status().as_u16(), retry_after(&response));
        Ok((status, describe(response), retry_after))
    }

    fn agent(&self) -> &Agent {
        self.agent.get_or_init(|| {
            let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let roots = self.roots.certificates().map(|der| Certificate::from_der(&der).to_owned());
            let tls = TlsConfig::builder()
                .root_certs(RootCerts::from(roots.collect::<Vec<_>>()))
                .unversioned_rustls_crypto_provider(provider)
                .build();
            let config = Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(0)
                // One in the environment would make the requests to addresses that nobody has checked.
                .proxy(None)
                .tls_config(tls)
                .timeout_global(Some(self.timeout))
                .max_idle_connections(IDLE_MAX)
                .max_idle_connections_per_host(self.idle_per_host)
                .user_agent(concat!("carillon/", env!("CARGO_PKG_VERSION")))
                .build();
            Agent::with_parts(config, DefaultConnector::default(), Guarded(self.rules.clone()))
        })
    }
}

impl Rules {
    fn check(&self, is_tls: bool, address: IpAddr) -> Result<(), NotAllowed> {
        let is_allowed = is_among(&self.allow, address);
        match is_allowed || is_public(address) {
            false => Err(NotAllowed::Address(address, self.section)),
            true if is_tls || is_allowed || self.allow_http => Ok(()),
            true => Err(NotAllowed::Plain(address, self.section)),
        }
    }
}

/// Finds the addresses of a host, and gives those that requests may go to: to these the client connects, and asks nobody again.
#[derive(Debug)]
struct Guarded(Rules);

impl Resolver for Guarded {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = DefaultResolver::default().resolve(uri, config, timeout)?;
        let is_tls = uri.scheme_str() == Some("https");
        let (mut allowed, mut refused) = (self.empty(), None);
        for address in &found {
            match self.0.check(is_tls, address.ip()) {
                Ok(()) => allowed.push(*address),
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            Some(error) if allowed.is_empty() => Err(ureq::Error::Other(error.into())),
            _ => Ok(allowed),
        }
    }
}

/// What `Retry-After` says, if that is a number of seconds.
fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let text = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

/// The status and the beginning of the body, for people. A connection whose response was read to its end is used again.
fn describe(mut response: Response<Body>) -> Box<str> {
    let (status, mut text) = (response.status(), Vec::new());
    // What cannot be read is not there: the status says enough.
    let _ = response.body_mut().as_reader().take(TEXT_BYTES_MAX).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    let words: Vec<&str> = text.split(|c: char| c.is_control() || c.is_whitespace()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    if words.is_empty() { status.to_string().into() } else { format!("{status}: {}", words.join(" ")).into() }
}

fn explain(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::Other(error) => error.to_string(),
        ureq::Error::Timeout(_) => "the receiver did not answer in time".to_owned(),
        ureq::Error::HostNotFound => "the host has no address".to_owned(),
        other => other.to_string(),
    }
}

/// Connections that are kept for the next request, for some seconds.
const IDLE_MAX: usize = 64;
/// The longest URL.
const URL_BYTES_MAX: usize = 2048;
/// How much of a response is read.
const TEXT_BYTES_MAX: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn client(allow_http: bool, allow: &[&str]) -> Client {
        let allow_addresses = allow.iter().map(|text| text.parse().expect("a network")).collect();
        let settings = WebhookSettings { allow_http, allow_addresses, ..WebhookSettings::default() };
        Client::new(&settings, WebhookRoots::default())
    }

    #[test]
    fn urls_are_checked_before_anybody_is_asked() {
        let plain = client(false, &[]);
        for url in ["https://a.example/hook?x=1", "https://8.8.8.8:8443/", "https://[2606:4700::1111]/"] {
            assert!(plain.check(url).is_ok(), "{url}");
        }
        let long = format!("https://a.example/{}", "a".repeat(URL_BYTES_MAX));
        for url in [
            "",
            "a.example",
            "/hook",
            "ftp://a.example/",
            "http://a.example/",
            "https://",
            "https:///x",
            "https://u@a.example/",
            "https://u:p@a.example/",
            "https://a.example/#x",
            "https://a b/",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://169.254.169.254/",
            "http://8.8.8.8/",
            &long,
        ] {
            let problem = plain.check(url).expect_err(url);
            assert_eq!((problem.code(), problem.pointer()), (Code::InvalidValue, Some("/url")), "{url}");
        }
        assert!(client(true, &[]).check("http://8.8.8.8/").is_ok());
        assert!(client(true, &[]).check("http://10.0.0.1/").is_err(), "public ones only");
        let inside = client(false, &["10.0.0.0/8"]);
        assert!(inside.check("http://10.0.0.1/").is_ok() && inside.check("https://10.0.0.1/").is_ok());
        assert!(inside.check("http://8.8.8.8/").is_err() && inside.check("https://127.0.0.1/").is_err());
    }

    #[test]
    fn names_lead_only_where_requests_may_go() {
        let uri: Uri = "https://localhost:1/".parse().expect("a URL");
        let config = Agent::config_builder().build();
        let resolve = |client: &Client| {
            let after = ureq::unversioned::transport::time::Duration::NotHappening;
            let reason = ureq::Timeout::Resolve;
            let none = NextTimeout { after, reason, per_read: None, per_write: None };
            Guarded(client.rules.clone()).resolve(&uri, &config, none)
        };
        let refused = resolve(&client(true, &[])).expect_err("it is loopback");
        assert!(explain(&refused).contains("not a public address"), "{refused}");
        let found = resolve(&client(false, &["127.0.0.0/8", "::1/128"])).expect("it is allowed");
        assert!(!found.is_empty() && found.iter().all(|address| address.ip().is_loopback()));
    }
}
