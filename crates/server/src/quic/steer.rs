//! Has the kernel give each packet to the socket of its shard: a short program on the group of sockets that share a port.
//! Where it cannot be had, packets are handed over from shard to shard.

use super::cid::{LONG_HEADER, LONG_ID_AT, SHORT_ID_AT};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Attaches the program to the group of this socket, which has a socket for each of so many shards, in their order. It does what
/// [`super::cid::shard_of`] does.
#[expect(unsafe_code, reason = "the kernel is given an array to read")]
pub(crate) fn steer(socket: BorrowedFd<'_>, shards: u16) -> io::Result<()> {
    let mut program = program(shards);
    let all = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: `all` and the program that it points to live until the call returns, which copies both.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            std::ptr::from_ref(&all).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Loads beyond the end of a packet end the program with 0, the first socket.
fn program(shards: u16) -> [libc::sock_filter; 7] {
    let step = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    [
        step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, 2, LONG_HEADER.into()),
        step(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, 0, 0, LONG_ID_AT as u32),
        step(libc::BPF_JMP | libc::BPF_JA, 0, 0, 1),
        step(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, 0, 0, SHORT_ID_AT as u32),
        step(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, 0, 0, shards.max(1).into()),
        step(libc::BPF_RET | libc::BPF_A, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::cid::shard_of;
    use super::*;
    use socket2::{Domain, Protocol, Socket, Type};
    use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
    use std::os::fd::AsFd;

    fn socket(at: SocketAddr) -> UdpSocket {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
        socket.set_reuse_port(true).unwrap();
        socket.bind(&at.into()).unwrap();
        socket.set_nonblocking(true).unwrap();
        socket.into()
    }

    /// The kernel and [`shard_of`] say the same of every packet.
    #[test]
    fn the_kernel_gives_each_packet_to_its_shard() {
        let first = socket((Ipv4Addr::LOCALHOST, 0).into());
        let at = first.local_addr().unwrap();
        let sockets = [first, socket(at), socket(at)];
        steer(sockets[0].as_fd(), 3).unwrap();
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        for n in 0..600_u16 {
            let named = n.wrapping_mul(7919).to_be_bytes();
            let short = [&[0x40][..], &named, &[0; 20]].concat();
            let long = [&[0xc0, 0, 0, 0, 1, 8][..], &named, &[0; 20]].concat();
            for packet in [short, long] {
                client.send_to(&packet, at).unwrap();
                let mut given = [0; 64];
                let has = |socket: &UdpSocket, given: &mut [u8]| socket.recv_from(given).is_ok();
                let to = sockets.iter().position(|socket| has(socket, &mut given)).unwrap();
                assert_eq!(Some(to as u16), shard_of(&packet, 3).map(|shard| shard.0), "{packet:x?}");
            }
        }
        // One that is too short is given to somebody.
        client.send_to(&[0x40], at).unwrap();
        assert!(sockets[0].recv_from(&mut [0; 64]).is_ok());
    }
}
