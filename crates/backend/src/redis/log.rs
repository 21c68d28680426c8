//! The log of sessions in Redis, or Valkey: one hash per node, `PREFIX:l:{EPOCH}`, with a field for each session.
//!
//! What the shards of a node write is gathered: one pipeline is under way, and what is written meanwhile makes the next one, in which a session is
//! once, as it was last.

use super::{OpenError, Options, PAUSE_MAX, PAUSE_MIN, PING_EVERY};
use crate::answering::Answering;
use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, ErrorKind, RedisError, RedisResult};
use carillon_core::model::{Epoch, Map, SessionId, ShardId};
use carillon_core::ports::{Left, LogEntry, LogHeard, LogHears, Reply, SessionLog, Unavailable};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time;

/// How long connecting and an answer may take: clients wait for it.
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// How long what a dead node left may take to be read, with all attempts.
const TAKE_MAX: Duration = Duration::from_secs(5);
/// Fields that are read of a log at once.
const PAGE: usize = 500;
/// How long a log is kept that nobody takes, and how often a node says so.
const KEPT: Duration = Duration::from_secs(15 * 60);
const RENEWED_EVERY: Duration = Duration::from_secs(60);
/// How long the end of a node waits until its log is forgotten.
const FORGET_MAX: Duration = Duration::from_secs(1);

/// Opens the log of a node. Its work is done on this runtime. A server that cannot be reached is tried again and again.
///
/// # Errors
/// When the options are wrong.
pub fn open_log(
    options: &Options,
    own: Epoch,
    hears: LogHears,
    runtime: &Handle,
) -> Result<Arc<dyn SessionLog>, OpenError> {
    // What is wrong with the options is found out now.
    options.client()?;
    let shared = Arc::new(Shared {
        own,
        options: options.clone(),
        pending: Mutex::default(),
        wakes: Notify::new(),
        hears,
    });
    runtime.spawn(run(shared.clone()));
    Ok(Arc::new(RedisLog { shared, runtime: runtime.clone() }))
}

struct RedisLog {
    shared: Arc<Shared>,
    runtime: Handle,
}

struct Shared {
    own: Epoch,
    options: Options,
    pending: Mutex<Pending>,
    wakes: Notify,
    hears: LogHears,
}

/// A field of a hash as it is read: its name and its value.
type NamedValue = (Vec<u8>, Vec<u8>);

/// The name of a session among those of its node: ten bytes.
type Field = [u8; 10];

/// What waits.
#[derive(Default)]
struct Pending {
    /// The server is reached.
    is_open: bool,
    /// Shards that have written all their sessions since.
    complete: BTreeSet<ShardId>,
    entries: Map<Field, Option<Vec<u8>>>,
    bytes: usize,
    /// What each shard is to be told when that is written.
    numbers: BTreeMap<ShardId, u64>,
    /// More waits than may.
    is_full: bool,
    closes: Option<SyncSender<()>>,
    /// What was written stays there when it is closed.
    stays: bool,
}

/// What was taken of that.
struct Taken {
    entries: Map<Field, Option<Vec<u8>>>,
    numbers: BTreeMap<ShardId, u64>,
    is_full: bool,
    closes: Option<SyncSender<()>>,
    stays: bool,
}

impl Pending {
    /// Begins anew: nothing of the node is at the server.
    fn begin(&mut self) {
        let (closes, stays) = (self.closes.take(), self.stays);
        *self = Pending { is_open: true, closes, stays, ..Pending::default() };
    }

    /// What waits now.
    fn take(&mut self) -> Taken {
        self.bytes = 0;
        Taken {
            entries: std::mem::take(&mut self.entries),
            numbers: std::mem::take(&mut self.numbers),
            is_full: self.is_full,
            closes: self.closes.clone(),
            stays: self.stays,
        }
    }

    /// Whether it is taken what a shard writes.
    fn takes(&mut self, shard: ShardId, anew: bool) -> bool {
        if anew && self.is_open {
            self.complete.insert(shard);
        }
        self.complete.contains(&shard)
    }
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, epoch: Epoch) -> String {
        format!("{}:l:{{{epoch}}}", self.options.prefix)
    }
}

