//! The matchmaker and its matches: queues, tickets, and the token with which a player takes a seat.

use crate::app::App;
use crate::auth::{Granted, Matches};
use crate::extract::{DomainQuery, JsonBody, Named, Params};
use crate::problem::{Code, Problem};
use crate::random;
use crate::values::jids;
use crate::values::schema;
use crate::values::text::fits;
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use carillon_core::command::{Command, Outcome, QueueOutcome, QueueRefusal, QueueRequest};
use carillon_core::model::{
    Domain, MatchResult, MatchRules, NewTicket, QueueConfig, QueueView, RatingWindow, TicketState, TicketView,
};
use carillon_wire::frame::game::{INPUT_BYTES_MAX, Mode, SEATS_MAX};
use carillon_wire::jid::BareJid;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// What a queue of the matchmaker makes of its tickets.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueueBody {
    /// How many players a match has.
    #[schema(minimum = 2, maximum = 64)]
    seats: u8,
    /// How ticks are made. `lockstep`: the server closes each at its time. `relay`: inputs are passed on as they come, in one order.
    /// `authoritative`: the server closes each at its time, and a module says what comes of it.
    #[serde(default = "mode")]
    #[schema(value_type = schema::MatchMode, default = "lockstep")]
    mode: String,
    /// Ticks per second.
    #[serde(default = "tick_rate")]
    #[schema(minimum = 1, maximum = 60, default = 15)]
    tick_rate: u8,
    /// For how many ticks ahead clients are told to send their inputs.
    #[serde(default = "input_delay")]
    #[schema(minimum = 1, maximum = 30, default = 2)]
    input_delay: u8,
    /// Bytes of the longest input.
    #[serde(default = "input_bytes_max")]
    #[schema(minimum = 1, maximum = 512, default = 64)]
    input_bytes_max: u16,
    /// How many accounts one ticket may be of: a party, which is in one match.
    #[serde(default = "party_max")]
    #[schema(minimum = 1, maximum = 64, default = 1)]
    party_max: u8,
    /// Whether accounts enter tickets themselves, by XMPP, with the rating that they say.
    #[serde(default)]
    #[schema(default = false)]
    open: bool,
    /// How far the ratings of a match may be apart; without it by any distance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rating: Option<RatingBody>,
    /// For how many milliseconds a ticket waits for a match at most.
    #[serde(default = "wait_max_ms")]
    #[schema(minimum = 1000, maximum = 3_600_000, default = 600_000)]
    wait_max_ms: u32,
    /// For how many milliseconds a match waits for its players at the start. For as long a token may be used for the first time.
    #[serde(default = "join_ms")]
    #[schema(minimum = 1000, maximum = 300_000, default = 30_000)]
    join_ms: u32,
    /// For how many milliseconds a seat is held whose connection is lost.
    #[serde(default = "hold_ms")]
    #[schema(minimum = 0, maximum = 600_000, default = 30_000)]
    hold_ms: u32,
    /// For how many milliseconds of its clock a match is played at most.
    #[serde(default = "duration_max_ms")]
    #[schema(minimum = 1000, maximum = 86_400_000, default = 3_600_000)]
    duration_max_ms: u32,
    /// How often each player may stop the clock.
    #[serde(default = "pauses")]
    #[schema(maximum = 100, default = 1)]
    pauses: u8,
    /// For how many milliseconds at most each time.
    #[serde(default = "pause_max_ms")]
    #[schema(minimum = 1000, maximum = 600_000, default = 30_000)]
    pause_max_ms: u32,
    /// In the mode `authoritative`, and only there: the name of the active module that decides the matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    module: Option<String>,
    /// What becomes of a match when its module fails. `restore`: it goes on from the state that was saved last, a second ago at most. `end`: it is over.
    #[serde(default = "on_module_failure")]
    #[schema(value_type = schema::OnModuleFailure, default = "restore")]
    on_module_failure: String,
    /// In the mode `lockstep`: after how many ticks players are asked for the state of the game, which those who come late are given; 0 for never.
    #[serde(default)]
    #[schema(maximum = 36_000, default = 0)]
    snapshot_ticks: u16,
    /// How many may watch a match, in the modes `lockstep` and `authoritative`.
    #[serde(default)]
    #[schema(maximum = 10_000, default = 0)]
    spectators: u16,
    /// How many milliseconds spectators are behind.
    #[serde(default = "spectator_delay_ms")]
    #[schema(maximum = 600_000, default = 10_000)]
    spectator_delay_ms: u32,
}

