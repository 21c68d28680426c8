//! What a listener offers its clients, as one immutable value: a reload replaces it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Instant, SystemTime};

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::server::{ClientHello, NoServerSessionStorage};
use rustls::{CipherSuiteCommon, NamedGroup, NoKeyLog, ServerConfig, SupportedCipherSuite, Tls13CipherSuite};
use zeroize::Zeroizing;

use super::capture::SecretHook;
use super::certificates::{Certificate, Certificates};
use super::clients::ClientAuthority;
use super::self_signed;
use super::settings_error::{SettingsError, read};
use super::suite::Suite;
use super::ticketer::{MalformedTicketKeys, Ticketer};

/// Certificate, cipher suites, key exchange, application protocols and tickets. Clones share the data.
#[derive(Clone, Debug)]
pub struct Settings(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// For clients that offer an elliptic curve.
    classic: Arc<ServerConfig>,
    /// For clients that offer only a hybrid with ML-KEM.
    hybrid: Arc<ServerConfig>,
    /// Those of both configurations.
    certificates: Arc<Certificates>,
    /// That of both configurations.
    ticketer: Arc<Ticketer>,
}

impl Settings {
    /// Reads a certificate chain, the server's own certificate first, and its private key.
    pub fn from_pem(cert_chain: &[u8], key: &[u8]) -> Result<Settings, SettingsError> {
        let certificate = Arc::new(Certificate::from_pem(cert_chain, key)?);
        let certificates = Arc::new(Certificates::new(certificate, Vec::new()));
        let ticketer = Arc::new(Ticketer::new().ok_or(rustls::Error::FailedToGetRandomBytes)?);
        let config = |groups: &[Group]| server_config(groups, &certificates, &ticketer, None).map(Arc::new);
        Ok(Settings(Arc::new(Inner {
            classic: config(CLASSIC_GROUPS)?,
            hybrid: config(HYBRID_GROUPS)?,
            certificates,
            ticketer,
        })))
    }

    /// The same settings with the certificates of these files besides, for clients that ask for their hosts (SNI, RFC 6066 §3). Of two for the same
    /// host the one that expires later is shown.
    ///
    /// # Errors
    /// If one of them cannot be read; it names the file.
    pub fn with_certificates(&self, files: &[(PathBuf, PathBuf)]) -> Result<Settings, SettingsError> {
        let load = |(chain, key): &(PathBuf, PathBuf)| {
            let certificate = Certificate::from_pem(&read(chain)?, &read(key)?);
            let of = |error| SettingsError::Of { path: chain.clone(), error: Box::new(error) };
            certificate.map(Arc::new).map_err(of)
        };
        let others = files.iter().map(load).collect::<Result<_, SettingsError>>()?;
        let certificates = Arc::new(Certificates::new(Arc::clone(self.0.certificates.first()), others));
        Ok(self.with(&self.0.ticketer, &certificates, |config| {
            config.cert_resolver = Arc::clone(&certificates) as _;
        }))
    }

    /// Reads a certificate chain and its private key from two PEM files, which may be the same file.
    pub fn load(cert_chain: &Path, key: &Path) -> Result<Settings, SettingsError> {
        Settings::from_pem(&read(cert_chain)?, &read(key)?)
    }

    /// Uses the self-signed certificate in `data_dir`: for a first start, for tests, and for clients that pin it.
    ///
    /// The key (ECDSA P-256, readable by its owner only) is made once. The certificate is made again if it does not cover
    /// all `names` or is about to expire. Names are host names (A-labels) or IP addresses.
    pub fn self_signed_in(data_dir: &Path, names: &[String]) -> Result<Settings, SettingsError> {
        let (cert, key) = self_signed::provide(data_dir, names, SystemTime::now())?;
        Settings::from_pem(&cert, &key)
    }

    /// The same settings with these application protocols (ALPN, RFC 7301), the most preferred first. A client that
    /// offers only others is refused; one that offers none is not. Tickets are shared with the original.
    pub fn alpn(&self, protocols: &[&[u8]]) -> Settings {
        self.with(&self.0.ticketer, &self.0.certificates, |config| {
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        })
    }

