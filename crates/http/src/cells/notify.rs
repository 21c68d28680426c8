//! A notification on its way through a front: to the cell of its device, or held until that takes it.

use super::client::{Away, Call, Reply};
use super::document::{Document, held_until};
use super::registry::Held;
use crate::app::App;
use crate::options::Options;
use crate::problem::{Code, Problem};
use crate::provider::notifications::{Elsewhere, SendResult};
use crate::values::time::now;
use axum::http::StatusCode;
use bytes::Bytes;
use carillon_core::model::{Moving, Notification, NotificationState};
use carillon_wire::jid::BareJid;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;

/// Where a cell takes notifications.
pub(super) const TAKE: &str = "/v1/admin/notifications";

/// How often a device that has just moved is looked for.
const LOOKS: usize = 3;

/// What takes the notifications of a node with these options, where it is a front.
pub(crate) fn elsewhere(options: &Options) -> Option<Arc<dyn Elsewhere>> {
    options.settings.cells.front.then(|| Arc::new(ToCells) as Arc<dyn Elsewhere>)
}

/// Notifications go to the cells of their devices.
struct ToCells;

impl Elsewhere for ToCells {
    fn send<'a>(
        &self,
        app: &'a App,
        notification: &'a Notification,
    ) -> BoxFuture<'a, Result<SendResult, Problem>> {
        Box::pin(send(app, notification))
    }

    fn rehearse<'a>(&self, app: &'a App, device: &'a BareJid) -> BoxFuture<'a, Result<SendResult, Problem>> {
        Box::pin(async { app.placement(device).await.map(|_| SendResult::rehearsed(device)) })
    }
}

/// Sends a notification to the cell of its device.
async fn send(app: &App, notification: &Notification) -> Result<SendResult, Problem> {
    let front = app.front()?;
    let device = &notification.to;
    let _under_way = front.enter(device.as_str());
    let document = Document::of(notification).to_json();
    let mut generation = None;
    for _ in 0..LOOKS {
        let placed = app.placed(device).await?;
        let placement = placed.placement.ok_or_else(|| super::registry::unknown_device(device))?;
        // What is held goes before it; and what comes while a device is copied would be left behind.
        if placed.is_held || matches!(placement.moving, Moving::To(_)) {
            return hold(app, notification, document, &placement.cell).await;
        }
        let cell = app.cell(&placement.cell).await?;
        match front.client.call(&cell, Call::new("POST", TAKE).with(document.clone())).await {
            Ok(reply) if reply.status.is_success() => return read(&reply),
            Ok(reply) if is_ours(reply.status) => {
                tracing::warn!(cell = &*cell.name, status = %reply.status, "a cell refuses the front itself");
                return hold(app, notification, document, &placement.cell).await;
            }
            // It may have moved since it was looked up.
            Ok(reply)
                if reply.status == StatusCode::NOT_FOUND && generation != Some(placement.generation) =>
            {
                generation = Some(placement.generation);
            }
            Ok(reply) => return Err(problem(&reply)),
            Err(Away(_)) => return hold(app, notification, document, &placement.cell).await,
        }
    }
    Err(super::registry::unknown_device(device))
}

async fn hold(
    app: &App,
    notification: &Notification,
    body: Bytes,
    cell: &str,
) -> Result<SendResult, Problem> {
    let device = notification.to.clone();
    let held = Held {
        id: notification.id,
        cell: cell.into(),
        series: device.as_str().into(),
        device: Some(device),
        path: TAKE.into(),
        body,
        expires: held_until(notification),
    };
    app.hold(held).await?;
    Ok(SendResult {
        to: notification.to.as_str().to_owned(),
        id: Some(notification.id.to_string()),
        state: Some(NotificationState::Accepted),
        reason: None,
        error: None,
        stored: Some(now()),
    })
}

/// Whether a status says that something is wrong with the front, or comes too early, and not with the request.
pub(super) fn is_ours(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS)
}

fn read(reply: &Reply) -> Result<SendResult, Problem> {
    let value: Value = serde_json::from_slice(&reply.body).map_err(|error| Problem::unexpected(&error))?;
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let member = |name: &str| value.get(name).cloned().unwrap_or_default();
    Ok(SendResult {
        to: text("to").unwrap_or_default(),
        id: text("id"),
        state: serde_json::from_value(member("state")).map_err(|error| Problem::unexpected(&error))?,
        reason: serde_json::from_value(member("reason")).map_err(|error| Problem::unexpected(&error))?,
        error: None,
        stored: None,
    })
}

/// The problem that a cell answered.
pub(super) fn problem(reply: &Reply) -> Problem {
    let value: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let code = Code::ALL.iter().find(|code| value["code"].as_str() == Some(code.as_str()));
    let detail = value["detail"].as_str().unwrap_or("the cell refused the request");
    match code {
        Some(code) => {
            let problem = Problem::new(*code, detail);
            value["pointer"].as_str().into_iter().fold(problem, Problem::at)
        }
        None => Problem::unexpected(&format!("{}: {detail}", reply.status)),
    }
}
