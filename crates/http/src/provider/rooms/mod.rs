//! Rooms (XEP-0045): created, configured, listed and removed; their members, who is in them, and what is said.

pub(crate) mod avatar;
pub(crate) mod members;
pub(crate) mod messages;
pub(crate) mod occupants;

use crate::app::App;
use crate::auth::{Granted, Rooms};
use crate::extract::{DomainQuery, Named, Params, Patch, Wanted, cut, limit};
use crate::problem::{Code, Problem};
use crate::values::schema;
use crate::values::text::fits;
use crate::values::time::Time;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use carillon_core::command::{Command, Outcome, RoomOutcome, RoomRefusal, RoomRequest};
use carillon_core::model::{Domain, Policy, RoomConfig, RoomKind, RoomRecord};
use carillon_core::ports::store::rooms::Rooms as ListRooms;
use carillon_wire::jid::BareJid;
use carillon_wire::ns;
use carillon_wire::stanza::Payload;
use std::sync::Arc;

/// A room.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct RoomView {
    /// Its name: the local part of its address.
    name: String,
    /// Its kind: `muc` (XEP-0045) or `muclight` (MUC Light).
    #[schema(value_type = schema::RoomKind)]
    kind: RoomKind,
    /// Its domain.
    domain: String,
    /// Its address.
    jid: String,
    /// When it was created.
    created_at: Time,
    /// Its configuration.
    #[schema(value_type = schema::RoomConfig)]
    config: RoomConfig,
    /// Its subject, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<SubjectView>,
    /// The SHA-1 of each photo in its vCard, in hexadecimal: the same image in one or several formats (XEP-0486).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    avatar: Vec<String>,
    /// How many accounts it lists: members, admins, owners, and those who are banned.
    members: usize,
    /// How many are in it now.
    occupants: u32,
}

/// The subject of a room.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct SubjectView {
    /// Its text.
    text: String,
    /// The account that set it; the room's address where the room did.
    by: String,
    /// When it was set.
    set_at: Time,
}

/// A page of rooms, in the order of their names.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct RoomPage {
    /// The rooms.
    rooms: Vec<RoomListing>,
    /// What to give as `after` for the next page; none on the last.
    next: Option<String>,
}

/// A room in a list.
#[derive(Debug, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct RoomListing {
    /// Its name: the local part of its address.
    name: String,
    /// Its address.
    jid: String,
    /// Its name for people.
    title: String,
    /// Whether everybody can find it.
    public: bool,
}

/// Which rooms are listed.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RoomsQuery {
    /// The domain to act in, for a key of the whole node; by default the node's first.
    domain: Option<String>,
    /// Those of this kind: `muc` (XEP-0045) or `muclight` (MUC Light).
    #[param(value_type = Option<schema::RoomKind>)]
    #[serde(default)]
    kind: RoomKind,
    /// Only those whose names begin with this.
    prefix: Option<String>,
    /// Only what comes after this: `next` of the page before.
    after: Option<String>,
    /// Number of entries in a page, at most.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    limit: Option<u16>,
}

/// How a room is removed.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DestroyQuery {
    /// The domain to act in, for a key of the whole node; by default the node's first.
    domain: Option<String>,
    /// Why, for those who are in it; at most 1024 bytes.
    reason: Option<String>,
    /// The address of the room to go to instead.
    venue: Option<String>,
}

/// Says why something is done.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReasonQuery {
    /// The domain to act in, for a key of the whole node; by default the node's first.
    domain: Option<String>,
    /// Why, for those who are in the room; at most 1024 bytes.
    reason: Option<String>,
}

/// List rooms
///
/// Those that nobody can find, too.
#[utoipa::path(
    get, path = "/v1/rooms", operation_id = "listRooms", tag = "rooms", params(RoomsQuery),
    responses((status = 200, description = "A page of rooms", body = RoomPage), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<RoomsQuery>,
) -> Result<Json<RoomPage>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let limit = limit(query.limit)?;
    let kind = query.kind;
    let prefix = match query.prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
        Some(prefix) => prepare(prefix, &kind.address("", &domain.name))?,
        None => String::new(),
    };
    let after = query.after.or_else(|| before(&prefix)).map(Into::into);
    let question = ListRooms { domain: domain.id, kind, after, limit: limit + 1, all: true };
    let mut found = app.ask(question).await?;
    let more = cut(&mut found, limit) && found.iter().all(|room| room.name.starts_with(&prefix));
    found.retain(|room| room.name.starts_with(&prefix));
    let next = found.last().filter(|_| more).map(|last| last.name.to_string());
    let listing = |room: carillon_core::model::RoomListed| RoomListing {
        jid: kind.address(&room.name, &domain.name),
        name: room.name.into(),
        title: room.title.into(),
        public: room.public,
    };
    Ok(Json(RoomPage { rooms: found.into_iter().map(listing).collect(), next }))
}

