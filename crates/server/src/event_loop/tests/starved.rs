//! A server that runs out of descriptors, in another process, as the limit applies to a process.

use super::{connect, rest, start};
use crate::options::Options;
use crate::testing::options;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::TcpStream;
use std::process::{Command, Stdio};

const CHILD: &str = "event_loop::tests::starved::a_server_with_few_descriptors";

/// The child: prints its port, and serves until its standard input ends.
#[test]
#[ignore = "the other half of the next test"]
fn a_server_with_few_descriptors() {
    // One shard: two could take the other's spare descriptor for a connection.
    let server = start(&Options { shards: 1, ..options() });
    // Others open files, too, after the server has seen how many it may use.
    let mut files: Vec<_> =
        std::iter::repeat_with(|| File::open("/dev/null")).map_while(Result::ok).collect();
    files.truncate(files.len() - 10);
    println!("\nport {}", server.ports().c2s.unwrap());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn without_descriptors_connections_are_turned_away_until_there_are_some() {
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -n 48 && exec \"$0\" --exact --ignored --nocapture \"$1\""])
        .arg(std::env::current_exe().unwrap())
        .arg(CHILD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let port = lines.find_map(|line| line.unwrap().strip_prefix("port ").map(str::to_owned)).unwrap();
    let port = Some(port.parse().unwrap());

    let mut clients: Vec<_> = (0..64).map(|_| connect(port)).collect();
    let greeted = clients.iter_mut().map(is_greeted).filter(|greeted| *greeted).count();
    assert!((5..=10).contains(&greeted), "{greeted} of 64 greeted");
    drop(clients);
    // The server needs a moment to notice; clients that are refused meanwhile try again.
    assert!((0..1000).any(|_| is_greeted(&mut connect(port))));

    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// Whether the server accepts this client, or refuses it.
fn is_greeted(client: &mut TcpStream) -> bool {
    match client.read_exact(&mut [0; 10]) {
        Ok(()) => true,
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset), "{error}");
            assert!(rest(client).is_empty());
            false
        }
    }
}
