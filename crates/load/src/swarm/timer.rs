//! A timer that is polled with the sockets: the timeout of the poll has whole milliseconds, which is too coarse for sends.
//! Its resolution is that of the kernel's clock.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// A timer whose token becomes readable at a given time.
#[derive(Debug)]
pub(super) struct Timer {
    timer: OwnedFd,
    set: Option<Instant>,
}

impl Timer {
    pub(super) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self { timer, set: None })
    }

    /// Sets it to a time; a time in the past means now. Free if it is set to that time already.
    pub(super) fn set(&mut self, at: Instant) -> io::Result<()> {
        if self.set == Some(at) {
            return Ok(());
        }
        self.set = Some(at);
        // Zero would disarm it.
        let left = at.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let value = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    /// Notes that it has expired. It need not be read: the registration is edge-triggered, and setting it again resets
    /// it.
    pub(super) fn expired(&mut self) {
        self.set = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rings_when_it_is_set_and_not_before() {
        let mut poll = mio::Poll::new().expect("the kernel gives one");
        let mut timer = Timer::new(poll.registry(), Token(1)).expect("the kernel gives one");
        let mut events = mio::Events::with_capacity(4);
        for _ in 0..2 {
            let at = Instant::now() + Duration::from_micros(1500);
            timer.set(at).expect("a time to come");
            while events.is_empty() {
                poll.poll(&mut events, None).expect("it can be waited for");
            }
            assert!(Instant::now() >= at);
            timer.expired();
            events.clear();
        }
    }
}
