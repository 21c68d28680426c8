//! io_uring, used for one thing: many sends by one system call, which returns when all of them are done.
//!
//! No send may wait (`MSG_DONTWAIT`): the kernel does it, or finds the socket full, while it takes the request. So
//! nothing is under way when [`Ring::send`] returns, and the bytes need to live no longer.

use super::Taken;
use io_uring::{IoUring, opcode, types};
use rustix::net::SendFlags;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, BorrowedFd};

/// A ring that one thread uses.
pub(super) struct Ring {
    ring: IoUring,
}

impl Ring {
    /// A ring for `sends` sends at once, to be used by the thread that makes it.
    pub(super) fn new(sends: usize) -> io::Result<Ring> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            // A send that fails does not stop those behind it.
            .setup_submit_all()
            .build(sends as u32)?;
        Ok(Ring { ring })
    }

    /// Sends all of `parts`, at most as many as the ring was made for. `taken` gets a result for each, in their order. If
    /// the ring fails, `taken` has results for those that were sent; the others were not.
    pub(super) fn send<'a>(
        &mut self,
        parts: impl ExactSizeIterator<Item = (BorrowedFd<'a>, &'a [u8])>,
        taken: &mut Vec<Taken>,
    ) -> io::Result<()> {
        let count = parts.len();
        let flags = (SendFlags::DONTWAIT | SendFlags::NOSIGNAL).bits() as i32;
        for (n, (socket, bytes)) in parts.enumerate() {
            let socket = types::Fd(socket.as_raw_fd());
            let send = opcode::Send::new(socket, bytes.as_ptr(), bytes.len() as u32).flags(flags);
            self.push(&send.build().user_data(n as u64));
        }
        taken.resize(count, 0);
        let mut left = count;
        let mut failed = None;
        while left > 0 && failed.is_none() {
            match self.ring.submit_and_wait(left) {
                Ok(_) => {}
                // The kernel is short of memory, or a signal came: what it took so far is kept.
                Err(error) if is_passing(&error) => {}
                Err(error) => failed = Some(error),
            }
            for done in self.ring.completion() {
                taken[done.user_data() as usize] = done.result();
                left -= 1;
            }
        }
        let Some(error) = failed else { return Ok(()) };
        // The kernel takes requests in order, so those that it did not take are the last.
        let untaken = self.ring.submission().len();
        if left != untaken {
            tracing::error!(%error, left, untaken, "the kernel keeps a send that was not to wait, and with it our memory");
            std::process::abort();
        }
        taken.truncate(count - untaken);
        Err(error)
    }

    #[expect(unsafe_code, reason = "the kernel is handed an address")]
    fn push(&mut self, send: &io_uring::squeue::Entry) {
        // SAFETY: the bytes and the socket are borrowed for the whole of `send`, which does not return while the kernel has
        // any use for them: it returns when all sends are done or, when the ring fails, when those that the kernel took
        // are, and then the ring is used no more.
        let pushed = unsafe { self.ring.submission().push(send) };
        assert!(pushed.is_ok(), "more sends than the ring was made for");
    }
}

/// Whether the same call may succeed if it is repeated.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::ResourceBusy)
}
