//! Where the server is, and which certificates it may show.

use super::Args;
use crate::cli::failure::Failure;
use crate::files::NodeFile;
use carillon_load::client::tls::Trust;
use carillon_wire::jid::BareJid;
use std::path::Path;

/// The server to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) host: String,
    pub(super) port: u16,
    /// Whether it is the node that runs on the data folder.
    pub(super) local: bool,
}

impl Place {
    /// What the command line names, else the node of the data folder, else the domain of the account.
    pub(super) fn find(args: &Args, jid: &BareJid) -> Result<Place, Failure> {
        let standard = if args.direct_tls { 5223 } else { 5222 };
        if let Some(server) = &args.server {
            let (host, port) = split(server, standard)?;
            return Ok(Place { host, port, local: false });
        }
        if let Some(place) = Place::of_node(&args.data_dir, args.direct_tls)? {
            return Ok(place);
        }
        Ok(Place { host: jid.domain().to_owned(), port: standard, local: false })
    }

    /// Where the node of a data folder listens, if one runs there.
    pub(super) fn of_node(data_dir: &Path, direct_tls: bool) -> Result<Option<Place>, Failure> {
        let dir = data_dir.display();
        let unreadable = |e| Failure::Usage(format!("{dir}/node.json: {e}"));
        let Some(node) = NodeFile::read(data_dir).map_err(unreadable)? else { return Ok(None) };
        let (address, setting) = match direct_tls {
            true => (node.c2s_tls, "c2s_tls.enabled"),
            false => (node.c2s, "c2s.enabled"),
        };
        let address =
            address.ok_or_else(|| Failure::Usage(format!("the node of {dir} has {setting} = false")))?;
        Ok(Some(Place { host: address.ip().to_string(), port: address.port(), local: true }))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// `HOST`, `HOST:PORT`, `[IPv6]` or `[IPv6]:PORT`.
fn split(server: &str, standard: u16) -> Result<(String, u16), Failure> {
    let wrong =
        || Failure::Usage(format!("--server {server}: it takes HOST or HOST:PORT, IPv6 as [::1]:5222"));
    let (host, port) = match server.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or_else(wrong)?;
            (host, if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or_else(wrong)?) })
        }
        None => match server.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (server, None),
        },
    };
    let port = port.map_or(Ok(standard), |port| port.parse().map_err(|_| wrong()))?;
    if host.is_empty() || port == 0 { Err(wrong()) } else { Ok((host.to_owned(), port)) }
}

/// Which certificates are trusted: those named, else those of the system and the one that the node of the data folder made.
pub(super) fn trust(args: &Args) -> Result<Trust, Failure> {
    if args.insecure {
        return Ok(Trust::Anyone);
    }
    if let Some(file) = &args.ca {
        return pem(file);
    }
    let own = args.data_dir.join("self-signed.crt");
    match (own.exists().then(|| pem(&own)).transpose()?, Trust::system()) {
        (Some(own), Some(system)) => Ok(own.and(system)),
        (Some(trust), None) | (None, Some(trust)) => Ok(trust),
        (None, None) => Err(Failure::Usage(
            "this system has no trusted certificates: give --ca FILE, or --data-dir for a node on this machine"
                .to_owned(),
        )),
    }
}

fn pem(file: &Path) -> Result<Trust, Failure> {
    let name = file.display();
    let text = std::fs::read(file).map_err(|e| Failure::Usage(format!("{name}: {e}")))?;
    Trust::from_pem(&text).map_err(|e| Failure::Usage(format!("{name}: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_written_with_and_without_a_port() {
        let read = |text| split(text, 5222).map_err(|failure| failure.to_string());
        assert_eq!(read("chat.example.org"), Ok(("chat.example.org".to_owned(), 5222)));
        assert_eq!(read("127.0.0.1:5300"), Ok(("127.0.0.1".to_owned(), 5300)));
        assert_eq!(read("[::1]:5300"), Ok(("::1".to_owned(), 5300)));
        assert_eq!(read("[::1]"), Ok(("::1".to_owned(), 5222)));
        for text in ["", ":5222", "host:", "host:xmpp", "host:0", "host:70000", "[::1", "[::1]5222", "::1"] {
            assert!(read(text).is_err(), "{text}");
        }
        let place = Place { host: "::1".to_owned(), port: 5222, local: false };
        assert_eq!(place.to_string(), "[::1]:5222");
    }
}
