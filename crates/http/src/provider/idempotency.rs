//! Requests that may be sent again: an `Idempotency-Key` makes the same ids and gives the same response each time.

use crate::app::App;
use crate::auth::Granted;
use crate::problem::{Code, Problem};
use crate::values::time::now;
use crate::{random, request_id, telemetry};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use carillon_core::model::{KeyId, NotificationId, OperationId, Scope, UnixMs};
use carillon_core::ports::store::idempotency::{
    LineDigest, NoteLines, RESERVED_MS, Release, Remember, Reservation, Reserve,
};
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
    /// The id of a request's only notification, which a front gave it.
    Given(NotificationId),
}

impl Ids {
    /// The random part of the `index`th notification of a request.
    pub(crate) fn random(&self, index: u64) -> u64 {
        match self {
            Ids::Random => random::number(),
            Ids::Given(id) => id.0 as u64,
            Ids::Derived { seed } => {
                let hash = Sha256::new().chain_update(seed).chain_update(index.to_be_bytes()).finalize();
                u64::from_be_bytes(hash[..8].try_into().expect("a SHA-256 has over 8 bytes"))
            }
        }
    }
}

/// Names a publication, the same each time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Publication {
    /// The item's id, where the sender gives none.
    pub(crate) item: Box<str>,
    /// The write, which the store does once. Its time is the end of the reservation, so that the store remembers it for longer than
    /// the key.
    pub(crate) operation: OperationId,
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
pub(crate) enum KeyDecision {
    /// Do it.
    Go(Reserved),
    /// It was done: give this again.
    Replay(Answer),
}

/// By what a request is known when it comes again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    /// A key that the store is to remember, and the hash of what is asked for under it.
    pub(crate) reserve: Option<(Box<str>, [u8; 32])>,
    /// A message of a queue, which has a name without the store remembering one.
    pub(crate) message: Option<Named>,
    /// The id that a front gave it.
    pub(crate) given: Option<NotificationId>,
}

/// A message of a queue: the same name and time at each delivery.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    /// Its name among all messages of all queues.
    pub(crate) name: Box<str>,
    /// When its queue accepted it.
    pub(crate) sent: UnixMs,
}

impl Identity {
    /// That of a request with this `Idempotency-Key`.
    pub(crate) fn of_request(key: Option<Box<str>>, uri: &axum::http::Uri, body: &[u8]) -> Identity {
        Identity { reserve: key.map(|key| (key, body_hash(uri, body))), ..Identity::default() }
    }

    /// Whether the store is to remember it.
    pub(crate) fn is_reserved(&self) -> bool {
        self.reserve.is_some()
    }

    /// Whether it may come again.
    pub(crate) fn is_known(&self) -> bool {
        self.is_reserved() || self.message.is_some() || self.given.is_some()
    }

    /// When a request with it counts as accepted that comes now.
    pub(crate) fn accepted(&self) -> UnixMs {
        self.message.as_ref().map_or_else(now, |message| message.sent)
    }

    /// Begins a request. A message of a queue is known by its own name where the store has no room for one more.
    pub(crate) async fn begin(self, app: &App, key: KeyId) -> Result<KeyDecision, Problem> {
        let Identity { reserve, message, given } = self;
        if let Some(id) = given {
            return Ok(KeyDecision::Go(Reserved::given(id)));
        }
        let Some(message) = message else {
            let (name, hash) = reserve.unzip();
            return self::reserve(app, key, name, hash.unwrap_or_default(), now()).await;
        };
        let derived = Reserved {
            since: message.sent,
            ids: Ids::Derived { seed: seed(key, &message.reservation()) },
            reservation: None,
        };
        let Some((name, hash)) = reserve else { return Ok(KeyDecision::Go(derived)) };
        let is_own = *name == *message.reservation();
        match self::reserve(app, key, Some(name), hash, now()).await {
            Err(problem) if problem.code() == Code::TooManyIdempotencyKeys => Ok(KeyDecision::Go(derived)),
            Ok(KeyDecision::Go(mut reserved)) if is_own => {
                reserved.since = message.sent;
                Ok(KeyDecision::Go(reserved))
            }
            turn => turn,
        }
    }
}

impl Named {
    /// The name under which the store remembers it.
    pub(crate) fn reservation(&self) -> Box<str> {
        format!("message {}", self.name).into()
    }
}

/// What a request was answered, by HTTP or to a queue.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: StatusCode,
    /// The body, which is JSON.
    pub(crate) body: String,
    /// Whether this is the response to an earlier request.
    pub(crate) replayed: bool,
    /// Whether all that was asked for was known already.
    pub(crate) known: bool,
    /// Of a request with many targets: why the first of those was refused that were.
    pub(crate) refused: Option<Problem>,
}

