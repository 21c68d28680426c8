//! Broadcasts: a notification for every account of a domain.

mod body;
mod view;

use crate::app::App;
use crate::auth::{Broadcast as BroadcastScope, Granted};
use crate::extract::{JsonBody, Named, Params, limit};
use crate::problem::{Code, Problem};
use crate::provider::idempotency::{self, Answer, KeyDecision, Reserved};
use crate::values::jids;
use crate::values::schema;
use crate::values::time::now;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
pub(crate) use body::BroadcastBody;
use body::BroadcastPatch;
use carillon_core::command::{Command, Outcome};
use carillon_core::model::{Audience, Broadcast, BroadcastReport, BroadcastTopic, Domain, NotificationId};
use carillon_core::ports::store::accounts::Account;
use carillon_core::ports::store::broadcasts::{
    self as stored, BroadcastBounds, BroadcastChange, BroadcastEndOf, ChangeBroadcast, ChangeBroadcastAnswer,
    CountAccounts, CreateBroadcast, CreateBroadcastAnswer,
};
use carillon_core::ports::store::topics::Topic;
use std::sync::Arc;
use view::{BroadcastDeviceView, BroadcastList, BroadcastRehearsal, BroadcastView};

/// Send a notification to every account of a domain
///
/// A *broadcast* is one thing, however many accounts there are. `202` says that the node has it on disk. Whoever has a session is given it at once,
/// as fast as connections take it or at `rate`; with audience `always`, whoever logs in before it expires, too. Each account is given it until it
/// has acknowledged it, which is once. With `dry_run` nobody is: the answer, `200`, says how many there are.
#[utoipa::path(
    post, path = "/v1/domains/{domain}/notifications", operation_id = "sendBroadcast", tag = "broadcasts",
    params(
        ("domain" = String, Path, description = "The domain"),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to send again for 24 hours: 1 to 255 printable ASCII characters"),
    ),
    request_body = BroadcastBody,
    responses(
        (status = 202, description = "It is accepted", body = BroadcastView,
            headers(("Idempotent-Replayed" = bool, description = "Given when the response is that of an earlier request"))),
        (status = 200, description = "What a rehearsal counted", body = BroadcastRehearsal),
        schema::Problems
    )
)]
pub(crate) async fn send(
    key: Granted<BroadcastScope>,
    State(app): State<App>,
    Named(name): Named<String>,
    uri: Uri,
    headers: HeaderMap,
    JsonBody { value: body, bytes, .. }: JsonBody<BroadcastBody>,
) -> Result<Response, Problem> {
    let idempotency_key = idempotency::header(&headers)?;
    let domain = key.reach(&app, &name)?;
    let given = idempotency::given(&key, &headers)?;
    let at = given.map_or_else(now, NotificationId::time);
    // Checked before the key is reserved: a request that cannot be done is not remembered.
    let topic = topic(&app, &domain, body.topic.as_deref()).await?;
    let draft = body.draft(&app, domain.id, key.key.id, topic, at)?;
    if body.dry_run {
        return Ok(Json(rehearse(&app, draft).await?).into_response());
    }
    let hash = idempotency::body_hash(&uri, &bytes);
    let sender = key.key.id;
    let answer = idempotency::to_the_end(idempotency_key.is_some(), async move {
        if let Some(id) = given {
            return create(&app, draft, Reserved::given(id)).await;
        }
        let reserved = match idempotency::reserve(&app, sender, idempotency_key, hash, at).await? {
            KeyDecision::Go(reserved) => reserved,
            KeyDecision::Replay(replay) => return Ok(replay),
        };
        create(&app, draft, reserved).await
    });
    Ok(answer.await?.into_response())
}

async fn create(app: &App, draft: Broadcast, reserved: Reserved) -> Result<Answer, Problem> {
    let settings = &app.options.settings.broadcasts;
    let bounds = BroadcastBounds { open: settings.per_domain_max, bytes: settings.bytes_per_domain_max };
    let id = NotificationId::new(reserved.since, 0, reserved.ids.random(0));
    let broadcast = Arc::new(Broadcast { id, ..draft });
    let created = match app.ask(CreateBroadcast { broadcast: broadcast.clone(), bounds }).await? {
        CreateBroadcastAnswer::Created(created) => *created,
        // These may pass: the key is not answered like that for a day.
        CreateBroadcastAnswer::TooMany => {
            let detail = format!(
                "the domain has {} broadcasts that have not ended, as many as `broadcasts.per_domain_max` allows",
                bounds.open
            );
            return Err(Problem::new(Code::TooManyBroadcasts, detail));
        }
        CreateBroadcastAnswer::Full => {
            let detail = "the broadcasts of the domain that have not ended take up as much as `broadcasts.bytes_per_domain_max` allows";
            return Err(Problem::new(Code::TooManyBroadcasts, detail));
        }
        CreateBroadcastAnswer::NoDomain => {
            return Err(Problem::new(Code::UnknownDomain, "the domain is gone"));
        }
    };
    app.node.tell_broadcasts(vec![Arc::new(created.clone())]);
    let view = BroadcastView::of(app, &BroadcastReport { broadcast: created, progress: Default::default() });
    let text = serde_json::to_string(&view).map_err(|error| Problem::unexpected(&error))?;
    Ok(reserved.answer(StatusCode::ACCEPTED, text).await)
}

