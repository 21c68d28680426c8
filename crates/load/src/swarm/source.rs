//! Source addresses of connections, so that a loopback target never runs out of ports.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

/// Connections per source address: far fewer than the 28,000 ports that it has.
const CONNECTIONS_PER_SOURCE: usize = 512;

/// The source address for the client with this index, if it needs one.
///
/// All of 127.0.0.0/8 is this machine, so clients of a loopback target use 127.1.0.1, 127.1.0.2 and so on. Ports
/// then never run out, and never wait for old connections to time out.
fn source(target: SocketAddr, index: usize) -> Option<SocketAddr> {
    match target.ip() {
        IpAddr::V4(address) if address.is_loopback() => {
            let group = (index / CONNECTIONS_PER_SOURCE) as u32 % 0xFE_FFFE;
            let source = Ipv4Addr::from_bits(Ipv4Addr::new(127, 1, 0, 1).to_bits() + group);
            Some((source, 0).into())
        }
        _ => None,
    }
}

/// Starts a connection without waiting for it.
pub(crate) fn connect(target: SocketAddr, index: usize) -> io::Result<mio::net::TcpStream> {
    let Some(source) = source(target, index) else {
        return mio::net::TcpStream::connect(target);
    };
    let socket = Socket::new(Domain::for_address(target), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    // Binding to port 0 takes a port that is free at this one address; there are enough of both.
    socket.bind(&source.into())?;
    match socket.connect(&target.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(IN_PROGRESS) => {}
        Err(error) => return Err(error),
    }
    Ok(mio::net::TcpStream::from_std(socket.into()))
}

/// `EINPROGRESS` of Linux: the connection is being established.
const IN_PROGRESS: i32 = 115;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_targets_are_reached_from_many_addresses() {
        let target = SocketAddr::from((Ipv4Addr::LOCALHOST, 5222));
        let address = |index| source(target, index).map(|source| source.ip().to_string());
        assert_eq!(address(0).as_deref(), Some("127.1.0.1"));
        assert_eq!(address(511).as_deref(), Some("127.1.0.1"));
        assert_eq!(address(512).as_deref(), Some("127.1.0.2"));
        assert_eq!(address(512 * 300).as_deref(), Some("127.1.1.45"));
        assert_eq!(source(SocketAddr::from(([192, 0, 2, 1], 5222)), 7), None);
    }
}
