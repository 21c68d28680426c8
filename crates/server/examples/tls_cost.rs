//! What TLS costs on this machine: `cargo run --release -p carillon-server --example tls_cost`.
//!
//! The server's end only, on one core. Each figure is the best of several runs, then their median: they differ where
//! others use the machine, too.

use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_server::tls::{Circumstances, Handshake, Keys, Link, Progress, Settings};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedCipherSuite};

const HOST: &str = "chat.example";
/// The plaintext of a small topic item.
const ITEM_BYTES: usize = 421;
const RUNS: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("carillon-tls-cost-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let settings = Settings::self_signed_in(&dir, &[HOST.to_owned()])?;
    let cert = CertificateDer::from_pem_file(dir.join("self-signed.crt"))?;
    std::fs::remove_dir_all(&dir)?;

    println!("an idle connection keeps {} bytes, in one block", size_of::<Keys>());
    println!("a record carries {ITEM_BYTES} bytes");
    handshakes(&settings, &cert);
    let suites = [
        rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256,
        rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_256_GCM_SHA384,
        rustls::crypto::aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    ];
    for suite in suites {
        records(&settings, &client_config(&cert, &[suite]), suite);
    }
    Ok(())
}

/// Server CPU of a handshake, from the first record to the keys.
fn handshakes(settings: &Settings, cert: &CertificateDer<'static>) {
    const HANDSHAKES: u32 = 1000;
    let all = rustls::crypto::aws_lc_rs::DEFAULT_CIPHER_SUITES;
    for (what, resuming) in [("full", false), ("resumed", true)] {
        let shared = client_config(cert, all);
        let spent = measure(|| {
            (0..HANDSHAKES)
                .map(|_| {
                    let config = if resuming { Arc::clone(&shared) } else { client_config(cert, all) };
                    connect(settings, &config).2
                })
                .sum::<Duration>()
        });
        let each = |spent: f64| spent * 1e6 / f64::from(HANDSHAKES);
        println!("a {what} handshake: {:.1} µs, median {:.1} µs", each(spent.best), each(spent.median));
    }
}

/// Records sealed and opened a second, the cipher keyed for one record or for 64.
fn records(settings: &Settings, config: &Arc<ClientConfig>, suite: SupportedCipherSuite) {
    const RECORDS: usize = 64 * 4000;
    let (mut client, mut link, _) = connect(settings, config);
    let Link::Extracted(keys) = &mut link else {
        unreachable!("the client offers TLS 1.3 only");
    };
    let item = [b'x'; ITEM_BYTES];
    let mut out = Vec::with_capacity(64 * 1024);
    for burst in [1, 64] {
        let spent = measure(|| {
            let begun = Instant::now();
            for _ in 0..RECORDS / burst {
                out.clear();
                let mut sealer = keys.sealer().expect("the connection is open");
                for _ in 0..burst {
                    sealer.seal(black_box(&item), &mut out).expect("the cipher works");
                }
                black_box(&out);
            }
            begun.elapsed()
        });
        report(suite, "sealed", burst, RECORDS, &spent);
    }
    for burst in [1, 64] {
        let records = RECORDS / 16;
        let mut plain = Vec::with_capacity(64 * 1024);
        let spent = measure(|| {
            let mut spent = Duration::ZERO;
            for _ in 0..records / burst {
                let mut wire = Vec::new();
                for _ in 0..burst {
                    client.writer().write_all(&item).expect("there is room");
                    client.write_tls(&mut wire).expect("a Vec takes everything");
                }
                plain.clear();
                let begun = Instant::now();
                let opened = keys.open(black_box(&mut wire), &mut plain, &mut out, Circumstances::default());
                spent += begun.elapsed();
                assert!(opened.is_ok_and(|opened| opened.consumed == wire.len()));
            }
            spent
        });
        report(suite, "opened", burst, records, &spent);
    }
}

fn report(suite: SupportedCipherSuite, done: &str, burst: usize, records: usize, spent: &Times) {
    let suite = suite.suite();
    let ns = |spent: f64| spent * 1e9 / records as f64;
    let (best, median, rate) = (ns(spent.best), ns(spent.median), records as f64 / spent.best);
    println!("{suite:?}: {done}, keyed for {burst}: {best:.0} ns, median {median:.0} ns; {rate:.0}/s");
}

/// Connects; the time is what the server's end took.
fn connect(settings: &Settings, config: &Arc<ClientConfig>) -> (ClientConnection, Link, Duration) {
    let name = ServerName::try_from(HOST).expect("it is a host name");
    let mut client = ClientConnection::new(Arc::clone(config), name).expect("the configuration is sound");
    let mut spent = Duration::ZERO;
    let mut handshake = Handshake::new(settings);
    let (mut wire, mut out) = (Vec::with_capacity(4096), Vec::with_capacity(4096));
    loop {
        wire.clear();
        while client.wants_write() {
            client.write_tls(&mut wire).expect("a Vec takes everything");
        }
        out.clear();
        let begun = Instant::now();
        let progress = handshake.feed(&wire, &mut out).expect("the client is honest");
        spent += begun.elapsed();
        client.read_tls(&mut &out[..]).expect("a slice can be read");
        client.process_new_packets().expect("the server is honest");
        match progress {
            Progress::Pending { handshake: going, .. } => handshake = going,
            Progress::Done { link, .. } => return (client, link, spent),
        }
    }
}

fn client_config(cert: &CertificateDer<'static>, suites: &[SupportedCipherSuite]) -> Arc<ClientConfig> {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.cipher_suites = suites.to_vec();
    let mut roots = RootCertStore::empty();
    roots.add(cert.clone()).expect("it parses");
    Arc::new(
        ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("there are suites for it")
            .with_root_certificates(roots)
            .with_no_client_auth(),
    )
}

/// The best and the median time of several runs.
struct Times {
    best: f64,
    median: f64,
}

fn measure(mut run: impl FnMut() -> Duration) -> Times {
    let mut runs: Vec<_> = (0..RUNS).map(|_| run().as_secs_f64()).collect();
    runs.sort_unstable_by(f64::total_cmp);
    Times { best: runs[0], median: runs[RUNS / 2] }
}
