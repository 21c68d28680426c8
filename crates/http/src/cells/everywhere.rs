//! Requests about what all cells have: topics, their items, and broadcasts.

use super::client::{Away, Call, Reply};
use super::device::{Replies, everywhere, passed, path_of, word};
use super::notify::{is_ours, problem};
use super::registry::{Held, cell_away};
use crate::app::App;
use crate::auth::{Broadcast, Granted, Topics};
use crate::extract::{JsonBody, Named, Raw, parse};
use crate::problem::{Code, Problem};
use crate::provider::broadcasts::BroadcastBody;
use crate::provider::idempotency::{self, Answer, Identity, KeyDecision, Reserved};
use crate::provider::items::ItemBody;
use crate::values::time::{Time, now};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use carillon_core::model::{NotificationId, UnixMs};
use carillon_core::ports::store::cells::IsHeld;
use futures_util::future::try_join_all;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A request that is given to all cells under one id.
struct Shared {
    id: NotificationId,
    series: Box<str>,
    path: String,
    body: Bytes,
    expires: UnixMs,
}

/// What became of it at one cell.
enum CellOutcome {
    Taken(Reply),
    Held,
    Refused(Problem),
}

/// Publishes an item in all cells.
pub(super) async fn publish(
    key: Granted<Topics>,
    State(app): State<App>,
    Named(topic): Named<String>,
    uri: Uri,
    headers: HeaderMap,
    JsonBody { bytes, .. }: JsonBody<ItemBody>,
) -> Result<Response, Problem> {
    let domain = key.domain(&app, super::device::parameter(&uri, "domain").as_deref())?;
    let identity = Identity::of_request(idempotency::header(&headers)?, &uri, &bytes);
    // What it carries stays as it was written.
    let mut members: BTreeMap<String, Box<RawValue>> = parse(&bytes)?;
    let (path, sender) = (path_of(&uri, uri.path(), &domain.name), key.key.id);
    let series = format!("topic {topic}@{}", domain.name).into();
    let answer = idempotency::to_the_end(identity.is_reserved(), async move {
        let reserved = match identity.begin(&app, sender).await? {
            KeyDecision::Go(reserved) => reserved,
            KeyDecision::Replay(replay) => return Ok(replay),
        };
        let id = id_of(&reserved);
        // One item has one id in all cells.
        let item = match members.get("id") {
            Some(item) => item.clone(),
            None => {
                RawValue::from_string(format!("\"{id}\"")).map_err(|error| Problem::unexpected(&error))?
            }
        };
        members.insert("id".to_owned(), item.clone());
        let expires = reserved.since.plus(app.options.settings.cells.items_held_ms);
        let shared = Shared { id, series, path, body: written(&members)?, expires };
        let published = json!({"id": item, "published_at": Time(now()), "cells": Value::Null});
        finish(&app, shared, reserved, published).await
    });
    answer.await.map(IntoResponse::into_response)
}

/// Sends a broadcast in all cells.
pub(super) async fn broadcast(
    key: Granted<Broadcast>,
    State(app): State<App>,
    Named(name): Named<String>,
    uri: Uri,
    headers: HeaderMap,
    JsonBody { value: body, bytes, .. }: JsonBody<BroadcastBody>,
) -> Result<Response, Problem> {
    let domain = key.reach(&app, &name)?;
    if body.dry_run {
        return rehearse(&app, &uri, bytes).await;
    }
    let identity = Identity::of_request(idempotency::header(&headers)?, &uri, &bytes);
    let (path, sender) = (uri.path().to_owned(), key.key.id);
    let answer = idempotency::to_the_end(identity.is_reserved(), async move {
        // Checked before a cell is asked: one that is away could not refuse it.
        let draft = body.draft(&app, domain.id, sender, None, now())?;
        let reserved = match identity.begin(&app, sender).await? {
            KeyDecision::Go(reserved) => reserved,
            KeyDecision::Replay(replay) => return Ok(replay),
        };
        let id = id_of(&reserved);
        let series = format!("broadcast {id}").into();
        let accepted = json!({"id": id.to_string(), "domain": &*domain.name, "state": "running", "given": 0, "acknowledged": 0,
            "accepted_at": Time(reserved.since), "expires_at": Time(draft.expires), "cells": Value::Null});
        let shared = Shared { id, series, path, body: bytes, expires: draft.expires };
        finish(&app, shared, reserved, accepted).await
    });
    answer.await.map(IntoResponse::into_response)
}

fn written(members: &BTreeMap<String, Box<RawValue>>) -> Result<Bytes, Problem> {
    serde_json::to_vec(members).map(Bytes::from).map_err(|error| Problem::unexpected(&error))
}

fn id_of(reserved: &Reserved) -> NotificationId {
    NotificationId::new(reserved.since, 0, reserved.ids.random(0))
}

