//! The accounts that a room lists: its members, admins and owners, and those who are banned.

use super::{Room, check_reason};
use crate::app::App;
use crate::auth::{Granted, Rooms};
use crate::extract::{
    DomainQuery, Format, JsonBody, LineStream, Named, Params, content_type, cut, limit, parse,
};
use crate::problem::{Code, Problem};
use crate::values::jids;
use crate::values::schema;
use crate::values::text::fits;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use carillon_core::command::{RoomMemberChange, RoomRequest};
use carillon_core::model::{RoomAffiliation, RoomMember};
use std::time::Duration;

/// An account that a room lists.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct MemberView {
    /// Its bare JID.
    jid: String,
    /// What it is to the room for good (XEP-0045 §5.2). `none` where only a nick is reserved for it.
    #[schema(value_type = schema::Affiliation)]
    affiliation: RoomAffiliation,
    /// The nick that is reserved for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    nick: Option<String>,
    /// Why it has this affiliation.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// A page of members, in the order of their JIDs.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct MemberPage {
    /// The members.
    members: Vec<MemberView>,
    /// What to give as `after` for the next page; none on the last.
    next: Option<String>,
}

/// What a room is to have of an account. What is left out stays as it is.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemberBody {
    /// What it is to be to the room; with `none` it is removed from the list, unless a nick is reserved for it.
    #[schema(value_type = Option<schema::Affiliation>)]
    affiliation: Option<RoomAffiliation>,
    /// The nick that is reserved for it; empty for none.
    #[schema(max_length = 1023)]
    nick: Option<String>,
    /// Why, for the account and those who are in the room; at most 1024 bytes.
    reason: Option<String>,
}

/// A line that changes what a room has of an account.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemberLine {
    /// Its bare JID, or its local part in the room's domain.
    jid: String,
    /// As for one member.
    #[schema(value_type = Option<schema::Affiliation>)]
    affiliation: Option<RoomAffiliation>,
    /// As for one member.
    nick: Option<String>,
    /// As for one member.
    reason: Option<String>,
}

/// Selects members.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct MemberQuery {
    /// The domain to act in, for a key of the whole node; by default the node's first.
    domain: Option<String>,
    /// Only those of this affiliation.
    #[param(value_type = Option<schema::Affiliation>)]
    affiliation: Option<RoomAffiliation>,
    /// Only what comes after this: `next` of the page before.
    after: Option<String>,
    /// Number of entries in a page, at most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u16>,
}

/// List a room's members
#[utoipa::path(
    get, path = "/v1/rooms/{room}/members", operation_id = "listRoomMembers", tag = "rooms",
    params(MemberQuery, ("room" = String, Path, description = "The room's name, or its address, percent-encoded")),
    responses((status = 200, description = "A page of members", body = MemberPage), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<MemberQuery>,
    Named(name): Named<String>,
) -> Result<Json<MemberPage>, Problem> {
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    let limit = limit(query.limit)?;
    let (record, _) = room.record(&app, RoomRequest::Describe).await?;
    let after = query.after.as_deref().unwrap_or_default();
    let from = record.members.partition_point(|member| member.jid.as_str() <= after);
    let wanted = |member: &&RoomMember| query.affiliation.is_none_or(|wanted| wanted == member.affiliation);
    let rest = record.members.get(from..).unwrap_or_default().iter().filter(wanted);
    let mut members: Vec<MemberView> = rest.take(usize::from(limit) + 1).map(MemberView::of).collect();
    let more = cut(&mut members, limit);
    let next = members.last().filter(|_| more).map(|last| last.jid.clone());
    Ok(Json(MemberPage { members, next }))
}

