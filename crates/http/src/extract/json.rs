//! JSON bodies.

use super::explain::{explain, is_object};
use crate::app::App;
use crate::problem::{Code, Problem};
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A body that is JSON of a `T`, with the bytes it was read from.
pub(crate) struct JsonBody<T> {
    /// The decoded value.
    pub(crate) value: T,
    /// The bytes as they came.
    pub(crate) bytes: Bytes,
    /// Their place among the bodies in memory.
    _room: Room,
}

/// How much the bodies of all requests may take in memory, in KiB. What is no larger than [`SMALL`] is not counted.
pub(crate) struct Bodies {
    free: Arc<Semaphore>,
    max: u32,
}

impl App {
    /// Room for the bodies of requests.
    pub(crate) fn bodies(&self) -> &Bodies {
        self.part()
    }
}

/// A body's place in memory, free again when this is dropped.
type Room = Option<OwnedSemaphorePermit>;

/// A body that says it has no more than so many bytes needs no place: `connections_max` bounds those.
const SMALL: usize = 16 * 1024;

impl Bodies {
    /// Room for so many bytes.
    pub(crate) fn new(bytes: usize) -> Bodies {
        let max = u32::try_from(bytes / 1024).unwrap_or(u32::MAX);
        Bodies { free: Arc::new(Semaphore::new(max as usize)), max }
    }

    /// A place for a body of so many bytes, if there is one now.
    pub(crate) fn room(&self, bytes: usize) -> Result<Room, Problem> {
        if bytes <= SMALL {
            return Ok(None);
        }
        // The largest body has room when it is alone.
        let needed = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX).min(self.max);
        match self.free.clone().try_acquire_many_owned(needed) {
            Ok(room) => Ok(Some(room)),
            Err(_) => {
                let detail = "too many large bodies are being read; send smaller ones, or a batch";
                Err(Problem::new(Code::Unavailable, detail).retry_after(1))
            }
        }
    }
}

/// The same for a route whose body may be left out.
pub(crate) struct Optional<T>(pub(crate) T);

/// A body as it came, whatever it is.
pub(crate) struct Raw(pub(crate) Bytes);

impl FromRequest<App> for Raw {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Raw, Problem> {
        read(request, app).await.map(|(bytes, _room)| Raw(bytes))
    }
}

impl<T: DeserializeOwned> FromRequest<App> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<JsonBody<T>, Problem> {
        let is_json = is_json(request.headers());
        let (bytes, room) = read(request, app).await?;
        if !is_json {
            return Err(Problem::new(Code::WrongContentType, "send `Content-Type: application/json`"));
        }
        Ok(JsonBody { value: parse(&bytes)?, bytes, _room: room })
    }
}

impl<T: DeserializeOwned + Default> FromRequest<App> for Optional<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Optional<T>, Problem> {
        let is_json = is_json(request.headers());
        let (bytes, _room) = read(request, app).await?;
        match (bytes.is_empty(), is_json) {
            (true, _) => Ok(Optional(T::default())),
            (false, true) => parse(&bytes).map(Optional),
            (false, false) => {
                Err(Problem::new(Code::WrongContentType, "send `Content-Type: application/json`"))
            }
        }
    }
}

/// Reads a JSON text, which must be an object, as a `T`.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    match serde_json::from_slice(bytes) {
        // serde also fills a struct from an array, member by member.
        Ok(value) if is_object(bytes) => Ok(value),
        _ => Err(explain::<T>(bytes)),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(header::CONTENT_TYPE).map(|v| v.to_str()) else { return false };
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
        || essence.to_ascii_lowercase().strip_prefix("application/").is_some_and(|s| s.ends_with("+json"))
}

async fn read(request: Request, app: &App) -> Result<(Bytes, Room), Problem> {
    let max = app.options.settings.body_bytes_max;
    let too_large = || Problem::new(Code::TooLarge, format!("a body may have at most {max} bytes"));
    let declared = request.headers().get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
    if declared.is_some_and(|length: usize| length > max) {
        return Err(too_large());
    }
    let room = app.bodies().room(declared.unwrap_or(max))?;
    let reading = axum::body::to_bytes(Body::new(request.into_body()), max);
    let limit = Duration::from_millis(app.options.settings.read_timeout_ms);
    match tokio::time::timeout(limit, reading).await {
        Ok(Ok(bytes)) => {
            let room = shrink(room, bytes.len());
            Ok((bytes, room))
        }
        Ok(Err(error)) if error_is_length(&error) => Err(too_large()),
        Ok(Err(_)) => Err(Problem::new(Code::NotJson, "the body broke off")),
        Err(_) => Err(Problem::new(Code::SlowBody, "the body did not arrive in time")),
    }
}

/// Gives back what a body does not need whose length was not announced.
fn shrink(room: Room, bytes: usize) -> Room {
    let mut room = room.filter(|_| bytes > SMALL)?;
    let spare = room.num_permits().saturating_sub(bytes.div_ceil(1024));
    drop(room.split(spare));
    Some(room)
}

fn error_is_length(error: &axum::Error) -> bool {
    // `to_bytes` gives either the transport's error or http-body-util's `LengthLimitError`, which says just this.
    std::error::Error::source(error).is_some_and(|source| source.to_string() == "length limit exceeded")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn knows_json_by_its_type() {
        let with = |text: &'static str| {
            is_json(&HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(text))]))
        };
        assert!(with("application/json"));
        assert!(with("Application/JSON; charset=utf-8"));
        assert!(with("application/merge-patch+json"));
        assert!(!with("text/plain"));
        assert!(!with("application/x-www-form-urlencoded"));
        assert!(!is_json(&HeaderMap::new()));
    }

    #[test]
    fn an_array_is_no_record() {
        let read = |body: &str| parse::<carillon_core::model::Policy>(body.as_bytes()).map_err(|p| p.code());
        assert!(read(" {}").is_ok());
        assert_eq!(read("[]"), Err(Code::WrongType));
        assert_eq!(read("[\"multi\"]"), Err(Code::WrongType));
    }

    #[test]
    fn bodies_share_the_memory_there_is() {
        let bodies = Bodies::new(100 * 1024);
        let room = |bytes| bodies.room(bytes).map_err(|problem| problem.code());
        let first = room(60 * 1024).unwrap();
        assert!(room(60 * 1024).is_err_and(|code| code == Code::Unavailable));
        assert!(room(SMALL).unwrap().is_none(), "small ones always have room");
        drop(room(40 * 1024).unwrap());
        drop(first);
        let whole = room(1 << 30).unwrap();
        assert!(whole.is_some(), "one that is larger than all there is has room alone");
        let part = shrink(whole, 60 * 1024);
        drop(room(40 * 1024).unwrap());
        assert!(room(41 * 1024).is_err() && part.is_some());
        assert!(shrink(part, SMALL).is_none());
        assert!(room(100 * 1024).is_ok());
    }

    #[tokio::test]
    async fn tells_a_long_body_from_a_broken_one() {
        let error = axum::body::to_bytes(Body::from("four"), 3).await.unwrap_err();
        assert!(error_is_length(&error));
    }
}
