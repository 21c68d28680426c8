//! Steps of followed notifications, as the shards tell them, on their way to whoever follows.

use crate::app::App;
use carillon_core::model::NotificationId;
use carillon_server::{HopSeen, HopSink};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Who follows which notification.
#[derive(Default)]
pub(crate) struct Hops(Mutex<HashMap<NotificationId, mpsc::Sender<HopSeen>>>);

/// The steps of one notification, for as long as this is there.
pub(crate) struct Followed {
    hops: Arc<Hops>,
    id: NotificationId,
    steps: mpsc::Receiver<HopSeen>,
}

/// Steps of one notification that wait to be read; more are lost. There are five for each session, and a few besides.
const STEPS_MAX: usize = 256;

impl App {
    /// Steps of followed notifications.
    fn hops(&self) -> &Arc<Hops> {
        self.part()
    }

    /// Has the shards tell of their steps.
    pub(crate) fn take_hops(&self) {
        let (hops, telemetry) = (Arc::clone(self.hops()), Arc::clone(self.telemetry()));
        let sink: HopSink = Arc::new(move |seen| {
            telemetry.hop(&seen);
            hops.seen(seen);
        });
        self.node.follow_hops(&sink);
    }

    /// The steps of a notification, from now on. It must be sent as one that is followed.
    pub(crate) fn follow(&self, id: NotificationId) -> Followed {
        let (sender, steps) = mpsc::channel(STEPS_MAX);
        let hops = Arc::clone(self.hops());
        hops.lock().insert(id, sender);
        Followed { hops, id, steps }
    }
}

impl Hops {
    fn seen(&self, seen: HopSeen) {
        let follower = self.lock().get(&seen.hop.id).cloned();
        if let Some(follower) = follower {
            // A shard waits for nobody.
            let _ = follower.try_send(seen);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<NotificationId, mpsc::Sender<HopSeen>>> {
        // Nothing that can panic is done under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Followed {
    /// The next step.
    pub(crate) async fn next(&mut self) -> HopSeen {
        match self.steps.recv().await {
            Some(seen) => seen,
            // Another one follows the same notification.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.hops.lock().remove(&self.id);
    }
}
