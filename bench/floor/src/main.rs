//! The floor: what the sockets, TLS and bytes of an XMPP server cost when there is no server behind them.
//!
//! It answers every client with canned text: anyone is let in (SASL PLAIN, any password), any request succeeds, a
//! message goes to the connection that said the recipient's name, and a published item goes to every connection that
//! has bound a resource, in a bare loop of seal and `send`. There is no store, no policy, no limit and no check.
//! `carillon-load` measures it as it measures a server, so that both are compared in one run:
//!
//! ```console
//! $ cargo run --release -p carillon-floor -- --ready-file ready.json
//! $ carillon-load run fanout --target 127.0.0.1:PORT --domain localhost --password any --mechanism PLAIN
//! ```

mod connection;
mod reactor;
mod talk;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use carillon_server::tls::Settings;
use clap::Parser;

/// The allocator of the server it is compared with.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Canned XMPP: what the sockets, TLS and bytes of a server cost without its logic.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Threads, each with a listener of its own: the cores that write
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// The port; any free one when 0
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Write the process id and the port as JSON into this file once connections are accepted
    #[arg(long, value_name = "PATH")]
    ready_file: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let certificates = tempfile::tempdir()?;
    let tls = Settings::self_signed_in(certificates.path(), &["localhost".to_owned()])?;
    let mut address = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
    let mut reactors = Vec::new();
    for _ in 0..arguments.threads.max(1) {
        let reactor = reactor::Reactor::listen(address, tls.clone())?;
        address = reactor.address()?;
        reactors.push(reactor);
    }
    let peers: Vec<_> = reactors.iter().map(reactor::Reactor::peer).collect();
    if let Some(path) = &arguments.ready_file {
        // Renamed into place, so that whoever waits for it never reads half of it.
        let draft = path.with_extension("draft");
        std::fs::write(&draft, format!("{{\"pid\":{},\"c2s\":{}}}\n", std::process::id(), address.port()))?;
        std::fs::rename(draft, path)?;
    }
    std::thread::scope(|scope| {
        for reactor in reactors {
            let peers = peers.clone();
            scope.spawn(move || reactor.run(&peers));
        }
    });
    Ok(())
}
