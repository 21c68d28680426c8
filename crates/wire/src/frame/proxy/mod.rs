//! The header of the PROXY protocol, versions 1 and 2: what a TCP load balancer writes in front of a connection's own bytes, to
//! say whose connection it is (<https://www.haproxy.org/download/2.8/doc/proxy-protocol.txt>).
//!
//! Reading keeps no state: the caller shows all bytes that came so far, again and longer each time, and they are never more
//! than [`HEADER_BYTES_MAX`].

mod binary;
mod text;

use std::net::IpAddr;

/// A header that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The client's address; none if the proxy speaks for itself (a health check), or does not know it. An IPv4-mapped IPv6
    /// address is an IPv4 address.
    pub client: Option<IpAddr>,
    /// How many bytes the header has. What follows them is the connection's own.
    pub bytes: usize,
}

/// Why bytes are not a header. The proxy is at fault, never its client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The connection begins with something else.
    #[error("the connection does not begin with a PROXY header")]
    Missing,
    /// It is longer than this server, or its version of the protocol, allows.
    #[error("the PROXY header is too long")]
    TooLong,
    /// It is of another version, or of an unknown command.
    #[error("the PROXY header is of an unknown version or command")]
    Version,
    /// It is for something other than TCP.
    #[error("the PROXY header is not for TCP")]
    Family,
    /// It has no well-formed addresses and ports.
    #[error("the PROXY header has malformed addresses")]
    Addresses,
    /// The vectors (TLV) behind the addresses are cut off.
    #[error("the PROXY header has malformed additional fields")]
    Fields,
    /// Its checksum is that of another header.
    #[error("the PROXY header has a wrong checksum")]
    Checksum,
}

/// Reads a header at the start of `input`, which is everything that came so far. None if it is incomplete so far.
///
/// # Errors
/// As soon as the bytes cannot become a header.
pub fn read(input: &[u8]) -> Result<Option<Header>, Error> {
    match input.first() {
        None => Ok(None),
        Some(b'P') => text::read(input),
        Some(_) => binary::read(input),
    }
}

/// Whether `input` begins with `start`, as far as it goes: none while it is shorter.
fn begins_with(input: &[u8], start: &[u8]) -> Result<Option<()>, Error> {
    match input.iter().zip(start).all(|(byte, expected)| byte == expected) {
        true => Ok((input.len() >= start.len()).then_some(())),
        false => Err(Error::Missing),
    }
}

/// The longest header that is read, in bytes. Version 1 allows 107. Version 2 allows 65,551; what proxies add to the addresses (host
/// name, TLS version, ids of a cloud's network) takes a few hundred.
pub const HEADER_BYTES_MAX: usize = 2048;

#[cfg(test)]
mod tests;
