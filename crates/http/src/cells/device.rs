//! Requests about one device, passed on to its cell.

use super::client::{Away, Call, Reply};
use super::notify::problem;
use super::registry::cell_away;
use crate::app::App;
use crate::auth::{Enrol, Granted, Send};
use crate::consumer::devices::EndpointView;
use crate::extract::{DomainQuery, Named, Params, Raw, parse};
use crate::options::Endpoints;
use crate::problem::{Code, Problem};
use crate::random;
use crate::values::jids;
use axum::Json;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use carillon_core::model::{CellEndpoints, Moving, NotificationId, Placement};
use carillon_core::ports::store::cells::{HeldById, Release, Unplace};
use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Enrols a device in the cell that is chosen for it, where it then stays.
pub(super) async fn enrol(
    key: Granted<Enrol>,
    State(app): State<App>,
    uri: Uri,
    Raw(body): Raw,
) -> Result<Response, Problem> {
    let domain = key.domain(&app, parameter(&uri, "domain").as_deref())?;
    let mut members: Map<String, Value> = if body.is_empty() { Map::new() } else { parse(&body)? };
    let id = match members.get("id") {
        None | Some(Value::Null) => random::local_part(),
        Some(Value::String(id)) => id.clone(),
        Some(_) => return Err(Problem::new(Code::WrongType, "`id` is a text").at("/id")),
    };
    let device = jids::device(&id, &domain).map_err(|problem| problem.at("/id"))?;
    members.insert("id".to_owned(), id.into());
    let _under_way = app.front()?.enter(device.as_str());
    let was_placed = app.placed(&device).await?.placement.is_some();
    let placement = app.place(&device).await?;
    let path = path_of(&uri, "/v1/devices", &domain.name);
    let reply = ask(&app, &placement, Call::new("POST", path).with(Value::Object(members).to_string())).await;
    match reply {
        Ok(reply) if reply.status.is_success() => {
            let mut enrolled: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
            enrolled["cell"] = (*placement.cell).into();
            if let Some(endpoints) = endpoints(&app, &placement, &domain.name).await? {
                enrolled["endpoints"] = serde_json::to_value(endpoints).unwrap_or_default();
            }
            Ok(answer(reply.status, "application/json", enrolled.to_string().into()))
        }
        // Nothing was made: it is in no cell, as it was before.
        Ok(reply)
            if reply.status.is_client_error() && reply.status != StatusCode::CONFLICT && !was_placed =>
        {
            app.ask(Unplace { device }).await?;
            Err(problem(&reply))
        }
        Ok(reply) => Err(problem(&reply)),
        // It may have been made: the same request again settles it.
        Err(refusal) => Err(refusal),
    }
}

/// Lists the devices of all cells.
pub(super) async fn list(key: Granted<Enrol>, State(app): State<App>, uri: Uri) -> Result<Response, Problem> {
    let domain = key.domain(&app, parameter(&uri, "domain").as_deref())?;
    let limit = parameter(&uri, "limit").and_then(|text| text.parse::<usize>().ok()).unwrap_or(100);
    let path = path_of(&uri, "/v1/devices", &domain.name);
    let (mut devices, mut more) = (Vec::new(), false);
    for (cell, reply) in everywhere(&app, &Call::new("GET", path)).await? {
        let reply = reply.map_err(|Away(why)| cell_away(&cell, &why))?;
        if !reply.status.is_success() {
            return Err(problem(&reply));
        }
        let mut page: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        more |= !page["next"].is_null();
        for mut device in page["devices"].as_array_mut().map(std::mem::take).unwrap_or_default() {
            device["cell"] = (*cell).into();
            devices.push(device);
        }
    }
    // Each cell gave its first ones: the first of all are among them.
    devices.sort_by(|a, b| a["id"].as_str().cmp(&b["id"].as_str()));
    more |= devices.len() > limit;
    devices.truncate(limit);
    let next = devices.last().filter(|_| more).map(|last| last["id"].clone());
    Ok(Json(json!({"devices": devices, "next": next})).into_response())
}