/// How far the ratings of a match may be apart: as far as that of its tickets accepts which has waited longest.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RatingBody {
    /// At once.
    #[schema(maximum = 1_000_000_000)]
    initial: u32,
    /// For each second of waiting, so much more.
    #[serde(default)]
    #[schema(maximum = 1_000_000_000, default = 0)]
    per_second: u32,
    /// At most.
    #[schema(maximum = 1_000_000_000)]
    max: u32,
}

fn mode() -> String {
    MatchRules::default().mode.as_str().to_owned()
}
fn tick_rate() -> u8 {
    MatchRules::default().tick_rate
}
fn input_delay() -> u8 {
    MatchRules::default().input_delay
}
fn input_bytes_max() -> u16 {
    MatchRules::default().input_bytes_max
}
fn party_max() -> u8 {
    1
}
fn wait_max_ms() -> u32 {
    600_000
}
fn join_ms() -> u32 {
    MatchRules::default().join_ms
}
fn hold_ms() -> u32 {
    MatchRules::default().hold_ms
}
fn duration_max_ms() -> u32 {
    MatchRules::default().duration_max_ms
}
fn pauses() -> u8 {
    MatchRules::default().pauses
}
fn pause_max_ms() -> u32 {
    MatchRules::default().pause_max_ms
}

fn spectator_delay_ms() -> u32 {
    MatchRules::default().spectator_delay_ms
}
fn on_module_failure() -> String {
    RESTORE.to_owned()
}

impl QueueBody {
    fn config(&self) -> Result<QueueConfig, Problem> {
        in_bounds("seats", self.seats, 2..=SEATS_MAX as u8)?;
        in_bounds("party_max", self.party_max, 1..=self.seats)?;
        in_bounds("tick_rate", self.tick_rate, 1..=60)?;
        in_bounds("input_delay", self.input_delay, 1..=30)?;
        in_bounds("input_bytes_max", self.input_bytes_max, 1..=INPUT_BYTES_MAX as u16)?;
        in_bounds("wait_max_ms", self.wait_max_ms, 1000..=3_600_000)?;
        in_bounds("join_ms", self.join_ms, 1000..=300_000)?;
        in_bounds("hold_ms", self.hold_ms, 0..=600_000)?;
        in_bounds("duration_max_ms", self.duration_max_ms, 1000..=86_400_000)?;
        in_bounds("pauses", self.pauses, 0..=100)?;
        in_bounds("pause_max_ms", self.pause_max_ms, 1000..=600_000)?;
        in_bounds("snapshot_ticks", self.snapshot_ticks, 0..=36_000)?;
        in_bounds("spectators", self.spectators, 0..=10_000)?;
        in_bounds("spectator_delay_ms", self.spectator_delay_ms, 0..=600_000)?;
        let mode = self.mode()?;
        if mode == Mode::Relay && self.spectators > 0 {
            let detail = "a match in the mode `relay` is not watched";
            return Err(Problem::new(Code::InvalidValue, detail).at("/spectators"));
        }
        if mode != Mode::Lockstep && self.snapshot_ticks > 0 {
            let detail = "players are asked for states in the mode `lockstep` only";
            return Err(Problem::new(Code::InvalidValue, detail).at("/snapshot_ticks"));
        }
        let ends_on_failure = match &*self.on_module_failure {
            RESTORE => false,
            END => true,
            other => {
                let detail = format!("`on_module_failure` is `{RESTORE}` or `{END}`, not `{other}`");
                return Err(Problem::new(Code::InvalidValue, detail).at("/on_module_failure"));
            }
        };
        let rating = match &self.rating {
            None => RatingWindow::ANY,
            Some(RatingBody { initial, per_second, max }) => {
                in_bounds("rating/initial", *initial, 0..=NewTicket::RATING_MAX)?;
                in_bounds("rating/per_second", *per_second, 0..=NewTicket::RATING_MAX)?;
                in_bounds("rating/max", *max, 0..=NewTicket::RATING_MAX)?;
                RatingWindow { initial: *initial, per_second: *per_second, max: *max }
            }
        };
        Ok(QueueConfig {
            seats: self.seats,
            rating,
            wait_max_ms: self.wait_max_ms,
            party_max: self.party_max,
            is_open: self.open,
            rules: MatchRules {
                mode,
                tick_rate: self.tick_rate,
                input_delay: self.input_delay,
                input_bytes_max: self.input_bytes_max,
                join_ms: self.join_ms,
                hold_ms: self.hold_ms,
                duration_max_ms: self.duration_max_ms,
                pauses: self.pauses,
                pause_max_ms: self.pause_max_ms,
                module: self.module.as_deref().map(Box::from),
                ends_on_failure,
                snapshot_ticks: self.snapshot_ticks,
                spectators: self.spectators,
                spectator_delay_ms: self.spectator_delay_ms,
            },
        })
    }

