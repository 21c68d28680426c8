use super::*;
use proptest::prelude::*;

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Addresses and ports of version 2 over IPv4.
const INET: &[u8] = &[192, 0, 2, 7, 198, 51, 100, 1, 0x12, 0x67, 0x14, 0x66];

/// A header of version 2.
fn binary(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(body.len()).expect("short").to_be_bytes();
    [SIGNATURE, &[command, family], &len, body].concat()
}

fn inet6(source: &str) -> Vec<u8> {
    let source: std::net::Ipv6Addr = source.parse().expect(source);
    [&source.octets()[..], &[0; 16], &[0x12, 0x67, 0x14, 0x66]].concat()
}

/// A TLV.
fn field(kind: u8, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(value.len()).expect("short").to_be_bytes();
    [&[kind], &len[..], value].concat()
}

/// Headers, and the client that each names.
fn good() -> Vec<(Vec<u8>, Option<&'static str>)> {
    let mapped = format!("PROXY TCP6 ::ffff:192.0.2.7 {} 65535 65535\r\n", "ffff:".repeat(7) + "ffff");
    let with = |fields: &[u8]| binary(0x21, 0x11, &[INET, fields].concat());
    let checksum = 0xb55a_deca_u32.to_be_bytes();
    vec![
        (b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 5222\r\n".to_vec(), Some("192.0.2.7")),
        (b"PROXY TCP4 255.255.255.255 0.0.0.0 0 65535\r\n".to_vec(), Some("255.255.255.255")),
        (b"PROXY TCP6 2001:db8::1 2001:db8::2 4711 5222\r\n".to_vec(), Some("2001:db8::1")),
        (mapped.into_bytes(), Some("192.0.2.7")),
        (b"PROXY UNKNOWN\r\n".to_vec(), None),
        (b"PROXY UNKNOWN 192.0.2.7 what\xffever\r\n".to_vec(), None),
        (binary(0x21, 0x11, INET), Some("192.0.2.7")),
        (binary(0x21, 0x21, &inet6("2001:db8::1")), Some("2001:db8::1")),
        (binary(0x21, 0x21, &inet6("::ffff:192.0.2.7")), Some("192.0.2.7")),
        (binary(0x21, 0x31, &[7; 216]), None),
        (binary(0x21, 0x00, &[1, 2, 3]), None),
        (binary(0x20, 0x00, &[]), None),
        (binary(0x20, 0x11, INET), None),
        (binary(0x20, 0xff, &[9; 5]), None),
        (with(&[field(0x02, b"im.example"), field(0x04, b"")].concat()), Some("192.0.2.7")),
        (with(&field(0x04, &[0; 2000])), Some("192.0.2.7")),
        (with(&field(0x03, &checksum)), Some("192.0.2.7")),
    ]
}

#[test]
fn headers_are_read_however_they_are_cut() {
    for (header, client) in good() {
        let client = client.map(|text| text.parse().expect(text));
        for len in 0..header.len() {
            assert_eq!(read(&header[..len]), Ok(None), "{} of {}", len, header.escape_ascii());
        }
        let whole = Ok(Some(Header { client, bytes: header.len() }));
        assert_eq!(read(&header), whole, "{}", header.escape_ascii());
        // What follows is the connection's own, whatever it is.
        for more in [&b"\x16\x03\x01"[..], b"<?xml version='1.0'?>", b"\r\n", b"PROXY ", SIGNATURE] {
            assert_eq!(read(&[&header, more].concat()), whole, "{}", header.escape_ascii());
        }
    }
}

#[test]
fn what_cannot_become_a_header_is_refused() {
    let short_fields = [INET, &[0x02, 0, 9, b'x']].concat();
    let wrong_checksum = [INET, &field(0x03, &[1, 2, 3, 4])].concat();
    let no_checksum = [INET, &field(0x03, &[1, 2, 3])].concat();
    for (input, error) in [
        (b"<?xml version='1.0'?>".to_vec(), Error::Missing),
        (b"GET / HTTP/1.1\r\n".to_vec(), Error::Missing),
        (b"POST / HTTP/1.1\r\n".to_vec(), Error::Missing),
        (b"\x16\x03\x01\x02\x00".to_vec(), Error::Missing),
        (b"proxy TCP4 192.0.2.7 198.51.100.1 4711 5222\r\n".to_vec(), Error::Missing),
        (b"PROXY\tTCP4".to_vec(), Error::Missing),
        (b"\r\n\r\n\0\r\nQUIT\r".to_vec(), Error::Missing),
        (b"PROXY UDP4 192.0.2.7 198.51.100.1 4711 5222\r\n".to_vec(), Error::Family),
        (b"PROXY \r\n".to_vec(), Error::Family),
        (b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 5222 \r\n".to_vec(), Error::Addresses),
        (b"PROXY TCP4 192.0.2.7 198.51.100.1 4711\r\n".to_vec(), Error::Addresses),
        (b"PROXY TCP4  192.0.2.7 198.51.100.1 4711 5222\r\n".to_vec(), Error::Addresses),
        (b"PROXY TCP4 192.0.2.007 198.51.100.1 4711 5222\r\n".to_vec(), Error::Addresses),
        (b"PROXY TCP4 2001:db8::1 198.51.100.1 4711 5222\r\n".to_vec(), Error::Addresses),
        (b"PROXY TCP6 192.0.2.7 198.51.100.1 4711 5222\r\n".to_vec(), Error::Addresses),
        (b"PROXY TCP4 192.0.2.7 proxy 4711 5222\r\n".to_vec(), Error::Addresses),
        (b"PROXY TCP4 192.0.2.7 198.51.100.1 04711 5222\r\n".to_vec(), Error::Addresses),
        (b"PROXY TCP4 192.0.2.7 198.51.100.1 +4711 5222\r\n".to_vec(), Error::Addresses),
        (b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 65536\r\n".to_vec(), Error::Addresses),
        (b"PROXY UNKNOWNS\r\n".to_vec(), Error::Family),
        (b"PROXY TCP4 192.0.2.7\xff 198.51.100.1 4711 5222\r\n".to_vec(), Error::Addresses),
        (binary(0x11, 0x11, INET), Error::Version),
        (binary(0x22, 0x11, INET), Error::Version),
        (binary(0x21, 0x12, INET), Error::Family),
        (binary(0x21, 0x41, INET), Error::Family),
        (binary(0x21, 0x11, &INET[..11]), Error::Addresses),
        (binary(0x21, 0x21, INET), Error::Addresses),
        (binary(0x21, 0x31, INET), Error::Addresses),
        (binary(0x21, 0x11, &short_fields), Error::Fields),
        (binary(0x21, 0x11, &[INET, &[0x02, 0]].concat()), Error::Fields),
        (binary(0x21, 0x11, &no_checksum), Error::Fields),
        (binary(0x21, 0x11, &wrong_checksum), Error::Checksum),
    ] {
        assert_eq!(read(&input), Err(error), "{}", input.escape_ascii());
    }
}

#[test]
fn no_more_than_the_bound_is_waited_for() {
    let unknown = |bytes: usize| format!("PROXY UNKNOWN {}", "x".repeat(bytes - 14));
    assert_eq!(read(unknown(106).as_bytes()), Ok(None));
    assert_eq!(read(unknown(107).as_bytes()), Err(Error::TooLong));
    assert_eq!(
        read(format!("{}\r\n", unknown(105)).as_bytes()),
        Ok(Some(Header { client: None, bytes: 107 }))
    );
    assert_eq!(read(format!("{}\r\n", unknown(106)).as_bytes()), Err(Error::TooLong));
    // Version 2 is refused by the length that it announces.
    let announced = |len: u16| [SIGNATURE, &[0x20, 0], &len.to_be_bytes()].concat();
    assert_eq!(read(&announced((HEADER_BYTES_MAX - 16) as u16)), Ok(None));
    assert_eq!(read(&announced((HEADER_BYTES_MAX - 15) as u16)), Err(Error::TooLong));
    assert_eq!(read(&announced(u16::MAX)), Err(Error::TooLong));
}

proptest! {
    #[test]
    fn a_verdict_stands_when_more_comes(start in 0..3usize, tail in prop::collection::vec(any::<u8>(), 0..64)) {
        let starts: [&[u8]; 3] = [b"", b"PROXY ", SIGNATURE];
        let input = [starts[start], &tail].concat();
        let mut verdict = Ok(None);
        for len in 0..=input.len() {
            let next = read(&input[..len]);
            prop_assert!(verdict == Ok(None) || next == verdict, "{verdict:?}, then {next:?}");
            verdict = next;
        }
    }
}
