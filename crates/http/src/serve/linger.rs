//! The end of a connection whose client is still sending. A socket that is closed with bytes unread resets its connection, and the reset may
//! overtake an answer that was sent before: the client would not see why it was refused.

use super::unread::GaveUp;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream of a connection. Where bytes may come that nobody reads, its shutdown says that nothing more is sent, and then discards them until the
/// client ends its side, too: within bounds of bytes and of time.
pub(super) struct Lingering<S> {
    stream: S,
    gave_up: GaveUp,
    end: Option<End>,
}

/// Nothing more is sent; what comes is discarded.
struct End {
    bytes_left: usize,
    timeout: Pin<Box<Sleep>>,
}

/// Bytes that are discarded of a client that goes on sending.
pub(super) const DISCARDED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How long a client may take to see that its connection has ended.
const LINGER: Duration = Duration::from_secs(2);

impl<S> Lingering<S> {
    /// The stream of a connection.
    pub(super) fn new(stream: S, gave_up: GaveUp) -> Lingering<S> {
        Lingering { stream, gave_up, end: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let end = match &mut this.end {
            Some(end) => end,
            none => {
                ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
                if !this.gave_up.is_set() {
                    return Poll::Ready(Ok(()));
                }
                none.insert(End { bytes_left: DISCARDED_BYTES_MAX, timeout: Box::pin(sleep(LINGER)) })
            }
        };
        end.discard(&mut this.stream, cx).map(Ok)
    }
}

impl End {
    /// Until the client has ended its side, or a bound is reached.
    fn discard(&mut self, stream: &mut (impl AsyncRead + Unpin), cx: &mut Context<'_>) -> Poll<()> {
        let mut bytes = [0; 4096];
        while self.timeout.as_mut().poll(cx).is_pending() {
            let mut read = ReadBuf::new(&mut bytes);
            let is_open = ready!(Pin::new(&mut *stream).poll_read(cx, &mut read)).is_ok();
            let came = read.filled().len();
            self.bytes_left = self.bytes_left.saturating_sub(came);
            if !is_open || came == 0 || self.bytes_left == 0 {
                break;
            }
        }
        Poll::Ready(())
    }
}