    fn mode(&self) -> Result<Mode, Problem> {
        let modes = [Mode::Lockstep, Mode::Relay, Mode::Authoritative];
        let mode = modes.into_iter().find(|mode| mode.as_str() == self.mode).ok_or_else(|| {
            let detail = format!("`mode` is `lockstep`, `relay` or `authoritative`, not `{}`", self.mode);
            Problem::new(Code::InvalidValue, detail).at("/mode")
        })?;
        if (mode == Mode::Authoritative) != self.module.is_some() {
            let detail = "a queue has a `module` in the mode `authoritative`, and only there";
            return Err(Problem::new(Code::InvalidValue, detail).at("/module"));
        }
        Ok(mode)
    }

    fn of(config: QueueConfig) -> QueueBody {
        let QueueConfig { seats, rating, wait_max_ms, rules, party_max, is_open } = config;
        let RatingWindow { initial, per_second, max } = rating;
        QueueBody {
            seats,
            mode: rules.mode.as_str().to_owned(),
            tick_rate: rules.tick_rate,
            input_delay: rules.input_delay,
            input_bytes_max: rules.input_bytes_max,
            rating: (rating != RatingWindow::ANY).then_some(RatingBody { initial, per_second, max }),
            wait_max_ms,
            party_max,
            open: is_open,
            join_ms: rules.join_ms,
            hold_ms: rules.hold_ms,
            duration_max_ms: rules.duration_max_ms,
            pauses: rules.pauses,
            pause_max_ms: rules.pause_max_ms,
            module: rules.module.map(String::from),
            snapshot_ticks: rules.snapshot_ticks,
            spectators: rules.spectators,
            spectator_delay_ms: rules.spectator_delay_ms,
            on_module_failure: if rules.ends_on_failure { END } else { RESTORE }.to_owned(),
        }
    }
}

fn in_bounds<T: PartialOrd + Copy + std::fmt::Display>(
    member: &str,
    value: T,
    bounds: RangeInclusive<T>,
) -> Result<(), Problem> {
    if bounds.contains(&value) {
        return Ok(());
    }
    let detail = format!("`{member}` is from {} to {}", bounds.start(), bounds.end());
    Err(Problem::new(Code::InvalidValue, detail).at(format!("/{member}")))
}

/// A queue of the matchmaker, and how it goes.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct MatchQueue {
    /// Its name.
    name: String,
    /// Its domain.
    domain: String,
    /// What it makes of its tickets.
    config: QueueBody,
    /// Tickets that wait now.
    waiting: u64,
    /// Matches that are played now.
    matches: u64,
    /// Matches it has made since it was declared.
    made: u64,
    /// How many milliseconds the tickets of the last matches waited, on average.
    waited_ms: u64,
    /// How far apart the ratings of the last matches were, on average.
    apart: u64,
}

