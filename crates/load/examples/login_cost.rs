//! What a login costs a server: the processor time of its process, for full logins and for returning ones.
//!
//! `cargo run --release -p carillon-load --example login_cost -- PID PORT USER PASSWORD ROUNDS` against the direct TLS port of a
//! server on this machine. A round is one connection, login, initial presence and close, one after the other.

use carillon_load::blocking::Client;
use carillon_load::client::{Options, Profile, Settings, Transport};
use carillon_wire::jid::BareJid;
use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [pid, port, user, password, rounds] = arguments.as_slice() else {
        return Err("login_cost PID PORT USER PASSWORD ROUNDS".into());
    };
    let (port, rounds): (u16, u32) = (port.parse()?, rounds.parse()?);
    let kinds = [
        ("full handshake, SCRAM, bind", false, false, false),
        ("full handshake, SASL2 and Bind 2", true, false, false),
        ("ticket, SASL2 and Bind 2", true, true, false),
        ("full handshake, token", true, false, true),
        ("ticket and token", true, true, true),
    ];
    for (name, sasl2, tls_resumption, fast) in kinds {
        let settings =
            Settings { transport: Transport::DirectTls, sasl2, tls_resumption, fast, ..Settings::default() };
        let profile = Profile::new(settings)?;
        let login = || log_in(&profile, port, user, password);
        // The first ones bring keys, ticket and token.
        (0..3).try_for_each(|_| login())?;
        let (before, began) = (processor_ms(pid)?, Instant::now());
        (0..rounds).try_for_each(|_| login())?;
        let each = (processor_ms(pid)? - before) / f64::from(rounds);
        let wall = began.elapsed().as_secs_f64() * 1000.0 / f64::from(rounds);
        println!("{name:34} {each:.3} ms of the server's processor, {wall:.2} ms in all");
    }
    Ok(())
}

fn log_in(profile: &Arc<Profile>, port: u16, user: &str, password: &str) -> Result<(), Box<dyn Error>> {
    let options = Options::new(BareJid::new(user)?, password, profile);
    let client = Client::connect_within((Ipv4Addr::LOCALHOST, port), options, PATIENCE)?;
    client.close(PATIENCE)?;
    Ok(())
}

/// User and system time of a process, in milliseconds.
fn processor_ms(pid: &str) -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |n: usize| fields.get(n).and_then(|field| field.parse::<f64>().ok()).ok_or("no such field");
    // Linux counts in hundredths of a second.
    Ok((ticks(11)? + ticks(12)?) * 10.0)
}
