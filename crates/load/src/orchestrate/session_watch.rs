//! Watches a server's sessions go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use super::sessions::Sessions;

/// Between two looks: often enough to tell milliseconds, seldom enough not to be the server's main work.
const POLL_INTERVAL: Duration = Duration::from_millis(4);

/// A thread that looks until the sessions are gone.
#[derive(Debug)]
pub(super) struct SessionWatch {
    outcome: Receiver<Result<Duration, String>>,
    given_up: Arc<AtomicBool>,
}

impl SessionWatch {
    /// Begins to look; gone is when there are no more sessions than `baseline`.
    pub(super) fn start(sessions: Sessions, baseline: u64) -> Self {
        let (sender, outcome) = mpsc::sync_channel(1);
        let given_up = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&given_up);
        let start = Instant::now();
        thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                match sessions.count() {
                    Ok(count) if count > baseline => thread::park_timeout(POLL_INTERVAL),
                    Ok(_) => return drop(sender.send(Ok(start.elapsed()))),
                    Err(why) => return drop(sender.send(Err(why))),
                }
            }
        });
        Self { outcome, given_up }
    }

    /// How long it took, once it is so; or why it cannot be known.
    pub(super) fn outcome(&self) -> Option<Result<Duration, String>> {
        self.outcome.try_recv().ok()
    }
}

impl Drop for SessionWatch {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}
