//! The process that takes over from another in a live upgrade (`crate::upgrade`). It touches nothing of the node's until it is told to go on.

use crate::cell::GoesOn;
use crate::config::Config;
use crate::preflight::{self, Purpose};
use crate::process::supervisor::Supervisor;
use crate::process::telemetry::Telemetry;
use crate::serve::{Args, Inherited, Prepared, Running};
use crate::upgrade::VARIABLE;
use crate::upgrade::channel::{Channel, Frame};
use crate::upgrade::wire::{
    self, Broken, Checked, End, HTTP, Hello, InCell, Listener, PROTOCOL, Refused, Serving, kind,
};
use crate::{assemble, backends};
use carillon_backend::SCHEMA;
use carillon_core::form;
use carillon_core::model::Epoch;
use carillon_server::handover::{ListenerKind, TakeOver};
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

/// Whether this process is to take over from another.
pub fn is_successor() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Takes over, and runs the node until a signal ends it.
pub fn run(args: &Args) -> ExitCode {
    let mut channel = match predecessor() {
        Ok(channel) => channel,
        Err(error) => return failed(&format!("{VARIABLE} is set, and standard input is no socket: {error}")),
    };
    match take_over(args, &mut channel) {
        Ok((running, telemetry)) => serve(args, running, &telemetry, channel),
        Err(why) => {
            // The other process says it to whoever asked; it may be gone.
            let _ = wire::say(&mut channel, kind::REFUSED, &Refused { why: why.clone() });
            failed(&why)
        }
    }
}

fn failed(error: &str) -> ExitCode {
    eprintln!("carillon: cannot take over: {error}");
    ExitCode::FAILURE
}

/// The socket to the other process, which standard input is; that reads nothing from now on.
fn predecessor() -> io::Result<Channel> {
    let socket = rustix::stdio::stdin().try_clone_to_owned()?;
    rustix::net::sockopt::socket_type(&socket)?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    let mut channel = Channel::new(UnixStream::from(socket));
    channel.allow(PATIENCE);
    Ok(channel)
}

fn take_over(args: &Args, channel: &mut Channel) -> Result<(Running, Telemetry), String> {
    let config = Config::load(&args.source).map_err(|problems| problems.to_string())?;
    form::limit(config.settings.cell.form_max);
    let telemetry = Telemetry::start(&config.settings.log).map_err(|error| error.to_string())?;
    preflight::descriptors::raise();
    let findings = preflight::inspect(&config, Purpose::TakeOver);
    if let Some(finding) = findings.iter().find(|finding| finding.stops) {
        return Err(finding.sentence());
    }
    let hello: Hello = wire::expect(channel, kind::HELLO).map_err(|why| why.to_string())?;
    check(&hello, &config)?;
    // Until this process has the store.
    let epoch = hello.cell.as_ref().map(|node| Epoch(node.epoch));
    let presence = epoch.map(|epoch| backends::postgres::show_node(&config.settings, epoch)).transpose()?;
    let mut prepared = Prepared::new(config)?;
    let checked =
        Checked { release: env!("CARGO_PKG_VERSION").to_owned(), pid: std::process::id(), cell: true };
    wire::say(channel, kind::CHECKED, &checked).map_err(|why| why.to_string())?;
    let mut inherited =
        Inherited { take_over: TakeOver::begin().map_err(|e| e.to_string())?, http: Vec::new(), cell: None };
    receive(channel, &mut inherited, &mut prepared)?;
    let connections = inherited.take_over.connections();
    wire::say(channel, kind::READY, &serde_json::json!({})).map_err(|why| why.to_string())?;
    channel.allow(PATIENCE);
    let bus = match wire::hear(channel) {
        Ok(Frame { kind: kind::GO, content, .. }) => content.to_vec(),
        // It was the last to know of the sessions, besides this process, and its store is free.
        Err(Broken::Ended) => {
            tracing::warn!("the old process ended before it said so; going on in its place");
            Vec::new()
        }
        Ok(_) => return Err("the old process does not speak as it should".to_owned()),
        Err(why) => return Err(format!("the old process: {why}")),
    };
    inherited.cell = hello.cell.map(|node| GoesOn { node, bus });
    let mut running = Running::start(prepared, Some(inherited))?;
    drop(presence);
    running.guard(hello.guardian);
    tracing::info!(predecessor = hello.pid, release = hello.release, connections, "took over");
    Ok((running, telemetry))
}