/// The topic whose followers it is for.
async fn topic(app: &App, domain: &Domain, name: Option<&str>) -> Result<Option<BroadcastTopic>, Problem> {
    let Some(name) = name else { return Ok(None) };
    let found = app.ask(Topic { domain: domain.id, name: name.into() }).await?;
    let unknown = || {
        let detail = format!("the domain `{}` has no topic `{name}`", domain.name);
        Problem::new(Code::UnknownTopic, detail).at("/topic")
    };
    let found = found.ok_or_else(unknown)?;
    Ok(Some(BroadcastTopic { id: found.id, name: name.into() }))
}

async fn rehearse(app: &App, draft: Broadcast) -> Result<BroadcastRehearsal, Problem> {
    let accounts = match draft.audience {
        Audience::Always => Some(app.ask(CountAccounts { domain: draft.domain }).await?),
        Audience::Active | Audience::Connected => None,
    };
    match app.command(Command::CountReached { broadcast: Arc::new(draft) }).await? {
        Outcome::Count(reached_now) => Ok(BroadcastRehearsal { dry_run: true, accounts, reached_now }),
        other => Err(Problem::unexpected(&other)),
    }
}

/// Which broadcasts to list.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BroadcastsQuery {
    /// Only those after this one in the list: the `next` of the page before.
    after: Option<String>,
    /// How many, 1 to 1000.
    limit: Option<u16>,
}

/// List broadcasts
///
/// Newest first, those that have ended among them for as long as traces of notifications are kept.
#[utoipa::path(
    get, path = "/v1/domains/{domain}/notifications", operation_id = "listBroadcasts", tag = "broadcasts",
    params(BroadcastsQuery, ("domain" = String, Path, description = "The domain")),
    responses((status = 200, description = "The broadcasts", body = BroadcastList), schema::Problems)
)]
pub(crate) async fn list(
    key: Granted<BroadcastScope>,
    State(app): State<App>,
    Named(name): Named<String>,
    Params(query): Params<BroadcastsQuery>,
) -> Result<Json<BroadcastList>, Problem> {
    let domain = key.reach(&app, &name)?;
    let before = match query.after.as_deref() {
        Some(after) => after.parse().map_err(|_| {
            Problem::new(Code::InvalidParameter, format!("`after` is not the id of a broadcast: `{after}`"))
        })?,
        None => NotificationId(u128::MAX),
    };
    let limit = limit(query.limit)?;
    let found = app.ask(stored::Broadcasts { domain: domain.id, before, limit }).await?;
    let next = (found.len() == usize::from(limit)).then(|| found.last()).flatten();
    Ok(Json(BroadcastList {
        next: next.map(|last| last.broadcast.id.to_string()),
        broadcasts: found.iter().map(|report| BroadcastView::of(&app, report)).collect(),
    }))
}

/// Follow a broadcast
///
/// What it does, and how far it has come.
#[utoipa::path(
    get, path = "/v1/domains/{domain}/notifications/{id}", operation_id = "getBroadcast", tag = "broadcasts",
    params(("domain" = String, Path, description = "The domain"), ("id" = String, Path, description = "The broadcast's id")),
    responses((status = 200, description = "The broadcast", body = BroadcastView), schema::Problems)
)]
pub(crate) async fn get(
    key: Granted<BroadcastScope>,
    State(app): State<App>,
    Named((name, id)): Named<(String, String)>,
) -> Result<Json<BroadcastView>, Problem> {
    let domain = key.reach(&app, &name)?;
    Ok(Json(BroadcastView::of(&app, &find(&app, &domain, &id).await?)))
}

