//! What is said in a room: sent, read, retracted and erased.

use super::{ReasonQuery, Room, check_reason};
use crate::app::App;
use crate::auth::{Admin, Granted, ReadMessages, Rooms, acts};
use crate::extract::{DomainQuery, JsonBody, Named, Params};
use crate::problem::{Code, Problem};
use crate::provider::act::exists;
use crate::provider::chat::check_id;
use crate::provider::idempotency::{self, KeyDecision};
use crate::provider::messages::{MessagePage, MessageQuery};
use crate::values::jids;
use crate::values::schema;
use crate::values::text::sendable;
use crate::values::time::now;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use carillon_core::command::{RoomOutcome, RoomRequest, RoomSpeaker};
use carillon_core::model::ArchiveId;
use carillon_core::ports::store::rooms::RoomArchivePage;
use carillon_wire::ns;
use carillon_wire::stanza::Payload;
use carillon_wire::xml::Element;

/// Something to be said in a room: a text, or a subject.
#[derive(Debug, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoomMessageBody {
    /// Its text.
    body: Option<String>,
    /// The room's new subject; empty for none. Not together with `body`.
    subject: Option<String>,
    /// The account that says it: a bare JID, or a local part in the room's domain. It need not be in the room. Without it, the room itself says it.
    from: Option<String>,
    /// The account's nick; by default that which is reserved for it, or its local part.
    #[schema(max_length = 1023)]
    nick: Option<String>,
    /// The message's id; one is made where none is given.
    #[schema(min_length = 1, max_length = 255)]
    id: Option<String>,
}

/// A message that was said in a room.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct SaidMessage {
    /// Its id.
    id: String,
    /// Its number in the room's archive, which is its stanza-id (XEP-0359) for clients; none where it is not kept.
    archive_id: Option<u64>,
}

/// Say something in a room
///
/// All who are in it are given it, and it enters the room's archive. Answered when it is kept. With an `Idempotency-Key`, the same request again says
/// nothing a second time once it was answered.
#[utoipa::path(
    post, path = "/v1/rooms/{room}/messages", operation_id = "sendRoomMessage", tag = "rooms", request_body = RoomMessageBody,
    params(
        DomainQuery,
        ("room" = String, Path, description = "The room's name, or its address, percent-encoded"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to send again for 24 hours: 1 to 255 printable ASCII characters"),
    ),
    responses(
        (status = 200, description = "It was said", body = SaidMessage,
            headers(("Idempotent-Replayed" = bool, description = "Given when the response is that of an earlier request"))),
        schema::Problems
    )
)]
pub(crate) async fn send(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
    uri: Uri,
    headers: HeaderMap,
    JsonBody { value: body, bytes, .. }: JsonBody<RoomMessageBody>,
) -> Result<Response, Problem> {
    let idempotency_key = idempotency::header(&headers)?;
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    check(&body, app.options.settings.payload_bytes_max)?;
    let speaker = match &body.from {
        Some(from) => {
            let account = jids::account(from, &room.domain.name).map_err(|problem| problem.at("/from"))?;
            let domain = key.reach(&app, account.domain()).map_err(|problem| problem.at("/from"))?;
            exists(&app, &domain, &account).await.map_err(|problem| problem.at("/from"))?;
            Some(RoomSpeaker { account, nick: body.nick.as_deref().map(Into::into) })
        }
        None => None,
    };
    let (sender, hash) = (key.key.id, idempotency::body_hash(&uri, &bytes));
    idempotency::to_the_end(idempotency_key.is_some(), async move {
        let reserved = match idempotency::reserve(&app, sender, idempotency_key, hash, now()).await? {
            KeyDecision::Go(reserved) => reserved,
            KeyDecision::Replay(replay) => return Ok(replay),
        };
        let id = body.id.clone().unwrap_or_else(|| format!("{:016x}", reserved.ids.random(0)));
        let request = RoomRequest::Say { id: Some(id.as_str().into()), speaker, payload: payload(&body) };
        match room.ask(&app, request).await {
            Ok(RoomOutcome::Said(archive_id)) => {
                let said = SaidMessage { id, archive_id: archive_id.map(|id| id.0) };
                let text = serde_json::to_string(&said).map_err(|error| Problem::unexpected(&error))?;
                Ok(reserved.answer(StatusCode::OK, text).await)
            }
            Ok(other) => Err(reserved.refuse(Problem::unexpected(&other)).await),
            Err(problem) => Err(reserved.refuse(problem).await),
        }
    })
    .await
    .map(IntoResponse::into_response)
}

