//! The bus of a cell over NATS, and durable queues of its JetStream (`jetstream`).
//!
//! Subjects of the bus: `PREFIX.n.EPOCH` to a node, `PREFIX.t.PARTITION` to who follows a partition of the topics, `PREFIX.all` to all. The client connects again by
//! itself, for ever; it drops silently what a subscription has no room for, and what was in its buffer when a connection was lost. Both are seen by
//! the numbers in the envelopes (`bus`).

pub mod jetstream;
mod options;

pub use options::{Auth, OpenError, Options, Tls};

use crate::bus::{self, Hearing, Outbox, TICKS_PER_BEAT};
use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use bytes::Bytes;
use carillon_core::model::Epoch;
use carillon_core::ports::bus::{BusFigures, Hears};
use carillon_core::ports::{Bus, Subject};
use futures_util::StreamExt;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::{self, Handle};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{self, MissedTickBehavior};

/// Envelopes that the client holds for the server. What does not fit waits in the outbox, where bytes are counted.
const CLIENT_ENVELOPES: usize = 32;
/// Envelopes of one subject that came and were not looked at yet. What comes beyond is lost, which the numbers tell: with full envelopes
/// these are 64 MiB.
const SUBJECT_ENVELOPES: usize = 1024;
/// Bytes that are given to the client before it is looked whether a beat is due.
const TURN_BYTES: usize = 1 << 20;
/// A server that says nothing for so long is asked whether it is there. Twice without an answer, and the connection counts as lost.
const PING_EVERY: Duration = Duration::from_secs(2);
/// How long connecting may take, and the longest pause between two attempts.
const CONNECT_MAX: Duration = Duration::from_secs(3);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long a bus that is closed tries to send what waits.
const CLOSING_MAX: Duration = Duration::from_secs(1);

/// Opens the bus of a node, which hears what follows. Its work is done on this runtime. Servers that cannot be reached are tried again and again.
///
/// # Errors
/// When the options are wrong.
pub fn open(
    options: &Options,
    own: Epoch,
    hears: Hears,
    runtime: &Handle,
) -> Result<Arc<dyn Bus>, OpenError> {
    if !options::is_prefix(&options.prefix) {
        return Err(OpenError::Prefix);
    }
    let servers = addresses(&options.servers)?;
    let (outbox, hearing) = bus::begin(own, hears, &options.bus);
    let shared = Arc::new(Shared {
        hearing,
        outbox,
        wakes: Notify::new(),
        closes: Notify::new(),
        failures: AtomicU64::new(0),
        options: options.clone(),
    });
    let connect = connect_options(options, &shared)?.name(format!("carillon {own}"));
    let tick_every = options.bus.beat_every / TICKS_PER_BEAT;
    runtime.spawn(run(shared.clone(), servers, connect, tick_every));
    Ok(Arc::new(Nats(shared)))
}

/// Connects once, to see whether a server lets the node in.
///
/// # Errors
/// Why none does.
pub fn inspect(options: &Options) -> Result<(), String> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(attempt(options))
}

async fn attempt(options: &Options) -> Result<(), String> {
    let servers = addresses(&options.servers).map_err(|e| e.to_string())?;
    let connect = ConnectOptions::new().name("carillon inspects").connection_timeout(CONNECT_MAX);
    let connect = identify(connect, &options.auth, &options.tls).map_err(|e| e.to_string())?;
    match async_nats::connect_with_options(servers, connect).await {
        Ok(_) => Ok(()),
        Err(e) => Err(options.explained(&e)),
    }
}

fn addresses(servers: &[Box<str>]) -> Result<Vec<ServerAddr>, OpenError> {
    let address = |server: &str| server.parse::<ServerAddr>().map_err(|e| OpenError::Address(e.to_string()));
    servers.iter().map(|server| address(server)).collect()
}

/// The bus of a node.
struct Nats(Arc<Shared>);

struct Shared {
    outbox: Arc<Outbox>,
    hearing: Hearing,
    wakes: Notify,
    closes: Notify,
    /// Attempts to connect that failed since there was a connection.
    failures: AtomicU64,
    options: Options,
}

