//! Version 1: a line of text, `PROXY TCP4 192.0.2.7 198.51.100.1 4711 5222\r\n`.

use super::{Error, Header, begins_with};
use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// Reads a header of version 1.
pub(super) fn read(input: &[u8]) -> Result<Option<Header>, Error> {
    if begins_with(input, START)?.is_none() {
        return Ok(None);
    }
    let window = input.get(..LINE_BYTES_MAX).unwrap_or(input);
    let Some(end) = window.windows(END.len()).position(|two| two == END) else {
        return if input.len() < LINE_BYTES_MAX { Ok(None) } else { Err(Error::TooLong) };
    };
    let line = input.get(START.len()..end).ok_or(Error::Family)?;
    Ok(Some(Header { client: client(line)?, bytes: end + END.len() }))
}

/// The client's address in what follows `PROXY `.
fn client(line: &[u8]) -> Result<Option<IpAddr>, Error> {
    let mut parts = line.splitn(2, |&byte| byte == b' ');
    let (family, rest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    match family {
        b"TCP4" => endpoints::<Ipv4Addr>(rest).map(Some),
        b"TCP6" => endpoints::<Ipv6Addr>(rest).map(Some),
        // Whatever follows is to be ignored.
        b"UNKNOWN" => Ok(None),
        _ => Err(Error::Family),
    }
}

/// The source of `SOURCE DESTINATION SOURCE-PORT DESTINATION-PORT`.
fn endpoints<A: FromStr + Into<IpAddr>>(rest: &[u8]) -> Result<IpAddr, Error> {
    let text = std::str::from_utf8(rest).map_err(|_| Error::Addresses)?;
    let address = |word: &str| word.parse::<A>().map_err(|_| Error::Addresses);
    let words: Vec<&str> = text.split(' ').collect();
    let &[source, destination, source_port, destination_port] = words.as_slice() else {
        return Err(Error::Addresses);
    };
    address(destination)?;
    if !is_port(source_port) || !is_port(destination_port) {
        return Err(Error::Addresses);
    }
    Ok(address(source)?.into().to_canonical())
}

/// Whether this is a port in decimal, without leading zeros or a sign.
fn is_port(word: &str) -> bool {
    let is_canonical = word == "0" || !word.starts_with(['0', '+']);
    is_canonical && word.parse::<u16>().is_ok()
}

const START: &[u8] = b"PROXY ";
const END: &[u8] = b"\r\n";
/// The longest line that the protocol allows, its end included.
const LINE_BYTES_MAX: usize = 107;
