//! Which addresses requests may go to: those of the public Internet, and those that the operator allows.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one of the public Internet, by the registries of special addresses (RFC 6890, IANA).
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match inner(address) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

/// Whether an address is in one of these networks. An IPv6 address that stands for an IPv4 address counts as that, too.
pub(crate) fn is_among(networks: &[IpNet], address: IpAddr) -> bool {
    let inner = if let IpAddr::V6(address) = address { inner(address).map(IpAddr::V4) } else { None };
    networks
        .iter()
        .any(|network| network.contains(&address) || inner.is_some_and(|inner| network.contains(&inner)))
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !SPECIAL_V4.iter().any(|network| network.contains(&address))
}

/// Only what is given out as global unicast, without the special networks in it.
fn is_public_v6(address: Ipv6Addr) -> bool {
    GLOBAL_UNICAST.contains(&address) && !SPECIAL_V6.iter().any(|network| network.contains(&address))
}

/// The IPv4 address that packets to an IPv6 address end up at: IPv4-mapped (RFC 4291 §2.5.5.2), translated by NAT64 (RFC 6052 §2.1),
/// or the gateway of 6to4 (RFC 3056 §2).
fn inner(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let of = |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => of(g, h),
        (0x2002, high, low, ..) => of(high, low),
        _ => None,
    }
}

const SPECIAL_V4: &[Ipv4Net] = &[
    // This network (RFC 791 §3.2), 0.0.0.0 among it.
    v4(0, 0, 0, 0, 8),
    // Private (RFC 1918).
    v4(10, 0, 0, 0, 8),
    v4(172, 16, 0, 0, 12),
    v4(192, 168, 0, 0, 16),
    // Shared by the customers of a provider (RFC 6598).
    v4(100, 64, 0, 0, 10),
    // Loopback (RFC 1122 §3.2.1.3).
    v4(127, 0, 0, 0, 8),
    // Link-local (RFC 3927), where clouds have their metadata.
    v4(169, 254, 0, 0, 16),
    // Protocol assignments (RFC 6890), AS112 (RFC 7534, 7535), AMT (RFC 7450), relays of 6to4 (RFC 7526).
    v4(192, 0, 0, 0, 24),
    v4(192, 31, 196, 0, 24),
    v4(192, 52, 193, 0, 24),
    v4(192, 88, 99, 0, 24),
    v4(192, 175, 48, 0, 24),
    // Documentation (RFC 5737).
    v4(192, 0, 2, 0, 24),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    // Benchmarks (RFC 2544).
    v4(198, 18, 0, 0, 15),
    // Multicast (RFC 5771), reserved (RFC 1112 §4), and 255.255.255.255 among it.
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
];

const SPECIAL_V6: &[Ipv6Net] = &[
    // Protocol assignments (RFC 2928), Teredo among them (RFC 4380).
    v6(0x2001, 0, 0, 23),
    // Documentation (RFC 3849, RFC 9637).
    v6(0x2001, 0xdb8, 0, 32),
    v6(0x3fff, 0, 0, 20),
    // AS112 (RFC 7535).
    v6(0x2620, 0x4f, 0x8000, 48),
];
const GLOBAL_UNICAST: Ipv6Net = v6(0x2000, 0, 0, 3);

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    const PUBLIC: &str = "8.8.8.8 1.1.1.1 172.15.255.255 172.32.0.0 100.63.255.255 100.128.0.0 11.0.0.0 192.0.1.1 \
        169.253.0.1 223.255.255.255 2606:4700::1111 2a00:1450:4001::1 ::ffff:8.8.8.8 64:ff9b::808:808 \
        2002:808:808::1";
    const OTHERS: &str = "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.255 \
        169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.1 \
        198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 \
        255.255.255.255 :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 \
        64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::a00:1 64:ff9b:1::808:808 100::1 2001::1 \
        2001:10::1 2001:db8::1 2002:7f00:1::1 2002:a00:1::1 2002:c0a8:101:: 3fff::1 fc00::1 \
        fd12:3456::1 fe80::1 fec0::1 ff02::1 5f00::1 4000::1";

    #[test]
    fn only_the_public_internet_is_public() {
        for text in PUBLIC.split_ascii_whitespace() {
            assert!(is_public(read(text)), "{text}");
        }
        for text in OTHERS.split_ascii_whitespace() {
            assert!(!is_public(read(text)), "{text}");
        }
    }

    #[test]
    fn what_is_allowed_is_allowed_in_every_form() {
        let networks = ["10.0.0.0/8", "fd00::/8"].map(|text| text.parse().expect("a network"));
        for text in ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203", "fd00::1"] {
            assert!(is_among(&networks, read(text)), "{text}");
        }
        for text in ["11.1.2.3", "::ffff:127.0.0.1", "fe80::1", "::1"] {
            assert!(!is_among(&networks, read(text)), "{text}");
        }
    }
}