fn field(shard: ShardId, session: SessionId) -> Field {
    let mut field = [0; 10];
    field[..2].copy_from_slice(&shard.0.to_be_bytes());
    field[2..6].copy_from_slice(&session.slot.to_be_bytes());
    field[6..].copy_from_slice(&session.generation.to_be_bytes());
    field
}

fn left(field: &[u8], bytes: Vec<u8>) -> Option<Left> {
    let (shard, rest) = field.split_first_chunk::<2>()?;
    let (slot, rest) = rest.split_first_chunk::<4>()?;
    let (generation, []) = rest.split_first_chunk::<4>()? else { return None };
    let session = SessionId { slot: u32::from_be_bytes(*slot), generation: u32::from_be_bytes(*generation) };
    Some(Left { shard: ShardId(u16::from_be_bytes(*shard)), session, bytes })
}

impl SessionLog for RedisLog {
    fn write(&self, shard: ShardId, number: u64, anew: bool, entries: Vec<LogEntry>) {
        let mut pending = self.shared.pending();
        if !pending.takes(shard, anew) {
            return;
        }
        for LogEntry { session, bytes } in entries {
            pending.bytes += bytes.as_ref().map_or(0, Vec::len);
            let before = pending.entries.insert(field(shard, session), bytes);
            pending.bytes -= before.flatten().map_or(0, |before| before.len());
        }
        pending.numbers.insert(shard, number);
        pending.is_full |= pending.bytes > self.shared.options.queue_bytes_max;
        drop(pending);
        self.shared.wakes.notify_one();
    }

    fn take(&self, epoch: Epoch, reply: Reply<Result<Vec<Left>, Unavailable>>) {
        let (answering, options) = (Answering::new(reply), self.shared.options.clone());
        let (from, to) =
            (self.shared.key(epoch), format!("{}:taken:{}", self.shared.key(epoch), self.shared.own));
        self.runtime.spawn(async move {
            let began = Instant::now();
            while began.elapsed() < TAKE_MAX {
                match time::timeout(TAKE_MAX, take(&options, &from, &to)).await {
                    Ok(Ok(all)) => return answering.give(all),
                    Ok(Err(e)) => tracing::warn!(error = %e, "what a dead node left cannot be read yet"),
                    Err(_) => return,
                }
                time::sleep(PAUSE_MAX).await;
            }
        });
    }

    fn leave(&self) {
        self.shared.pending().stays = true;
        self.close();
    }

    fn close(&self) {
        let (sender, done) = sync_channel(1);
        let is_open = {
            let mut pending = self.shared.pending();
            pending.closes = Some(sender);
            pending.is_open
        };
        self.shared.wakes.notify_one();
        if is_open {
            let _ = done.recv_timeout(FORGET_MAX);
        }
    }
}

impl fmt::Debug for RedisLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLog").field("own", &self.shared.own).finish_non_exhaustive()
    }
}

impl Drop for RedisLog {
    fn drop(&mut self) {
        let (nobody, _) = sync_channel(1);
        self.shared.pending().closes.get_or_insert(nobody);
        self.shared.wakes.notify_one();
    }
}

/// Connects and writes until the log is closed.
async fn run(shared: Arc<Shared>) {
    let (mut pause, mut failures) = (PAUSE_MIN, 0u64);
    while shared.pending().closes.is_none() {
        match begin(&shared).await {
            Ok(mut connection) => {
                (pause, failures) = (PAUSE_MIN, 0);
                tracing::info!("the log of sessions is connected to Redis");
                let ended = serve(&shared, &mut connection).await;
                {
                    let mut pending = shared.pending();
                    let (closes, stays) = (pending.closes.take(), pending.stays);
                    *pending = Pending { closes, stays, ..Pending::default() };
                }
                (shared.hears)(LogHeard::Away);
                if let Err(e) = ended {
                    tracing::warn!(error = %e, "sessions are not written down: the connection to Redis is lost");
                }
            }
            Err(e) => {
                failures += 1;
                if failures.is_power_of_two() {
                    let error = shared.options.explained(&e);
                    tracing::warn!(error, failures, "sessions are not written down: Redis cannot be reached");
                }
            }
        }
        drop(time::timeout(pause, shared.wakes.notified()).await);
        pause = (2 * pause).min(PAUSE_MAX);
    }
}

