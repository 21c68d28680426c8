//! The event log of a whole server.

use super::*;
use crate::testing::{EmptyStore, certificate, options};
use crate::{Server, StartError};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

fn start(options: &crate::Options) -> Result<Server, StartError> {
    Server::start(options, &certificate(), &Arc::default(), Arc::new(EmptyStore::default()))
}

#[test]
fn a_connection_leaves_its_lines() {
    let rig = Rig::new();
    let options = crate::Options { event_log: rig.options.clone(), shards: 1, ..options() };
    let server = start(&options).unwrap();
    let mut client = TcpStream::connect(("127.0.0.1", server.ports().c2s.unwrap())).unwrap();
    client.write_all(b"<nonsense>").unwrap();
    client.read_to_end(&mut Vec::new()).unwrap();
    drop(client);
    let node = server.node();
    assert!(server.drain(Duration::from_secs(10), Duration::ZERO));
    let (lines, findings) = rig.read();
    let kinds: Vec<&str> = lines.iter().map(|line| head(line.as_bytes()).unwrap().kind.as_str()).collect();
    assert_eq!((&kinds[..], findings), (&["start", "connect", "disconnect", "stop"][..], vec![]));
    assert_eq!(node.status().events.unwrap().lines, 4);
}

#[test]
fn only_what_is_wanted_is_kept() {
    let mut rig = Rig::new();
    rig.options.kinds = Kinds::of([Kind::Login]);
    let options = crate::Options { event_log: rig.options.clone(), shards: 1, ..options() };
    let server = start(&options).unwrap();
    let connect = || {
        let mut client = TcpStream::connect(("127.0.0.1", server.ports().c2s.unwrap())).unwrap();
        client.write_all(b"<nonsense>").unwrap();
        client.read_to_end(&mut Vec::new()).unwrap();
    };
    connect();
    server.reload_events(Kinds::of([Kind::Connect]));
    // A later control message is handled later.
    let (done, obeyed) = std::sync::mpsc::channel();
    server.node().fresh_status(Box::new(move |_| done.send(()).unwrap()));
    obeyed.recv().unwrap();
    connect();
    assert!(server.drain(Duration::from_secs(10), Duration::ZERO));
    let kinds: Vec<&str> =
        rig.read().0.iter().map(|line| head(line.as_bytes()).unwrap().kind.as_str()).collect();
    assert_eq!(kinds, ["start", "connect", "stop"]);
}

#[test]
fn a_folder_that_cannot_be_is_said() {
    let mut rig = Rig::new();
    let file = rig.folder.path().join("file");
    std::fs::write(&file, b"").unwrap();
    rig.options.folder = file.join("events");
    let options = crate::Options { event_log: rig.options, ..options() };
    let error = start(&options).err().unwrap().to_string();
    assert!(error.contains("event_log.path"), "{error}");
}