/// The wish of an account to play.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TicketBody {
    /// Its name in the queue. The same ticket again changes nothing. Without it the server makes one.
    #[schema(min_length = 1, max_length = 128)]
    id: Option<String>,
    /// Who wants to play: a bare JID, or a local part of the domain.
    account: String,
    /// How good the player is.
    #[serde(default)]
    #[schema(minimum = -1_000_000_000, maximum = 1_000_000_000, default = 0)]
    rating: i64,
    /// What all players of a match must have alike, such as a region or a map: at most 16 names with a value each.
    #[serde(default)]
    alike: BTreeMap<String, String>,
    /// Who else plays in the same match: the rest of a party. Its rating is that of the ticket.
    #[serde(default)]
    #[schema(max_items = 63)]
    party: Vec<String>,
}

/// A ticket, and what has become of it.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct Ticket {
    /// Its name in the queue.
    id: String,
    /// Who wants to play.
    account: String,
    /// How good the player is.
    rating: i64,
    /// The rest of its party.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    party: Vec<String>,
    /// When it came.
    created_at: Time,
    /// `waiting`: for others. `matched`: there is a seat for it. `ended`: its match is over. `expired`: nobody was found in time.
    #[schema(value_type = schema::TicketState)]
    state: &'static str,
    /// The seat, while the match is played.
    #[serde(skip_serializing_if = "Option::is_none")]
    seating: Option<SeatingView>,
    /// How the match ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<ResultView>,
}

/// A seat of a match, and the right to take it.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct SeatingView {
    /// The match.
    #[serde(rename = "match")]
    id: String,
    /// The seat, counted from 0.
    seat: u8,
    /// Who has the seats, in their order.
    accounts: Vec<String>,
    /// What takes the seat, and takes it again after the connection was lost. A secret of this player.
    token: String,
    /// Until when the token may be used for the first time.
    expires_at: Time,
    /// How many milliseconds the ticket waited.
    waited_ms: u64,
    /// Of the others of the party, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    party: Vec<PartySeat>,
}

/// The seat of one of a party.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct PartySeat {
    /// Who has it.
    account: String,
    /// The seat.
    seat: u8,
    /// What takes it. A secret of this player.
    token: String,
}

/// How a match ended.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct ResultView {
    /// The match.
    #[serde(rename = "match")]
    id: String,
    /// Why it is over: `finished`, `forfeit`, `duration`, `not-joined`, `shutdown` or `module`.
    reason: &'static str,
    /// Its last tick.
    tick: u32,
    /// The seats whose players had not left.
    seats: Vec<u8>,
    /// What most clients say came of it, in base 64; empty if they do not say.
    outcome: String,
}

/// Declare a queue
///
/// Queues are in memory: a node that was restarted has none, and answers `unknown-match-queue` until they are declared again. A queue that exists is
/// left as it is: `200` if it is the same, else `409`.
#[utoipa::path(
    put, path = "/v1/matchmaking/{queue}", operation_id = "putMatchQueue", tag = "matches", request_body = QueueBody,
    params(DomainQuery, ("queue" = String, Path, description = "The name of the queue, at most 128 bytes")),
    responses(
        (status = 200, description = "It exists as the request wants it, and was not changed", body = MatchQueue),
        (status = 201, description = "It was declared", body = MatchQueue),
        schema::Problems
    )
)]
pub(crate) async fn put(
    key: Granted<Matches>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
    JsonBody { value: body, .. }: JsonBody<QueueBody>,
) -> Result<(StatusCode, Json<MatchQueue>), Problem> {
    let queue = Queue::named(&app, &key, query.domain.as_deref(), name)?;
    let config = body.config()?;
    let (view, created) = queue.view(&app, QueueRequest::Put { config: config.clone() }).await?;
    if view.config != config {
        let detail = format!("the queue `{}` exists with other values; delete it first", queue.name);
        return Err(Problem::new(Code::AlreadyExists, detail));
    }
    Ok((status(created), Json(queue.show(view))))
}

