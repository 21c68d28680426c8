//! SIGINT and SIGTERM: the first asks for an orderly end, the second ends at once.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit status of a program that a second signal ended: 128 and SIGINT's number.
const ENDED: i32 = 130;

/// Whether somebody wants the program to end.
#[derive(Debug)]
pub(super) struct Signals {
    received: Arc<(Mutex<bool>, Condvar)>,
}

impl Signals {
    /// Signals are taken from now on.
    pub(super) fn listen() -> io::Result<Self> {
        let received = Arc::<(Mutex<bool>, Condvar)>::default();
        let tell = Arc::clone(&received);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (mut interrupt, mut terminate) = {
            let _inside = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(either(&mut interrupt, &mut terminate));
            *tell.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
            tell.1.notify_all();
            runtime.block_on(either(&mut interrupt, &mut terminate));
            std::process::exit(ENDED);
        })?;
        Ok(Self { received })
    }

    /// Whether a signal came.
    pub(super) fn received(&self) -> bool {
        *self.received.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a signal.
    pub(super) fn wait(&self) {
        let received = self.received.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.received.1.wait_while(received, |received| !*received);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}
