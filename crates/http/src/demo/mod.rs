//! The demo of real-time matches: a game for two windows of a browser at `/demo/match`, and a seat for whoever opens it, without a key.
//!
//! It is there only where the setting `matches.demo` is on, which the configuration allows where this machine alone reaches the HTTP side. Pages of
//! others that a browser on this machine shows cannot use it either: they have another origin, and names that lead here are not answered.

use crate::app::App;
use crate::extract::{JsonBody, Named};
use crate::links::name_of;
use crate::problem::{Code, Problem};
use crate::provider::matchmaking::{Queue, Ticket};
use crate::public::console::{Asset, CSS, HTML, SCRIPT};
use crate::random;
use crate::values::jids;
use crate::values::text::fits;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use carillon_core::command::QueueRequest;
use carillon_core::model::{MatchRules, NewTicket, QueueConfig, RatingWindow};

/// The page, its style, and its script: `sdk/match-typescript/demo` with the client, as `sdk/match-typescript/demo/build` makes it.
const ASSETS: &[Asset] = &[
    Asset { name: "", kind: HTML, bytes: include_bytes!("page.html") },
    Asset { name: "page.css", kind: CSS, bytes: include_bytes!("page.css") },
    Asset { name: "page.js", kind: SCRIPT, bytes: include_bytes!("page.js") },
];

/// The routes of the demo; none where it is off.
pub(crate) fn routes(app: &App) -> Router<App> {
    if !app.options.settings.match_demo {
        return Router::new();
    }
    Router::new()
        .route("/demo/match", get(page))
        .route("/demo/match/{file}", get(file))
        .route("/demo/match/tickets", post(enter))
        .route("/demo/match/tickets/{ticket}", get(ticket).delete(withdraw))
        .layer(axum::middleware::from_fn(of_this_machine))
}

/// Answers those who ask this machine by one of its own names. A page of others whose name was made to lead here (DNS rebinding) asks by that name.
async fn of_this_machine(request: Request, next: Next) -> Response {
    match name_of(request.uri(), request.headers()) {
        Some("localhost" | "127.0.0.1" | "[::1]") => next.run(request).await,
        _ => Problem::new(Code::UnknownRoute, "the demo is at `http://localhost`, at the port of this node")
            .into_response(),
    }
}

async fn page(state: State<App>, uri: Uri, headers: HeaderMap) -> Result<Response, Problem> {
    file(state, Path(String::new()), uri, headers).await
}

async fn file(
    State(app): State<App>,
    Path(name): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    let asset = asset.ok_or_else(|| Problem::new(Code::UnknownRoute, "the demo has no such file"))?;
    let websocket = WebSocket::of(&app, &uri, &headers)?;
    // Nothing but its own files, and connections to this node.
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self' {}; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        websocket.origin
    );
    let policy = HeaderValue::try_from(policy).expect("names and ports are ASCII");
    Ok(asset.answer(&headers, policy))
}

/// Somebody who wants to play.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Guest {
    /// Guests of one table play with each other.
    table: String,
}

/// A guest's ticket, and where the seat is taken.
#[derive(serde::Serialize)]
struct Entered {
    websocket_url: String,
    ticket: Ticket,
}

async fn enter(
    State(app): State<App>,
    uri: Uri,
    headers: HeaderMap,
    JsonBody { value: Guest { table }, .. }: JsonBody<Guest>,
) -> Result<(StatusCode, Json<Entered>), Problem> {
    if !fits(&table, 1..=64) {
        return Err(Problem::new(Code::InvalidValue, "`table` has 1 to 64 bytes").at("/table"));
    }
    let websocket = WebSocket::of(&app, &uri, &headers)?;
    let queue = queue(&app)?;
    queue.ask(&app, QueueRequest::Put { config: config() }).await?;
    let id = random::local_part();
    let account = jids::account(&id, &queue.domain.name)?;
    let alike = [("table".into(), table.into())].into_iter().collect();
    let ticket = NewTicket { id: id.into(), account, rating: 0, alike, party: Vec::new() };
    let (ticket, _) = queue.ticket(&app, QueueRequest::Enter { ticket }).await?;
    Ok((StatusCode::CREATED, Json(Entered { websocket_url: websocket.url, ticket: Ticket::of(ticket) })))
}

async fn ticket(State(app): State<App>, Named(id): Named<String>) -> Result<Json<Ticket>, Problem> {
    let (ticket, _) = queue(&app)?.ticket(&app, QueueRequest::Ticket { id: id.into() }).await?;
    Ok(Json(Ticket::of(ticket)))
}

async fn withdraw(State(app): State<App>, Named(id): Named<String>) -> Result<StatusCode, Problem> {
    queue(&app)?.ask(&app, QueueRequest::Cancel { id: id.into() }).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn queue(app: &App) -> Result<Queue, Problem> {
    let name = &app.options.default_domain;
    let domain = app
        .domain(name)
        .ok_or_else(|| Problem::new(Code::UnknownDomain, format!("the node has no domain `{name}`")))?;
    Ok(Queue { domain, name: "demo of matches".to_owned() })
}

/// A minute of tag, and time to come back to it. Whoever closed the window does not wait for long.
fn config() -> QueueConfig {
    let rules = MatchRules {
        tick_rate: 20,
        input_bytes_max: 1,
        join_ms: 10_000,
        hold_ms: 60_000,
        duration_max_ms: 300_000,
        ..MatchRules::default()
    };
    QueueConfig {
        seats: 2,
        rating: RatingWindow::ANY,
        wait_max_ms: 10_000,
        rules,
        party_max: 1,
        is_open: false,
    }
}

/// Where the node's WebSocket is, for a page that was asked for by this name.
struct WebSocket {
    origin: String,
    url: String,
}

impl WebSocket {
    fn of(app: &App, uri: &Uri, headers: &HeaderMap) -> Result<WebSocket, Problem> {
        let none = || Problem::new(Code::NoMatches, "the node has no port for WebSockets".to_owned());
        let told = app.options.endpoints.websocket_url.as_ref().ok_or_else(none)?;
        let told: Uri = told.parse().map_err(|_| none())?;
        let host = name_of(uri, headers).unwrap_or("localhost");
        let scheme = told.scheme_str().unwrap_or("ws");
        let port = told.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
        let origin = format!("{scheme}://{host}{port}");
        Ok(WebSocket { url: format!("{origin}{}", told.path()), origin })
    }
}
