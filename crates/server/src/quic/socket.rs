//! The UDP sockets of a shard: several packets are received by a call, with the address to which they were sent.

use quinn_proto::Transmit;
use quinn_udp::{RecvMeta, UdpSocketState};
use socket2::Socket;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, RawFd};

/// A bound socket.
pub(super) struct UdpSocket {
    socket: Socket,
    state: UdpSocketState,
}

/// Room for what is received by a call.
pub(super) struct Received {
    bytes: Vec<u8>,
    about: [RecvMeta; PACKETS],
}

impl UdpSocket {
    pub(super) fn new(socket: Socket) -> io::Result<UdpSocket> {
        let state = UdpSocketState::new((&socket).into())?;
        // What the kernel gives is at most what the system allows.
        let _ = state.set_recv_buffer_size((&socket).into(), KERNEL_BYTES);
        let _ = state.set_send_buffer_size((&socket).into(), KERNEL_BYTES);
        Ok(UdpSocket { socket, state })
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Receives what there is, as far as there is room.
    pub(super) fn receive(&self, into: &mut Received) -> io::Result<usize> {
        let mut chunks = into.bytes.chunks_mut(PACKET_BYTES);
        let mut parts: [_; PACKETS] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        self.state.recv((&self.socket).into(), &mut parts, &mut into.about)
    }

    /// Sends a packet. Whether the kernel took it: one that it has no room for is lost, as others are on their way.
    pub(super) fn send(&self, transmit: &Transmit, packet: &[u8]) -> bool {
        let ecn = transmit.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8));
        let transmit = quinn_udp::Transmit {
            destination: transmit.destination,
            ecn,
            contents: packet,
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        };
        self.state.try_send((&self.socket).into(), &transmit).is_ok()
    }
}

impl Received {
    /// No room: while that of the shard is in use.
    pub(super) fn empty() -> Received {
        Received { bytes: Vec::new(), about: [RecvMeta::default(); PACKETS] }
    }

    pub(super) fn new() -> Received {
        Received { bytes: vec![0; PACKETS * PACKET_BYTES], about: [RecvMeta::default(); PACKETS] }
    }

    /// The packets of the first `calls` parts: the kernel may have put several of one sender together.
    pub(super) fn packets(&self, calls: usize) -> impl Iterator<Item = (&RecvMeta, &[u8])> {
        let parts = self.about.iter().zip(self.bytes.chunks(PACKET_BYTES)).take(calls);
        parts.flat_map(|(about, bytes)| {
            let all = bytes.get(..about.len).unwrap_or_default();
            all.chunks(about.stride.max(1)).map(move |packet| (about, packet))
        })
    }
}

/// Parts that are received by a call.
const PACKETS: usize = 16;
/// Bytes of a part: what the kernel puts together at most. Pages that are never written take no memory.
const PACKET_BYTES: usize = 64 * 1024;
/// Bytes that the kernel keeps for a socket.
const KERNEL_BYTES: usize = 4 << 20;