/// Whether this process can go on with what the other one has.
fn check(hello: &Hello, config: &Config) -> Result<(), String> {
    let own = env!("CARGO_PKG_VERSION");
    let Hello { protocol, release, form, schema, data_dir, cell, .. } = hello;
    if *protocol != PROTOCOL {
        return Err(format!(
            "release {own} speaks version {PROTOCOL} of the hand-over and release {release} version {protocol}"
        ));
    }
    if !(form::OLDEST..=form::VERSION).contains(form) {
        return Err(format!(
            "release {own} reads sessions of the versions {} to {}, and release {release} writes version {form}",
            form::OLDEST,
            form::VERSION
        ));
    }
    if *schema > SCHEMA {
        return Err(format!(
            "the store has schema {schema}, which release {own} does not know: it knows {SCHEMA} and older ones"
        ));
    }
    let folder = &config.settings.node.data_dir;
    // Both are there, and the two processes have the same working folder.
    if std::fs::canonicalize(folder).ok() != std::fs::canonicalize(data_dir).ok() {
        return Err(format!(
            "its data folder is {}, and that of the running node {}",
            folder.display(),
            data_dir.display()
        ));
    }
    check_cell(cell.as_ref(), config)
}

/// Whether this process can go on as the node of a cell that the other one is, or as one that is in none.
fn check_cell(cell: Option<&InCell>, config: &Config) -> Result<(), String> {
    let settings = &config.settings;
    let Some(InCell { name, shards, .. }) = cell else {
        return match settings.cell.nats.is_empty() {
            true => Ok(()),
            false => Err("the running node is in no cell, and the settings name one: restart it".to_owned()),
        };
    };
    if settings.cell.nats.is_empty() {
        return Err("the running node is in a cell, and the settings name none: restart it".to_owned());
    }
    if !settings.node.name.is_empty() && settings.node.name != *name {
        return Err(format!("the running node is {name}, and the settings name {}", settings.node.name));
    }
    let own = assemble::server(settings).shard_count();
    if own != *shards {
        return Err(format!(
            "the running node has {shards} shards, by which other nodes know its sessions, and this process {own}"
        ));
    }
    Ok(())
}

fn receive(channel: &mut Channel, inherited: &mut Inherited, prepared: &mut Prepared) -> Result<(), String> {
    loop {
        channel.allow(PATIENCE);
        let frame = wire::hear(channel).map_err(|why| format!("the old process: {why}"))?;
        match frame.kind {
            kind::LISTENER => listener(frame, inherited)?,
            kind::TICKETS => {
                // Without them returning clients need a full handshake.
                if let Err(why) = prepared.take_ticket_keys(&frame.content) {
                    tracing::warn!(%why, "the keys of the TLS session tickets were not taken");
                }
            }
            kind::GROUP => {
                let Frame { content, descriptors, .. } = frame;
                inherited.take_over.add_group(&content, descriptors).map_err(|error| error.to_string())?;
            }
            kind::FAR => {
                let Frame { content, descriptors, .. } = frame;
                inherited.take_over.add_far(&content, descriptors).map_err(|error| error.to_string())?;
            }
            kind::END => {
                let end: End = wire::object(&frame).map_err(|why| why.to_string())?;
                let sessions = inherited.take_over.sessions() as u64;
                if end.sessions != sessions {
                    return Err(format!("{sessions} sessions came in place of {}", end.sessions));
                }
                return Ok(());
            }
            // What a later release has besides, it can do without.
            _ => {}
        }
    }
}

fn listener(frame: Frame, inherited: &mut Inherited) -> Result<(), String> {
    let Listener { kind } = wire::object(&frame).map_err(|why| why.to_string())?;
    for socket in frame.descriptors {
        if kind == HTTP {
            inherited.http.push(http(socket).map_err(|error| error.to_string())?);
        } else if let Some(kind) = ListenerKind::named(&kind) {
            inherited.take_over.add_listener(kind, socket).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn http(socket: OwnedFd) -> io::Result<TcpListener> {
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves, and says so to all who want to know.
fn serve(args: &Args, mut running: Running, telemetry: &Telemetry, mut channel: Channel) -> ExitCode {
    let signals = match running.listen() {
        Ok(signals) => signals,
        Err(error) => return failed(&error.to_string()),
    };
    if let Some(path) = &args.ready_file
        && let Err(error) = running.ready().write(path)
    {
        tracing::error!(%error, path = %path.display(), "the ready file was not written");
    }
    channel.allow(PATIENCE);
    let serving = Serving { sessions: running.sessions() };
    if let Err(why) = wire::say(&mut channel, kind::SERVING, &serving) {
        tracing::warn!(%why, "the old process was not told");
    }
    // The service manager listens to this process once the other one has named it, which closes the channel then.
    channel.allow(FAREWELL);
    let _ = channel.receive();
    drop(channel);
    match Supervisor::from_env() {
        Ok(supervisor) => running.report_to(supervisor),
        Err(error) => tracing::error!(%error, "NOTIFY_SOCKET cannot be used"),
    }
    running.until_told(signals, telemetry)
}

/// How long the other process may take to name this one to the service manager.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long the other process may be silent. Its own times are shorter: this is for the case that it hangs.
const PATIENCE: Duration = Duration::from_secs(120);
