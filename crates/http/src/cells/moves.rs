//! Moving devices to other cells: one that an operator names, and those of a cell that is drained, at its rate.
//!
//! A move is a row of the registry, and each of its steps may be taken again: whoever has the lease goes on where another front ended.
//!
//! 1. The row says that the device moves. From now on what is sent to it is held.
//! 2. It is waited until the device has acknowledged what it was given, for a moment; then it is disabled in its cell, which ends its sessions. When it has none, and no request of this front is on its way there, nothing is
//!    delivered any more, and what is there is all.
//! 3. Keys, topics, acknowledged broadcasts and notifications are copied, these with their ids: a repeat is known.
//! 4. The row says that the device is in its new cell. What is held goes there.
//! 5. What a request brought to the old cell late is copied, too; the device is enabled in the new cell and removed from the old one.

use super::client::{Away, Call, Reply};
use super::notify::problem;
use super::registry::cell_away;
use super::transfer::Transfer;
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::values::text::segment;
use axum::http::StatusCode;
use carillon_core::model::{CellRecord, Draining, MoveStep, Moving, Placement, choose};
use carillon_core::ports::store::cells::{CellReport, MoveDevice, MovingDevices, PlacedIn, Unplace};
use carillon_wire::jid::BareJid;
use futures_util::future::join_all;
use serde_json::Value;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// What moves devices remembers between its turns.
#[derive(Default)]
pub(super) struct Mover {
    /// How many devices of each cell may begin to move now, as of when.
    allowed: HashMap<Box<str>, (Instant, f64)>,
    /// Up to which device of each cell was looked.
    looked: HashMap<Box<str>, BareJid>,
    /// The same of the devices that move.
    reached: Option<BareJid>,
}

impl Mover {
    /// Takes the next steps of devices that move, and has others begin.
    pub(super) async fn turn(&mut self, app: &App, cells: &[CellReport]) {
        let most = app.options.settings.cells.moves_max;
        let limit = u16::try_from(most).unwrap_or(u16::MAX);
        let ask = MovingDevices { after: self.reached.take(), limit };
        let Ok(mut moving) = app.ask(ask).await else { return };
        // Those that cannot go on are passed, and come again after all others.
        self.reached = moving.last().filter(|_| moving.len() == most).map(|last| last.device.clone());
        let at = Instant::now();
        self.allowed.retain(|name, _| cells.iter().any(|found| found.cell.name == *name));
        for found in cells.iter().filter(|found| found.cell.drain == Draining::Running && found.devices > 0) {
            let room = self.allowed(&found.cell, at).min(most.saturating_sub(moving.len()));
            if room > 0 {
                moving.extend(self.begin_some(app, cells, &found.cell, room).await);
            }
        }
        join_all(moving.into_iter().map(|placement| go_on(app, placement))).await;
    }

    fn allowed(&mut self, cell: &CellRecord, at: Instant) -> usize {
        let rate = f64::from(cell.rate);
        let (since, allowed) = self.allowed.entry(cell.name.clone()).or_insert((at, rate.min(1.0)));
        *allowed = (*allowed + rate * at.duration_since(*since).as_secs_f64()).min(rate.max(1.0));
        *since = at;
        *allowed as usize
    }

    /// Has devices of a cell that is drained begin to move.
    async fn begin_some(
        &mut self,
        app: &App,
        cells: &[CellReport],
        from: &CellRecord,
        room: usize,
    ) -> Vec<Placement> {
        let limit = u16::try_from(room).unwrap_or(u16::MAX);
        let ask = PlacedIn { cell: from.name.clone(), after: self.looked.get(&from.name).cloned(), limit };
        let Ok(found) = app.ask(ask).await else { return Vec::new() };
        match found.last() {
            Some(last) => drop(self.looked.insert(from.name.clone(), last.device.clone())),
            None => drop(self.looked.remove(&from.name)),
        }
        let begun = found.iter().map(|placement| async move {
            let answer = cells.iter().map(|found| &found.cell).filter(|cell| !is_away(app, &cell.name));
            let to = choose(answer, &placement.device)?;
            begin(app, placement, &to.name).await.ok()
        });
        let begun: Vec<Placement> = join_all(begun).await.into_iter().flatten().collect();
        if let Some((_, allowed)) = self.allowed.get_mut(&from.name) {
            *allowed -= begun.len() as f64;
        }
        begun
    }
}