impl Answer {
    /// A new answer.
    pub(crate) fn new(status: StatusCode, body: String) -> Answer {
        Answer { status, body, replayed: false, known: false, refused: None }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        if !self.replayed {
            return json(self.status, self.body);
        }
        let (kind, body) = match self.status.is_success() {
            true => ("application/json", self.body),
            false => ("application/problem+json", of_this_request(&self.body)),
        };
        let headers = [(header::CONTENT_TYPE.as_str(), kind), ("idempotent-replayed", "true")];
        (self.status, headers, body).into_response()
    }
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

/// The id that a front has given a request, if it has. Only a key that may do everything gives ids: they are those of the whole node.
pub(crate) fn given<S>(key: &Granted<S>, headers: &HeaderMap) -> Result<Option<NotificationId>, Problem> {
    let Some(value) = headers.get(GIVEN_ID) else { return Ok(None) };
    key.whole_node()?;
    key.needs(Scope::Admin)?;
    let id = value.to_str().ok().and_then(|text| text.parse().ok());
    let invalid = || Problem::new(Code::InvalidHeader, "`Carillon-Id` is the id of a notification");
    id.map(Some).ok_or_else(invalid)
}

/// Reserves the idempotency key for a request whose content has `body_hash`. Without one the request is simply done.
pub(crate) async fn reserve(
    app: &App,
    key: KeyId,
    idempotency_key: Option<Box<str>>,
    body_hash: [u8; 32],
    now: UnixMs,
) -> Result<KeyDecision, Problem> {
    let Some(idempotency_key) = idempotency_key else {
        return Ok(KeyDecision::Go(Reserved { since: now, ids: Ids::Random, reservation: None }));
    };
    let kept_bytes_max = app.options.settings.idempotency_bytes_max;
    let ask = Reserve { key, idempotency_key: idempotency_key.clone(), body_hash, kept_bytes_max, now };
    match app.ask(ask).await? {
        Reservation::Go { since } => {
            let ids = Ids::Derived { seed: seed(key, &idempotency_key) };
            Ok(KeyDecision::Go(Reserved {
                since,
                ids,
                reservation: Some((app.clone(), key, idempotency_key)),
            }))
        }
        Reservation::Replay { response } => {
            let replay = read_response(&response).ok_or_else(|| {
                Problem::new(Code::Internal, "the response that was remembered cannot be read")
            })?;
            Ok(KeyDecision::Replay(replay))
        }
        Reservation::Mismatch => Err(Problem::new(
            Code::IdempotencyMismatch,
            "the idempotency key was used with another request; take a new one for a new request",
        )),
        Reservation::Full => {
            let detail = "as much is kept for the idempotency keys of this API key, or of all of its domain, as \
                          `http.idempotency_bytes_max` allows; each is forgotten 24 hours after its first use";
            Err(Problem::new(Code::TooManyIdempotencyKeys, detail).retry_after(FULL_S))
        }
        Reservation::InProgress => {
            Err(Problem::new(Code::InProgress, "a request with this idempotency key is being worked on")
                .retry_after(IN_PROGRESS_S))
        }
    }
}

/// Does what may be sent again to its end, also when whoever asked goes away meanwhile: the response is remembered for when the request
/// comes again. Without an idempotency key nobody can ask for it again.
pub(crate) async fn to_the_end(
    is_keyed: bool,
    work: impl Future<Output = Result<Answer, Problem>> + Send + 'static,
) -> Result<Answer, Problem> {
    if !is_keyed {
        return work.await;
    }
    match tokio::spawn(request_id::kept(telemetry::kept(work))).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The node is going away.
            Err(_) => Err(Problem::unknown()),
        },
    }
}

impl Reserved {
    /// A request that a front gave an id: by that it is known when it comes again.
    pub(crate) fn given(id: NotificationId) -> Reserved {
        Reserved { since: id.time(), ids: Ids::Given(id), reservation: None }
    }

    /// The name of what the request publishes, if it may be sent again.
    pub(crate) fn publication(&self) -> Option<Publication> {
        let seed = match &self.ids {
            Ids::Random => return None,
            Ids::Derived { seed } => *seed,
            Ids::Given(id) => Sha256::digest(id.0.to_be_bytes()).into(),
        };
        // The time is in it, because a day later the key stands for another request.
        let hash = Sha256::new()
            .chain_update(seed)
            .chain_update("publication")
            .chain_update(self.since.0.to_be_bytes())
            .finalize();
        let (item, random) = hash.split_at(16);
        let random = u128::from_be_bytes(random.try_into().expect("a SHA-256 has 32 bytes"));
        Some(Publication {
            item: URL_SAFE_NO_PAD.encode(item).into(),
            operation: OperationId::new(self.since.plus(RESERVED_MS), random),
        })
    }

    /// Notes lines of the request before they are done, and renews the reservation. The numbers of those that were others before.
    pub(crate) async fn note(&self, lines: Vec<LineDigest>) -> Result<Vec<u64>, Problem> {
        let Some((app, key, idempotency_key)) = &self.reservation else { return Ok(Vec::new()) };
        let idempotency_key = idempotency_key.clone();
        app.ask(NoteLines { key: *key, idempotency_key, lines, now: now() }).await
    }

    /// Gives a response with a JSON body, and remembers it.
    pub(crate) async fn answer(self, status: StatusCode, body: String) -> Answer {
        self.remember(status, &body).await;
        Answer::new(status, body)
    }