/// Read the messages in a room's archive
///
/// The newest first, page by page. Needs scope `read_messages`, which `admin` does not include; each such request is logged with the key and the
/// room.
#[utoipa::path(
    get, path = "/v1/rooms/{room}/messages", operation_id = "listRoomMessages", tag = "rooms",
    params(MessageQuery, ("room" = String, Path, description = "The room's name, or its address, percent-encoded")),
    responses((status = 200, description = "A page of messages", body = MessagePage), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<ReadMessages>,
    State(app): State<App>,
    Params(query): Params<MessageQuery>,
    Named(name): Named<String>,
) -> Result<Json<MessagePage>, Problem> {
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    let (filter, start, page) = query.selection(&room.domain.name)?;
    let (record, _) = room.record(&app, RoomRequest::Describe).await?;
    tracing::info!(
        key = &*key.key.name,
        key_id = key.key.id.0,
        room = room.address.as_str(),
        "messages of a room are read"
    );
    acts::note_read();
    let answer =
        app.ask(RoomArchivePage { room: record.id, since: ArchiveId(0), filter, start, page }).await?;
    MessagePage::of(answer, || room.unknown()).map(Json)
}

/// Retract a message in a room
///
/// As a moderator does (XEP-0425): those who are in the room are told, and the archive keeps that it was retracted, and not what it said.
#[utoipa::path(
    delete, path = "/v1/rooms/{room}/messages/{id}", operation_id = "retractRoomMessage", tag = "rooms",
    params(
        ReasonQuery,
        ("room" = String, Path, description = "The room's name, or its address, percent-encoded"),
        ("id" = u64, Path, description = "The message's number in the archive"),
    ),
    responses((status = 204, description = "It is retracted"), schema::Problems)
)]
pub(crate) async fn retract(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<ReasonQuery>,
    Named((name, id)): Named<(String, u64)>,
) -> Result<StatusCode, Problem> {
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    check_reason(query.reason.as_deref()).map_err(|problem| problem.at("reason"))?;
    room.done(&app, RoomRequest::Moderate { id: ArchiveId(id), reason: query.reason }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Erase a room's archive
///
/// What was in it cannot be read any more at once, and those who enter are not given it.
#[utoipa::path(
    delete, path = "/v1/rooms/{room}/messages", operation_id = "eraseRoomMessages", tag = "rooms",
    params(DomainQuery, ("room" = String, Path, description = "The room's name, or its address, percent-encoded")),
    responses((status = 204, description = "It is empty"), schema::Problems)
)]
pub(crate) async fn erase(
    key: Granted<Admin>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
) -> Result<StatusCode, Problem> {
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    room.done(&app, RoomRequest::EraseArchive).await?;
    tracing::info!(
        key = &*key.key.name,
        key_id = key.key.id.0,
        room = room.address.as_str(),
        "the archive of a room is erased"
    );
    Ok(StatusCode::NO_CONTENT)
}

fn check(body: &RoomMessageBody, bytes_max: usize) -> Result<(), Problem> {
    let wrong = |at: &'static str, detail: &str| Err(Problem::new(Code::InvalidValue, detail).at(at));
    match (&body.body, &body.subject) {
        (None, None) => return wrong("/body", "give `body`, or `subject`"),
        (Some(_), Some(_)) => return wrong("/subject", "a message has a `body` or a `subject`, not both"),
        (Some(text), None) if text.is_empty() => return wrong("/body", "`body` is empty"),
        _ => {}
    }
    if body.nick.is_some() && body.from.is_none() {
        return wrong("/nick", "`nick` is that of an account: give `from`, too");
    }
    let texts = [("body", &body.body), ("subject", &body.subject)];
    for (member, text) in texts {
        sendable(text.as_deref().unwrap_or_default(), member)?;
    }
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    if length(&body.body) + length(&body.subject) > bytes_max {
        let detail = format!("a message has at most {bytes_max} bytes");
        return Err(Problem::new(Code::PayloadTooLarge, detail));
    }
    check_id(body.id.as_deref())
}

fn payload(body: &RoomMessageBody) -> Payload {
    let mut payload = Payload::default();
    for (name, text) in [("subject", &body.subject), ("body", &body.body)] {
        if let Some(text) = text {
            payload.push_element(&Element::new(name, ns::CLIENT).with_text(text.clone()));
        }
    }
    payload
}