async fn connect(options: &Options, answer_max: Duration) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(ANSWER_MAX))
        .set_response_timeout(Some(answer_max));
    options.next_client()?.get_multiplexed_async_connection_with_config(&config).await
}

/// Connects, and has the server forget what it has of the node.
async fn begin(shared: &Shared) -> RedisResult<MultiplexedConnection> {
    let mut connection = connect(&shared.options, ANSWER_MAX).await?;
    // A replica refuses it.
    let _: () = ::redis::cmd("DEL").arg(shared.key(shared.own)).query_async(&mut connection).await?;
    shared.pending().begin();
    (shared.hears)(LogHeard::Back);
    Ok(connection)
}

/// Writes what waits, until the connection is lost or the log is closed.
async fn serve(shared: &Shared, connection: &mut MultiplexedConnection) -> RedisResult<()> {
    let key = shared.key(shared.own);
    let mut renewed = None::<Instant>;
    loop {
        let Taken { entries, numbers, is_full, closes, stays } = shared.pending().take();
        if let Some(closes) = closes {
            let ended: RedisResult<()> = match stays {
                true if entries.is_empty() => Ok(()),
                true => pipeline(&key, &entries).query_async(connection).await,
                false => ::redis::cmd("UNLINK").arg(&key).query_async(connection).await,
            };
            let _ = closes.try_send(());
            return ended;
        }
        if is_full {
            let text = "more waits to be written than may";
            return Err(RedisError::from((ErrorKind::Io, text)));
        }
        if entries.is_empty() && numbers.is_empty() {
            if time::timeout(PING_EVERY, shared.wakes.notified()).await.is_err() {
                let _: () = ::redis::cmd("PING").query_async(connection).await?;
            }
            continue;
        }
        let mut pipe = pipeline(&key, &entries);
        if renewed.is_none_or(|renewed| renewed.elapsed() >= RENEWED_EVERY) && !entries.is_empty() {
            pipe.cmd("EXPIRE").arg(&key).arg(KEPT.as_secs()).ignore();
            renewed = Some(Instant::now());
        }
        if !entries.is_empty() {
            let _: () = pipe.query_async(connection).await?;
        }
        numbers.into_iter().for_each(|(shard, number)| (shared.hears)(LogHeard::Written(shard, number)));
    }
}

/// What writes sessions: two commands at most.
fn pipeline(key: &str, entries: &Map<Field, Option<Vec<u8>>>) -> ::redis::Pipeline {
    let mut pipe = ::redis::pipe();
    let (mut set, mut gone) = (::redis::cmd("HSET"), ::redis::cmd("HDEL"));
    set.arg(key);
    gone.arg(key);
    let (mut sets, mut goes) = (false, false);
    for (field, bytes) in entries {
        match bytes {
            Some(bytes) => {
                set.arg(&field[..]).arg(&bytes[..]);
                sets = true;
            }
            None => {
                gone.arg(&field[..]);
                goes = true;
            }
        }
    }
    if sets {
        pipe.add_command(set).ignore();
    }
    if goes {
        pipe.add_command(gone).ignore();
    }
    pipe
}

/// Takes the log of a node. That it is renamed decides who has it; a name that is there already is of an attempt before, whose answer was lost.
async fn take(options: &Options, from: &str, to: &str) -> RedisResult<Vec<Left>> {
    let mut connection = connect(options, TAKE_MAX).await?;
    let renamed: RedisResult<()> =
        ::redis::cmd("RENAME").arg(from).arg(to).query_async(&mut connection).await;
    if let Err(e) = renamed
        && !e.to_string().contains("no such key")
    {
        return Err(e);
    }
    let (mut all, mut cursor) = (Vec::new(), 0u64);
    let mut seen = BTreeSet::new();
    loop {
        let (next, page): (u64, Vec<NamedValue>) = ::redis::cmd("HSCAN")
            .arg(to)
            .arg(cursor)
            .arg("COUNT")
            .arg(PAGE)
            .query_async(&mut connection)
            .await?;
        // It may give one twice.
        let new = page.into_iter().filter(|(field, _)| seen.insert(field.clone()));
        all.extend(new.filter_map(|(field, bytes)| left(&field, bytes)));
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    let _: () = ::redis::cmd("UNLINK").arg(to).query_async(&mut connection).await?;
    Ok(all)
}
