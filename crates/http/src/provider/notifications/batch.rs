//! Sending a stream of notifications: a line in, a line out, in order.

use super::body::{NotificationBody, ShortLinks};
use super::submit::{SendResult, address, question, target};
use super::targets::Targets;
use super::window::{Order, Place, Said, Window};
use crate::app::App;
use crate::auth::{Granted, Send};
use crate::extract::{DomainQuery, Format, Line, LineStream, Params, content_type, parse};
use crate::links::Shortened;
use crate::problem::{Code, Problem};
use crate::provider::idempotency::{self, Ids, KeyDecision, Reserved};
use crate::values::schema;
use crate::values::time::now;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use carillon_core::command::{Command, Outcome};
use carillon_core::model::{DomainId, Notification};
use carillon_core::ports::Reply;
use carillon_core::ports::store::idempotency::LineDigest;
use futures_util::FutureExt;
use futures_util::stream;
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What became of a line of a batch: either of its parts.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct BatchLine {
    /// The line's number, counted from 1.
    line: u64,
    /// The result, if it was accepted.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[schema(inline)]
    result: Option<SendResult>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<schema::Problem>)]
    error: Option<Problem>,
}

/// A batch that is being sent: what all of its lines have in common, and those that are on their way.
struct Batch {
    app: App,
    key: Granted<Send>,
    domain: Arc<str>,
    reserved: Option<Reserved>,
    lines: LineStream,
    window: Window,
    /// Lines that the store is to note before the node is given them.
    fresh: Vec<Fresh>,
    /// Links that its lines have, by domain and URL, each made once.
    links: HashMap<(DomainId, String), Result<Shortened, Problem>>,
    /// A line whose link has to be made first; the others wait behind it.
    unmade: Option<(Line, DomainId, String)>,
    /// What the node has not been given yet.
    orders: Vec<(Command, Reply<Outcome>)>,
    ended: bool,
}

/// What a line says.
enum Read {
    /// It can be done.
    Order(Order),
    /// It has a link that is not made yet.
    Unmade(DomainId, String),
}

/// A line of a batch that may be sent again.
struct Fresh {
    place: Place,
    notification: Arc<Notification>,
    digest: LineDigest,
}

/// Send a batch
///
/// NDJSON: each line is the body of `POST /v1/notifications` with one target; for each line a line comes back, in the
/// same order, as soon as the node has it. The stream may go on for ever. A line that cannot be sent gives a line with
/// `error`, and the rest goes on.
///
/// With an `Idempotency-Key` the `n`th line names the same notification each time the batch is sent. A line that is not the same, byte
/// for byte, as the one that was sent with its number before is not sent: its `error` is `idempotency-mismatch`. This is known
/// of the first 1,048,576 lines; behind those, an altered line is answered with what became of the first one. A line that could not be read sent nothing, and may be corrected.
#[utoipa::path(
    post, path = "/v1/notifications/batch", operation_id = "sendBatch", tag = "notifications",
    params(
        DomainQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the batch safe to send again for 24 hours: 1 to 255 printable ASCII characters. While it is being worked on, the same key is answered `409`"),
    ),
    request_body(content = NotificationBody, content_type = "application/x-ndjson"),
    responses(
        (status = 200, description = "A result for each line", body = BatchLine, content_type = "application/x-ndjson"),
        schema::Problems
    )
)]
pub(crate) async fn send_batch(
    key: Granted<Send>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    content_type(&headers, &[Format::Ndjson])?;
    let idempotency_key = idempotency::header(&headers)?;
    let domain = key.domain(&app, query.domain.as_deref())?.name.clone();
    let reserved = match idempotency_key {
        None => None,
        // The body is not there yet: its lines are compared as they come.
        Some(k) => {
            match idempotency::reserve(&app, key.key.id, Some(k), idempotency::body_hash(&uri, b""), now())
                .await?
            {
                KeyDecision::Go(reserved) => Some(reserved),
                KeyDecision::Replay(_) => {
                    return Err(Problem::new(
                        Code::IdempotencyMismatch,
                        "the idempotency key was used with another request",
                    ));
                }
            }
        }
    };
    let timeout = Duration::from_millis(app.options.settings.read_timeout_ms);
    let lines = LineStream::new(body, app.options.settings.batch_line_bytes_max, timeout);
    let window = Window::new(app.options.settings.pending_max, app.options.settings.body_bytes_max);
    let (fresh, orders) = (Vec::new(), Vec::new());
    let links = HashMap::new();
    let batch =
        Batch { app, key, domain, reserved, lines, window, fresh, links, unmade: None, orders, ended: false };
    let results = stream::unfold(batch, |mut batch| async move {
        let results = batch.next().await?;
        Some((Ok::<Bytes, Infallible>(results), batch))
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(results)).into_response())
}