/// Passes a request about a device on to its cell.
pub(super) async fn pass(
    key: Granted<Enrol>,
    State(app): State<App>,
    Named(parts): Named<Vec<(String, String)>>,
    method: Method,
    uri: Uri,
    Raw(body): Raw,
) -> Result<Response, Problem> {
    let id = parts.first().map(|(_, id)| id.as_str()).unwrap_or_default();
    let domain = key.domain(&app, parameter(&uri, "domain").as_deref())?;
    let device = jids::device(id, &domain)?;
    let _under_way = app.front()?.enter(device.as_str());
    let placement = app.placement(&device).await?;
    if method != Method::GET && placement.moving != Moving::No {
        let detail = format!("`{device}` is moving to another cell");
        return Err(Problem::new(Code::DeviceMoving, detail).retry_after(1));
    }
    let method = word(&method)?;
    let path = path_of(&uri, uri.path(), &domain.name);
    let call = Call { body: (!body.is_empty()).then_some(body), ..Call::new(method, path) };
    let reply = ask(&app, &placement, call).await?;
    let is_removal = method == "DELETE" && uri.path().split('/').count() == 4;
    if is_removal && (reply.status.is_success() || reply.status == StatusCode::NOT_FOUND) {
        app.ask(Unplace { device }).await?;
    }
    Ok(passed(reply))
}

/// What became of a notification: at the front while it is held there, else at the cell that knows it.
pub(super) async fn trace(
    key: Granted<Send>,
    State(app): State<App>,
    Named(id): Named<String>,
    method: Method,
) -> Result<Response, Problem> {
    let invalid = |_| {
        Problem::new(Code::InvalidParameter, "a notification id has 26 characters of Crockford's base 32")
    };
    let number: NotificationId = id.parse().map_err(invalid)?;
    let unknown = || Problem::new(Code::UnknownNotification, format!("there is no notification {id}"));
    let own = key.key.domain.map(|domain| app.domain_name(domain));
    let reaches = |to: &str| own.as_deref().is_none_or(|own| to.rsplit('@').next() == Some(own));
    if let Some(held) = app.ask(HeldById { id: number }).await? {
        let device = held.device.as_ref().filter(|device| reaches(device.as_str())).ok_or_else(unknown)?;
        let mut view = json!({"id": id, "to": device.as_str(), "state": "accepted", "held_for": held.cell,
            "expires_at": held.expires.to_xmpp()});
        if method == Method::DELETE {
            app.ask(Release { cell: held.cell.clone(), seqs: vec![held.seq] }).await?;
            view["state"] = "cancelled".into();
        }
        return Ok(Json(view).into_response());
    }
    let mut away = None;
    for (cell, reply) in everywhere(&app, &Call::new("GET", format!("/v1/notifications/{id}"))).await? {
        let reply = match reply {
            Ok(reply) => reply,
            Err(Away(why)) => {
                away = Some(cell_away(&cell, &why));
                continue;
            }
        };
        let view: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        if reply.status.is_success() && reaches(view["to"].as_str().unwrap_or_default()) {
            if method == Method::GET {
                return Ok(passed(reply));
            }
            let call = Call::new("DELETE", format!("/v1/notifications/{id}"));
            let at = app.cell(&cell).await?;
            let reply = app.front()?.client.call(&at, call).await;
            return reply.map(passed).map_err(|Away(why)| cell_away(&cell, &why));
        }
    }
    Err(away.unwrap_or_else(unknown))
}

/// Where a device of a front connects.
pub(super) async fn endpoint(
    key: Granted<Enrol>,
    State(app): State<App>,
    Params(query): Params<DomainQuery>,
    Named(id): Named<String>,
) -> Result<Json<EndpointView>, Problem> {
    let domain = key.domain(&app, query.domain.as_deref())?;
    let device = jids::device(&id, &domain)?;
    let placement = app.placement(&device).await?;
    let known = endpoints(&app, &placement, device.domain()).await?;
    let missing = || {
        let detail =
            format!("nobody has said where devices of `{}` connect: `carillon cells set`", placement.cell);
        Problem::new(Code::NoCell, detail)
    };
    let endpoints = known.ok_or_else(missing)?;
    Ok(Json(EndpointView::of(&device, Some(placement), endpoints)))
}

