//! The HTTP client of what asks other services: sources and drivers of the autoscaler, queues of AWS.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use ureq::http::{Request, header};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer that is read.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// An HTTP client.
#[derive(Debug)]
pub(crate) struct Web {
    agent: ureq::Agent,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Seconds after which to ask again, if it says so.
    pub(crate) retry_after: Option<u64>,
    pub(crate) body: String,
}

impl Web {
    /// A client that trusts the certificates in this file, or those that the system trusts.
    ///
    /// # Errors
    /// The file holds no certificates.
    pub(crate) fn new(ca_file: Option<&Path>) -> Result<Web, String> {
        let roots: Vec<Certificate<'static>> = match ca_file {
            Some(file) => certificates(file).map_err(|why| format!("{}: {why}", file.display()))?,
            None => {
                let found = rustls_native_certs::load_native_certs().certs;
                found.iter().map(|der| Certificate::from_der(der).to_owned()).collect()
            }
        };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::from(roots))
            .unversioned_rustls_crypto_provider(provider)
            .build();
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .tls_config(tls)
            .timeout_global(Some(TIMEOUT))
            .user_agent(concat!("carillon/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Ok(Web { agent })
    }

    /// Asks; every status is an answer.
    ///
    /// # Errors
    /// Nobody answers at this URL.
    pub(crate) fn ask(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Result<Answer, String> {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let wrong = |error: ureq::Error| match error {
            ureq::Error::Io(error) => format!("{url}: {error}"),
            other => format!("{url}: {other}"),
        };
        let response = match body {
            Some(body) => {
                request.body(body).map_err(ureq::Error::from).and_then(|request| self.agent.run(request))
            }
            None => request.body(()).map_err(ureq::Error::from).and_then(|request| self.agent.run(request)),
        };
        let mut response = response.map_err(wrong)?;
        let retry_after = response.headers().get(header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).lossy_utf8(true);
        Ok(Answer { status, retry_after, body: body.read_to_string().map_err(wrong)? })
    }

    /// Sends a request whose answer is read as it comes; every status is an answer.
    ///
    /// # Errors
    /// Nobody answers.
    #[cfg(feature = "aws")]
    pub(crate) fn exchange<B: ureq::AsSendBody>(
        &self,
        request: Request<B>,
        within: Duration,
    ) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
        let request = self.agent.configure_request(request).timeout_global(Some(within)).build();
        self.agent.run(request)
    }

    /// Gets a page; an answer that is no success is an error.
    ///
    /// # Errors
    /// Nobody answers, or not with a page.
    pub(crate) fn get(&self, url: &str, key: Option<&str>) -> Result<String, String> {
        let bearer = key.map(|key| format!("Bearer {key}"));
        let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
        let answer = self.ask("GET", url, &headers, None)?;
        match answer.status {
            200..300 => Ok(answer.body),
            401 | 403 => Err(format!("{url}: it answers {}: is the key right?", answer.status)),
            status => {
                let wait = answer.retry_after.map(|seconds| format!(" and asks to wait {seconds} s"));
                Err(format!("{url}: it answers {status}{}", wait.unwrap_or_default()))
            }
        }
    }
}

fn certificates(file: &Path) -> Result<Vec<Certificate<'static>>, String> {
    let pem = std::fs::read(file).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| error.to_string())? {
            found.push(certificate);
        }
    }
    if found.is_empty() { Err("it holds no certificate".to_owned()) } else { Ok(found) }
}

/// Reads a file that holds one word, such as a key.
pub(crate) fn secret(file: &Path) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(text.trim().to_owned())
}

/// `text` as one segment of a path or one value of a query: all but RFC 3986's unreserved characters is escaped.
pub(crate) fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