/// The beginning of a name as the store has it.
fn prepare(prefix: &str, host: &str) -> Result<String, Problem> {
    let jid = BareJid::new(&[prefix, host].concat());
    let local = jid.ok().and_then(|jid| jid.local().map(str::to_owned));
    local.ok_or_else(|| {
        let detail = "`prefix` is the beginning of a local part of an address (RFC 7622 §3.3)";
        Problem::new(Code::InvalidParameter, detail).at("prefix")
    })
}

/// What is before every name that begins with this, and after nearly all others before them; none before all.
fn before(prefix: &str) -> Option<String> {
    let mut before = prefix.to_owned();
    let last = before.pop()?;
    // The character before it; above it there is none.
    if let Some(last) = ('\0'..last).next_back() {
        before.push(last);
        before.push(char::MAX);
    }
    Some(before)
}

/// Create a room
///
/// Members that are left out have their defaults; `persistent` is on, for nobody is in a room that is made here. A room that exists is left
/// as it is: `200` when it has all that the request names, else `409` with the names of the members that differ. `PATCH` changes a room. It has
/// no owner until one is given by `PUT /v1/rooms/{room}/members/{jid}`. A room of MUC Light has other defaults (`public` off; `persistent`, `members_only`
/// and `non_anonymous` on), which it cannot be without.
#[utoipa::path(
    put, path = "/v1/rooms/{room}", operation_id = "putRoom", tag = "rooms",
    params(DomainQuery, ("room" = String, Path, description = "The room's name, the local part of its address; of a room of MUC Light its whole address; percent-encoded")),
    request_body = schema::RoomConfig,
    responses(
        (status = 200, description = "It exists as the request wants it, and was not changed", body = RoomView),
        (status = 201, description = "It was created", body = RoomView),
        schema::Problems
    )
)]
pub(crate) async fn put(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
    Wanted(wanted): Wanted<RoomConfig>,
) -> Result<(StatusCode, Json<RoomView>), Problem> {
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    let default = match room.kind {
        RoomKind::Muc => RoomConfig { persistent: true, ..RoomConfig::default() },
        RoomKind::MucLight => RoomConfig::light(),
    };
    let config = wanted.over(&default)?;
    check(&app, &config)?;
    if !config.persistent {
        let detail = "a room that is made here is persistent: it would be gone at once, for nobody is in it";
        return Err(Problem::new(Code::InvalidValue, detail).at("/persistent"));
    }
    let request = RoomRequest::Create { config: Box::new(config) };
    match room.view(&app, request).await {
        Err(problem) if problem.code() == Code::AlreadyExists => {
            let view = room.view(&app, RoomRequest::Describe).await?;
            wanted.is_met_by(&view.config, &format!("the room `{}`", room.address))?;
            Ok((StatusCode::OK, Json(view)))
        }
        view => Ok((StatusCode::CREATED, Json(view?))),
    }
}

/// Change a room
///
/// A JSON merge patch (RFC 7396): what is left out stays as it is, and what is `null` gets its default. Those who are in the room are told as
/// when its owner configures it.
#[utoipa::path(
    patch, path = "/v1/rooms/{room}", operation_id = "updateRoom", tag = "rooms",
    params(DomainQuery, ("room" = String, Path, description = "The room's name, or its address, percent-encoded")),
    request_body(content = schema::RoomConfig, content_type = "application/merge-patch+json"),
    responses((status = 200, description = "The room as it is now", body = RoomView), schema::Problems)
)]
pub(crate) async fn update(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
    Patch(patch): Patch<RoomConfig>,
) -> Result<Json<RoomView>, Problem> {
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    for _ in 1..TRIES {
        match room.configure(&app, &patch).await {
            Err(problem) if problem.code() == Code::RoomChanged => {}
            answer => return answer.map(Json),
        }
    }
    room.configure(&app, &patch).await.map(Json)
}

/// Read a room
#[utoipa::path(
    get, path = "/v1/rooms/{room}", operation_id = "getRoom", tag = "rooms",
    params(DomainQuery, ("room" = String, Path, description = "The room's name, or its address, percent-encoded")),
    responses((status = 200, description = "The room", body = RoomView), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(name): Named<String>,
) -> Result<Json<RoomView>, Problem> {
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    room.view(&app, RoomRequest::Describe).await.map(Json)
}

