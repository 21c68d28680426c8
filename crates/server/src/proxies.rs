//! The proxies in front of this server, which are believed.

use ipnet::IpNet;
use std::net::IpAddr;
use std::sync::Arc;

/// The proxies that are trusted to say whose connection it is that they forward.
#[derive(Clone, Debug)]
pub(crate) struct TrustedProxies(Arc<[IpNet]>);

impl TrustedProxies {
    /// Those with addresses in these networks.
    pub(crate) fn new(networks: &[IpNet]) -> TrustedProxies {
        TrustedProxies(networks.into())
    }

    /// Whether this is the address of one. An IPv4-mapped IPv6 address counts as IPv4.
    pub(crate) fn trust(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
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
