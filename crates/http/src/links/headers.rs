//! Headers that keep links out of search engines, and out of what their targets are told.

use axum::http::{HeaderValue, header};

/// Search engines are to list what a link leads to, and not the link.
pub(super) const ROBOTS: header::HeaderName = header::HeaderName::from_static("x-robots-tag");
pub(super) const NO_INDEX: HeaderValue = HeaderValue::from_static("noindex, nofollow");
pub(super) const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");
