//! Version 2: a signature, version and command, family, length, addresses, and vectors of type, length and value (TLV).

use super::{Error, HEADER_BYTES_MAX, Header, begins_with};
use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;

/// Reads a header of version 2.
pub(super) fn read(input: &[u8]) -> Result<Option<Header>, Error> {
    if begins_with(input, SIGNATURE)?.is_none() {
        return Ok(None);
    }
    let Some(&[command, family, high, low]) = input.get(SIGNATURE.len()..FIXED_BYTES) else {
        return Ok(None);
    };
    let bytes = FIXED_BYTES + usize::from(u16::from_be_bytes([high, low]));
    // What is wrong is said at once, and nothing is waited for.
    let command = Command::read(command)?;
    if bytes > HEADER_BYTES_MAX {
        return Err(Error::TooLong);
    }
    let Some(header) = input.get(..bytes) else { return Ok(None) };
    let client = match command {
        // The family and all that follows are to be ignored.
        Command::Local => None,
        Command::Proxy => client(header, family)?,
    };
    Ok(Some(Header { client, bytes }))
}

/// Who speaks.
enum Command {
    /// The proxy, for itself.
    Local,
    /// A client, through the proxy.
    Proxy,
}

impl Command {
    fn read(byte: u8) -> Result<Command, Error> {
        match byte {
            0x20 => Ok(Command::Local),
            0x21 => Ok(Command::Proxy),
            _ => Err(Error::Version),
        }
    }
}

/// The client's address in a complete header.
fn client(header: &[u8], family: u8) -> Result<Option<IpAddr>, Error> {
    let body = header.get(FIXED_BYTES..).ok_or(Error::Addresses)?;
    let (client, fields) = match family {
        // Unspecified: how long its addresses are is not known, so nothing is read of it.
        0x00 => return Ok(None),
        // TCP over IPv4: two addresses and two ports.
        0x11 => {
            let (source, fields) = source::<4>(body, 12)?;
            (Some(IpAddr::V4(Ipv4Addr::from(source))), fields)
        }
        // TCP over IPv6.
        0x21 => {
            let (source, fields) = source::<16>(body, 36)?;
            (Some(IpAddr::V6(Ipv6Addr::from(source)).to_canonical()), fields)
        }
        // A stream over a Unix socket: two paths.
        0x31 => (None, source::<108>(body, 216)?.1),
        _ => return Err(Error::Family),
    };
    check(header, fields)?;
    Ok(client)
}

/// The source, which comes first of `len` bytes of addresses, and what follows those.
fn source<const N: usize>(body: &[u8], len: usize) -> Result<([u8; N], &[u8]), Error> {
    let (addresses, fields) = body.split_at_checked(len).ok_or(Error::Addresses)?;
    let source = addresses.first_chunk().ok_or(Error::Addresses)?;
    Ok((*source, fields))
}

/// Walks the vectors: their lengths must add up, and a checksum, where there is one, must be that of the header.
fn check(header: &[u8], mut fields: &[u8]) -> Result<(), Error> {
    while !fields.is_empty() {
        let Some((&[kind, high, low], rest)) = fields.split_first_chunk() else { return Err(Error::Fields) };
        let len = usize::from(u16::from_be_bytes([high, low]));
        let (value, rest) = rest.split_at_checked(len).ok_or(Error::Fields)?;
        if kind == CHECKSUM {
            let expected = u32::from_be_bytes(value.try_into().map_err(|_| Error::Fields)?);
            let at = header.len() - rest.len() - len;
            let zeroed = header
                .iter()
                .enumerate()
                .map(|(n, &byte)| if (at..at + len).contains(&n) { 0 } else { byte });
            if crc32c(zeroed) != expected {
                return Err(Error::Checksum);
            }
        }
        fields = rest;
    }
    Ok(())
}

/// CRC32c (Castagnoli, reflected; RFC 4960, appendix B), bit by bit: it is for a header per connection.
fn crc32c(bytes: impl Iterator<Item = u8>) -> u32 {
    let byte = |crc: u32, byte: u8| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (POLYNOMIAL & (crc & 1).wrapping_neg()))
    };
    !bytes.fold(u32::MAX, byte)
}

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The signature, and what tells how long the rest is.
const FIXED_BYTES: usize = SIGNATURE.len() + 4;
/// `PP2_TYPE_CRC32C`.
const CHECKSUM: u8 = 0x03;
const POLYNOMIAL: u32 = 0x82f6_3b78;

#[cfg(test)]
mod tests {
    use super::crc32c;

    /// The examples of RFC 3720, appendix B.4.
    #[test]
    fn the_checksum_is_that_of_the_rfc() {
        assert_eq!(crc32c([0; 32].into_iter()), 0x8a91_36aa);
        assert_eq!(crc32c([0xff; 32].into_iter()), 0x62a8_ab43);
        assert_eq!(crc32c(0..32), 0x46dd_794e);
    }
}
