//! Requests that may be sent again: an `Idempotency-Key` makes the same ids and gives the same response each time.

use crate::app::App;
use crate::problem::{Code, Problem};
use crate::random;
use axum::http::HeaderMap;
use bytes::Bytes;
use carillon_core::model::{KeyId, UnixMs};
use carillon_core::ports::store::idempotency::{Release, Remember, Reservation, Reserve};
use sha2::{Digest, Sha256};

/// Where the random part of notification ids comes from.
#[derive(Clone)]
pub(crate) enum Ids {
    /// From the operating system.
    Random,
    /// From the idempotency key, so that a request that is sent again names the same notifications.
    Derived {
        /// The hash of the API key's number and the idempotency key.
        seed: [u8; 32],
    },
}

impl Ids {
    /// The random part of the `index`th notification of a request.
    pub(crate) fn random(&self, index: u64) -> u64 {
        match self {
            Ids::Random => random::number(),
            Ids::Derived { seed } => {
                let hash = Sha256::new().chain_update(seed).chain_update(index.to_be_bytes()).finalize();
                u64::from_be_bytes(hash[..8].try_into().expect("a SHA-256 has over 8 bytes"))
            }
        }
    }
}

/// A request that is to be done, and perhaps remembered. Dropped without that (when a batch is complete, or its sender went
/// away, or the node could not do it now), it is released: sent again, it goes at once and names the same notifications.
pub(crate) struct Reserved {
    /// When it was first accepted.
    pub(crate) since: UnixMs,
    /// Its ids.
    pub(crate) ids: Ids,
    reservation: Option<(App, KeyId, Box<str>)>,
}

/// What an idempotency key said about a request.
pub(crate) enum Turn {
    /// Do it.
    Go(Reserved),
    /// It was done: give this again.
    Replay {
        /// Its status.
        status: u16,
        /// Its body.
        response: Box<str>,
    },
}

/// The header `Idempotency-Key`, if the request has one.
pub(crate) fn header(headers: &HeaderMap) -> Result<Option<Box<str>>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.as_bytes();
    if (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic) {
        return Ok(Some(String::from_utf8_lossy(key).into()));
    }
    let detail = format!(
        "`Idempotency-Key` has 1 to {IDEMPOTENCY_KEY_BYTES_MAX} printable ASCII characters, no spaces"
    );
    Err(Problem::new(Code::InvalidHeader, detail))
}

/// Reserves the idempotency key for a request whose content has `body_hash`. Without one the request is simply done.
pub(crate) async fn reserve(
    app: &App,
    key: KeyId,
    idempotency_key: Option<Box<str>>,
    body_hash: [u8; 32],
    now: UnixMs,
) -> Result<Turn, Problem> {
    let Some(idempotency_key) = idempotency_key else {
        return Ok(Turn::Go(Reserved { since: now, ids: Ids::Random, reservation: None }));
    };
    let ask = Reserve { key, idempotency_key: idempotency_key.clone(), body_hash, now };
    match app.ask(ask).await? {
        Reservation::Go { since } => {
            let ids = Ids::Derived { seed: seed(key, &idempotency_key) };
            Ok(Turn::Go(Reserved { since, ids, reservation: Some((app.clone(), key, idempotency_key)) }))
        }
        Reservation::Replay { response } => {
            let (status, response) = read_response(&response).ok_or_else(|| {
                Problem::new(Code::Internal, "the response that was remembered cannot be read")
            })?;
            Ok(Turn::Replay { status, response })
        }
        Reservation::Mismatch => Err(Problem::new(
            Code::IdempotencyMismatch,
            "the idempotency key was used with another request; take a new one for a new request",
        )),
        Reservation::InProgress => {
            Err(Problem::new(Code::InProgress, "a request with this idempotency key is being worked on")
                .retry_after(IN_PROGRESS_S))
        }
    }
}