impl Bus for Nats {
    fn post(&self, to: Subject, record: Vec<u8>) {
        self.0.outbox.post(to, &record);
        self.0.wakes.notify_one();
    }

    fn follow(&self, subject: Subject) {
        self.0.outbox.follow(subject, true);
        self.0.wakes.notify_one();
    }

    fn leave(&self, subject: Subject) {
        self.0.outbox.follow(subject, false);
        self.0.wakes.notify_one();
    }

    fn tell_store(&self, works: bool) {
        self.0.outbox.tell_store(works);
    }

    fn figures(&self) -> BusFigures {
        bus::figures(&self.0.outbox, &self.0.hearing)
    }

    fn rest(&self, rests: bool) {
        self.0.hearing.rest(rests);
        self.0.wakes.notify_one();
    }

    fn hand_over(&self) -> Vec<u8> {
        let left = bus::hand_over(&self.0.outbox, &self.0.hearing);
        self.0.closes.notify_one();
        left
    }

    fn close(&self) {
        self.0.outbox.close();
        self.0.hearing.close();
        self.0.closes.notify_one();
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats").field("hearing", &self.0.hearing).finish_non_exhaustive()
    }
}

impl Shared {
    fn name(&self, subject: Subject) -> String {
        let prefix = &self.options.prefix;
        match subject {
            Subject::Node(epoch) => format!("{prefix}.n.{epoch}"),
            Subject::Partition(partition) => format!("{prefix}.t.{partition}"),
            Subject::All => format!("{prefix}.all"),
        }
    }

    /// Says why NATS cannot be reached. The client names only the kind of error, so one more connection is tried.
    fn say_why(&self, failures: u64, kind: String) {
        let options = self.options.clone();
        tokio::spawn(async move {
            let error = attempt(&options).await.err().unwrap_or(kind);
            tracing::warn!(error, failures, "NATS cannot be reached");
        });
    }

    fn noticed(&self, event: &Event) {
        match event {
            Event::Connected => {
                self.failures.store(0, Ordering::Relaxed);
                tracing::info!("the bus is connected to NATS");
                self.hearing.reached(true);
                self.wakes.notify_one();
            }
            Event::Disconnected | Event::Closed => self.hearing.reached(false),
            Event::SlowConsumer(_) => tracing::debug!("a subject of the bus has no room for what comes"),
            Event::ServerError(e) => tracing::warn!(error = %e, "NATS refuses something"),
            Event::ClientError(e) => {
                let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
                if failures.is_power_of_two() {
                    self.say_why(failures, e.to_string());
                }
            }
            Event::LameDuckMode | Event::Draining => {}
        }
    }
}

fn connect_options(options: &Options, shared: &Arc<Shared>) -> Result<ConnectOptions, OpenError> {
    let noticing = shared.clone();
    let connect = ConnectOptions::new()
        .retry_on_initial_connect()
        .client_capacity(CLIENT_ENVELOPES)
        .subscription_capacity(SUBJECT_ENVELOPES)
        .ping_interval(PING_EVERY)
        .connection_timeout(CONNECT_MAX)
        .reconnect_delay_callback(pause)
        .event_callback(move |event| {
            noticing.noticed(&event);
            std::future::ready(())
        });
    identify(connect, &options.auth, &options.tls)
}