/// Has a device begin to move to a cell.
pub(super) async fn begin(app: &App, placement: &Placement, to: &str) -> Result<Placement, Problem> {
    let device = &placement.device;
    let moving =
        || Problem::new(Code::DeviceMoving, format!("`{device}` is moving to another cell")).retry_after(1);
    if placement.moving != Moving::No {
        return Err(moving());
    }
    if app.placed(device).await?.is_held {
        let detail = format!("requests are held for `{device}`, which go to its cell first");
        return Err(cell_away(&placement.cell, &detail));
    }
    let reply = ask(app, &placement.cell, Call::new("GET", path(device, ""))).await?;
    let view = match reply.status {
        StatusCode::NOT_FOUND => Value::Null,
        _ => value(&reply)?,
    };
    let step = MoveStep::Begin { to: to.into(), enables: view["state"] != "disabled" };
    take(app, placement, step).await
}

/// Goes on with a move as far as that is possible now.
async fn go_on(app: &App, placement: Placement) {
    let device = placement.device.clone();
    if let Err(problem) = advance(app, &placement).await {
        tracing::debug!(device = device.as_str(), ?problem, "a device cannot move on now");
        if let Moving::To(to) = &placement.moving
            && is_away_long(app, to)
            && let Err(problem) = stay(app, &placement).await
        {
            tracing::warn!(device = device.as_str(), ?problem, "a device neither moves nor stays");
        }
    }
}

async fn advance(app: &App, placement: &Placement) -> Result<(), Problem> {
    let arrived = match &placement.moving {
        Moving::No => return Ok(()),
        Moving::From(_) => placement.clone(),
        Moving::To(to) => match leave(app, placement).await? {
            // It is gone from its cell: there is nothing to move.
            false => return app.ask(Unplace { device: placement.device.clone() }).await,
            true => {
                copy(app, &placement.device, &placement.cell, to).await?;
                take(app, placement, MoveStep::Arrive).await?
            }
        },
    };
    let Moving::From(from) = &arrived.moving else { return Ok(()) };
    let device = &arrived.device;
    copy(app, device, from, &arrived.cell).await?;
    if arrived.enables {
        done(&ask(app, &arrived.cell, Call::new("POST", path(device, "/enable"))).await?)?;
    }
    let removed = ask(app, from, Call::new("DELETE", path(device, ""))).await?;
    if removed.status != StatusCode::NOT_FOUND {
        done(&removed)?;
    }
    take(app, &arrived, MoveStep::Finish).await?;
    app.front()?.client.cell(from).count(|counts| counts.moved += 1);
    Ok(())
}

/// Has the device have no session and be delivered nothing any more; whether it is there.
async fn leave(app: &App, placement: &Placement) -> Result<bool, Problem> {
    let (device, cell) = (&placement.device, &placement.cell);
    if !settle(app, placement).await? {
        return Ok(false);
    }
    let disable = || Call::new("POST", path(device, "/disable"));
    let disabled = ask(app, cell, disable()).await?;
    if disabled.status == StatusCode::NOT_FOUND {
        return Ok(false);
    }
    done(&disabled)?;
    let began = Instant::now();
    loop {
        let view = value(&ask(app, cell, Call::new("GET", path(device, ""))).await?)?;
        if view["sessions"].as_u64() == Some(0) && !app.front()?.is_busy(device.as_str()) {
            break;
        }
        if began.elapsed() > LEAVING {
            let busy =
                Problem::new(Code::DeviceMoving, "the device still has sessions, or requests on their way");
            return Err(busy);
        }
        tokio::time::sleep(LOOK).await;
    }
    // Writes of an account are done in their order: behind this one what its sessions acknowledged is committed.
    done(&ask(app, cell, disable()).await?)?;
    Ok(true)
}

