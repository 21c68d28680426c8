//! SIGTERM, SIGINT and SIGHUP: the scaler ends between two decisions, so that it gives its lease up. A second SIGTERM or SIGINT ends it at once.

use crate::process::signal::{Signals, Wish};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Whether the process was told to end.
pub(super) struct End(Receiver<()>);

/// The exit status of a process that SIGTERM ends (128 + 15).
const TERMINATED: i32 = 143;

impl End {
    /// Takes over the handling of the signals.
    pub(super) fn listen() -> io::Result<End> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let guard = runtime.enter();
        let signals = Signals::listen()?;
        drop(guard);
        let (told, end) = sync_channel(1);
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || runtime.block_on(wait(signals, told)))?;
        Ok(End(end))
    }

    /// Waits for so long at most. Whether the process was told to end.
    pub(super) fn within(&self, time: Duration) -> bool {
        self.0.recv_timeout(time) != Err(RecvTimeoutError::Timeout)
    }
}

async fn wait(mut signals: Signals, told: SyncSender<()>) {
    loop {
        match signals.next().await {
            // The channel is full if the end was asked for before, and closed if the scaler is ending.
            Wish::Drain | Wish::Reload => drop(told.try_send(())),
            Wish::Quit => std::process::exit(TERMINATED),
            Wish::Upgrade => {}
        }
    }
}
