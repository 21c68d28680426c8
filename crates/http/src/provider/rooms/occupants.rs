//! Who is in a room.

use super::{ReasonQuery, Room, check_reason};
use crate::app::App;
use crate::auth::{Granted, Rooms};
use crate::extract::{DomainQuery, JsonBody, Named, PageQuery, Params, cut, limit};
use crate::problem::Problem;
use crate::values::schema;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::command::{RoomOccupant, RoomOutcome, RoomRequest};
use carillon_core::model::{RoomAffiliation, RoomRole};

/// Somebody who is in a room.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct OccupantView {
    /// Its nick.
    nick: String,
    /// What its account is to the room for good.
    #[schema(value_type = schema::Affiliation)]
    affiliation: RoomAffiliation,
    /// What it may do while it is in the room.
    role: Role,
    /// The full JIDs of its clients.
    clients: Vec<String>,
}

/// A page of occupants, in the order of their nicks.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct OccupantPage {
    /// The occupants.
    occupants: Vec<OccupantView>,
    /// What to give as `after` for the next page; none on the last.
    next: Option<String>,
}

/// What somebody may do in a room while it is in it (XEP-0045 §5.1).
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Listen.
    Visitor,
    /// Speak.
    Participant,
    /// Decide who speaks, and remove others.
    Moderator,
}

/// What an occupant is to be.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OccupantBody {
    /// What it may do from now on, while it is in the room.
    role: Role,
    /// Why; at most 1024 bytes.
    reason: Option<String>,
}

/// List who is in a room
#[utoipa::path(
    get, path = "/v1/rooms/{room}/occupants", operation_id = "listOccupants", tag = "rooms",
    params(PageQuery, ("room" = String, Path, description = "The room's name, or its address, percent-encoded")),
    responses((status = 200, description = "A page of occupants", body = OccupantPage), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<PageQuery>,
    Named(name): Named<String>,
) -> Result<Json<OccupantPage>, Problem> {
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    let limit = limit(query.limit)?;
    let request = RoomRequest::Occupants { after: query.after.map(Into::into), max: limit + 1 };
    match room.ask(&app, request).await? {
        RoomOutcome::Occupants(mut occupants) => {
            let more = cut(&mut occupants, limit);
            let next = occupants.last().filter(|_| more).map(|last| last.nick.to_string());
            Ok(Json(OccupantPage { occupants: occupants.iter().map(OccupantView::of).collect(), next }))
        }
        other => Err(Problem::unexpected(&other)),
    }
}

/// Change what somebody may do in a room
///
/// Until it leaves: what it is for good is its affiliation.
#[utoipa::path(
    patch, path = "/v1/rooms/{room}/occupants/{nick}", operation_id = "updateOccupant", tag = "rooms",
    request_body = OccupantBody,
    params(
        DomainQuery,
        ("room" = String, Path, description = "The room's name, or its address, percent-encoded"),
        ("nick" = String, Path, description = "The occupant's nick, percent-encoded"),
    ),
    responses((status = 204, description = "It is so"), schema::Problems)
)]
pub(crate) async fn update(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named((name, nick)): Named<(String, String)>,
    JsonBody { value: body, .. }: JsonBody<OccupantBody>,
) -> Result<StatusCode, Problem> {
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    check_reason(body.reason.as_deref()).map_err(|problem| problem.at("/reason"))?;
    let role = match body.role {
        Role::Visitor => RoomRole::Visitor,
        Role::Participant => RoomRole::Participant,
        Role::Moderator => RoomRole::Moderator,
    };
    room.done(&app, RoomRequest::SetRole { nick: nick.into(), role, reason: body.reason }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Remove somebody from a room
///
/// It may enter again, unless it is banned: an affiliation `outcast` does that.
#[utoipa::path(
    delete, path = "/v1/rooms/{room}/occupants/{nick}", operation_id = "kickOccupant", tag = "rooms",
    params(
        ReasonQuery,
        ("room" = String, Path, description = "The room's name, or its address, percent-encoded"),
        ("nick" = String, Path, description = "The occupant's nick, percent-encoded"),
    ),
    responses((status = 204, description = "It has left"), schema::Problems)
)]
pub(crate) async fn kick(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<ReasonQuery>,
    Named((name, nick)): Named<(String, String)>,
) -> Result<StatusCode, Problem> {
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    check_reason(query.reason.as_deref()).map_err(|problem| problem.at("reason"))?;
    let request = RoomRequest::SetRole { nick: nick.into(), role: RoomRole::None, reason: query.reason };
    room.done(&app, request).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl OccupantView {
    fn of(occupant: &RoomOccupant) -> OccupantView {
        OccupantView {
            nick: occupant.nick.to_string(),
            affiliation: occupant.affiliation,
            role: match occupant.role {
                RoomRole::Moderator => Role::Moderator,
                RoomRole::Participant => Role::Participant,
                RoomRole::Visitor | RoomRole::None => Role::Visitor,
            },
            clients: occupant.clients.iter().map(|client| client.as_str().to_owned()).collect(),
        }
    }
}