/// Remove a room
///
/// With its members and its archive. Those who are in it are told (XEP-0045 §10.9).
#[utoipa::path(
    delete, path = "/v1/rooms/{room}", operation_id = "deleteRoom", tag = "rooms",
    params(DestroyQuery, ("room" = String, Path, description = "The room's name, or its address, percent-encoded")),
    responses((status = 204, description = "It is gone"), schema::Problems)
)]
pub(crate) async fn delete(
    key: Granted<Rooms>,
    State(app): State<App>,
    Params(query): Params<DestroyQuery>,
    Named(name): Named<String>,
) -> Result<StatusCode, Problem> {
    let room = Room::named(&app, &key, query.domain.as_deref(), &name)?;
    check_reason(query.reason.as_deref()).map_err(|problem| problem.at("reason"))?;
    let venue = query.venue.as_deref().map(BareJid::new).transpose().map_err(|error| {
        Problem::new(Code::InvalidJid, format!("`venue` is no address of a room: {error}")).at("venue")
    })?;
    let venue = venue.map(|venue| venue.as_str().to_owned());
    room.done(&app, RoomRequest::Destroy { reason: query.reason, venue }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The room that a request is about.
pub(super) struct Room {
    domain: Arc<Domain>,
    kind: RoomKind,
    address: BareJid,
}

impl Room {
    /// The room of this name, or with this address, in the domain that the request names.
    pub(super) fn named<S>(
        app: &App,
        key: &Granted<S>,
        domain: Option<&str>,
        name: &str,
    ) -> Result<Room, Problem> {
        let domain = key.domain(app, domain)?;
        let address = match name.contains('@') {
            true => BareJid::new(name),
            false => BareJid::new(&RoomKind::Muc.address(name, &domain.name)),
        };
        let address = address.ok().filter(|jid| jid.local().is_some());
        let of_domain = |(_, of): &(RoomKind, &str)| **of == *domain.name;
        let kind = address.as_ref().and_then(|address| RoomKind::of_host(address.domain()).filter(of_domain));
        let kind = kind.map(|(kind, _)| kind);
        match (address, kind) {
            (Some(address), Some(kind)) => Ok(Room { domain, kind, address }),
            _ => {
                let detail = "a room's name is a local part of an address (RFC 7622 §3.3), or the address of a room \
                              of the domain";
                Err(Problem::new(Code::InvalidParameter, detail))
            }
        }
    }

    /// Asks something of the room.
    pub(super) async fn ask(&self, app: &App, request: RoomRequest) -> Result<RoomOutcome, Problem> {
        let name = self.address.local().unwrap_or_default().into();
        let command =
            Command::Room { domain: self.domain.id, kind: self.kind, name, request: Box::new(request) };
        match app.command(command).await? {
            Outcome::Room(Ok(outcome)) => Ok(outcome),
            Outcome::Room(Err(refusal)) => Err(self.refused(refusal)),
            Outcome::Missing => Err(self.unknown()),
            other => Err(Problem::unexpected(&other)),
        }
    }

    /// The same with what is answered by the room's record.
    async fn view(&self, app: &App, request: RoomRequest) -> Result<RoomView, Problem> {
        let (record, occupants) = self.record(app, request).await?;
        Ok(RoomView::of(&record, occupants, &self.domain, &self.address))
    }

    /// The same with what is answered by nothing.
    pub(super) async fn done(&self, app: &App, request: RoomRequest) -> Result<(), Problem> {
        match self.ask(app, request).await? {
            RoomOutcome::Done => Ok(()),
            other => Err(Problem::unexpected(&other)),
        }
    }

    /// The room's record, and how many are in it.
    pub(super) async fn record(
        &self,
        app: &App,
        request: RoomRequest,
    ) -> Result<(Arc<RoomRecord>, u32), Problem> {
        match self.ask(app, request).await? {
            RoomOutcome::Record { record, occupants } => Ok((record, occupants)),
            other => Err(Problem::unexpected(&other)),
        }
    }

    async fn configure(
        &self,
        app: &App,
        patch: &crate::extract::Members<RoomConfig>,
    ) -> Result<RoomView, Problem> {
        let (record, _) = self.record(app, RoomRequest::Describe).await?;
        let after = patch.over(&record.config)?;
        check(app, &after)?;
        let before = Box::new(record.config.clone());
        self.view(app, RoomRequest::Configure { before, after: Box::new(after) }).await
    }

    fn unknown(&self) -> Problem {
        Problem::new(Code::UnknownRoom, format!("there is no room `{}`", self.address))
    }

    fn refused(&self, refusal: RoomRefusal) -> Problem {
        let (code, detail) = match refusal {
            RoomRefusal::NotFound => return self.unknown(),
            RoomRefusal::Exists => (Code::AlreadyExists, "the room exists"),
            RoomRefusal::NoOccupant => (Code::UnknownOccupant, "nobody in the room has this nick"),
            RoomRefusal::NoMessage => (Code::UnknownMessage, "the room's archive has no such message"),
            RoomRefusal::NickTaken => (Code::NickTaken, "somebody else has this nick"),
            RoomRefusal::NoNick => (Code::InvalidValue, "this is no nick (RFC 7622 §3.4)"),
            RoomRefusal::TooManyMembers => {
                (Code::TooManyMembers, "the room would list more accounts than `rooms.max_members` allows")
            }
            RoomRefusal::TooManyRooms => (
                Code::Forbidden,
                "an owner owns as many rooms as it may, or an account is a member of `rooms.max_joined`",
            ),
            RoomRefusal::DomainFull => {
                (Code::TooManyRooms, "the domain has as many rooms as its policy's `rooms_max` allows")
            }
            RoomRefusal::MayNotCreate => (Code::Forbidden, "accounts of the domain do not create rooms"),
            RoomRefusal::Unsuited => (
                Code::InvalidValue,
                "a room of this kind cannot be configured like this, or has no such members",
            ),
            RoomRefusal::TooLarge => (
                Code::TooLarge,
                "with this image, the room's vCard would be larger than `limits.vcard_bytes`",
            ),
            RoomRefusal::Changed => {
                (Code::RoomChanged, "others configured the room at the same time; try again")
            }
            RoomRefusal::Crowded => {
                return Problem::new(Code::TooFast, "too much waits for this room").too_fast(1);
            }
            RoomRefusal::Fault(fault) => return fault.into(),
        };
        Problem::new(code, detail)
    }
}

impl RoomView {
    fn of(record: &RoomRecord, occupants: u32, domain: &Domain, address: &BareJid) -> RoomView {
        let text = |stanza: &bytes::Bytes| {
            let payload = Payload::from_raw(stanza.clone());
            payload.find("subject", ns::CLIENT).map(|subject| subject.element().text()).unwrap_or_default()
        };
        RoomView {
            name: record.name.to_string(),
            kind: record.kind,
            domain: domain.name.to_string(),
            jid: address.as_str().to_owned(),
            created_at: Time(record.created),
            config: record.config.clone(),
            subject: record.subject.as_ref().map(|subject| SubjectView {
                text: text(&subject.stanza),
                by: subject.by.as_str().to_owned(),
                set_at: Time(subject.set),
            }),
            avatar: record.photos.iter().map(ToString::to_string).collect(),
            members: record.members.len(),
            occupants,
        }
    }
}

/// How often a change of a room is tried while others configure it, too.
const TRIES: u32 = 3;

/// Bytes of a reason.
const REASON_BYTES_MAX: usize = 1024;

/// Refuses a reason that is too long, or that no stanza can carry.
fn check_reason(reason: Option<&str>) -> Result<(), Problem> {
    if fits(reason.unwrap_or_default(), 0..=REASON_BYTES_MAX) {
        return Ok(());
    }
    let detail = "a reason has at most 1024 bytes, none of them a control character";
    Err(Problem::new(Code::InvalidValue, detail))
}

fn check(app: &App, config: &RoomConfig) -> Result<(), Problem> {
    let texts = [
        ("title", &config.title, RoomConfig::TITLE_BYTES_MAX),
        ("description", &config.description, RoomConfig::DESCRIPTION_BYTES_MAX),
        ("password", &config.password, RoomConfig::PASSWORD_BYTES_MAX),
    ];
    for (name, text, max) in texts {
        if !fits(text, 0..=max) {
            let detail = format!("`{name}` has at most {max} bytes, none of them a control character");
            return Err(Problem::new(Code::InvalidValue, detail).at(format!("/{name}")));
        }
    }
    let numbers = [
        ("max_users", config.max_users, app.options.core.limits.room_occupants),
        ("history", config.history, RoomConfig::HISTORY_MAX),
        ("archive_days", config.archive_days, Policy::ARCHIVE_DAYS_MAX),
    ];
    for (name, number, max) in numbers {
        if number > max {
            let detail = format!("`{name}` is at most {max}");
            return Err(Problem::new(Code::InvalidValue, detail).at(format!("/{name}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::before;

    #[test]
    fn what_is_before_a_prefix_is_before_it_and_after_what_is_not() {
        assert_eq!(before(""), None);
        for (prefix, others) in [("tea", ["te", "te9", "tdzz"]), ("\u{e000}", ["z", "\u{d7ff}", "a"])] {
            let before = before(prefix).expect("it is not empty");
            assert!(*before < *prefix);
            assert!(others.iter().all(|other| **other < *before), "{before:?}");
        }
    }
}