    /// The same settings with these application protocols, for a TLS stream that is rustls' own until its end: its keys are
    /// handed to nobody. Tickets are shared with the original.
    pub fn whole(&self, protocols: &[&[u8]]) -> Settings {
        self.with(&self.0.ticketer, &self.0.certificates, |config| {
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            config.enable_secret_extraction = false;
            config.key_log = Arc::new(NoKeyLog {});
        })
    }

    /// As [`Settings::whole`], for clients that show certificates of these authorities. Its tickets are its own, and new: one that a client was given
    /// where nobody asked for its certificate, or by other authorities, does not count here.
    ///
    /// # Errors
    /// There is no randomness, or no configuration can be made.
    pub fn whole_with_clients(
        &self,
        protocols: &[&[u8]],
        clients: &ClientAuthority,
    ) -> Result<Settings, SettingsError> {
        let ticketer = Arc::new(Ticketer::new().ok_or(rustls::Error::FailedToGetRandomBytes)?);
        let certificates = &self.0.certificates;
        let config =
            |groups: &[Group]| server_config(groups, certificates, &ticketer, Some(clients)).map(Arc::new);
        let (classic, hybrid) = (config(CLASSIC_GROUPS)?, config(HYBRID_GROUPS)?);
        let certificates = Arc::clone(certificates);
        Ok(Settings(Arc::new(Inner { classic, hybrid, certificates, ticketer })).whole(protocols))
    }

    /// The same certificates for QUIC (RFC 9001), with these application protocols. A connection of QUIC is of TLS 1.3, and is given no
    /// tickets: who comes back to a match does so by what the match gave it.
    pub(crate) fn quic(&self, protocols: &[&[u8]]) -> Result<ServerConfig, rustls::Error> {
        let is_tls13 = |suite: &&SupportedCipherSuite| suite.tls13().is_some();
        let provider = CryptoProvider {
            cipher_suites: CIPHER_SUITES.iter().filter(is_tls13).copied().collect(),
            kx_groups: CLASSIC_GROUPS.to_vec(),
            ..aws_lc_rs::default_provider()
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.0.certificates) as _);
        config.ignore_client_order = true;
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    /// The same settings with the tickets of `previous`, so that clients need no full handshake after a reload.
    pub fn sharing_tickets_of(&self, previous: &Settings) -> Settings {
        self.with(&previous.0.ticketer, &self.0.certificates, |_| {})
    }

    /// The keys of the tickets, for [`Settings::with_ticket_keys`] in a process that goes on in place of this one.
    pub fn ticket_keys(&self) -> Zeroizing<Vec<u8>> {
        self.0.ticketer.to_bytes(Instant::now())
    }

    /// The same settings with the tickets of another process, whose keys these are.
    ///
    /// # Errors
    /// If they are not what [`Settings::ticket_keys`] of this or an older release wrote.
    pub fn with_ticket_keys(&self, keys: &[u8]) -> Result<Settings, MalformedTicketKeys> {
        let ticketer = Ticketer::from_bytes(keys, Instant::now())?;
        Ok(self.with(&Arc::new(ticketer), &self.0.certificates, |_| {}))
    }

    /// Data for the channel binding `tls-server-end-point` (RFC 5929 §4.1) of clients that ask for this host: the hash of the certificate that they
    /// are shown. `None` if its signature algorithm leaves the hash undefined, as Ed25519 does.
    pub fn server_end_point(&self, host: Option<&str>) -> Option<&Arc<[u8]>> {
        self.0.certificates.of(host).leaf.end_point.as_ref()
    }

    /// The host names and IP addresses that the certificates are for.
    pub fn names(&self) -> Vec<&str> {
        let certificates = self.0.certificates.iter();
        certificates.flat_map(|certificate| certificate.leaf.names.iter().map(String::as_str)).collect()
    }

    /// Whether one of the certificates is for a host.
    pub fn covers(&self, host: &str) -> bool {
        self.0.certificates.iter().any(|certificate| certificate.leaf.covers(host))
    }

