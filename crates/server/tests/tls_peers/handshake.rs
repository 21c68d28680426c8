//! Handshakes with a rustls client.

use super::support::{Offer, client_config, data, pair, settings, shake_hands};
use carillon_server::tls::{Link, Version};

#[test]
fn data_flows_both_ways_after_it() {
    let mut pair = pair(&client_config(Offer::default()));
    assert!(matches!(pair.link, Link::Extracted(_)));
    assert_eq!(pair.secured.version, Version::Tls13);
    assert_eq!(pair.secured.cipher, "TLS13_AES_128_GCM_SHA256");
    assert_eq!(pair.up(b"<stream>"), b"<stream>");
    assert_eq!(pair.down(&data(100)), data(100));
}
