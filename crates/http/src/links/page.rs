//! The pages of the hosts of links: one file each way, without script, without anything from elsewhere.

use super::headers::{NO_INDEX, NO_REFERRER, ROBOTS};
use crate::problem::{Code, Problem};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use carillon_core::model::{Link, UnixMs};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// What was filled in.
#[derive(Clone, Debug, Default, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    /// Where the link is to lead.
    pub(super) url: String,
    /// Its code; empty for one that is derived.
    #[serde(default)]
    pub(super) code: String,
    /// An API key with scope `links`.
    #[serde(default)]
    pub(super) key: String,
}

impl Form {
    /// Reads the body of a form.
    pub(super) fn read(bytes: &[u8]) -> Result<Form, Problem> {
        let form: Form =
            axum::extract::Query::try_from_uri(&uri(bytes)?).map(|axum::extract::Query(form)| form).map_err(
                |_| Problem::new(Code::InvalidValue, "the form has the fields `url`, `code` and `key`"),
            )?;
        Ok(form)
    }
}

/// A form's body as a query: both are written alike.
fn uri(bytes: &[u8]) -> Result<axum::http::Uri, Problem> {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    format!("/?{text}").parse().map_err(|_| Problem::new(Code::InvalidValue, "the form cannot be read"))
}

/// The page on which a URL is shortened.
pub(super) fn index(is_public: bool, form: &Form, status: StatusCode) -> Response {
    page("Shorten a link", &form_of(is_public, form, None), status)
}

/// The same after something was wrong.
pub(super) fn failed(is_public: bool, form: &Form, problem: &Problem) -> Response {
    let mut response = page("Shorten a link", &form_of(is_public, form, Some(problem)), problem.status());
    response.headers_mut().extend(problem.headers().iter().cloned());
    response
}

/// A link was made.
pub(super) fn made(short_url: &str, link: &Link, is_new: bool) -> Response {
    let (short, url) = (escaped(short_url), escaped(&link.url));
    let what = if is_new { "Your short link" } else { "The short link of this address" };
    let body = format!(
        "<h1>{what}</h1>\n<p class=\"short\"><a href=\"{short}\">{short}</a></p>\n\
         <p class=\"to\">It leads to <b>{url}</b></p>\n\
         <p><a href=\"{short}+\">Preview</a> · <a href=\"/\">Shorten another</a></p>"
    );
    page("Short link", &body, if is_new { StatusCode::CREATED } else { StatusCode::OK })
}

/// Where a link leads.
pub(super) fn preview(short_url: &str, url: &str, created: UnixMs) -> Response {
    let (short, host) = (escaped(short_url), escaped(host_of(url)));
    let url = escaped(url);
    let body = format!(
        "<h1>This link leads to {host}</h1>\n<p class=\"to\"><b>{url}</b></p>\n\
         <p><a class=\"button\" href=\"{url}\" rel=\"noreferrer nofollow\">Go there</a></p>\n\
         <p class=\"note\">{short}, since {}</p>",
        &created.to_xmpp()[..10]
    );
    page("Preview of a link", &body, StatusCode::OK)
}

/// There is no such link.
pub(super) fn unknown() -> Response {
    message(
        "No such link",
        "There is no link with this address. Was it copied as a whole?",
        StatusCode::NOT_FOUND,
    )
}

/// The link leads nowhere any more.
pub(super) fn gone() -> Response {
    message("This link is gone", "It has expired, or it was taken down.", StatusCode::GONE)
}

fn message(title: &str, text: &str, status: StatusCode) -> Response {
    page(title, &format!("<h1>{title}</h1>\n<p>{text}</p>"), status)
}

fn form_of(is_public: bool, form: &Form, problem: Option<&Problem>) -> String {
    let (url, code) = (escaped(&form.url), escaped(&form.code));
    let alert = problem.map_or_else(String::new, |problem| {
        format!("<p class=\"alert\" role=\"alert\">{}</p>\n", escaped(&for_people(problem)))
    });
    let (label, required) =
        if is_public { ("API key, if you have one", "") } else { ("API key", " required") };
    format!(
        "<h1>Shorten a link</h1>\n{alert}<form method=\"post\" action=\"/\">\n\
         <label for=\"url\">Address</label>\n\
         <input id=\"url\" name=\"url\" type=\"url\" inputmode=\"url\" required maxlength=\"2048\" \
         placeholder=\"https://example.com/a/long/address\" value=\"{url}\" autofocus>\n\
         <label for=\"code\">Code <span>(optional)</span></label>\n\
         <input id=\"code\" name=\"code\" maxlength=\"64\" pattern=\"[A-Za-z0-9_\\-]*\" autocapitalize=\"none\" \
         autocomplete=\"off\" spellcheck=\"false\" value=\"{code}\">\n\
         <label for=\"key\">{label}</label>\n\
         <input id=\"key\" name=\"key\" type=\"password\" autocomplete=\"current-password\"{required}>\n\
         <button>Shorten</button>\n</form>"
    )
}

/// A problem in the words of somebody who fills in a form.
fn for_people(problem: &Problem) -> String {
    let text = match problem.code() {
        Code::MissingKey if problem.detail().contains("Authorization") => "An API key is needed.".to_owned(),
        Code::UnknownKey => "The API key is not known here.".to_owned(),
        _ => problem
            .detail()
            .replace("`url`: it", "The address cannot be shortened: it")
            .replace("`url`: ", "The address cannot be shortened: "),
    };
    text.replace('`', "")
}

fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

/// A page that has nothing but this, and is neither kept nor found by search engines.
pub(crate) fn page(title: &str, body: &str, status: StatusCode) -> Response {
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"robots\" content=\"noindex, nofollow\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    );
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, POLICY.clone()),
        (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, NO_REFERRER),
        // What it says of a link changes.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (ROBOTS, NO_INDEX),
    ];
    (status, headers, html).into_response()
}

/// Nothing but the style that is in the page, and its form sent to where it came from.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).expect("a policy is ASCII")
});

const STYLE: &str = include_str!("page.css");

/// A text between tags or in quotation marks.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_is_text() {
        let form = Form { url: "\"><script>alert(1)</script>".into(), code: "'&".into(), key: String::new() };
        let html = form_of(true, &form, Some(&Problem::new(Code::InvalidValue, "<b>")));
        assert!(!html.contains("<script") && !html.contains("<b>"), "{html}");
        assert!(html.contains("value=\"&quot;&gt;&lt;script&gt;"), "{html}");
    }

    #[test]
    fn a_form_is_read() {
        let form = Form::read(b"url=https%3A%2F%2Fexample.com%2F%3Fa%3D1%262&code=&key=k+1").expect("a form");
        assert_eq!((&*form.url, &*form.code, &*form.key), ("https://example.com/?a=1&2", "", "k 1"));
        for wrong in [&b"code=a"[..], b"url=a&url=b", b"url=a&more=b", b"url=%ff%00\xff", b"a b"] {
            assert!(Form::read(wrong).is_err(), "{wrong:?}");
        }
    }
}