    /// When all of the certificates are valid.
    pub fn not_before(&self) -> SystemTime {
        let starts = self.0.certificates.iter().map(|certificate| certificate.leaf.not_before);
        starts.max().unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// When the first of the certificates expires.
    pub fn not_after(&self) -> SystemTime {
        let ends = self.0.certificates.iter().map(|certificate| certificate.leaf.not_after);
        ends.min().unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// Picks the configuration that answers this client. rustls follows the client's order of groups. Clients put the
    /// hybrid first, which costs twice the processor time, so it is offered only to clients that have nothing else.
    pub fn config_for(&self, hello: &ClientHello<'_>) -> &Arc<ServerConfig> {
        let offered = hello.named_groups().unwrap_or_default();
        let has_classic =
            offered.iter().any(|group| CLASSIC_GROUPS.iter().any(|classic| classic.name() == *group));
        let has_hybrid = offered.contains(&NamedGroup::X25519MLKEM768);
        match has_hybrid && !has_classic {
            true => &self.0.hybrid,
            false => &self.0.classic,
        }
    }

    fn with(
        &self,
        ticketer: &Arc<Ticketer>,
        certificates: &Arc<Certificates>,
        change: impl Fn(&mut ServerConfig),
    ) -> Settings {
        let changed = |config: &Arc<ServerConfig>| {
            let mut config = ServerConfig::clone(config);
            config.ticketer = Arc::clone(ticketer) as _;
            change(&mut config);
            Arc::new(config)
        };
        Settings(Arc::new(Inner {
            classic: changed(&self.0.classic),
            hybrid: changed(&self.0.hybrid),
            certificates: Arc::clone(certificates),
            ticketer: Arc::clone(ticketer),
        }))
    }
}

fn server_config(
    groups: &[Group],
    certificates: &Arc<Certificates>,
    ticketer: &Arc<Ticketer>,
    clients: Option<&ClientAuthority>,
) -> Result<ServerConfig, SettingsError> {
    let provider = CryptoProvider {
        cipher_suites: CIPHER_SUITES.iter().map(|suite| with_own_hkdf(*suite)).collect(),
        kx_groups: groups.to_vec(),
        ..aws_lc_rs::default_provider()
    };
    let builder =
        ServerConfig::builder_with_provider(Arc::new(provider)).with_safe_default_protocol_versions()?;
    let builder = match clients {
        Some(clients) => builder.with_client_cert_verifier(clients.verifier()),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::clone(certificates) as _);
    config.ignore_client_order = true;
    config.ticketer = Arc::clone(ticketer) as _;
    // Tickets need no store, which shards would have to lock.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    // A ticket is valid for one return, which brings the next ticket. A client that asks for a number of tickets (RFC
    // 9149) gets none or one.
    config.send_tls13_tickets = 1;
    config.max_tls13_tickets = 1;
    config.enable_secret_extraction = true;
    config.key_log = Arc::new(SecretHook);
    Ok(config)
}

/// A suite of TLS 1.3 with the key derivation of `hkdf`; others unchanged.
fn with_own_hkdf(suite: SupportedCipherSuite) -> SupportedCipherSuite {
    static OWN: LazyLock<Vec<Tls13CipherSuite>> = LazyLock::new(|| {
        let own = |rustls: &'static Tls13CipherSuite| {
            Some(Tls13CipherSuite {
                common: CipherSuiteCommon { ..rustls.common },
                hkdf_provider: Suite::from_iana(rustls.common.suite)?.hkdf(),
                aead_alg: rustls.aead_alg,
                quic: None,
            })
        };
        CIPHER_SUITES.iter().filter_map(|suite| own(suite.tls13()?)).collect()
    });
    let own = OWN.iter().find(|own| own.common.suite == suite.suite());
    own.map_or(suite, SupportedCipherSuite::Tls13)
}

type Group = &'static dyn rustls::crypto::SupportedKxGroup;

const CLASSIC_GROUPS: &[Group] = &[kx_group::X25519, kx_group::SECP256R1, kx_group::SECP384R1];
const HYBRID_GROUPS: &[Group] = &[kx_group::X25519MLKEM768];

/// The cheapest first, whatever the client's order. A client without AES instructions prefers ChaCha20, but that would
/// double the cost here, and a device opens only a few records per minute.
const CIPHER_SUITES: &[SupportedCipherSuite] = &[
    cipher_suite::TLS13_AES_128_GCM_SHA256,
    cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    cipher_suite::TLS13_AES_256_GCM_SHA384,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
];