/// Lets a device that is connected acknowledge what it was given, so that it is not given it again elsewhere; whether it is there.
async fn settle(app: &App, placement: &Placement) -> Result<bool, Problem> {
    let (device, began) = (&placement.device, Instant::now());
    loop {
        let reply = ask(app, &placement.cell, Call::new("GET", path(device, ""))).await?;
        if reply.status == StatusCode::NOT_FOUND {
            return Ok(false);
        }
        let view = value(&reply)?;
        let is_quiet = view["pending"] == 0 && !app.front()?.is_busy(device.as_str());
        if is_quiet || view["sessions"] == 0 || began.elapsed() > SETTLING {
            return Ok(true);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Copies all that there is of a device. Nothing if it is not there any more.
async fn copy(app: &App, device: &BareJid, from: &str, to: &str) -> Result<(), Problem> {
    let transfer = format!("/v1/admin/accounts/{}/transfer", segment(device.as_str()));
    let mut after = None;
    loop {
        let query = after.map_or_else(String::new, |after: String| format!("?after={after}"));
        let reply = ask(app, from, Call::new("GET", format!("{transfer}{query}"))).await?;
        if reply.status == StatusCode::NOT_FOUND {
            return Ok(());
        }
        done(&reply)?;
        let part: Transfer =
            serde_json::from_slice(&reply.body).map_err(|error| Problem::unexpected(&error))?;
        let taken = value(&ask(app, to, Call::new("PUT", transfer.as_str()).with(reply.body)).await?)?;
        if taken["topics_missing"].as_array().is_some_and(|missing| !missing.is_empty()) {
            let topics = taken["topics_missing"].to_string();
            tracing::warn!(
                device = device.as_str(),
                to,
                topics,
                "a device moves to a cell that lacks topics which it follows"
            );
        }
        match part.next {
            Some(next) => after = Some(next),
            None => return Ok(()),
        }
    }
}

/// Has a device stay where it is.
async fn stay(app: &App, placement: &Placement) -> Result<(), Problem> {
    if placement.enables {
        done(&ask(app, &placement.cell, Call::new("POST", path(&placement.device, "/enable"))).await?)?;
    }
    take(app, placement, MoveStep::GiveUp).await.map(drop)
}

/// Notes a step of a move in the registry.
async fn take(app: &App, placement: &Placement, step: MoveStep) -> Result<Placement, Problem> {
    let ask = MoveDevice { device: placement.device.clone(), generation: placement.generation, step };
    app.ask(ask)
        .await?
        .map_err(|_| Problem::new(Code::DeviceMoving, "somebody else moves the device").retry_after(1))
}

async fn ask(app: &App, cell: &str, call: Call) -> Result<Reply, Problem> {
    let cell = app.cell(cell).await?;
    let reply = app.front()?.client.call(&cell, call).await;
    reply.map_err(|Away(why)| cell_away(&cell.name, &why))
}

fn is_away(app: &App, cell: &str) -> bool {
    away(app, cell).is_some()
}

fn is_away_long(app: &App, cell: &str) -> bool {
    away(app, cell).is_some_and(|since| since.elapsed() > GIVE_UP)
}

fn away(app: &App, cell: &str) -> Option<Instant> {
    Some(app.as_front()?.client.cell(cell).away()?.0)
}

fn done(reply: &Reply) -> Result<(), Problem> {
    if reply.status.is_success() { Ok(()) } else { Err(problem(reply)) }
}

fn value(reply: &Reply) -> Result<Value, Problem> {
    done(reply)?;
    serde_json::from_slice(&reply.body).map_err(|error| Problem::unexpected(&error))
}

fn path(device: &BareJid, rest: &str) -> String {
    let local = segment(device.local().unwrap_or_default());
    format!("/v1/devices/{local}{rest}?domain={}", device.domain())
}

/// For how long a device that moves is waited for in one turn: until its sessions have ended.
const LEAVING: Duration = Duration::from_secs(2);
/// For how long a device that moves may acknowledge what it was given.
const SETTLING: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);
/// When a device whose new cell does not answer stays where it is.
const GIVE_UP: Duration = Duration::from_secs(20);