/// Read a queue
#[utoipa::path(
    get, path = "/v1/matchmaking/{queue}", operation_id = "getMatchQueue", tag = "matches",
    params(DomainQuery, ("queue" = String, Path, description = "The name of the queue")),
    responses((status = 200, description = "The queue", body = MatchQueue), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Matches>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
) -> Result<Json<MatchQueue>, Problem> {
    let queue = Queue::named(&app, &key, query.domain.as_deref(), name)?;
    let (view, _) = queue.view(&app, QueueRequest::Get).await?;
    Ok(Json(queue.show(view)))
}

/// Remove a queue
///
/// With its waiting tickets. Its matches are played to their end.
#[utoipa::path(
    delete, path = "/v1/matchmaking/{queue}", operation_id = "deleteMatchQueue", tag = "matches",
    params(DomainQuery, ("queue" = String, Path, description = "The name of the queue")),
    responses((status = 204, description = "It is gone"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Matches>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
) -> Result<StatusCode, Problem> {
    let queue = Queue::named(&app, &key, query.domain.as_deref(), name)?;
    queue.ask(&app, QueueRequest::Delete).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Enter a ticket
///
/// The answer is `matched` at once if the ticket makes a match complete; else ask for it again. An account has one ticket in a queue at a
/// time.
#[utoipa::path(
    post, path = "/v1/matchmaking/{queue}", operation_id = "enterTicket", tag = "matches", request_body = TicketBody,
    params(DomainQuery, ("queue" = String, Path, description = "The name of the queue")),
    responses(
        (status = 200, description = "It was there, with the same in it", body = Ticket),
        (status = 201, description = "It was entered", body = Ticket),
        schema::Problems
    )
)]
pub(crate) async fn enter(
    key: Granted<Matches>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
    JsonBody { value: body, .. }: JsonBody<TicketBody>,
) -> Result<(StatusCode, Json<Ticket>), Problem> {
    let queue = Queue::named(&app, &key, query.domain.as_deref(), name)?;
    let TicketBody { id, account, rating, alike, party } = body;
    let account = queue.account(&account, "/account")?;
    if party.len() >= SEATS_MAX {
        let detail = format!("a match has at most {SEATS_MAX} seats");
        return Err(Problem::new(Code::InvalidValue, detail).at("/party"));
    }
    let party = party.iter().map(|account| queue.account(account, "/party")).collect::<Result<_, _>>()?;
    let id = id.unwrap_or_else(|| format!("{:016x}{:016x}", random::number(), random::number()));
    if !fits(&id, 1..=NAME_BYTES_MAX) {
        let detail = format!("`id` has 1 to {NAME_BYTES_MAX} bytes, none of them a control character");
        return Err(Problem::new(Code::InvalidValue, detail).at("/id"));
    }
    in_bounds("rating", rating, -i64::from(NewTicket::RATING_MAX)..=i64::from(NewTicket::RATING_MAX))?;
    if alike.len() > NewTicket::ALIKE_MAX
        || alike.iter().any(|(name, value)| {
            !fits(name, 1..=NewTicket::ALIKE_BYTES_MAX) || !fits(value, 0..=NewTicket::ALIKE_BYTES_MAX)
        })
    {
        let (names, bytes) = (NewTicket::ALIKE_MAX, NewTicket::ALIKE_BYTES_MAX);
        let detail = format!(
            "`alike` has at most {names} names of 1 to {bytes} bytes, with values of at most {bytes}"
        );
        return Err(Problem::new(Code::InvalidValue, detail).at("/alike"));
    }
    let alike = alike.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    let ticket = NewTicket { id: id.into(), account, rating, alike, party };
    let (ticket, created) = queue.ticket(&app, QueueRequest::Enter { ticket }).await?;
    Ok((status(created), Json(Ticket::of(ticket))))
}

