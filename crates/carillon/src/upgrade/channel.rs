//! Frames between two processes over a Unix socket, with descriptors (unix(7), SCM_RIGHTS).
//!
//! A frame is a byte for its kind, the length of its content in bytes and the number of its descriptors (both four bytes,
//! big-endian), the content, and for up to 200 descriptors one byte that carries them.

use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// One end of the socket.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: UnixStream,
    deadline: Instant,
}

/// What came.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Its kind.
    pub kind: u8,
    /// Its content. It may have keys in it.
    pub content: Zeroizing<Vec<u8>>,
    /// Its descriptors.
    pub descriptors: Vec<OwnedFd>,
}

impl Channel {
    /// Two ends.
    pub(crate) fn pair() -> io::Result<(Channel, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        Ok((Channel::new(ours), theirs))
    }

    /// The end that this socket is. Nothing may be sent or received until [`Channel::allow`] gave time for it.
    pub(crate) fn new(socket: UnixStream) -> Channel {
        Channel { socket, deadline: Instant::now() }
    }

    /// From now on, what is sent and received may take so long, all together.
    pub(crate) fn allow(&mut self, time: Duration) {
        self.deadline = Instant::now() + time;
    }

    /// Sends a frame.
    pub(crate) fn send(
        &mut self,
        kind: u8,
        content: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let length = u32::try_from(content.len()).map_err(|_| too_large())?;
        let count = u32::try_from(descriptors.len()).map_err(|_| too_large())?;
        let mut head = [0; HEAD_BYTES];
        head[0] = kind;
        head[1..5].copy_from_slice(&length.to_be_bytes());
        head[5..].copy_from_slice(&count.to_be_bytes());
        self.write(&head)?;
        self.write(content)?;
        for some in descriptors.chunks(TOGETHER) {
            self.pass(some)?;
        }
        Ok(())
    }

    /// The next frame; none when the other process has closed its end.
    pub(crate) fn receive(&mut self) -> io::Result<Option<Frame>> {
        let mut head = [0; HEAD_BYTES];
        let mut known = 0;
        while known < HEAD_BYTES {
            self.time_left()?;
            match self.socket.read(&mut head[known..]) {
                Ok(0) if known == 0 => return Ok(None),
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => known += n,
                Err(error) => retry(error)?,
            }
        }
        let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap_or_default()) as usize;
        let (length, count) = (number(&head[1..5]), number(&head[5..]));
        if length > CONTENT_BYTES_MAX || count > DESCRIPTORS_MAX {
            return Err(too_large());
        }
        let mut content = Zeroizing::new(vec![0; length]);
        let mut at = 0;
        while at < length {
            self.time_left()?;
            match self.socket.read(&mut content[at..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => at += n,
                Err(error) => retry(error)?,
            }
        }
        let mut descriptors = Vec::with_capacity(count);
        while descriptors.len() < count {
            self.take(&mut descriptors)?;
        }
        Ok(Some(Frame { kind: head[0], content, descriptors }))
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.time_left()?;
            match self.socket.write(bytes) {
                Ok(n) => bytes = &bytes[n..],
                Err(error) => retry(error)?,
            }
        }
        Ok(())
    }

    fn pass(&mut self, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        loop {
            self.time_left()?;
            let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(TOGETHER))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            control.push(SendAncillaryMessage::ScmRights(descriptors));
            match sendmsg(&self.socket, &[IoSlice::new(b"+")], &mut control, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(error) => retry(error.into())?,
            }
        }
    }

    fn take(&mut self, descriptors: &mut Vec<OwnedFd>) -> io::Result<()> {
        self.time_left()?;
        let mut byte = [0];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(TOGETHER))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let before = descriptors.len();
        let received = match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut byte)], &mut control, flags) {
            Ok(received) => received.bytes,
            Err(error) => return retry(error.into()),
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(some) = message {
                descriptors.extend(some);
            }
        }
        match received {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            // As when this process has no room for them: the system drops what does not fit.
            _ if descriptors.len() == before => {
                Err(io::Error::other("no descriptor came; the limit may be reached"))
            }
            _ => Ok(()),
        }
    }

    /// Bounds the next call by the time that is left.
    fn time_left(&self) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.socket.set_read_timeout(Some(left))?;
        self.socket.set_write_timeout(Some(left))
    }
}

/// Whether to try again after this error.
fn retry(error: io::Error) -> io::Result<()> {
    match error.kind() {
        ErrorKind::Interrupted => Ok(()),
        // The system's way to say that the time is up.
        ErrorKind::WouldBlock => Err(ErrorKind::TimedOut.into()),
        _ => Err(error),
    }
}

fn too_large() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "a frame is too large")
}

const HEAD_BYTES: usize = 9;
/// Descriptors that pass together; the system's bound is 253.
const TOGETHER: usize = 200;
/// A frame is a group of sessions, some 256 KiB, and what waits for their clients: 256 KiB each, where many read too slowly.
const CONTENT_BYTES_MAX: usize = 1 << 30;
const DESCRIPTORS_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    fn both() -> (Channel, Channel) {
        let (mut one, other) = Channel::pair().expect("a pair");
        let mut other = Channel::new(other);
        one.allow(Duration::from_secs(20));
        other.allow(Duration::from_secs(20));
        (one, other)
    }

    #[test]
    fn frames_come_whole_and_in_order_with_their_descriptors() {
        let (mut one, mut other) = both();
        let file = tempfile::tempfile().expect("a file");
        rustix::io::fcntl_getfd(&file).expect("it is open");
        let sender = std::thread::spawn(move || {
            let many: Vec<_> = (0..450).map(|_| file.as_fd()).collect();
            one.send(1, b"first", &[]).expect("sent");
            one.send(2, &vec![7; 3 << 20], &many).expect("sent");
            one.send(3, b"", &many[..1]).expect("sent");
        });
        let mut receive = || other.receive().expect("it came").expect("not the end");
        let (first, second, third) = (receive(), receive(), receive());
        assert_eq!((first.kind, first.content.as_slice(), first.descriptors.len()), (1, &b"first"[..], 0));
        assert_eq!((second.kind, second.content.len(), second.descriptors.len()), (2, 3 << 20, 450));
        assert_eq!((third.kind, third.content.len(), third.descriptors.len()), (3, 0, 1));
        sender.join().expect("it sent");
        assert!(other.receive().expect("closed").is_none());
    }

    #[test]
    fn it_waits_no_longer_than_is_allowed() {
        let (_one, mut other) = both();
        other.allow(Duration::from_millis(20));
        assert_eq!(other.receive().expect_err("nothing came").kind(), ErrorKind::TimedOut);
        // Not even when nobody reads.
        let block = vec![0; 1 << 20];
        let mut blocked = || (0..100).find_map(|_| other.send(0, &block, &[]).err());
        assert_eq!(blocked().expect("nobody reads").kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn what_is_cut_or_too_large_is_refused() {
        let (one, mut other) = both();
        (&one.socket).write_all(&[1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]).expect("written");
        assert_eq!(other.receive().expect_err("too large").kind(), ErrorKind::InvalidData);
        let (one, mut other) = both();
        (&one.socket).write_all(&[1, 0, 0, 0, 9, 0, 0, 0, 0, b'x']).expect("written");
        drop(one);
        assert_eq!(other.receive().expect_err("cut").kind(), ErrorKind::UnexpectedEof);
    }
}
