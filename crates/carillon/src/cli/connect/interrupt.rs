//! SIGINT and SIGTERM as something to wait for: the first ends the session in order, the second ends the program at once.

use super::super::failure::Failure;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit status of a program that a signal ended: 128 and SIGINT's number.
const ENDED: i32 = 130;

/// Becomes readable when a signal came.
pub(super) struct Interrupt {
    told: UnixStream,
    wanted: Arc<AtomicBool>,
}

impl Interrupt {
    /// Takes over both signals from now on.
    pub(super) fn listen() -> io::Result<Interrupt> {
        let (told, mut tell) = UnixStream::pair()?;
        let wanted = Arc::new(AtomicBool::new(false));
        let is_wanted = Arc::clone(&wanted);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (mut interrupt, mut terminate) = {
            let _inside = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(either(&mut interrupt, &mut terminate));
            // Nobody waits for it: the login that goes on is not worth an orderly end.
            if !is_wanted.load(Ordering::SeqCst) || tell.write_all(b"x").is_err() {
                std::process::exit(ENDED);
            }
            runtime.block_on(either(&mut interrupt, &mut terminate));
            std::process::exit(ENDED);
        })?;
        Ok(Interrupt { told, wanted })
    }

    /// Whether the first signal is to be waited for, or ends the program at once.
    pub(super) fn is_wanted(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::SeqCst);
    }

    /// Waits for a signal, so long at most.
    pub(super) fn within(&self, time: Duration) -> Result<bool, Failure> {
        let deadline = Instant::now() + time;
        loop {
            // A timeout of zero would be an error.
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.told.set_read_timeout(Some(left))?;
            #[expect(
                clippy::unused_io_amount,
                reason = "a byte, or the end of the other side: a signal came"
            )]
            match (&self.told).read(&mut [0]) {
                Ok(_) => return Ok(true),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => return Ok(false),
                    // The process was stopped and goes on, by Ctrl-Z and `fg`: signal(7).
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(error.into()),
                },
            }
        }
    }
}

impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}