/// Read a ticket
///
/// Forgotten a minute after it ended or expired.
#[utoipa::path(
    get, path = "/v1/matchmaking/{queue}/{ticket}", operation_id = "getTicket", tag = "matches",
    params(
        DomainQuery,
        ("queue" = String, Path, description = "The name of the queue"),
        ("ticket" = String, Path, description = "The name of the ticket")
    ),
    responses((status = 200, description = "The ticket", body = Ticket), schema::Problems)
)]
pub(crate) async fn ticket(
    key: Granted<Matches>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named((name, id)): Named<(String, String)>,
) -> Result<Json<Ticket>, Problem> {
    let queue = Queue::named(&app, &key, query.domain.as_deref(), name)?;
    let (ticket, _) = queue.ticket(&app, QueueRequest::Ticket { id: id.into() }).await?;
    Ok(Json(Ticket::of(ticket)))
}

/// Withdraw a ticket
///
/// One that waits. `ticket-matched` if there is a match for it.
#[utoipa::path(
    delete, path = "/v1/matchmaking/{queue}/{ticket}", operation_id = "cancelTicket", tag = "matches",
    params(
        DomainQuery,
        ("queue" = String, Path, description = "The name of the queue"),
        ("ticket" = String, Path, description = "The name of the ticket")
    ),
    responses((status = 204, description = "It waits no more"), schema::Problems)
)]
pub(crate) async fn cancel(
    key: Granted<Matches>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named((name, id)): Named<(String, String)>,
) -> Result<StatusCode, Problem> {
    let queue = Queue::named(&app, &key, query.domain.as_deref(), name)?;
    queue.ask(&app, QueueRequest::Cancel { id: id.into() }).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn status(created: bool) -> StatusCode {
    if created { StatusCode::CREATED } else { StatusCode::OK }
}

/// The queue that a request is about.
pub(crate) struct Queue {
    pub(crate) domain: Arc<Domain>,
    pub(crate) name: String,
}

impl Queue {
    fn named(
        app: &App,
        key: &Granted<Matches>,
        domain: Option<&str>,
        name: String,
    ) -> Result<Queue, Problem> {
        if !fits(&name, 1..=NAME_BYTES_MAX) {
            let detail = format!(
                "the name of a queue has 1 to {NAME_BYTES_MAX} bytes, none of them a control character"
            );
            return Err(Problem::new(Code::InvalidParameter, detail));
        }
        Ok(Queue { domain: key.domain(app, domain)?, name })
    }

    /// An account of the queue's domain.
    fn account(&self, account: &str, pointer: &str) -> Result<BareJid, Problem> {
        let account = jids::account(account, &self.domain.name).map_err(|problem| problem.at(pointer))?;
        if account.domain() != &*self.domain.name {
            let detail = format!("`{account}` is not an account of `{}`", self.domain.name);
            return Err(Problem::new(Code::InvalidValue, detail).at(pointer));
        }
        Ok(account)
    }

    pub(crate) async fn ask(&self, app: &App, request: QueueRequest) -> Result<QueueOutcome, Problem> {
        let (domain, name) = (self.domain.id, self.name.as_str().into());
        match app.command(Command::Queue { domain, name, request: Box::new(request) }).await? {
            Outcome::Queue(result) => result.map_err(|refusal| self.refused(refusal)),
            Outcome::Missing => Err(self.refused(QueueRefusal::NoQueue)),
            other => Err(Problem::unexpected(&other)),
        }
    }

    async fn view(&self, app: &App, request: QueueRequest) -> Result<(QueueView, bool), Problem> {
        match self.ask(app, request).await? {
            QueueOutcome::Queue { queue, created } => Ok((queue, created)),
            other => Err(Problem::unexpected(&other)),
        }
    }

    pub(crate) async fn ticket(
        &self,
        app: &App,
        request: QueueRequest,
    ) -> Result<(TicketView, bool), Problem> {
        match self.ask(app, request).await? {
            QueueOutcome::Ticket { ticket, created } => Ok((ticket, created)),
            other => Err(Problem::unexpected(&other)),
        }
    }

    fn show(&self, view: QueueView) -> MatchQueue {
        let QueueView { config, waiting, matches, made, waited_ms, apart } = view;
        MatchQueue {
            name: self.name.clone(),
            domain: self.domain.name.to_string(),
            config: QueueBody::of(config),
            waiting,
            matches,
            made,
            waited_ms,
            apart,
        }
    }

    fn refused(&self, refusal: QueueRefusal) -> Problem {
        let (code, detail) = match refusal {
            QueueRefusal::Disabled => (Code::NoMatches, "the setting `matches.max` is 0".to_owned()),
            QueueRefusal::NoQueue => {
                let (domain, name) = (&self.domain.name, &self.name);
                (Code::UnknownMatchQueue, format!("the domain `{domain}` has no queue `{name}`"))
            }
            QueueRefusal::NoTicket => {
                (Code::UnknownTicket, format!("the queue `{}` has no such ticket", self.name))
            }
            QueueRefusal::OtherTicket => {
                (Code::AlreadyExists, "a ticket of this name is there, with something else in it".to_owned())
            }
            QueueRefusal::Present => {
                (Code::AccountQueued, "an account has a ticket in the queue that is not over".to_owned())
            }
            QueueRefusal::PartyTooLarge => {
                let detail = "the ticket is of more accounts than `party_max` of the queue".to_owned();
                return Problem::new(Code::InvalidValue, detail).at("/party");
            }
            QueueRefusal::NotOpen => {
                (Code::InvalidValue, "accounts enter no tickets in this queue themselves".to_owned())
            }
            QueueRefusal::Twice => {
                let detail = "an account is in the ticket twice".to_owned();
                return Problem::new(Code::InvalidValue, detail).at("/party");
            }
            QueueRefusal::TooLate => (Code::TicketMatched, "the ticket does not wait any more".to_owned()),
            QueueRefusal::TooManyQueues => (Code::TooManyQueues, "the setting `matches.queues`".to_owned()),
            QueueRefusal::NoModule => {
                let detail =
                    "no module of this name that decides matches (`match_tick`) is active".to_owned();
                return Problem::new(Code::UnknownModule, detail).at("/module");
            }
            QueueRefusal::TooManyTickets => {
                (Code::TooManyTickets, "the setting `matches.tickets`".to_owned())
            }
        };
        Problem::new(code, detail)
    }
}

impl Ticket {
    pub(crate) fn of(view: TicketView) -> Ticket {
        let TicketView { ticket, created, state } = view;
        let (state, seating, result) = match state {
            TicketState::Waiting => ("waiting", None, None),
            TicketState::Expired => ("expired", None, None),
            TicketState::Ended(result) => ("ended", None, Some(ResultView::of(result))),
            TicketState::Matched(seating) => {
                let seating = SeatingView {
                    id: seating.id.to_string(),
                    seat: seating.seat,
                    accounts: seating.accounts.iter().map(ToString::to_string).collect(),
                    token: seating.token.into(),
                    expires_at: Time(seating.expires),
                    waited_ms: seating.waited_ms,
                    party: seating
                        .party
                        .into_iter()
                        .zip(&ticket.party)
                        .map(|((seat, token), account)| PartySeat {
                            account: account.to_string(),
                            seat,
                            token: token.into(),
                        })
                        .collect(),
                };
                ("matched", Some(seating), None)
            }
        };
        Ticket {
            id: ticket.id.into(),
            account: ticket.account.to_string(),
            rating: ticket.rating,
            party: ticket.party.iter().map(ToString::to_string).collect(),
            created_at: Time(created),
            state,
            seating,
            result,
        }
    }
}

impl ResultView {
    pub(crate) fn of(result: MatchResult) -> ResultView {
        let MatchResult { id, reason, tick, seats, outcome } = result;
        ResultView {
            id: id.to_string(),
            reason: reason.as_str(),
            tick,
            seats: (0..64).filter(|seat| seats & 1 << seat != 0).collect(),
            outcome: STANDARD.encode(outcome),
        }
    }
}

/// What becomes of a match whose module fails.
const RESTORE: &str = "restore";
const END: &str = "end";
/// Bytes of the name of a queue or a ticket.
const NAME_BYTES_MAX: usize = 128;
