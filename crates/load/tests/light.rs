//! The engine's players of the light protocol, against a server that speaks it and nothing else.

use carillon_load::control::{Fault, Job, Position, Progress};
use carillon_load::plan::{Scenario, Target};
use carillon_load::worker::Engine;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime};

const PATIENCE: Duration = Duration::from_secs(20);
const PLAYERS: u32 = 4;
const SCENARIO: &str = "
name = 'small-janus'
summary = 'A test.'
[players]
count = 4
protocol = 'light'
[[phases]]
do = 'login'
[[phases]]
do = 'subscribe'
topic = 'flashbot'
[[phases]]
do = 'publish'
topic = 'flashbot'
by = 'http'
items = 1
[[phases]]
do = 'drop'
";

/// Serves connections, a thread each; subscribed ones are handed out.
fn serve() -> (String, Receiver<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (subscribed, subscribers) = channel();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let subscribed = subscribed.clone();
            std::thread::spawn(move || converse(socket.unwrap(), &subscribed));
        }
    });
    (address, subscribers)
}

fn converse(mut socket: TcpStream, subscribed: &Sender<TcpStream>) {
    while let Some(frame) = frame(&mut socket) {
        let answer: &[u8] = match frame.as_slice() {
            b"<regular-socket/>" => b"{\"timestamp\":1,\"token\":\"t\"}\x01",
            b"{\"action\":\"subscribe\",\"data\":\"flashbot\"}" => b"ACK\x01",
            other => panic!("{}", String::from_utf8_lossy(other)),
        };
        // What a client that is gone is not told does no harm.
        let _ = socket.write_all(answer);
        if answer.starts_with(b"ACK") {
            subscribed.send(socket.try_clone().unwrap()).unwrap();
        }
    }
}

/// The next frame without its NUL; none when the client is gone.
fn frame(socket: &mut TcpStream) -> Option<Vec<u8>> {
    let mut frame = Vec::new();
    let mut byte = [0];
    loop {
        socket.read_exact(&mut byte).ok()?;
        if byte[0] == 0 {
            return Some(frame);
        }
        frame.push(byte[0]);
    }
}

fn job(light: &str) -> Job {
    let target = r#"{ "address": "127.0.0.1:1", "domain": "localhost", "password": "" }"#;
    Job {
        test: "t".to_owned(),
        scenario: Scenario::parse(SCENARIO).unwrap(),
        target: Target { light: Some(light.to_owned()), ..serde_json::from_str(target).unwrap() },
        first: 0,
        count: PLAYERS,
        total: PLAYERS,
        publishes: false,
        threads: 2,
        event: None,
        clock_offset_ns: 0,
    }
}

fn now() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64
}

fn begin(engine: &mut Engine, phase: u32, step: u32) {
    engine.begin(Position { phase, step }, now());
}

fn done(engine: &mut Engine) -> Progress {
    assert!(engine.wait(PATIENCE));
    let progress = engine.progress();
    assert!(progress.done && progress.errors.is_empty(), "{progress:?}");
    progress
}

#[test]
fn subscribers_count_what_is_published() {
    let (address, subscribers) = serve();
    let mut engine = Engine::prepare(job(&address)).unwrap();
    begin(&mut engine, 0, 1);
    let logins = done(&mut engine);
    assert_eq!((logins.online, logins.counts["logins"]), (PLAYERS, u64::from(PLAYERS)));
    for step in 1..=2 {
        begin(&mut engine, 1, step);
        assert!(engine.wait(PATIENCE));
    }
    assert_eq!(done(&mut engine).counts["subscribed"], u64::from(PLAYERS));
    begin(&mut engine, 2, 1);
    for mut subscriber in subscribers.iter().take(PLAYERS as usize) {
        // One of another test, left over; and the one that is meant: phase 2, item 0.
        let item = |test: &str| {
            let due = now();
            format!(
                "PUBLISH\0{{\"topic\":\"flashbot\",\"data\":{{\"text\":\"load:{test}:20000000:{due}:\"}}}}\x01"
            )
        };
        subscriber.write_all(format!("{}{}", item("other"), item("t")).as_bytes()).unwrap();
    }
    let deliveries = done(&mut engine);
    assert_eq!(deliveries.counts["deliveries"], u64::from(PLAYERS));
    assert_eq!(deliveries.largest["last_delivery"].keys().collect::<Vec<_>>(), [&20_000_000]);
    begin(&mut engine, 3, 1);
    assert_eq!(done(&mut engine).online, 0);
    assert_eq!(engine.finish().failed, 0);
}

#[test]
fn a_server_that_does_not_greet_lacks_the_protocol() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let _ = socket.unwrap().write_all(b"SSH-2.0-OpenSSH_9.2\r\n\x01");
        }
    });
    let fault = Engine::prepare(job(&address)).unwrap_err();
    assert!(matches!(&fault, Fault::Lacks { feature, .. } if feature == "the light protocol"), "{fault:?}");
    let mut without = job(&address);
    without.target.light = None;
    assert!(matches!(Engine::prepare(without), Err(Fault::Lacks { .. })));
}