impl Reserved {
    /// Remembers the response, so that it is given again. A failure to remember is no failure of the request: sent
    /// again, it makes the same ids.
    pub(crate) async fn remember(mut self, status: u16, response: &str) {
        let Some((app, key, idempotency_key)) = self.reservation.take() else { return };
        let ask = Remember { key, idempotency_key, response: write_response(status, response) };
        if let Err(problem) = app.ask(ask).await {
            tracing::warn!(?problem, "a response was not remembered");
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let Some((app, key, idempotency_key)) = self.reservation.take() else { return };
        app.node.ask(Release { key, idempotency_key }, |released| {
            if let Err(fault) = released {
                tracing::warn!(%fault, "an idempotency key was not released");
            }
        });
    }
}

/// A response as the store keeps it: its status in decimal, a space, its body.
fn write_response(status: u16, body: &str) -> Bytes {
    format!("{status} {body}").into()
}

fn read_response(bytes: &[u8]) -> Option<(u16, Box<str>)> {
    let (status, body) = std::str::from_utf8(bytes).ok()?.split_once(' ')?;
    Some((status.parse().ok()?, body.into()))
}

/// The hash of what a request asks for: its path, its query and its body.
pub(crate) fn body_hash(uri: &axum::http::Uri, body: &[u8]) -> [u8; 32] {
    let target = uri.path_and_query().map_or("", |path| path.as_str());
    Sha256::new().chain_update(target).chain_update([0]).chain_update(body).finalize().into()
}

fn seed(key: KeyId, idempotency_key: &str) -> [u8; 32] {
    Sha256::new().chain_update(key.0.to_be_bytes()).chain_update(idempotency_key).finalize().into()
}

const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;
/// When to ask again about a request that is being worked on, in seconds: most are done by then.
const IN_PROGRESS_S: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn derived_ids_are_the_same_each_time_and_differ_by_all_they_come_from() {
        let ids = |key, text| Ids::Derived { seed: seed(KeyId(key), text) };
        assert_eq!(ids(1, "a").random(0), ids(1, "a").random(0));
        let all =
            [ids(1, "a").random(0), ids(1, "a").random(1), ids(1, "b").random(0), ids(2, "a").random(0)];
        assert!((0..4).all(|i| (0..i).all(|j| all[i] != all[j])));
        assert_ne!(Ids::Random.random(0), Ids::Random.random(0));
        // A retry after an upgrade must find the ids of before it.
        assert_eq!(ids(1, "a").random(0), 5_560_305_861_845_824_856);
    }

    #[test]
    fn a_response_is_read_as_it_was_written() {
        // A retry after an upgrade must be given what was remembered before it.
        assert_eq!(&write_response(202, r#"{"id": "a b"}"#)[..], br#"202 {"id": "a b"}"#);
        assert_eq!(read_response(br#"202 {"id": "a b"}"#), Some((202, r#"{"id": "a b"}"#.into())));
        assert_eq!(read_response(b"400 "), Some((400, "".into())));
        for other in [&b"202"[..], b"", b"yes {}", b"202 \xff"] {
            assert_eq!(read_response(other), None);
        }
    }

    #[test]
    fn the_header_is_short_printable_text() {
        let with = |value: &[u8]| {
            let value = HeaderValue::from_bytes(value).unwrap();
            header(&HeaderMap::from_iter([("idempotency-key".parse().unwrap(), value)])).map_err(|p| p.code())
        };
        assert_eq!(with(b"8e03978e-40d5-43dd-bc93-6894a57f9324").unwrap().as_deref().map(str::len), Some(36));
        assert_eq!(with(b""), Err(Code::InvalidHeader));
        assert_eq!(with(b"a b"), Err(Code::InvalidHeader));
        assert_eq!(with(&[b'a'; 256]), Err(Code::InvalidHeader));
        assert_eq!(with("é".as_bytes()), Err(Code::InvalidHeader));
        assert_eq!(header(&HeaderMap::new()).unwrap(), None);
    }

    #[test]
    fn the_hash_covers_where_and_what() {
        let uri = |text: &str| text.parse().unwrap();
        let base = body_hash(&uri("/v1/notifications"), b"{}");
        assert_ne!(base, body_hash(&uri("/v1/notifications?domain=a"), b"{}"));
        assert_ne!(base, body_hash(&uri("/v1/notifications"), b"{ }"));
    }
}