/// Set what a room has of an account
///
/// Its clients that are in the room are told, and leave it where they may not be in it any more.
#[utoipa::path(
    put, path = "/v1/rooms/{room}/members/{jid}", operation_id = "putRoomMember", tag = "rooms",
    request_body = MemberBody,
    params(
        DomainQuery,
        ("room" = String, Path, description = "The room's name, or its address, percent-encoded"),
        ("jid" = String, Path, description = "A bare JID, or a local part in the room's domain"),
    ),
    responses((status = 204, description = "It is so"), schema::Problems)
)]
pub(crate) async fn put(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named((name, jid)): Named<(String, String)>,
    JsonBody { value: body, .. }: JsonBody<MemberBody>,
) -> Result<StatusCode, Problem> {
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    let MemberBody { affiliation, nick, reason } = body;
    let change = change(&room, MemberLine { jid, affiliation, nick, reason })?;
    room.done(&app, RoomRequest::SetMembers { changes: vec![change] }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Remove an account from a room's list
///
/// Its affiliation and its nick are gone; out of a room for members only it leaves.
#[utoipa::path(
    delete, path = "/v1/rooms/{room}/members/{jid}", operation_id = "deleteRoomMember", tag = "rooms",
    params(
        DomainQuery,
        ("room" = String, Path, description = "The room's name, or its address, percent-encoded"),
        ("jid" = String, Path, description = "A bare JID, or a local part in the room's domain"),
    ),
    responses((status = 204, description = "The room does not list it"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named((name, jid)): Named<(String, String)>,
) -> Result<StatusCode, Problem> {
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    let (affiliation, nick) = (Some(RoomAffiliation::None), Some(String::new()));
    let change = change(&room, MemberLine { jid, affiliation, nick, reason: None })?;
    room.done(&app, RoomRequest::SetMembers { changes: vec![change] }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Change many members of a room
///
/// NDJSON, one account per line. They are changed together: when a line cannot be read, or the room would list too many, none is.
#[utoipa::path(
    post, path = "/v1/rooms/{room}/members", operation_id = "changeRoomMembers", tag = "rooms",
    params(DomainQuery, ("room" = String, Path, description = "The room's name, or its address, percent-encoded")),
    request_body(content = MemberLine, content_type = "application/x-ndjson"),
    responses((status = 204, description = "All were changed"), schema::Problems)
)]
pub(crate) async fn change_many(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, Problem> {
    content_type(&headers, &[Format::Ndjson])?;
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    let settings = &app.options.settings;
    let timeout = Duration::from_millis(settings.read_timeout_ms);
    let mut lines = LineStream::new(body, settings.batch_line_bytes_max, timeout);
    let max = app.options.core.limits.room_members as usize;
    let (mut changes, mut bytes) = (Vec::new(), 0);
    while let Some(line) = lines.next().await {
        let at = |problem: Problem| {
            Problem::new(problem.code(), format!("line {}: {}", line.number, problem.detail()))
        };
        let change = line.text.and_then(|text| change(&room, parse(&text)?));
        let change = change.map_err(at)?;
        bytes += change.bytes();
        changes.push(change);
        if bytes > CHANGES_BYTES_MAX {
            let detail =
                format!("so many accounts take more than {CHANGES_BYTES_MAX} bytes; change them in parts");
            return Err(Problem::new(Code::TooLarge, detail));
        }
        if changes.len() > max {
            let detail = format!("a room lists at most {max} accounts; so many can be changed together");
            return Err(Problem::new(Code::TooManyMembers, detail));
        }
    }
    room.done(&app, RoomRequest::SetMembers { changes }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Bytes of what is changed together.
const CHANGES_BYTES_MAX: usize = 4 << 20;

fn change(room: &Room, line: MemberLine) -> Result<RoomMemberChange, Problem> {
    let MemberLine { jid, affiliation, nick, reason } = line;
    let jid = jids::account(&jid, &room.domain.name)?;
    check_reason(reason.as_deref()).map_err(|problem| problem.at("/reason"))?;
    let nick = match nick {
        Some(nick) if !nick.is_empty() => {
            let address = room.address.with_resource(&nick).ok().filter(|_| fits(&nick, 1..=1023));
            let wrong = || Problem::new(Code::InvalidValue, "this is no nick (RFC 7622 §3.4)").at("/nick");
            // As its owner's client would send it.
            Some(address.ok_or_else(wrong)?.resource().unwrap_or_default().into())
        }
        nick => nick.map(Into::into),
    };
    Ok(RoomMemberChange { jid, affiliation, nick, reason: reason.map(Into::into) })
}

impl MemberView {
    fn of(member: &RoomMember) -> MemberView {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        MemberView {
            jid: member.jid.as_str().to_owned(),
            affiliation: member.affiliation,
            nick: text(&member.nick),
            reason: text(&member.reason),
        }
    }
}
