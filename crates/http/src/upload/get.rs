//! `GET` and `HEAD`: a file, or a part of it.

use super::files::Reading;
use super::range::{self, Range};
use super::{disk_failed, find, headers};
use crate::app::App;
use crate::problem::{Code, Problem};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use carillon_core::model::UploadedFile;
use std::io;
use std::sync::atomic::Ordering;

/// Bytes that are read at once.
const PART: u64 = 64 * 1024;

pub(super) async fn get(
    State(app): State<App>,
    Path((token, name)): Path<(String, String)>,
    method: Method,
    asked: HeaderMap,
) -> Result<Response, Problem> {
    let figures = &app.uploads().figures;
    let found = find(&app, &token, &name).await;
    let count = if found.is_ok() { &figures.served } else { &figures.unknown };
    count.fetch_add(1, Ordering::Relaxed);
    let (_, id, file) = found?;
    let attempt = file.attempt.ok_or_else(super::unknown)?;
    let tag = format!("\"{:016x}\"", attempt.0);
    let mut response = Response::new(Body::empty());
    headers::describe(response.headers_mut(), &file, &tag);
    if range::is_known(&asked, &tag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return Ok(response);
    }
    let wanted = match range::wanted(&asked, &tag, file.bytes) {
        Range::All => 0..file.bytes,
        Range::Part(part) => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            let text = format!("bytes {}-{}/{}", part.start, part.end - 1, file.bytes);
            set(response.headers_mut(), header::CONTENT_RANGE, &text);
            part
        }
        Range::None => return Err(outside(&file)),
    };
    set(response.headers_mut(), header::CONTENT_LENGTH, &(wanted.end - wanted.start).to_string());
    if method == Method::HEAD {
        return Ok(response);
    }
    let reading = match app.uploads().contents.open(id, attempt, wanted.clone()).await {
        // It was removed at this moment, or is lost where it was.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            tracing::warn!(%id, "the contents of a file are missing");
            return Err(super::unknown());
        }
        opened => opened.map_err(|error| disk_failed(&error))?,
    };
    *response.body_mut() = Body::from_stream(parts(reading, wanted.end - wanted.start));
    Ok(response)
}

fn set(headers: &mut HeaderMap, name: header::HeaderName, text: &str) {
    headers.insert(name, HeaderValue::from_str(text).expect("numbers are ASCII"));
}

/// RFC 9110 §15.5.17.
fn outside(file: &UploadedFile) -> Problem {
    let text = HeaderValue::from_str(&format!("bytes */{}", file.bytes)).expect("numbers are ASCII");
    Problem::new(Code::RangeOutside, format!("the file has {} bytes", file.bytes))
        .with_header(header::CONTENT_RANGE, text)
}

/// So many bytes, part by part, as fast as they are taken.
fn parts(reading: Reading, bytes: u64) -> impl futures_util::Stream<Item = io::Result<bytes::Bytes>> + Send {
    futures_util::stream::try_unfold((reading, bytes), |(reading, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let (reading, part) = reading.read(PART.min(left) as usize).await?;
        if part.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let left = left.saturating_sub(part.len() as u64);
        Ok(Some((part, (reading, left))))
    })
}