/// Where the devices of a cell connect, if the registry knows.
async fn endpoints(app: &App, placement: &Placement, domain: &str) -> Result<Option<Endpoints>, Problem> {
    let CellEndpoints { host, c2s_port, c2s_tls_port, websocket_url } =
        app.cell(&placement.cell).await?.endpoints;
    if c2s_port.is_none() && c2s_tls_port.is_none() && websocket_url.is_none() {
        return Ok(None);
    }
    Ok(Some(Endpoints {
        host: Some(host.map_or_else(|| domain.to_owned(), Into::into)),
        c2s_port,
        c2s_tls_port,
        websocket_url: websocket_url.map(Into::into),
    }))
}

/// Asks the cell that a device is in.
pub(super) async fn ask(app: &App, placement: &Placement, call: Call) -> Result<Reply, Problem> {
    let cell = app.cell(&placement.cell).await?;
    let reply = app.front()?.client.call(&cell, call).await;
    let reply = reply.map_err(|Away(why)| cell_away(&cell.name, &why))?;
    match super::notify::is_ours(reply.status) {
        true => Err(cell_away(&cell.name, &format!("it refuses the front: {}", reply.status))),
        false => Ok(reply),
    }
}

/// What each cell answers, by its name.
pub(super) type Replies = Vec<(Box<str>, Result<Reply, Away>)>;

/// What all cells answer to a request.
pub(super) async fn everywhere(app: &App, call: &Call) -> Result<Replies, Problem> {
    let (client, cells) = (Arc::clone(&app.front()?.client), app.cells().await?);
    let asked = cells.iter().map(|found| {
        let (client, cell, call) = (&client, &found.cell, call.clone());
        async move { (cell.name.clone(), client.call(cell, call).await) }
    });
    Ok(join_all(asked).await)
}

/// A cell's answer as the front's.
pub(super) fn passed(reply: Reply) -> Response {
    let kind = reply.content_type.as_deref().unwrap_or("application/json").to_owned();
    answer(reply.status, &kind, reply.body)
}

fn answer(status: StatusCode, kind: &str, body: Bytes) -> Response {
    match body.is_empty() {
        true => status.into_response(),
        false => (status, [(header::CONTENT_TYPE, kind)], body).into_response(),
    }
}

/// The value of a query parameter that has no character which is percent-encoded.
pub(super) fn parameter(uri: &Uri, name: &str) -> Option<String> {
    let pairs = uri.query().into_iter().flat_map(|query| query.split('&'));
    pairs
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned())
}

/// The path of a request at a cell: with the query that it has here, and always its domain.
pub(super) fn path_of(uri: &Uri, path: &str, domain: &str) -> String {
    let pairs = uri.query().into_iter().flat_map(|query| query.split('&'));
    let kept = pairs.filter(|pair| !pair.is_empty() && !pair.starts_with("domain="));
    kept.fold(format!("{path}?domain={domain}"), |path, pair| format!("{path}&{pair}"))
}

pub(super) fn word(method: &Method) -> Result<&'static str, Problem> {
    let words = ["GET", "POST", "PUT", "PATCH", "DELETE"];
    let found = words.into_iter().find(|word| *word == method.as_str());
    found.ok_or_else(|| {
        Problem::new(Code::WrongMethod, "the path exists, but not with this method; see /docs")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_at_a_cell_names_its_domain_once() {
        let uri: Uri = "/v1/devices/a?domain=b.example&limit=3&after=x%20y".parse().expect("a URI");
        assert_eq!(
            path_of(&uri, uri.path(), "a.example"),
            "/v1/devices/a?domain=a.example&limit=3&after=x%20y"
        );
        assert_eq!((parameter(&uri, "limit").as_deref(), parameter(&uri, "to")), (Some("3"), None));
        let bare: Uri = "/v1/devices".parse().expect("a URI");
        assert_eq!(path_of(&bare, bare.path(), "a.example"), "/v1/devices?domain=a.example");
    }
}