impl Batch {
    /// The next results, as many as are there.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            self.make_link().await;
            self.take_in();
            self.note().await;
            if !self.orders.is_empty() {
                self.app.node.command_all(std::mem::take(&mut self.orders));
            }
            let results = self.results();
            if !results.is_empty() {
                return Some(results);
            }
            if self.unmade.is_some() {
                continue;
            }
            if self.ended && self.window.is_empty() {
                return None;
            }
            if self.window.has_refused() {
                // Too much waits at a shard: lines wait here, and the sender with them.
                tokio::time::sleep(PAUSE).await;
                self.ask_again();
                continue;
            }
            self.wait().await;
        }
    }

    /// Takes in the lines that are here already, so that the node is given what they ask for in one go.
    fn take_in(&mut self) {
        while !self.ended && self.unmade.is_none() && self.window.has_room() {
            match self.lines.next().now_or_never() {
                Some(line) => self.line(line),
                None => break,
            }
        }
    }

    /// Makes the link that a line has, and takes the line in.
    async fn make_link(&mut self) {
        let Some((line, domain, url)) = self.unmade.take() else { return };
        let made = Shortened::new(&self.app, &self.key, domain, &url).await;
        // Those of the lines that come are made again, which finds them.
        if self.links.len() >= LINKS_MAX {
            self.links.clear();
        }
        let is_busy = made.as_ref().is_err_and(|problem| problem.status().is_server_error());
        self.links.insert((domain, url.clone()), made);
        self.line(Some(line));
        if is_busy {
            self.links.remove(&(domain, url));
        }
    }

    /// Has the store note the lines that were taken in, and leaves out those that are others than the last time.
    async fn note(&mut self) {
        let Some(reserved) = self.reserved.as_ref().filter(|_| !self.fresh.is_empty()) else { return };
        let fresh = std::mem::take(&mut self.fresh);
        let noted = reserved.note(fresh.iter().map(|line| line.digest).collect()).await;
        for Fresh { place, notification, digest } in fresh {
            match &noted {
                Ok(altered) if altered.binary_search(&digest.number).is_err() => {
                    self.ask(place, Order::Send(notification));
                }
                Ok(_) => place.answer(Said::Problem(Problem::new(
                    Code::IdempotencyMismatch,
                    "another line was sent with this number under the idempotency key; take a new key for a new batch",
                ))),
                Err(problem) => place.answer(Said::Problem(problem.clone())),
            }
        }
    }

    /// Waits until there is a line, or a result, or none in time.
    async fn wait(&mut self) {
        let limit = Duration::from_millis(self.app.options.settings.answer_timeout_ms);
        let oldest = self.window.waits_since();
        let expires = oldest.unwrap_or_else(Instant::now) + limit;
        let reads = !self.ended && self.window.has_room();
        tokio::select! {
            () = self.window.moved() => {}
            line = self.lines.next(), if reads => self.line(line),
            () = tokio::time::sleep_until(expires), if oldest.is_some() => self.window.give_up_first(),
        }
    }

    fn line(&mut self, line: Option<Line>) {
        let Some(Line { number, text }) = line else {
            self.ended = true;
            return;
        };
        let bytes = text.as_ref().map_or(0, Bytes::len);
        let read = text.and_then(|text| Ok((self.read(&text, number)?, text)));
        match read {
            Ok((Read::Unmade(domain, url), text)) => {
                self.unmade = Some((Line { number, text: Ok(text) }, domain, url));
            }
            Ok((Read::Order(order), text)) => {
                let place = self.window.add(number, order.clone(), bytes);
                match order {
                    Order::Send(notification) if self.reserved.is_some() => {
                        let digest = idempotency::line(number, &text);
                        self.fresh.push(Fresh { place, notification, digest });
                    }
                    order => self.ask(place, order),
                }
            }
            Err(problem) => self.window.add_refused(number, problem),
        }
    }

    fn read(&self, text: &[u8], number: u64) -> Result<Read, Problem> {
        let body: NotificationBody = parse(text)?;
        let Targets::One(to) = &body.to else {
            return Err(Problem::new(Code::WrongType, "a line of a batch has one target").at("/to"));
        };
        let target = target(&self.app, &self.key, to, &self.domain).map_err(|p| p.at("/to"))?;
        let (at, ids) = match &self.reserved {
            Some(reserved) => (reserved.since, &reserved.ids),
            None => (now(), &Ids::Random),
        };
        let draft = body.draft(&self.app, self.key.key.id, at)?;
        if body.dry_run {
            if let Some(url) = &body.link {
                Shortened::rehearse(&self.app, &self.key, target.domain, url)?;
            }
            return Ok(Read::Order(Order::Rehearse(target)));
        }
        let links = match body.link {
            None => ShortLinks::new(),
            Some(url) => {
                let place = (target.domain, url);
                match self.links.get(&place) {
                    Some(link) => vec![(place.0, link.clone()?)],
                    None => return Ok(Read::Unmade(place.0, place.1)),
                }
            }
        };
        Ok(Read::Order(Order::Send(address(&draft.with_links(links), target, ids, number))))
    }

    fn ask(&mut self, place: Place, order: Order) {
        if let Some(elsewhere) = self.app.elsewhere() {
            let app = self.app.clone();
            tokio::spawn(async move {
                let said = match order {
                    Order::Send(notification) => elsewhere.send(&app, &notification).await,
                    Order::Rehearse(target) => elsewhere.rehearse(&app, &target.jid).await,
                };
                place.answer(said.map_or_else(Said::Problem, Said::Sent));
            });
            return;
        }
        match order {
            Order::Send(notification) => {
                let reply = Box::new(move |outcome| place.answer(Said::Outcome(outcome)));
                self.orders.push((Command::Notify(notification), reply));
            }
            Order::Rehearse(target) => {
                self.app.node.ask(question(&target), move |found| place.answer(Said::Found(found)));
            }
        }
    }

    fn ask_again(&mut self) {
        for (place, order) in self.window.ask_again() {
            self.ask(place, order);
        }
    }

    fn results(&self) -> Bytes {
        let mut out = Vec::new();
        let done = std::iter::from_fn(|| self.window.next());
        for (line, result) in done.take(CHUNK_LINES) {
            let (result, error) = match result {
                Ok(result) => (Some(result), None),
                Err(problem) => (None, Some(problem)),
            };
            serde_json::to_writer(&mut out, &BatchLine { line, result, error })
                .expect("a result is strings and numbers");
            out.push(b'\n');
        }
        out.into()
    }
}

/// After how long lines are offered again to a shard that has too much to do.
const PAUSE: Duration = Duration::from_millis(20);
/// Links that a batch remembers.
const LINKS_MAX: usize = 1024;
/// Results that travel together when they are ready together.
const CHUNK_LINES: usize = 512;
