//! Waiting for one of two descriptors.

use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Which of two descriptors became readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readable {
    First,
    Second,
    /// Neither, before the deadline.
    Neither,
}

/// Waits until one of two descriptors is readable or at its end. When both are, it is the second.
pub(super) fn either(first: &impl AsFd, second: &impl AsFd, deadline: Instant) -> io::Result<Readable> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // Longer than any process lives, should it not fit.
        let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        let mut descriptors = [PollFd::new(first, PollFlags::IN), PollFd::new(second, PollFlags::IN)];
        match poll(&mut descriptors, Some(&left)) {
            Ok(0) => return Ok(Readable::Neither),
            Ok(_) if !descriptors[1].revents().is_empty() => return Ok(Readable::Second),
            Ok(_) => return Ok(Readable::First),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    #[test]
    fn the_second_goes_before_the_first() {
        let (mut first, watched) = UnixStream::pair().expect("a pair");
        let (mut second, interrupt) = UnixStream::pair().expect("a pair");
        let wait = |ms| {
            either(&watched, &interrupt, Instant::now() + Duration::from_millis(ms)).expect("both are open")
        };
        assert_eq!(wait(0), Readable::Neither);
        first.write_all(b"x").expect("written");
        assert_eq!(wait(60_000), Readable::First);
        second.write_all(b"x").expect("written");
        assert_eq!(wait(60_000), Readable::Second);
    }
}