    /// Remembers a problem, unless the same request may succeed later.
    pub(crate) async fn refuse(self, problem: Problem) -> Problem {
        let is_final = problem.status().is_client_error() && problem.code() != Code::TooFast;
        if is_final && let Ok(body) = serde_json::to_string(&problem) {
            self.remember(problem.status(), &body).await;
        }
        problem
    }

    /// Remembers the response, so that it is given again. A failure to remember is no failure of the request: sent
    /// again, it makes the same ids.
    async fn remember(mut self, status: StatusCode, body: &str) {
        let Some((app, key, idempotency_key)) = self.reservation.take() else { return };
        let ask = Remember { key, idempotency_key, response: write_response(status, body) };
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

/// An earlier response, from what [`write_response`] made.
fn read_response(bytes: &[u8]) -> Option<Answer> {
    let (status, body) = std::str::from_utf8(bytes).ok()?.split_once(' ')?;
    Some(Answer { replayed: true, known: true, ..Answer::new(status.parse().ok()?, body.to_owned()) })
}

/// A remembered problem, with the id of the request that is answered with it again.
fn of_this_request(problem: &str) -> String {
    let members = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(problem);
    let Ok(mut members) = members else { return problem.to_owned() };
    members.insert("request_id".to_owned(), request_id::current().as_deref().into());
    serde_json::Value::Object(members).to_string()
}

/// A response with a JSON body.
fn json(status: StatusCode, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// A response as the store keeps it: its status in decimal, a space, its body.
fn write_response(status: StatusCode, body: &str) -> Bytes {
    format!("{} {body}", status.as_u16()).into()
}

/// The hash of what a request asks for: its path, its query and its body.
pub(crate) fn body_hash(uri: &axum::http::Uri, body: &[u8]) -> [u8; 32] {
    let target = uri.path_and_query().map_or("", |path| path.as_str());
    Sha256::new().chain_update(target).chain_update([0]).chain_update(body).finalize().into()
}

/// Tells a line of a request from others.
pub(crate) fn line(number: u64, text: &[u8]) -> LineDigest {
    let hash = Sha256::digest(text);
    let digest = u64::from_be_bytes(hash[..8].try_into().expect("a SHA-256 has over 8 bytes"));
    LineDigest { number, digest: digest.max(1) }
}

fn seed(key: KeyId, idempotency_key: &str) -> [u8; 32] {
    Sha256::new().chain_update(key.0.to_be_bytes()).chain_update(idempotency_key).finalize().into()
}

/// The header by which a front gives a request an id.
pub(crate) const GIVEN_ID: &str = "carillon-id";

const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;
/// When to ask again about a request that is being worked on, in seconds: most are done by then.
const IN_PROGRESS_S: u32 = 1;
/// When to ask again while too much is kept: room is made by the minute.
const FULL_S: u32 = 60;

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
        assert_eq!(&write_response(StatusCode::ACCEPTED, r#"{"id": "a b"}"#)[..], br#"202 {"id": "a b"}"#);
        let read = |bytes| read_response(bytes).map(|replay| (replay.status.as_u16(), replay.body));
        assert_eq!(read(br#"202 {"id": "a b"}"#), Some((202, r#"{"id": "a b"}"#.to_owned())));
        assert_eq!(read(b"400 "), Some((400, String::new())));
        for other in [&b"202"[..], b"", b"yes {}", b"9 {}", b"202 \xff"] {
            assert_eq!(read(other), None);
        }
    }

    #[test]
    fn a_publication_has_one_name_for_a_day_and_longer_in_the_store() {
        let publication = |key, since| {
            let ids = Ids::Derived { seed: seed(KeyId(1), key) };
            Reserved { since: UnixMs(since), ids, reservation: None }.publication().unwrap()
        };
        let once = publication("a", 7);
        assert_eq!(once, publication("a", 7));
        for other in [publication("b", 7), publication("a", 8)] {
            assert!(other.item != once.item && other.operation != once.operation);
        }
        assert!(once.operation >= OperationId::first_at(UnixMs(7 + RESERVED_MS)));
        // A retry after an upgrade must find what was published before it.
        assert_eq!(&*once.item, "HtOGcdFfOB37aV0YL8rHzQ");
        assert_eq!(once.operation.0, 0x0000_0526_5c07_357c_2a6e_1e23_9568_8174);
        let unkeyed = Reserved { since: UnixMs(7), ids: Ids::Random, reservation: None };
        assert_eq!(unkeyed.publication(), None);
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
    fn a_line_is_told_from_others_as_before_an_upgrade() {
        assert_eq!(line(7, b"{}"), LineDigest { number: 7, digest: 0x4413_6fa3_55b3_678a });
        assert_ne!(line(7, b"{}").digest, line(7, b"{ }").digest);
    }

    #[test]
    fn the_hash_covers_where_and_what() {
        let uri = |text: &str| text.parse().unwrap();
        let base = body_hash(&uri("/v1/notifications"), b"{}");
        assert_ne!(base, body_hash(&uri("/v1/notifications?domain=a"), b"{}"));
        assert_ne!(base, body_hash(&uri("/v1/notifications"), b"{ }"));
    }
}
