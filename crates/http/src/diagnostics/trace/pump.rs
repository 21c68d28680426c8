//! A trace under way: from the queue to the body of the response, within its bounds.

use super::line;
use super::queue::{Outlet, queue};
use crate::app::App;
use crate::cluster::locate;
use crate::problem::Problem;
use crate::values::time::now;
use bytes::Bytes;
use carillon_core::model::{ApiKey, KeyId, UnixMs};
use carillon_server::{TapRequest, TapSink};
use futures_util::stream::{Stream, unfold};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, broadcast, mpsc, oneshot, watch};
use tokio::time::Instant;

/// How far a trace goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// When it ends.
    pub(super) until: Duration,
    /// After how many entries it ends.
    pub(super) count: u32,
    /// How long its reader may take nothing.
    pub(super) stall: Duration,
}

/// A trace under way.
pub(super) struct Pump {
    tap: Tap,
    queue: Outlet,
    body: mpsc::Sender<Bytes>,
    deadline: Instant,
    left: u32,
    stall: Duration,
    key: KeyId,
    deletions: broadcast::Receiver<KeyId>,
    closing: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
}

/// A tap of the node, which ends with this.
struct Tap {
    app: App,
    id: u64,
}

impl Tap {
    /// Waits until the shards know of it, so that all that comes after the first line is seen; not for long, as one may hang.
    async fn is_heard(&self) {
        let (reply, heard) = oneshot::channel();
        self.app.node.pulse(Box::new(move |()| {
            // Nobody waits any more.
            let _ = reply.send(());
        }));
        drop(tokio::time::timeout(PATIENCE, heard).await);
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.app.node.untap(self.id);
    }
}

/// Lines that are handed over and not sent yet.
const BODY_LINES: usize = 16;
/// How long the shards may take to hear of a tap.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often what was missed is told, while nothing else is.
const TELL_MISSED: Duration = Duration::from_secs(1);

impl Pump {
    /// Begins a trace. The body of the response.
    pub(super) async fn begin(
        app: App,
        key: &ApiKey,
        request: TapRequest,
        bounds: Bounds,
        permit: OwnedSemaphorePermit,
    ) -> Result<impl Stream<Item = Result<Bytes, Infallible>> + use<>, Problem> {
        let (body, lines) = mpsc::channel(BODY_LINES);
        let (intake, queue) = queue();
        let until = bounds.until.min(key.expires.map_or(Duration::MAX, left_of));
        let (key, deletions, closing) = (key.id, app.keys().deletions(), app.closing.subscribe());
        let own_and_home = locate::own_and_home(&app, &request.account).await?;
        let begun = line::begun(&request.account, own_and_home, until);
        let sink: TapSink = Arc::new(move |tapped| intake.take(tapped));
        let id = app.node.tap(request, &sink);
        let tap = Tap { app, id };
        tap.is_heard().await;
        let pump = Pump {
            tap,
            queue,
            body,
            deadline: Instant::now() + until,
            left: bounds.count,
            stall: bounds.stall,
            key,
            deletions,
            closing,
            _permit: permit,
        };
        tokio::spawn(pump.run(begun));
        Ok(unfold(lines, |mut lines| async move { Some((Ok(lines.recv().await?), lines)) }))
    }

    /// Tells what comes until a bound is reached, or nobody reads.
    async fn run(mut self, begun: Bytes) {
        let mut goes_on = self.tell(begun).await.is_some();
        while goes_on {
            goes_on = self.step().await.is_some();
        }
    }

    /// Tells what comes next; none when that was the last.
    async fn step(&mut self) -> Option<()> {
        let Pump { body, deadline, closing, deletions, queue, key, .. } = self;
        let entry = tokio::select! {
            biased;
            () = body.closed() => return None,
            () = tokio::time::sleep_until(*deadline) => return self.end("time").await,
            () = is_closing(closing) => return self.end("closing").await,
            deleted = deletions.recv() => match deleted {
                Ok(deleted) if deleted != *key => return Some(()),
                // Its own key; or it lost count of the deletions, and ends rather than outlive its key.
                _ => return self.end("key").await,
            },
            entry = queue.next() => entry?,
            () = tokio::time::sleep(TELL_MISSED) => return self.tell_missed().await,
        };
        self.tell_missed().await?;
        self.tell(line::entry(&entry)).await?;
        self.left -= 1;
        if self.left == 0 { self.end("count").await } else { Some(()) }
    }

    async fn tell_missed(&mut self) -> Option<()> {
        match self.queue.missed() {
            0 => Some(()),
            count => {
                self.tap.app.traces().missed.fetch_add(count, Ordering::Relaxed);
                self.tell(line::missed(count)).await
            }
        }
    }

    async fn end(&mut self, reason: &'static str) -> Option<()> {
        self.tell_missed().await?;
        self.tell(line::ended(reason)).await?;
        None
    }

    /// Hands a line over; none if the reader is gone, or takes nothing.
    async fn tell(&mut self, line: Bytes) -> Option<()> {
        self.tap.app.traces().lines.fetch_add(1, Ordering::Relaxed);
        self.body.send_timeout(line, self.stall).await.ok()
    }
}

async fn is_closing(closing: &mut watch::Receiver<bool>) {
    // An error: the server is gone.
    drop(closing.wait_for(|closing| *closing).await);
}

/// How long a key is valid.
fn left_of(expires: UnixMs) -> Duration {
    Duration::from_millis(expires.0.saturating_sub(now().0))
}
