//! `PUT`: a file into its slot.
//!
//! The store is told before anything is written, so that what is left by whoever does not come to the end is found and removed; and again when all
//! of it is on the disk, from when on the file is there.

use super::files::Writing;
use super::{disk_failed, unknown};
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::random;
use crate::values::time::now;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use carillon_core::model::{Slot, UploadAttempt};
use carillon_core::ports::store::uploads::{
    FinishUpload, FinishUploadAnswer, StartUpload, StartUploadAnswer,
};
use futures_util::StreamExt;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(super) async fn put(
    State(app): State<App>,
    Path((token, _)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Problem> {
    let figures = &app.uploads().figures;
    let done = match slot(&app, &token, &headers) {
        Ok(slot) => upload(&app, &slot, body).await.map(|()| slot.bytes),
        Err(problem) => Err(problem),
    };
    match done {
        Ok(bytes) => {
            figures.uploaded.fetch_add(1, Ordering::Relaxed);
            figures.uploaded_bytes.fetch_add(bytes, Ordering::Relaxed);
            Ok(StatusCode::CREATED)
        }
        Err(problem) => {
            figures.failed.fetch_add(1, Ordering::Relaxed);
            Err(problem)
        }
    }
}

/// The slot that a request has a right to, and what its headers say is what the slot is for.
fn slot(app: &App, token: &str, headers: &HeaderMap) -> Result<Slot, Problem> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let right = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    let right = right.ok_or_else(|| Problem::new(Code::Forbidden, "the headers of the slot are missing"))?;
    let key = &app.uploads().key;
    let slot = key.read_slot(right).filter(|slot| key.read_file(token) == Some((slot.domain, slot.id)));
    let slot = slot.ok_or_else(|| Problem::new(Code::Forbidden, "the headers are not those of this slot"))?;
    if slot.expires <= now() {
        return Err(Problem::new(Code::Forbidden, "the slot has expired; ask for another"));
    }
    let bytes = text(header::CONTENT_LENGTH).and_then(|value| value.parse::<u64>().ok());
    if bytes.is_some_and(|bytes| bytes > slot.bytes) {
        return Err(Problem::new(Code::TooLarge, format!("the slot is for {} bytes", slot.bytes)));
    }
    if bytes != Some(slot.bytes) {
        let detail = format!("`Content-Length` has to be {}, as the slot is for so many bytes", slot.bytes);
        return Err(Problem::new(Code::InvalidHeader, detail));
    }
    let media_type = text(header::CONTENT_TYPE).unwrap_or_default();
    if !slot.media_type.is_empty() && !slot.media_type.eq_ignore_ascii_case(media_type) {
        let detail = format!("`Content-Type` has to be `{}`, as the slot is for that", slot.media_type);
        return Err(Problem::new(Code::WrongContentType, detail));
    }
    Ok(slot)
}

async fn upload(app: &App, slot: &Slot, body: Body) -> Result<(), Problem> {
    let (domain, id, attempt) = (slot.domain, slot.id, UploadAttempt(random::number()));
    let limit_ms = app.options.settings.upload.put_ms;
    let started = now();
    let remove_at = started.plus(limit_ms);
    match app.ask(StartUpload { domain, id, attempt, now: started, remove_at }).await? {
        StartUploadAnswer::Started => {}
        StartUploadAnswer::Taken => return Err(taken()),
        StartUploadAnswer::Missing => return Err(unknown()),
    }
    let writing = app.uploads().contents.create(id, attempt).await.map_err(|error| disk_failed(&error))?;
    let written = write(app, writing, slot.bytes, body);
    tokio::time::timeout(Duration::from_millis(limit_ms), written).await.unwrap_or_else(|_| Err(slow()))?;
    let expires = now().plus(app.options.core.upload.kept_ms);
    // What cannot be said stays on the disk, and is removed later if it does not count.
    let answer = match app.ask(FinishUpload { domain, id, attempt, now: now(), expires }).await? {
        FinishUploadAnswer::Finished => return Ok(()),
        FinishUploadAnswer::Taken => taken(),
        FinishUploadAnswer::Missing => unknown(),
    };
    app.uploads().contents.remove(id, attempt).await.map_err(|error| disk_failed(&error))?;
    Err(answer)
}

/// Writes a body, which has to have so many bytes, and has it on the disk.
async fn write(app: &App, mut writing: Writing, bytes: u64, body: Body) -> Result<(), Problem> {
    let pause = Duration::from_millis(app.options.settings.read_timeout_ms);
    let (mut body, mut left) = (body.into_data_stream(), bytes);
    while let Some(part) = tokio::time::timeout(pause, body.next()).await.map_err(|_| slow())? {
        let part = part.map_err(|_| Problem::new(Code::InvalidValue, "the body broke off"))?;
        left = left.checked_sub(part.len() as u64).ok_or_else(|| wrong_size(bytes))?;
        writing.write(part).await.map_err(|error| disk_failed(&error))?;
    }
    if left > 0 {
        return Err(wrong_size(bytes));
    }
    writing.keep().await.map_err(|error| disk_failed(&error))
}

fn wrong_size(bytes: u64) -> Problem {
    Problem::new(Code::InvalidValue, format!("the body has to have {bytes} bytes"))
}

fn slow() -> Problem {
    Problem::new(Code::SlowBody, "the body did not arrive in time")
}

fn taken() -> Problem {
    Problem::new(Code::AlreadyExists, "the file was uploaded before; a slot is for one")
}
