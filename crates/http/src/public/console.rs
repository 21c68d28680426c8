//! The console and the pages of the documentation: files of `console/`, inside the binary.

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use sha2::{Digest, Sha256};

use crate::problem::{Code, Problem};

/// A file inside the binary.
pub(crate) struct Asset {
    pub(crate) name: &'static str,
    /// Its media type.
    pub(crate) kind: &'static str,
    pub(crate) bytes: &'static [u8],
}

macro_rules! assets {
    ($($name:literal: $kind:expr,)+) => {
        &[$(Asset { name: $name, kind: $kind, bytes: include_bytes!(concat!("../../../../console/", $name)) },)+]
    };
}

pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const CSS: &str = "text/css; charset=utf-8";
pub(crate) const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

const ASSETS: &[Asset] = assets! {
    "index.html": HTML,
    "docs.html": HTML,
    "style.css": CSS,
    "console.css": CSS,
    "docs.css": CSS,
    "icon.svg": SVG,
    "acts.js": SCRIPT,
    "api.js": SCRIPT,
    "app.js": SCRIPT,
    "autoscaler.js": SCRIPT,
    "broadcasts.js": SCRIPT,
    "cells.js": SCRIPT,
    "chart.js": SCRIPT,
    "cluster.js": SCRIPT,
    "compose.js": SCRIPT,
    "device.js": SCRIPT,
    "devices.js": SCRIPT,
    "docs.js": SCRIPT,
    "dom.js": SCRIPT,
    "domains.js": SCRIPT,
    "drain.js": SCRIPT,
    "events.js": SCRIPT,
    "format.js": SCRIPT,
    "keys.js": SCRIPT,
    "links.js": SCRIPT,
    "modules.js": SCRIPT,
    "notification.js": SCRIPT,
    "notifications.js": SCRIPT,
    "overview.js": SCRIPT,
    "page.js": SCRIPT,
    "path.js": SCRIPT,
    "people.js": SCRIPT,
    "pushes.js": SCRIPT,
    "queues.js": SCRIPT,
    "search.js": SCRIPT,
    "room.js": SCRIPT,
    "rooms.js": SCRIPT,
    "send.js": SCRIPT,
    "sessions.js": SCRIPT,
    "top.js": SCRIPT,
    "topic.js": SCRIPT,
    "topics.js": SCRIPT,
    "webhook.js": SCRIPT,
    "webhooks.js": SCRIPT,
};

/// To the console.
pub(crate) async fn root() -> Redirect {
    Redirect::to("/console")
}

/// The console.
pub(crate) async fn index(headers: HeaderMap) -> Response {
    serve("index.html", &headers)
}

/// The documentation.
pub(crate) async fn docs(headers: HeaderMap) -> Response {
    serve("docs.html", &headers)
}

/// A file of either.
pub(crate) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    serve(&name, &headers)
}

fn serve(name: &str, headers: &HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return Problem::new(Code::UnknownRoute, "the console has no such file").into_response();
    };
    asset.answer(headers, HeaderValue::from_static(POLICY))
}

impl Asset {
    /// The file for a browser, which may do what the policy says; that it is the one that the browser has, if it is.
    pub(crate) fn answer(&self, headers: &HeaderMap, policy: HeaderValue) -> Response {
        let tag = tag(self.bytes);
        if headers.get(header::IF_NONE_MATCH).is_some_and(|seen| *seen == tag) {
            return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response();
        }
        let mut response = self.bytes.into_response();
        let out = response.headers_mut();
        out.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        out.insert(header::ETAG, tag);
        // Asked about each time, so that a new version shows at once.
        out.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        out.insert(header::CONTENT_SECURITY_POLICY, policy);
        out.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        response
    }
}

fn tag(bytes: &[u8]) -> HeaderValue {
    let hash = Sha256::digest(bytes);
    let text = hash[..8].iter().fold(String::from("\""), |tag, byte| tag + &format!("{byte:02x}")) + "\"";
    HeaderValue::from_str(&text).expect("hexadecimal digits are ASCII")
}

/// Nothing but the console's own files, and requests to this very origin.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_names_is_there() {
        for page in ASSETS.iter().filter(|asset| asset.kind == HTML || asset.kind == SCRIPT) {
            let text = std::str::from_utf8(page.bytes).unwrap();
            for name in
                text.split(['"', '\'']).filter_map(|t| t.strip_prefix("/console/").or(t.strip_prefix("./")))
            {
                assert!(ASSETS.iter().any(|a| a.name == name), "{} names {name}", page.name);
            }
        }
    }

    #[test]
    fn no_page_reaches_elsewhere_or_has_inline_script() {
        for asset in ASSETS.iter().filter(|asset| asset.kind == HTML) {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            assert!(!text.contains("//cdn") && !text.contains("src=\"http") && !text.contains("href=\"http"));
            assert!(!text.contains("style=") && !text.contains(" onclick"), "{}", asset.name);
            assert_eq!(text.matches("<script").count(), text.matches("<script type=\"module\" src=").count());
        }
    }

    #[test]
    fn a_seen_file_is_not_sent_again() {
        let first = serve("style.css", &HeaderMap::new());
        let seen = HeaderMap::from_iter([(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone())]);
        assert_eq!(serve("style.css", &seen).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(serve("nothing.css", &seen).status(), StatusCode::NOT_FOUND);
    }
}
