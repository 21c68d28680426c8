//! The avatar of a room (XEP-0486): the photo in its vCard.

use super::{Room, RoomView};
use crate::app::App;
use crate::auth::{Granted, Rooms};
use crate::extract::{DomainQuery, Named, Params};
use crate::problem::{Code, Problem};
use crate::values::schema;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use carillon_core::command::{RoomPhoto, RoomRequest};
use carillon_core::ports::store::rooms::ReadRoomVcard;
use carillon_wire::ns;
use carillon_wire::stanza::Payload;
use carillon_wire::xml::Element;
use std::time::Duration;

/// The formats that an avatar may have, and what an image of each begins with (a `?` is any byte).
const FORMATS: [(&str, &[u8]); 4] = [
    ("image/png", b"\x89PNG\r\n\x1a\n"),
    ("image/jpeg", b"\xff\xd8\xff"),
    ("image/gif", b"GIF8"),
    ("image/webp", b"RIFF????WEBP"),
];

/// An image, as the body of a request.
pub(crate) struct Image(RoomPhoto);

impl FromRequest<App> for Image {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Image, Problem> {
        let media_type = request.headers().get(header::CONTENT_TYPE).and_then(|of| of.to_str().ok());
        let format = media_type.and_then(|of| FORMATS.into_iter().find(|(name, _)| *name == of));
        let (media_type, beginning) = format.ok_or_else(|| {
            let names = FORMATS.map(|(name, _)| name).join("`, `");
            Problem::new(
                Code::WrongContentType,
                format!("send an image, with `Content-Type` one of `{names}`"),
            )
        })?;
        let bytes_max = bytes_max(app);
        let _room = app.bodies().room(bytes_max)?;
        let reading = axum::body::to_bytes(Body::new(request.into_body()), bytes_max);
        let limit = Duration::from_millis(app.options.settings.read_timeout_ms);
        let bytes = match tokio::time::timeout(limit, reading).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(_)) => {
                let detail = format!("the body broke off, or the image has more than {bytes_max} bytes");
                return Err(Problem::new(Code::TooLarge, detail));
            }
            Err(_) => return Err(Problem::new(Code::SlowBody, "the body did not arrive in time")),
        };
        match begins(&bytes, beginning) {
            true => Ok(Image(RoomPhoto { media_type: media_type.into(), bytes })),
            false => {
                let detail = format!("the body is no image of type `{media_type}`");
                Err(Problem::new(Code::InvalidValue, detail))
            }
        }
    }
}

/// Bytes of an image at most: in base64, it and the rest of a vCard have at most `limits.vcard_bytes`.
fn bytes_max(app: &App) -> usize {
    app.options.core.limits.vcard_bytes / 4 * 3
}

/// Whether an image begins as those of its format do.
fn begins(image: &[u8], format: &[u8]) -> bool {
    image.len() >= format.len() && image.iter().zip(format).all(|(byte, of)| *of == b'?' || byte == of)
}

/// Set a room's avatar
///
/// The body is an image (PNG, JPEG, GIF or WebP), which takes the place of the photos in the room's vCard (XEP-0486); what else that says stays. Those who
/// are in the room are told, as when its owner sets it. The vCard has at most `limits.vcard_bytes` bytes, with its photo in base64. Rooms of MUC Light have
/// none.
#[utoipa::path(
    put, path = "/v1/rooms/{room}/avatar", operation_id = "putRoomAvatar", tag = "rooms",
    params(DomainQuery, ("room" = String, Path, description = "The room's name, or its address, percent-encoded")),
    request_body(content = Vec<u8>, content_type = "image/png", description = "The image"),
    responses((status = 200, description = "The room as it is now", body = RoomView), schema::Problems)
)]
pub(crate) async fn put(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
    Image(photo): Image,
) -> Result<Json<RoomView>, Problem> {
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    room.view(&app, RoomRequest::SetAvatar { photo: Some(Box::new(photo)) }).await.map(Json)
}

/// Read a room's avatar
///
/// The first photo of its vCard.
#[utoipa::path(
    get, path = "/v1/rooms/{room}/avatar", operation_id = "getRoomAvatar", tag = "rooms",
    params(DomainQuery, ("room" = String, Path, description = "The room's name, or its address, percent-encoded")),
    responses((status = 200, description = "The image", body = Vec<u8>, content_type = "image/png"), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
) -> Result<Response, Problem> {
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    let (record, _) = room.record(&app, RoomRequest::Describe).await?;
    let vcard = app.ask(ReadRoomVcard { room: record.id }).await?;
    let Some((media_type, bytes)) = vcard.and_then(first_photo) else {
        let detail = format!("the room `{}` has no avatar", room.address);
        return Err(Problem::new(Code::UnknownAvatar, detail));
    };
    // Whoever set it chose its type and its bytes.
    let headers = [(header::CONTENT_TYPE, media_type), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    Ok((headers, bytes).into_response())
}

/// Remove a room's avatar
///
/// What else its vCard says stays.
#[utoipa::path(
    delete, path = "/v1/rooms/{room}/avatar", operation_id = "deleteRoomAvatar", tag = "rooms",
    params(DomainQuery, ("room" = String, Path, description = "The room's name, or its address, percent-encoded")),
    responses((status = 204, description = "It has none"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
) -> Result<StatusCode, Problem> {
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    room.record(&app, RoomRequest::SetAvatar { photo: None }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The first photo of a vCard that has bytes: its media type, if that is one of ours, and these.
fn first_photo(vcard: Bytes) -> Option<(&'static str, Vec<u8>)> {
    let payload = Payload::from_raw(vcard);
    let vcard = payload.find("vCard", ns::VCARD)?.element();
    let photos = vcard.children().filter(|child| child.is("PHOTO", ns::VCARD));
    let mut photos = photos.filter_map(|photo| {
        let text = photo.child("BINVAL", ns::VCARD).map(Element::text)?;
        let text: String = text.split_ascii_whitespace().collect();
        BASE64.decode(text).ok().filter(|bytes| !bytes.is_empty())
    });
    let bytes = photos.next()?;
    let format = FORMATS.into_iter().find(|(_, beginning)| begins(&bytes, beginning));
    Some((format.map_or("application/octet-stream", |(name, _)| name), bytes))
}