/// Gives a request to all cells and answers with what one of them said, or with `other` where it is held for all of them; and with what became of
/// it at each.
async fn finish(app: &App, shared: Shared, reserved: Reserved, other: Value) -> Result<Answer, Problem> {
    let given = match give(app, &shared).await {
        Ok(given) => given,
        Err(problem) => return Err(reserved.refuse(problem).await),
    };
    if given.is_empty() {
        return Err(Problem::new(Code::NoCell, "the front has no cells: `carillon cells add`"));
    }
    let (mut cells, mut answer, mut refused) = (Map::new(), None, None);
    for (cell, given) in given {
        let word = match given {
            CellOutcome::Taken(reply) => {
                answer = answer.or_else(|| serde_json::from_slice(&reply.body).ok());
                "taken"
            }
            CellOutcome::Held => "held",
            CellOutcome::Refused(problem) => {
                let word = problem.code().as_str();
                refused = Some(problem);
                word
            }
        };
        cells.insert(cell.into(), word.into());
    }
    // What one cell refuses, such as an item of a topic that it does not have, the others should: whoever sent it has to know.
    if let Some(problem) = refused {
        return Err(reserved.refuse(problem).await);
    }
    let mut answer: Value = answer.unwrap_or(other);
    answer["cells"] = cells.into();
    Ok(reserved.answer(StatusCode::ACCEPTED, answer.to_string()).await)
}

async fn give(app: &App, shared: &Shared) -> Result<Vec<(Box<str>, CellOutcome)>, Problem> {
    let cells = app.cells().await?;
    try_join_all(cells.iter().map(|found| async move {
        let name = &found.cell.name;
        let call = Call::new("POST", shared.path.clone()).with(shared.body.clone()).known_as(shared.id);
        let waits =
            found.held > 0 && app.ask(IsHeld { cell: name.clone(), series: shared.series.clone() }).await?;
        let reply = match waits {
            // What is held goes before it.
            true => Err(Away("requests before it are held".into())),
            false => app.front()?.client.call(&found.cell, call).await,
        };
        let given = match reply {
            Ok(reply) if reply.status.is_success() => CellOutcome::Taken(reply),
            Ok(reply) if !is_ours(reply.status) => CellOutcome::Refused(problem(&reply)),
            Ok(_) | Err(_) => {
                app.hold(Held {
                    id: shared.id,
                    cell: name.clone(),
                    series: shared.series.clone(),
                    device: None,
                    path: shared.path.as_str().into(),
                    body: shared.body.clone(),
                    expires: shared.expires,
                })
                .await?;
                CellOutcome::Held
            }
        };
        Ok((name.clone(), given))
    }))
    .await
}

/// Counts in all cells.
async fn rehearse(app: &App, uri: &Uri, body: Bytes) -> Result<Response, Problem> {
    let mut sum = json!({"dry_run": true, "reached_now": 0});
    for (cell, reply) in everywhere(app, &Call::new("POST", uri.path()).with(body)).await? {
        let view = view(&cell, reply)?;
        for member in ["accounts", "reached_now"] {
            add(&mut sum, &view, member);
        }
    }
    Ok(axum::Json(sum).into_response())
}

/// Follows a broadcast: what all cells say of it, together.
pub(super) async fn progress(
    key: Granted<Broadcast>,
    State(app): State<App>,
    Named((name, id)): Named<(String, String)>,
    uri: Uri,
) -> Result<Response, Problem> {
    key.reach(&app, &name)?;
    let replies = everywhere(&app, &Call::new("GET", uri.path())).await?;
    summed(replies, &id).map(|sum| axum::Json(sum).into_response())
}

/// Steers or aborts a broadcast in all cells.
pub(super) async fn steer(
    key: Granted<Broadcast>,
    State(app): State<App>,
    Named((name, id)): Named<(String, String)>,
    method: Method,
    uri: Uri,
    Raw(body): Raw,
) -> Result<Response, Problem> {
    key.reach(&app, &name)?;
    let call = Call { body: (!body.is_empty()).then_some(body), ..Call::new(word(&method)?, uri.path()) };
    let replies = done_everywhere(everywhere(&app, &call).await?)?;
    let replies = replies.into_iter().map(|(cell, reply)| (cell, Ok(reply))).collect();
    summed(replies, &id).map(|sum| axum::Json(sum).into_response())
}

