//! What has expired goes, and the contents of what does not count.

use crate::app::App;
use crate::problem::Problem;
use crate::values::time::now;
use carillon_core::model::UnixMs;
use carillon_core::ports::store::uploads::{ExpireUploads, ForgetUploads, RemovableUploads};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How many go with one question.
const TOGETHER: u32 = 100;
/// How long the contents of an attempt stay after its time, so that one which the store has just heard the end of is not removed.
const GRACE_MS: u64 = 60_000;

/// Removes it, until the node closes.
pub(crate) async fn run(app: App) {
    if !app.uploads().are_on() {
        return;
    }
    let mut closing = app.closing.subscribe();
    let every = Duration::from_millis(app.options.settings.upload.sweep_ms);
    loop {
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
        // What could not be done is done at the next time.
        if let Err(problem) = sweep(&app).await {
            tracing::debug!(?problem, "files that have expired were not removed yet");
        }
    }
}

async fn sweep(app: &App) -> Result<(), Problem> {
    while app.ask(ExpireUploads { now: now(), max: TOGETHER }).await? {}
    loop {
        let grace_ms = GRACE_MS.min(app.options.settings.upload.put_ms);
        let until = UnixMs(now().0.saturating_sub(grace_ms));
        let found = app.ask(RemovableUploads { until, max: TOGETHER }).await?;
        let mut removed = Vec::new();
        for (id, attempt) in &found {
            match app.uploads().contents.remove(*id, *attempt).await {
                Ok(()) => removed.push((*id, *attempt)),
                Err(error) => tracing::warn!(%error, "a file could not be removed"),
            }
        }
        if removed.is_empty() {
            return Ok(());
        }
        app.uploads().figures.removed.fetch_add(removed.len() as u64, Ordering::Relaxed);
        app.ask(ForgetUploads { removed }).await?;
    }
}
