//! `node.json` in the data folder: where the commands find the node that runs on it.

use serde::{Deserialize, Serialize};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The content of `node.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFile {
    /// The node's process.
    pub pid: u32,
    /// Where its HTTP APIs are, such as `http://127.0.0.1:8080`.
    pub http: String,
    /// Where XMPP with STARTTLS is, if it is.
    #[serde(default)]
    pub c2s: Option<SocketAddr>,
    /// Where XMPP inside TLS is, if it is.
    #[serde(default)]
    pub c2s_tls: Option<SocketAddr>,
    /// The ports of all its listeners.
    #[serde(default)]
    pub ports: Vec<u16>,
}

impl NodeFile {
    /// Writes it into the data folder.
    pub fn write(&self, data_dir: &Path) -> io::Result<()> {
        super::write_whole(&NodeFile::path(data_dir), serde_json::to_string(self)?.as_bytes(), 0o644)
    }

    /// Reads it from the data folder; none when no node has run there. A node that crashed leaves its own behind.
    pub fn read(data_dir: &Path) -> io::Result<Option<NodeFile>> {
        let text = match std::fs::read_to_string(NodeFile::path(data_dir)) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        Ok(Some(serde_json::from_str(&text)?))
    }

    /// Removes it, when it is that of this process: a node that takes over has written its own.
    pub fn remove(data_dir: &Path) -> io::Result<()> {
        match NodeFile::read(data_dir)? {
            Some(node) if node.pid == std::process::id() => std::fs::remove_file(NodeFile::path(data_dir)),
            _ => Ok(()),
        }
    }

    fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("node.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(http: &str) -> NodeFile {
        let c2s = Some("127.0.0.1:5222".parse().expect("an address"));
        NodeFile { pid: std::process::id(), http: http.to_owned(), c2s, c2s_tls: None, ports: Vec::new() }
    }

    #[test]
    fn is_read_back_and_removed_only_by_its_own_process() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(NodeFile::read(folder.path()).expect("readable"), None);

        let other = NodeFile { pid: std::process::id() + 1, ..file("http://127.0.0.1:1") };
        other.write(folder.path()).expect("written");
        NodeFile::remove(folder.path()).expect("left alone");
        assert_eq!(NodeFile::read(folder.path()).expect("readable"), Some(other));

        let own = file("http://127.0.0.1:2");
        own.write(folder.path()).expect("written");
        NodeFile::remove(folder.path()).expect("removed");
        assert_eq!(NodeFile::read(folder.path()).expect("readable"), None);
    }
}