/// Says by what servers are known, and the node to them.
fn identify(mut connect: ConnectOptions, auth: &Auth, tls: &Tls) -> Result<ConnectOptions, OpenError> {
    connect = connect.require_tls(tls.required);
    if let Some(authorities) = &tls.authorities {
        connect = connect.add_root_certificates(authorities.clone());
    }
    if let Some((certificate, key)) = &tls.certificate {
        connect = connect.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(match auth {
        Auth::None => connect,
        Auth::Password { user, password } => connect.user_and_password(user.to_string(), password.read()?),
        Auth::Token(token) => connect.token(token.read()?),
        Auth::Nkey(seed) => connect.nkey(seed.read()?),
        Auth::Credentials(file) => connect.credentials(&file.read()?).map_err(OpenError::Credentials)?,
    })
}

/// The pause before an attempt to connect: none at first, then longer and longer.
fn pause(attempts: usize) -> Duration {
    let doublings = attempts.saturating_sub(2).min(10) as u32;
    if attempts <= 1 {
        Duration::ZERO
    } else {
        (Duration::from_millis(20) * 2u32.pow(doublings)).min(PAUSE_MAX)
    }
}

/// Sends and listens until the bus is closed.
async fn run(shared: Arc<Shared>, servers: Vec<ServerAddr>, connect: ConnectOptions, tick_every: Duration) {
    let client = match async_nats::connect_with_options(servers, connect).await {
        Ok(client) => client,
        Err(e) => return tracing::error!(error = %e, "the bus cannot be opened"),
    };
    tokio::select! {
        () = work(&shared, &client, tick_every) => {}
        // Giving something to a client that is not connected may take for ever.
        () = shared.closes.notified() => {}
    }
    let closing = async {
        while send(&shared, &client).await {}
        client.flush().await
    };
    if client.connection_state() == State::Connected {
        drop(time::timeout(CLOSING_MAX, closing).await);
    }
}

async fn work(shared: &Arc<Shared>, client: &Client, tick_every: Duration) {
    let mut listening = JoinSet::new();
    let mut subjects = HashMap::new();
    let mut ticks = time::interval(tick_every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut count = 0;
    loop {
        let is_tick = tokio::select! {
            _ = ticks.tick() => true,
            () = shared.wakes.notified() => false,
        };
        if let Some(follows) = shared.outbox.changed_follows() {
            listen(shared, client, &mut listening, &mut subjects, follows).await;
        }
        let is_connected = client.connection_state() == State::Connected;
        if is_tick {
            while listening.try_join_next().is_some() {}
            // What it asks for is sent with what waits.
            shared.hearing.tick(is_connected);
        }
        if is_connected {
            // Beats do not wait for what is much.
            if is_tick && count % TICKS_PER_BEAT == 0 {
                publish(shared, client, Subject::All, shared.outbox.beat().into()).await;
            }
            if send(shared, client).await {
                shared.wakes.notify_one();
            }
        }
        count += u32::from(is_tick);
    }
}

/// Gives some of what waits to the client. Whether there may be more.
async fn send(shared: &Shared, client: &Client) -> bool {
    let taken = shared.outbox.take(TURN_BYTES);
    let has_more = !taken.is_empty();
    for (subject, envelope) in taken {
        publish(shared, client, subject, envelope).await;
    }
    has_more
}

async fn publish(shared: &Shared, client: &Client, subject: Subject, envelope: Bytes) {
    // Whoever it is for finds out by its number.
    if let Err(e) = client.publish(shared.name(subject), envelope).await {
        tracing::warn!(error = %e, "an envelope for other nodes is lost");
    }
}

/// Subscribes to what is to be heard, and to nothing else.
async fn listen(
    shared: &Arc<Shared>,
    client: &Client,
    listening: &mut JoinSet<()>,
    subjects: &mut HashMap<Subject, AbortHandle>,
    follows: BTreeSet<Subject>,
) {
    shared.hearing.follow(follows.clone());
    subjects.retain(|subject, task| {
        let is_followed = follows.contains(subject);
        if !is_followed {
            task.abort();
        }
        is_followed
    });
    for subject in follows {
        if subjects.contains_key(&subject) {
            continue;
        }
        match client.subscribe(shared.name(subject)).await {
            Ok(mut subscriber) => {
                let shared = shared.clone();
                let task = listening.spawn(async move {
                    while let Some(message) = subscriber.next().await {
                        if shared.hearing.take(subject, &message.payload) {
                            shared.wakes.notify_one();
                        }
                    }
                });
                subjects.insert(subject, task);
            }
            Err(e) => tracing::error!(error = %e, "a subject of the bus cannot be followed"),
        }
    }
}
