//! Measures how long a server's sessions take to disappear.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use super::sessions::Sessions;

/// The time between two counts: short enough to measure milliseconds, long enough not to load the server.
const POLL_INTERVAL: Duration = Duration::from_millis(4);

/// A thread that counts sessions until they are gone.
#[derive(Debug)]
pub(super) struct SessionWatch {
    outcome: Receiver<Result<Duration, String>>,
    given_up: Arc<AtomicBool>,
}

impl SessionWatch {
    /// Starts counting. The sessions are gone when there are no more than `baseline`.
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

    /// The time it took, once they are gone; or why it is unknown.
    pub(super) fn outcome(&self) -> Option<Result<Duration, String>> {
        self.outcome.try_recv().ok()
    }
}

impl Drop for SessionWatch {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}
