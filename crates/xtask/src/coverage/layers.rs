//! The specifications that no feature declares, because what is below the features follows them.

/// A specification, where it is followed, and how far.
pub(super) struct LayerSpec {
    /// e.g. `RFC 6120`.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The version followed; empty for an RFC.
    pub version: &'static str,
    /// The crate and folder that follows it.
    pub place: &'static str,
    /// What is there and what is not.
    pub coverage: &'static str,
}

/// All of them. The features' own are in `carillon_core::pipeline::ORDER`.
pub(super) const SPECS: &[LayerSpec] = &[
    LayerSpec {
        id: "RFC 6120",
        title: "XMPP: Core",
        version: "",
        place: "core/session",
        coverage: "§4 streams and their errors, §5 STARTTLS (required), §6 SASL, §7 resource binding, §8 stanzas and their \
                   errors, §11 XML restrictions. Client to server only: no federation.",
    },
    LayerSpec {
        id: "RFC 7622",
        title: "XMPP: Address Format",
        version: "",
        place: "wire/jid",
        coverage: "Addresses of up to three parts of 1023 bytes each; prepared by the stringprep profiles of RFC 6122, which \
                   for ASCII are the same.",
    },
    LayerSpec {
        id: "RFC 7395",
        title: "XMPP Subprotocol for WebSocket",
        version: "",
        place: "server/websocket",
        coverage: "Framing, `<open/>` and `<close/>`, one stanza a message; no binary frames. With TLS or behind a proxy.",
    },
    LayerSpec {
        id: "RFC 9000",
        title: "QUIC",
        version: "",
        place: "server/quic",
        coverage: "By quinn-proto, with RFC 9001 and 9002, for the players of matches: one stream per connection, Retry for every client (§8.1.2), \
                   migration (§9). No early data, no tokens of NEW_TOKEN.",
    },
    LayerSpec {
        id: "RFC 9221",
        title: "An Unreliable Datagram Extension to QUIC",
        version: "",
        place: "server/quic",
        coverage: "Inputs and ticks of matches; what is too long for a datagram goes by the stream.",
    },
    LayerSpec {
        id: "RFC 6455",
        title: "The WebSocket Protocol",
        version: "",
        place: "wire/frame",
        coverage: "The server's side without extensions: fragments, ping, close codes, bounded messages.",
    },
    LayerSpec {
        id: "RFC 7590",
        title: "Use of TLS in XMPP",
        version: "",
        place: "server/tls",
        coverage: "TLS is required of clients, 1.2 or 1.3; no compression, no renegotiation.",
    },
    LayerSpec {
        id: "RFC 8446",
        title: "TLS 1.3",
        version: "",
        place: "server/tls",
        coverage: "Handshake by rustls; records, key updates, alerts and limits on keys by an own record layer. Tickets for \
                   resumption, no early data.",
    },
    LayerSpec {
        id: "XEP-0227",
        title: "Portable Import/Export Format for XMPP-IM Servers",
        version: "1.1",
        place: "carillon/cli",
        coverage: "Import: accounts with passwords or SCRAM keys, rosters, private storage, vCards, personal nodes, offline messages, inclusions. \
                   Export of the same, with SCRAM keys and requests for subscription. Not there: archives, privacy lists; importing requests for subscription.",
    },
    LayerSpec {
        id: "RFC 4616",
        title: "SASL PLAIN",
        version: "",
        place: "core/session/auth",
        coverage: "Only under TLS that ends here; no authorization identity but the account's own.",
    },
    LayerSpec {
        id: "RFC 5802",
        title: "SCRAM-SHA-1",
        version: "",
        place: "core/session/auth",
        coverage: "With and without channel binding. An account that is not there answers as one that is.",
    },
    LayerSpec {
        id: "RFC 7677",
        title: "SCRAM-SHA-256",
        version: "",
        place: "core/session/auth",
        coverage: "With and without channel binding; 4096 iterations at least.",
    },
    LayerSpec {
        id: "RFC 5929",
        title: "Channel Bindings for TLS",
        version: "",
        place: "server/tls",
        coverage: "tls-server-end-point, under TLS 1.2 for SASL2 only; tls-unique is not offered.",
    },
    LayerSpec {
        id: "RFC 9266",
        title: "Channel Bindings for TLS 1.3",
        version: "",
        place: "server/tls",
        coverage: "tls-exporter, with TLS 1.3 only.",
    },
    LayerSpec {
        id: "RFC 9457",
        title: "Problem Details for HTTP APIs",
        version: "",
        place: "http/problem",
        coverage: "Every error of the HTTP API, with a `code` that keeps its meaning.",
    },
    LayerSpec {
        id: "XEP-0156",
        title: "Discovering Alternative XMPP Connection Methods",
        version: "1.4.0",
        place: "http, server/websocket",
        coverage: "host-meta as XRD and as JSON, on the HTTP port and on the WebSocket's.",
    },
    LayerSpec {
        id: "XEP-0368",
        title: "SRV records for XMPP over TLS",
        version: "1.1.0",
        place: "server/listen",
        coverage: "A port that speaks TLS from the first byte, ALPN `xmpp-client`.",
    },
    LayerSpec {
        id: "XEP-0386",
        title: "Bind 2",
        version: "1.0.1",
        place: "core/session/auth",
        coverage: "With tags, the same resource for the same client (`user-agent`), and inline what the features below take.",
    },
    LayerSpec {
        id: "XEP-0388",
        title: "Extensible SASL Profile",
        version: "1.0.2",
        place: "core/session/auth",
        coverage: "Beside classic SASL, with Bind 2 inline. No tasks after authentication.",
    },
    LayerSpec {
        id: "XEP-0440",
        title: "SASL Channel-Binding Type Capability",
        version: "0.4.2",
        place: "core/session/auth",
        coverage: "Tells which bindings the connection has.",
    },
];
