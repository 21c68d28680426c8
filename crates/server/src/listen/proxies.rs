//! The proxies in front of this server, which are believed.

use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The proxies that are trusted to say whose connection it is that they forward.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Arc<[IpNet]>);

impl TrustedProxies {
    /// Those with addresses in these networks.
    pub fn new(networks: &[IpNet]) -> TrustedProxies {
        TrustedProxies(networks.into())
    }

    /// Whether this is the address of one. An IPv4-mapped IPv6 address counts as IPv4.
    pub(crate) fn trust(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The address of the client of a request that came from `peer`, as the trusted proxies saw it; `forwarded` are the values of its fields
    /// `X-Forwarded-For`, in their order. Each proxy appends the address of its peer, so the list is read from its end: the first address that is not
    /// a trusted proxy is the client's, and what precedes it may be forged. Without a trusted proxy the whole field may be forged: then there is none.
    pub fn client<'a>(
        &self,
        peer: IpAddr,
        forwarded: impl DoubleEndedIterator<Item = &'a str>,
    ) -> Option<IpAddr> {
        if !self.trust(peer) {
            return None;
        }
        let mut client = None;
        for entry in forwarded.rev().flat_map(|value| value.rsplit(',')) {
            let Some(address) = address(entry.trim()) else { break };
            client = Some(address);
            if !self.trust(address) {
                break;
            }
        }
        client
    }
}

/// Parses an address, which some proxies write with a port.
fn address(text: &str) -> Option<IpAddr> {
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    text.parse().ok().or_else(with_port).or_else(bracketed).map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_known_by_its_network() {
        let trusts = |network: &str, address: &str| {
            let networks = [network.parse().expect(network)];
            TrustedProxies::new(&networks).trust(address.parse().expect(address))
        };
        for (network, inside, outside) in [
            ("10.0.0.7/32", "10.0.0.7", "10.0.0.6"),
            ("10.0.0.7/8", "10.255.0.1", "11.0.0.1"),
            ("0.0.0.0/0", "192.0.2.1", "::1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::ffff:11.1.2.3"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
            ("::/0", "2001:db8::1", "192.0.2.1"),
            ("::1/128", "::1", "::2"),
        ] {
            assert!(trusts(network, inside), "{network} {inside}");
            assert!(!trusts(network, outside), "{network} {outside}");
        }
    }
}
