//! Matches as they are played, and as they were.

use super::matchmaking::ResultView;
use crate::app::App;
use crate::auth::{Granted, Matches};
use crate::extract::{DomainQuery, Named, Params};
use crate::problem::{Code, Problem};
use crate::values::schema;
use crate::values::text::hex;
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use carillon_core::command::{Command, MatchRequest, Outcome};
use carillon_core::model::{Domain, MatchId, MatchReplay, MatchView};
use carillon_core::ports::modules::ModuleHash;

/// A match, as it is now.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct MatchState {
    /// Its name.
    #[serde(rename = "match")]
    id: String,
    /// The queue that made it.
    queue: String,
    /// How ticks are made.
    #[schema(value_type = schema::MatchMode)]
    mode: &'static str,
    /// Its last tick.
    tick: u32,
    /// Whether its clock runs.
    running: bool,
    /// Its seats.
    seats: Vec<SeatView>,
    /// How often clients computed different states.
    desyncs: u32,
    /// The version of the module that decides it: `NAME@HASH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<String>,
    /// How many watch it.
    spectators: u32,
}

/// The right to watch a match.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct SpectatorToken {
    /// The match.
    #[serde(rename = "match")]
    id: String,
    /// What spectators join with: any number of them, as far as the queue allows.
    token: String,
    /// Until when they may join.
    expires_at: Time,
}

/// How a match was played.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Replay {
    /// Its name.
    #[serde(rename = "match")]
    id: String,
    /// The queue that made it.
    queue: String,
    /// How its ticks were made.
    #[schema(value_type = schema::MatchMode)]
    mode: &'static str,
    /// Ticks per second.
    tick_rate: u8,
    /// The number that its random decisions follow from, in decimal digits.
    seed: String,
    /// Who had the seats, in their order.
    accounts: Vec<String>,
    /// The version of the module that decided it last: `NAME@HASH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<String>,
    /// How it ended; not there while it is played.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<ResultView>,
    /// The first tick that is there: older ones may have been forgotten.
    from: u32,
    /// The last tick.
    tick: u32,
    /// A frame of `carillon-match/1` for each tick, with its length before it (kind 17), in base 64.
    frames: String,
}

/// A seat of a match.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct SeatView {
    /// Who has it.
    account: String,
    /// `here`, `away` or `left`.
    state: &'static str,
}

/// Read a match
///
/// While it is played.
#[utoipa::path(
    get, path = "/v1/matches/{match}", operation_id = "getMatch", tag = "matches",
    params(DomainQuery, ("match" = String, Path, description = "The name of the match: 32 hexadecimal digits")),
    responses((status = 200, description = "The match", body = MatchState), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Matches>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(id): Named<String>,
) -> Result<Json<MatchState>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    state(&app, &domain, &id, MatchRequest::Get).await.map(Json)
}

/// End a match
///
/// Its players are told `shutdown`. The answer is the match as it was.
#[utoipa::path(
    delete, path = "/v1/matches/{match}", operation_id = "endMatch", tag = "matches",
    params(DomainQuery, ("match" = String, Path, description = "The name of the match")),
    responses((status = 200, description = "It is over", body = MatchState), schema::Problems)
)]
pub(crate) async fn end(
    key: Granted<Matches>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(id): Named<String>,
) -> Result<Json<MatchState>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    state(&app, &domain, &id, MatchRequest::End).await.map(Json)
}

/// Let somebody watch a match
///
/// The token is for spectators: they join with it as players do with theirs, are given the ticks some time later, and send nothing but pings. `unknown-match` also
/// where the queue allows no spectators.
#[utoipa::path(
    post, path = "/v1/matches/{match}/spectators", operation_id = "watchMatch", tag = "matches",
    params(DomainQuery, ("match" = String, Path, description = "The name of the match")),
    responses((status = 201, description = "The right to watch", body = SpectatorToken), schema::Problems)
)]
pub(crate) async fn watch(
    key: Granted<Matches>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(id): Named<String>,
) -> Result<(StatusCode, Json<SpectatorToken>), Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    match ask(&app, &domain, &id, MatchRequest::Watch).await? {
        Outcome::MatchToken { token, expires } => {
            let token = SpectatorToken { id, token: token.into(), expires_at: Time(expires) };
            Ok((StatusCode::CREATED, Json(token)))
        }
        other => Err(Problem::unexpected(&other)),
    }
}

/// Read how a match was played
///
/// While it is played, and for a while after its end (`matches.replay_ms`, `matches.replay_bytes`).
#[utoipa::path(
    get, path = "/v1/matches/{match}/replay", operation_id = "getMatchReplay", tag = "matches",
    params(DomainQuery, ("match" = String, Path, description = "The name of the match")),
    responses((status = 200, description = "The ticks of the match", body = Replay), schema::Problems)
)]
pub(crate) async fn replay(
    key: Granted<Matches>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(id): Named<String>,
) -> Result<Json<Replay>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    match ask(&app, &domain, &id, MatchRequest::Replay).await? {
        Outcome::MatchReplay(replay) => Ok(Json(Replay::of(*replay))),
        other => Err(Problem::unexpected(&other)),
    }
}

async fn ask(app: &App, domain: &Domain, id: &str, request: MatchRequest) -> Result<Outcome, Problem> {
    let unknown =
        || Problem::new(Code::UnknownMatch, "no match of this name is played in the domain".to_owned());
    let id: MatchId = id.parse().map_err(|()| unknown())?;
    match app.command(Command::Match { domain: domain.id, id, request }).await? {
        Outcome::Missing => Err(unknown()),
        outcome => Ok(outcome),
    }
}

async fn state(app: &App, domain: &Domain, id: &str, request: MatchRequest) -> Result<MatchState, Problem> {
    match ask(app, domain, id, request).await? {
        Outcome::Match(view) => Ok(MatchState::of(*view)),
        other => Err(Problem::unexpected(&other)),
    }
}

fn version((name, hash): (Box<str>, ModuleHash)) -> String {
    format!("{name}@{}", hex(&hash))
}

impl MatchState {
    fn of(view: MatchView) -> MatchState {
        let MatchView { id, queue, mode, tick, runs, seats, desyncs, module, spectators } = view;
        let seat =
            |(account, state): (carillon_wire::jid::BareJid, carillon_wire::frame::game::SeatState)| {
                SeatView { account: account.to_string(), state: state.as_str() }
            };
        MatchState {
            id: id.to_string(),
            queue: queue.into(),
            mode: mode.as_str(),
            tick,
            running: runs,
            seats: seats.into_iter().map(seat).collect(),
            desyncs,
            module: module.map(version),
            spectators,
        }
    }
}

impl Replay {
    fn of(replay: MatchReplay) -> Replay {
        let MatchReplay {
            id,
            queue,
            mode,
            tick_rate,
            seed,
            accounts,
            module,
            result,
            forgotten,
            tick,
            frames,
        } = replay;
        Replay {
            id: id.to_string(),
            queue: queue.into(),
            mode: mode.as_str(),
            tick_rate,
            seed: seed.to_string(),
            accounts: accounts.iter().map(ToString::to_string).collect(),
            module: module.map(version),
            result: result.map(ResultView::of),
            from: forgotten + 1,
            tick,
            frames: STANDARD.encode(frames),
        }
    }
}