/// One view of what cells say of a broadcast. One that is away, or that has not been given it, counts for nothing.
fn summed(replies: Replies, id: &str) -> Result<Value, Problem> {
    let (mut sum, mut cells, mut missing) = (None::<Value>, Map::new(), None);
    for (cell, reply) in replies {
        let part = match view(&cell, reply) {
            Ok(part) => part,
            Err(problem) => {
                let word = if problem.code() == Code::CellAway { "away" } else { problem.code().as_str() };
                cells.insert(cell.into(), json!({"state": word}));
                missing = Some(problem);
                continue;
            }
        };
        let figures =
            json!({"state": part["state"], "given": part["given"], "acknowledged": part["acknowledged"]});
        cells.insert(cell.into(), figures);
        match &mut sum {
            None => sum = Some(part),
            Some(sum) => {
                add(sum, &part, "given");
                add(sum, &part, "acknowledged");
                // It goes on as long as it does in one cell.
                if part["state"] == "running" {
                    sum["state"] = "running".into();
                }
            }
        }
    }
    let unknown = || Problem::new(Code::UnknownBroadcast, format!("no cell has a broadcast `{id}`"));
    let mut sum = sum.ok_or_else(|| missing.unwrap_or_else(unknown))?;
    sum["cells"] = cells.into();
    Ok(sum)
}

fn add(sum: &mut Value, part: &Value, member: &str) {
    if let Some(more) = part[member].as_u64() {
        sum[member] = (sum[member].as_u64().unwrap_or_default() + more).into();
    }
}

fn view(cell: &str, reply: Result<Reply, Away>) -> Result<Value, Problem> {
    let reply = reply.map_err(|Away(why)| cell_away(cell, &why))?;
    match reply.status.is_success() {
        true => serde_json::from_slice(&reply.body).map_err(|error| Problem::unexpected(&error)),
        false => Err(problem(&reply)),
    }
}

/// Reads what all cells have alike: from one that answers.
pub(super) async fn read_topics(
    key: Granted<Topics>,
    State(app): State<App>,
    uri: Uri,
) -> Result<Response, Problem> {
    let domain = key.domain(&app, super::device::parameter(&uri, "domain").as_deref())?;
    any(&app, path_of(&uri, uri.path(), &domain.name)).await
}

/// Lists broadcasts: those of one cell, which the others have, too.
pub(super) async fn list(
    key: Granted<Broadcast>,
    State(app): State<App>,
    Named(name): Named<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    key.reach(&app, &name)?;
    any(&app, uri.path_and_query().map_or("", |path| path.as_str()).to_owned()).await
}

/// What the first cell says that answers.
async fn any(app: &App, path: String) -> Result<Response, Problem> {
    let (cells, mut away) = (app.cells().await?, None);
    for found in cells.iter() {
        match app.front()?.client.call(&found.cell, Call::new("GET", path.clone())).await {
            Ok(reply) if !is_ours(reply.status) => return Ok(passed(reply)),
            Ok(reply) => {
                away = Some(cell_away(&found.cell.name, &format!("it refuses the front: {}", reply.status)));
            }
            Err(Away(why)) => away = Some(cell_away(&found.cell.name, &why)),
        }
    }
    Err(away.unwrap_or_else(|| Problem::new(Code::NoCell, "the front has no cells: `carillon cells add`")))
}

/// Changes topics in all cells.
pub(super) async fn change_topics(
    key: Granted<Topics>,
    State(app): State<App>,
    method: Method,
    uri: Uri,
    Raw(body): Raw,
) -> Result<Response, Problem> {
    let domain = key.domain(&app, super::device::parameter(&uri, "domain").as_deref())?;
    let path = path_of(&uri, uri.path(), &domain.name);
    let call = Call { body: (!body.is_empty()).then_some(body), ..Call::new(word(&method)?, path) };
    let replies = done_everywhere(everywhere(&app, &call).await?)?;
    let first = replies.into_iter().next().map(|(_, reply)| passed(reply));
    first.ok_or_else(|| Problem::new(Code::NoCell, "the front has no cells: `carillon cells add`"))
}

/// The answers of all cells, if all have done it. Where one has not, the same request again completes it: that it is done already refuses nobody.
fn done_everywhere(replies: Replies) -> Result<Vec<(Box<str>, Reply)>, Problem> {
    let (mut done, mut failed) = (Vec::new(), None);
    for (cell, reply) in replies {
        match reply {
            Ok(reply) if reply.status.is_success() => done.push((cell, reply)),
            Ok(reply) => failed = failed.or(Some((cell, problem(&reply)))),
            Err(Away(why)) => {
                let problem = cell_away(&cell, &why);
                failed = Some((cell, problem));
            }
        }
    }
    let Some((cell, problem)) = failed else { return Ok(done) };
    if done.is_empty() {
        return Err(problem);
    }
    let cells: Vec<&str> = done.iter().map(|(cell, _)| &**cell).collect();
    let detail = format!("done at {}, and not at {cell}: {}", cells.join(", "), problem.detail());
    Err(Problem::new(problem.code(), detail).retry_after(5))
}
