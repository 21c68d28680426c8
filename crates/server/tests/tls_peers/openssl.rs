//! Other programs as peers, over a socket: `openssl s_client` and Python's `ssl`. Skipped where they are missing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use carillon_server::tls::{Circumstances, Handshake, Link, Progress, Secured};

use super::support::{HOST, server, settings};

/// A server for one connection that gives back what it gets; a line `update` has it update its keys first.
struct Echo {
    port: u16,
    thread: JoinHandle<Box<Secured>>,
}

impl Echo {
    fn start() -> Echo {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = std::thread::spawn(move || {
            let (socket, _) = listener.accept().unwrap();
            socket.set_read_timeout(Some(TIMEOUT)).unwrap();
            serve(socket)
        });
        Echo { port, thread }
    }
}

fn serve(mut socket: TcpStream) -> Box<Secured> {
    let (mut pending, mut out) = (Vec::new(), Vec::new());
    let mut handshake = Handshake::new(settings());
    let (mut link, secured) = loop {
        receive(&mut socket, &mut pending);
        let progress = handshake.feed(&pending, &mut out).unwrap();
        socket.write_all(&std::mem::take(&mut out)).unwrap();
        match progress {
            Progress::Pending { handshake: going, consumed } => {
                handshake = going;
                pending.drain(..consumed);
            }
            Progress::Done { link, secured, consumed } => {
                pending.drain(..consumed);
                break (link, secured);
            }
        }
    };
    loop {
        let mut plain = Vec::new();
        let opened = link.open(&mut pending, &mut plain, &mut out, Circumstances::default()).unwrap();
        pending.drain(..opened.consumed);
        if let (b"update\n", Link::Extracted(keys)) = (&plain[..], &mut link) {
            keys.refresh(&mut out).unwrap();
        }
        link.seal(&plain, &mut out).unwrap();
        if opened.closed {
            link.close_notify(&mut out);
        }
        socket.write_all(&std::mem::take(&mut out)).unwrap();
        if opened.closed {
            return secured;
        }
        receive(&mut socket, &mut pending);
    }
}

fn receive(socket: &mut TcpStream, pending: &mut Vec<u8>) {
    let mut buffer = [0; 8192];
    let len = socket.read(&mut buffer).unwrap();
    assert!(len > 0, "the client went away without a word");
    pending.extend_from_slice(&buffer[..len]);
}

/// `openssl s_client`, talked to line by line.
struct Client {
    child: Child,
    lines: Receiver<String>,
    seen: String,
}

impl Client {
    fn start(port: u16, args: &[&str]) -> Client {
        let ca = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(ca.path(), &server().1).unwrap();
        let mut child = Command::new("openssl")
            .args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-servername", HOST])
            .args(["-verify_return_error", "-verify_hostname", HOST, "-CAfile"])
            .arg(ca.path())
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let outputs: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for output in outputs {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines() {
                    let _ = sender.send(line.unwrap_or_default());
                }
            });
        }
        let mut client = Client { child, lines, seen: String::new() };
        // It has read the file once it is connected.
        client.wait_for("Verify return code: 0 (ok)");
        client
    }

    fn say(&mut self, line: &str) {
        // One write: on a command openssl acts on its first letter and may be gone before a second write.
        self.child.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn wait_for(&mut self, expected: &str) {
        loop {
            let Ok(line) = self.lines.recv_timeout(TIMEOUT) else {
                panic!("no line with {expected:?} after:\n{}", self.seen);
            };
            self.seen += &line;
            self.seen.push('\n');
            if line.contains(expected) {
                return;
            }
        }
    }

    fn echo(&mut self, line: &str) {
        self.say(line);
        self.wait_for(line);
    }

    fn quit(mut self) {
        self.say("Q");
        assert!(self.child.wait().unwrap().success());
    }
}

fn missing(program: &str, arg: &str) -> bool {
    let missing = !Command::new(program).arg(arg).output().is_ok_and(|output| output.status.success());
    if missing {
        println!("skipped: there is no {program}");
    }
    missing
}

#[test]
fn openssl_with_every_suite_and_key_updates() {
    if missing("openssl", "version") {
        return;
    }
    for suite in ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"] {
        let echo = Echo::start();
        let export = ["-keymatexport", "EXPORTER-Channel-Binding", "-keymatexportlen", "32"];
        let mut client =
            Client::start(echo.port, &[&["-tls1_3", "-ciphersuites", suite][..], &export].concat());
        client.echo("hello");
        for round in 0..5 {
            // It updates its keys, then asks us to do so, too, then we ask it.
            client.say("k");
            client.wait_for("KEYUPDATE");
            client.echo(&format!("after its update {round}"));
            client.say("K");
            client.wait_for("KEYUPDATE");
            client.echo(&format!("after both's update {round}"));
            client.echo("update");
            client.echo(&format!("after our update {round}"));
        }
        let material = client.seen.lines().find_map(|line| line.trim().strip_prefix("Keying material: "));
        let material = material.unwrap().to_lowercase();
        client.quit();
        let secured = echo.thread.join().unwrap();
        assert_eq!(format!("TLS13_{}", &suite[4..]), secured.cipher);
        let exported: String =
            secured.exporter.as_ref().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(exported, material);
    }
}

#[test]
fn openssl_resumes_by_ticket() {
    if missing("openssl", "version") {
        return;
    }
    let session = tempfile::NamedTempFile::new().unwrap();
    let path = session.path().to_str().unwrap();
    for version in ["-tls1_3", "-tls1_2"] {
        for (arg, resumed) in [("-sess_out", false), ("-sess_in", true)] {
            let echo = Echo::start();
            let mut client = Client::start(echo.port, &[version, arg, path]);
            client.echo("hello");
            client.echo("and again");
            client.quit();
            assert_eq!(echo.thread.join().unwrap().resumed, resumed, "{version} {arg}");
        }
    }
}

#[test]
fn python_sends_a_lot_and_closes_in_order() {
    if missing("python3", "--version") {
        return;
    }
    let ca = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(ca.path(), &server().1).unwrap();
    for version in ["TLSv1_3", "TLSv1_2"] {
        let echo = Echo::start();
        let output = Command::new("python3")
            .args(["-c", PYTHON, &echo.port.to_string(), ca.path().to_str().unwrap(), HOST, version])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("No module named") {
            println!("skipped: this Python has no ssl");
            return;
        }
        assert!(output.status.success(), "{said}");
        echo.thread.join().unwrap();
    }
}

/// Sends and gets back data of many sizes, then closes and waits for the close of the other side.
const PYTHON: &str = r"
import socket, ssl, sys
port, ca, host, version = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
context.minimum_version = context.maximum_version = getattr(ssl.TLSVersion, version)
with socket.create_connection(('127.0.0.1', int(port)), timeout=20) as plain:
    tls = context.wrap_socket(plain, server_hostname=host)
    for size in [1, 2, 100, 16383, 16384, 16385, 40000, 100000]:
        data = bytes(i * 7 % 251 for i in range(size))
        tls.sendall(data)
        back = b''
        while len(back) < size:
            more = tls.recv(65536)
            assert more, 'closed early'
            back += more
        assert back == data, size
    tls.unwrap()
";

const TIMEOUT: Duration = Duration::from_secs(20);
