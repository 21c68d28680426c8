//! Headers of files: what somebody uploaded must do nothing in the browser of somebody else.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use carillon_core::model::UploadedFile;
use std::fmt::Write;

/// Nothing that a file refers to is loaded, nothing in it runs, and it is of no origin.
const POLICY: &str = "default-src 'none'; sandbox; frame-ancestors 'none'";
/// What a page of another origin may send and read.
const METHODS: &str = "GET, HEAD, PUT, OPTIONS";
const SENT: &str = "authorization, content-type, if-none-match, if-range, range";
const READ: &str = "accept-ranges, content-disposition, content-length, content-range, etag";

/// What browsers show by themselves without running anything of it.
const SHOWN: &[&str] = &["image/avif", "image/gif", "image/jpeg", "image/png", "image/webp"];

/// Says what a file is.
pub(super) fn describe(headers: &mut HeaderMap, file: &UploadedFile, tag: &str) {
    let essence = file.media_type.split(';').next().unwrap_or_default().trim_end().to_ascii_lowercase();
    let is_shown = SHOWN.contains(&&*essence)
        || essence.starts_with("audio/")
        || (essence.starts_with("video/") && essence != "video/");
    let media_type = HeaderValue::from_str(&file.media_type).ok().filter(|_| !essence.is_empty());
    let unknown = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, media_type.unwrap_or(unknown));
    let disposition = if is_shown { "inline" } else { "attachment" };
    let text = format!("{disposition}; filename*=UTF-8''{}", encoded(&file.name));
    let text = HeaderValue::from_str(&text).expect("what is encoded is ASCII");
    headers.insert(header::CONTENT_DISPOSITION, text);
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::ETAG, HeaderValue::from_str(tag).expect("digits are ASCII"));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    // It is never another, and it may be deleted.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=3600"));
    headers.insert(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex, nofollow"));
}

/// Whatever is answered, web clients of any origin may read it: a request has a right by what is in it, and not by a cookie.
pub(super) async fn open_to_all(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(READ));
    let resource = HeaderName::from_static("cross-origin-resource-policy");
    headers.insert(resource, HeaderValue::from_static("cross-origin"));
    response
}

/// `OPTIONS`: what a browser asks before it lets a page do something.
pub(super) async fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, SENT),
        (header::ACCESS_CONTROL_MAX_AGE, "86400"),
    ];
    (axum::http::StatusCode::NO_CONTENT, headers).into_response()
}

/// As a value of RFC 8187 §3.2.1.
fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").expect("a string takes everything");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::model::UnixMs;

    fn described(name: &str, media_type: &str) -> (String, String) {
        let file = UploadedFile {
            name: name.into(),
            media_type: media_type.into(),
            bytes: 1,
            expires: UnixMs(0),
            attempt: None,
        };
        let mut headers = HeaderMap::new();
        describe(&mut headers, &file, "\"1\"");
        assert_eq!(headers[header::CONTENT_SECURITY_POLICY], POLICY);
        let text = |name| headers[name].to_str().expect("text").to_owned();
        (text(header::CONTENT_DISPOSITION), text(header::CONTENT_TYPE))
    }

    #[test]
    fn only_what_runs_nothing_is_shown() {
        for shown in ["image/png", "IMAGE/JPEG", "audio/ogg", "video/mp4; codecs=\"a\""] {
            assert!(described("a", shown).0.starts_with("inline;"), "{shown}");
        }
        for kept in
            ["text/html", "image/svg+xml", "application/pdf", "text/plain", "", "video/", "image/png2"]
        {
            assert!(described("a", kept).0.starts_with("attachment;"), "{kept}");
        }
        assert_eq!(described("a", "").1, "application/octet-stream");
        assert_eq!(described("a", "text/html").1, "text/html");
    }

    #[test]
    fn names_are_encoded() {
        let (disposition, _) = described("é\"; x=\r\n.exe", "a/b");
        assert_eq!(disposition, "attachment; filename*=UTF-8''%C3%A9%22%3B%20x%3D%0D%0A.exe");
    }
}
