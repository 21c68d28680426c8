//! What the engines of a cell carry: claims per second and their round trip, records and bytes per second between two nodes and theirs.
//!
//! ```text
//! nats-server -p 4222 & redis-server --port 0 --unixsocket /tmp/redis.sock --save '' &
//! cargo run --release -p carillon-backend --features nats,redis --example cell_cost -- nats://127.0.0.1:4222 unix:///tmp/redis.sock
//! ```

use carillon_backend::{nats, redis};
use carillon_core::model::Epoch;
use carillon_core::ports::bus::Hears;
use carillon_core::ports::{Bus, Claims, Heard, Policy, Subject};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const CLAIMS: usize = 200_000;
const ROUND_TRIPS: usize = 5_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(at_nats), Some(at_redis)) = (arguments.next(), arguments.next()) else {
        return Err("cell_cost NATS-ADDRESS REDIS-ADDRESS".into());
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let claims = redis::open(&redis::Options::new(&at_redis), Epoch(7), Arc::new(|_| {}), runtime.handle())?;
    claims.view((1..=100).map(Epoch).collect(), Epoch(100));
    claim_one_by_one(&*claims);
    for round in 0..3 {
        claim_many(&claims, round);
    }
    let (a, _) = node(&at_nats, 1, &runtime)?;
    let (b, heard) = node(&at_nats, 2, &runtime)?;
    // Both are there.
    while !matches!(heard.recv()?, Heard::Beat { from: Epoch(1), .. }) {}
    for bytes in [100, 1000, 10_000] {
        carry(&*a, &heard, bytes)?;
    }
    drop((a, b, heard));
    there_and_back(&at_nats, &runtime)
}

fn claim_one_by_one(claims: &dyn Claims) {
    let mut took: Vec<Duration> = (0..ROUND_TRIPS)
        .map(|n| {
            let (sender, answer) = sync_channel(1);
            let began = Instant::now();
            let reply = move |claimed| {
                let _ = sender.send(claimed);
            };
            claims.claim(format!("one{n}@example.org").into(), Policy::Single, Box::new(reply));
            answer.recv().expect("it is answered").expect("Redis is there");
            began.elapsed()
        })
        .collect();
    told("one claim at a time", &mut took);
}

fn claim_many(claims: &Arc<dyn Claims>, round: usize) {
    let began = Instant::now();
    let (sender, answers) = sync_channel(CLAIMS);
    let mut waiting = 0usize;
    for n in 0..CLAIMS {
        let sender = sender.clone();
        let reply = move |claimed| {
            let _ = sender.send(claimed);
        };
        claims.claim(format!("u{n}.{round}@example.org").into(), Policy::Single, Box::new(reply));
        waiting += 1;
        // As many logins as there may be at once.
        while waiting >= 5_000 {
            answers.recv().expect("it is answered").expect("Redis is there");
            waiting -= 1;
        }
    }
    for _ in 0..waiting {
        answers.recv().expect("it is answered").expect("Redis is there");
    }
    let took = began.elapsed();
    println!("{CLAIMS} claims, 5,000 at once: {:.0} per second", CLAIMS as f64 / took.as_secs_f64());
}

fn node(at: &str, epoch: u64, runtime: &Runtime) -> Result<(Arc<dyn Bus>, Receiver<Heard>), nats::OpenError> {
    let (sender, heard) = sync_channel(1 << 20);
    let sender = Mutex::new(sender);
    let hears: Hears = Arc::new(move |heard| {
        // What has no room is missing, as if it were lost.
        let _ = sender.lock().expect("nobody panics").try_send(heard);
    });
    Ok((nats::open(&nats::Options::new(at), Epoch(epoch), hears, runtime.handle())?, heard))
}

/// Keeps so much on its way that neither side waits for the other, and no more than there is room for.
fn carry(a: &dyn Bus, heard: &Receiver<Heard>, bytes: usize) -> Result<(), Box<dyn std::error::Error>> {
    let records = 500_000_000 / (bytes + 400);
    let at_once = (16_000_000 / bytes).min(50_000);
    let (began, mut came, mut gaps) = (Instant::now(), 0, 0);
    for n in 0..records {
        a.post(Subject::Node(Epoch(2)), vec![7; bytes]);
        while n - came >= at_once {
            match heard.recv()? {
                Heard::Record { .. } => came += 1,
                Heard::Gap { .. } => gaps += 1,
                _ => {}
            }
        }
    }
    while came < records && gaps == 0 {
        came += usize::from(matches!(heard.recv()?, Heard::Record { .. }));
    }
    let per_second = came as f64 / began.elapsed().as_secs_f64();
    println!(
        "{came} records of {bytes} bytes: {per_second:.0} per second, {:.0} MB/s, {gaps} gaps",
        per_second * bytes as f64 / 1e6
    );
    Ok(())
}

fn there_and_back(at: &str, runtime: &Runtime) -> Result<(), Box<dyn std::error::Error>> {
    let (a, heard) = node(at, 11, runtime)?;
    let answers: Arc<Mutex<VecDeque<Arc<dyn Bus>>>> = Arc::default();
    let answering = answers.clone();
    let hears: Hears = Arc::new(move |heard| {
        if let (Heard::Record { from, record, .. }, Some(bus)) =
            (heard, answering.lock().expect("nobody panics").front())
        {
            bus.post(Subject::Node(from), record);
        }
    });
    let b = nats::open(&nats::Options::new(at), Epoch(12), hears, runtime.handle())?;
    answers.lock().expect("nobody panics").push_back(b);
    while !matches!(heard.recv()?, Heard::Beat { from: Epoch(12), .. }) {}
    let mut took = Vec::new();
    for _ in 0..ROUND_TRIPS {
        let began = Instant::now();
        a.post(Subject::Node(Epoch(12)), vec![7; 100]);
        while !matches!(heard.recv()?, Heard::Record { .. }) {}
        took.push(began.elapsed());
    }
    told("one record there and back", &mut took);
    answers.lock().expect("nobody panics").clear();
    Ok(())
}

fn told(what: &str, took: &mut [Duration]) {
    took.sort_unstable();
    let at = |part: usize| took.get(took.len() * part / 100).copied().unwrap_or_default();
    println!("{what}: median {:?}, 99 % within {:?}", at(50), at(99));
}
