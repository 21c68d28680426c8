//! What one front at a time does: it gives cells what is held for them, moves devices, and forgets what expired. Whoever has the lease does.

use super::{held, moves};
use crate::app::App;
use crate::random;
use crate::values::time::now;
use carillon_core::ports::store::cells::ExpireHeld;
use carillon_core::ports::store::leases::{ReleaseLease, TakeLease};
use std::time::{Duration, Instant};

/// Runs until the app closes. Nothing happens at a node that is no front.
pub(crate) async fn run(app: App) {
    if app.as_front().is_none() {
        return;
    }
    let holder: Box<str> = format!("front {:016x}", random::number()).into();
    let mut closing = app.closing.subscribe();
    let work = async {
        let mut mover = moves::Mover::default();
        let mut until = None;
        loop {
            let began = Instant::now();
            if until.is_none_or(|until: Instant| until < began + LEASE / 2) {
                until = take(&app, &holder).await.then(|| began + LEASE);
            }
            if until.is_some() {
                turn(&app, &mut mover).await;
            }
            tokio::time::sleep(TURN.saturating_sub(began.elapsed())).await;
        }
    };
    tokio::select! {
        () = work => {}
        // It fails only when the app is gone.
        _ = closing.wait_for(|is_closing| *is_closing) => {}
    }
    let _ = app.ask(ReleaseLease { name: LEASE_NAME.into(), holder }).await;
}

/// Whether this front is the one that does it, for [`LEASE`] from now on.
async fn take(app: &App, holder: &str) -> bool {
    let at = now();
    let ask = TakeLease {
        name: LEASE_NAME.into(),
        holder: holder.into(),
        now: at,
        until: at.plus(LEASE.as_millis() as u64),
        state: None,
    };
    matches!(app.ask(ask).await, Ok(Ok(())))
}

async fn turn(app: &App, mover: &mut moves::Mover) {
    let Ok(cells) = app.read_cells().await else { return };
    let (_, _, expired) = tokio::join!(
        held::give(app, &cells),
        mover.turn(app, &cells),
        app.ask(ExpireHeld { now: now(), max: EXPIRED_MAX }),
    );
    if let Err(problem) = expired {
        tracing::warn!(?problem, "held requests that expired were not forgotten");
    }
}

const LEASE_NAME: &str = "cells";
/// For how long the lease is taken. Longer than a turn, in which a cell that hangs is waited for.
const LEASE: Duration = Duration::from_secs(10);
const TURN: Duration = Duration::from_millis(200);
const EXPIRED_MAX: u32 = 1000;