/// Steer a broadcast
///
/// Pause it or let it go on, or change its rate, its begin or its hours. At once on this node, and within about a second on others. What is on its
/// way to clients is not taken back.
#[utoipa::path(
    patch, path = "/v1/domains/{domain}/notifications/{id}", operation_id = "updateBroadcast", tag = "broadcasts",
    request_body(content = BroadcastPatch, content_type = "application/merge-patch+json"),
    params(("domain" = String, Path, description = "The domain"), ("id" = String, Path, description = "The broadcast's id")),
    responses((status = 200, description = "The broadcast as it is now", body = BroadcastView), schema::Problems)
)]
pub(crate) async fn update(
    key: Granted<BroadcastScope>,
    State(app): State<App>,
    Named((name, id)): Named<(String, String)>,
    JsonBody { value: patch, .. }: JsonBody<BroadcastPatch>,
) -> Result<Json<BroadcastView>, Problem> {
    let domain = key.reach(&app, &name)?;
    let change = patch.change()?;
    Ok(Json(BroadcastView::of(&app, &changed(&app, &domain, &id, change).await?)))
}

/// Abort a broadcast
///
/// Nobody is given it any more. What is on its way to clients is not taken back, and one that aborts again changes nothing.
#[utoipa::path(
    delete, path = "/v1/domains/{domain}/notifications/{id}", operation_id = "abortBroadcast", tag = "broadcasts",
    params(("domain" = String, Path, description = "The domain"), ("id" = String, Path, description = "The broadcast's id")),
    responses((status = 200, description = "The broadcast, which has ended", body = BroadcastView), schema::Problems)
)]
pub(crate) async fn abort(
    key: Granted<BroadcastScope>,
    State(app): State<App>,
    Named((name, id)): Named<(String, String)>,
) -> Result<Json<BroadcastView>, Problem> {
    let domain = key.reach(&app, &name)?;
    let aborted = changed(&app, &domain, &id, BroadcastChange::Abort).await?;
    Ok(Json(BroadcastView::of(&app, &aborted)))
}

/// Follow a broadcast to one device
///
/// Whether the device has acknowledged it. This is known while the broadcast has not ended.
#[utoipa::path(
    get, path = "/v1/domains/{domain}/notifications/{id}/devices/{device}", operation_id = "getBroadcastDevice", tag = "broadcasts",
    params(
        ("domain" = String, Path, description = "The domain"),
        ("id" = String, Path, description = "The broadcast's id"),
        ("device" = String, Path, description = "The device: a bare JID, or a local part of the domain"),
    ),
    responses((status = 200, description = "What became of it there", body = BroadcastDeviceView), schema::Problems)
)]
pub(crate) async fn device(
    key: Granted<BroadcastScope>,
    State(app): State<App>,
    Named((name, id, device)): Named<(String, String, String)>,
) -> Result<Json<BroadcastDeviceView>, Problem> {
    let domain = key.reach(&app, &name)?;
    let report = find(&app, &domain, &id).await?;
    let jid = jids::account(&device, &domain.name)?;
    let unknown = || {
        Problem::new(Code::UnknownDevice, format!("the domain `{}` has no device `{device}`", domain.name))
    };
    if jid.domain() != &*domain.name {
        return Err(unknown());
    }
    let local = jid.local().unwrap_or_default().into();
    let account = app.ask(Account { domain: domain.id, local }).await?.ok_or_else(unknown)?;
    let end = app.ask(BroadcastEndOf { id: report.broadcast.id, account: account.id }).await?;
    Ok(Json(BroadcastDeviceView::of(&report.broadcast, &jid, end)))
}

async fn find(app: &App, domain: &Domain, id: &str) -> Result<BroadcastReport, Problem> {
    let unknown = || unknown(domain, id);
    let number = id.parse().map_err(|_| unknown())?;
    let found = app.ask(stored::Broadcast { domain: domain.id, id: number }).await?;
    found.map(|found| *found).ok_or_else(unknown)
}

async fn changed(
    app: &App,
    domain: &Domain,
    id: &str,
    change: BroadcastChange,
) -> Result<BroadcastReport, Problem> {
    let number = id.parse().map_err(|_| unknown(domain, id))?;
    let ask = ChangeBroadcast { domain: domain.id, id: number, change, now: now() };
    match app.ask(ask).await? {
        ChangeBroadcastAnswer::Changed(report) => {
            app.node.tell_broadcasts(vec![Arc::new(report.broadcast.clone())]);
            Ok(*report)
        }
        ChangeBroadcastAnswer::Ended(report) => {
            let word = view::state_word(report.broadcast.state);
            Err(Problem::new(Code::BroadcastEnded, format!("the broadcast has ended: it is {word}")))
        }
        ChangeBroadcastAnswer::Missing => Err(unknown(domain, id)),
    }
}

fn unknown(domain: &Domain, id: &str) -> Problem {
    Problem::new(Code::UnknownBroadcast, format!("the domain `{}` has no broadcast `{id}`", domain.name))
}
