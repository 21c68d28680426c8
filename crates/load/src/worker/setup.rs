//! What all threads of a worker share: the job with its names, addresses and profiles.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use carillon_wire::jid::{BareJid, Jid};

use super::clock::Clock;
use super::schedule::Share;
use crate::client::sasl::{KeyCache, Mechanism};
use crate::client::tls::Trust;
use crate::client::{Options, Profile, Settings, StreamManagement, Transport};
use crate::control::{Fault, Job};
use crate::plan::{Players, Protocol, Target, TransportKind};

/// The resource of every player, and the tag with Bind 2.
const RESOURCE: &str = "load";
/// The resource of the publisher.
const PUBLISHER_RESOURCE: &str = "publisher";
/// File descriptors that a process needs besides those of its players.
const SPARE_DESCRIPTORS: u64 = 64;

/// The job, and what is derived from it before the first connection.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) job: Job,
    /// The addresses to which players connect, by their numbers in turn.
    pub(super) addresses: Vec<SocketAddr>,
    /// The pubsub service.
    pub(super) service: Jid,
    /// The service of rooms.
    rooms: String,
    /// That of rooms of MUC Light.
    light_rooms: String,
    pub(super) clock: Clock,
    pub(super) profile: Arc<Profile>,
    /// Notifications of the current phase that have arrived.
    pub(super) notified: AtomicU64,
    keys: Arc<KeyCache>,
    keys_read: usize,
}

impl Setup {
    /// Checks everything that can be checked without the target.
    pub(super) fn new(job: Job) -> Result<Self, Fault> {
        let target = &job.target;
        job.scenario.check().map_err(|error| worker(format!("the scenario: {error}")))?;
        if job.test.is_empty() || !job.test.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(worker(format!(
                "{:?} is not a valid test id; use letters, digits and hyphens",
                job.test
            )));
        }
        check_descriptors(u64::from(job.count))?;
        let addresses = match (job.scenario.players.protocol, &target.light) {
            (Protocol::Xmpp, _) => resolve(target.client_places())?,
            (Protocol::Light, Some(light)) => resolve(Target::places(light).map(str::to_owned))?,
            (Protocol::Light, None) => {
                return Err(lacks("the light protocol", "pass its address with --light"));
            }
        };
        let service = target.pubsub.clone().unwrap_or_else(|| format!("pubsub.{}", target.domain));
        let service = Jid::new(&service).map_err(|error| at_target(format!("{service:?}: {error}")))?;
        let rooms_at =
            |host: &str| target.rooms.clone().unwrap_or_else(|| format!("{host}.{}", target.domain));
        let (rooms, light_rooms) = (rooms_at("rooms"), rooms_at("muclight"));
        let keys = Arc::new(KeyCache::default());
        read_keys(target, &keys)?;
        let profile = profile(&job, &keys)?;
        let keys_read = keys.len();
        let clock = Clock::new(job.clock_offset_ns);
        let setup = Self {
            job,
            addresses,
            service,
            rooms,
            light_rooms,
            clock,
            profile,
            notified: AtomicU64::new(0),
            keys,
            keys_read,
        };
        // The longest account name is valid only if all are.
        setup.account(setup.job.first + setup.job.count)?;
        setup.publisher()?;
        Ok(setup)
    }

    /// The address of a room, of MUC Light or another.
    pub(super) fn room(&self, name: &str, is_light: bool) -> Option<Jid> {
        let service = if is_light { &self.light_rooms } else { &self.rooms };
        Jid::from_parts(Some(name), service, None).ok()
    }

    /// The address that a player has in a room.
    pub(super) fn occupant(&self, room: &str, player: usize) -> Option<Jid> {
        Jid::from_parts(Some(room), &self.rooms, Some(&format!("player {player}"))).ok()
    }

    /// The options of a player; a new player may have to register its account.
    pub(super) fn options(&self, number: usize, is_new: bool) -> Options {
        Options::new(self.player(number), self.job.target.password.clone(), &self.profile)
            .with_resource(RESOURCE)
            .with_registration(is_new && self.job.scenario.players.register)
    }

    /// The account of a player.
    pub(super) fn player(&self, number: usize) -> BareJid {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        self.account(number).expect("the longest name was checked")
    }

    /// The account that publishes by XEP-0060.
    pub(super) fn publisher(&self) -> Result<Options, Fault> {
        let target = &self.job.target;
        let account = BareJid::from_parts(Some(&target.publisher), &target.domain)
            .map_err(|error| at_target(format!("the publisher's account: {error}")))?;
        let options = Options::new(account, target.password.clone(), &self.profile);
        Ok(options.with_resource(PUBLISHER_RESOURCE).with_registration(self.job.scenario.players.register))
    }

    /// The number of the player with this localpart, if it is a player of this worker.
    pub(super) fn number(&self, localpart: &str) -> Option<u32> {
        let number: u32 = localpart.strip_prefix(&*self.job.target.user_prefix)?.parse().ok()?;
        let number = number.checked_sub(self.job.target.user_start)?;
        (self.job.first..self.job.first + self.job.count).contains(&number).then_some(number)
    }

    /// The localpart of a player's account.
    pub(super) fn localpart(&self, number: u32) -> String {
        format!("{}{}", self.job.target.user_prefix, self.job.target.user_start + number)
    }

    /// These players as a share of all.
    pub(super) fn share(&self, numbers: &Range<usize>) -> Share {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Share { first: number(numbers.start), count: number(numbers.len()), total: self.job.total }
    }

    /// The numbers of each thread's players; a bucket of neighbours stays in one thread.
    pub(super) fn shares(&self) -> Vec<Range<usize>> {
        let (first, count) = (self.job.first as usize, self.job.count as usize);
        let buckets = self.job.scenario.phases.iter().map(|phase| phase.action.bucket() as usize);
        let group = buckets.fold(1, least_common_multiple);
        let groups = count.div_ceil(group);
        let threads = (self.job.threads as usize).clamp(1, groups.max(1));
        let bound = |thread: usize| first + (groups * thread / threads * group).min(count);
        (0..threads).map(|thread| bound(thread)..bound(thread + 1)).collect()
    }

    /// Writes the derived keys for the next run.
    pub(super) fn write_keys(&self) -> std::io::Result<()> {
        let Some(path) = self.job.target.key_cache.as_ref().filter(|_| self.keys.len() > self.keys_read)
        else {
            return Ok(());
        };
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let mut writer = BufWriter::new(file);
        self.keys.write(&mut writer)?;
        writer.flush()
    }

    fn account(&self, number: u32) -> Result<BareJid, Fault> {
        BareJid::from_parts(Some(&self.localpart(number)), &self.job.target.domain)
            .map_err(|error| at_target(format!("the players' accounts: {error}")))
    }
}

/// A fault of the worker.
pub(super) fn worker(why: impl Into<String>) -> Fault {
    Fault::Worker { why: why.into() }
}

/// A fault of the target.
pub(super) fn at_target(why: impl Into<String>) -> Fault {
    Fault::Target { why: why.into() }
}

/// The target lacks a feature.
pub(super) fn lacks(feature: &str, why: impl Into<String>) -> Fault {
    Fault::Lacks { feature: feature.to_owned(), why: why.into() }
}

fn profile(job: &Job, keys: &Arc<KeyCache>) -> Result<Arc<Profile>, Fault> {
    let (target, players) = (&job.target, &job.scenario.players);
    let path = target.websocket_path.clone();
    let trust = match &target.ca_pem {
        None => Trust::Anyone,
        Some(pem) => Trust::from_pem(pem.as_bytes()).map_err(|error| worker(error.to_string()))?,
    };
    let mut settings = Settings {
        transport: match target.transport {
            TransportKind::Starttls => Transport::StartTls,
            TransportKind::Tls => Transport::DirectTls,
            TransportKind::Ws => Transport::WebSocket { path },
            TransportKind::Wss => Transport::SecureWebSocket { path },
            // Nobody logs in: the players of matches have connections of their own.
            TransportKind::Plain | TransportKind::Quic => Transport::Plain,
        },
        trust,
        tls_resumption: players.tls_resumption,
        sasl2: players.sasl2,
        fast: players.fast,
        stream_management: match players {
            Players { resumption: true, .. } => StreamManagement::Resumable,
            Players { stream_management: true, .. } => StreamManagement::On,
            _ => StreamManagement::Off,
        },
        receipts: players.receipts,
        presence: players.presence,
        keys: Arc::clone(keys),
        ..Settings::default()
    };
    if !target.mechanisms.is_empty() {
        let mechanisms = target.mechanisms.iter().map(|name| name.parse::<Mechanism>());
        settings.mechanisms =
            mechanisms.collect::<Result<_, _>>().map_err(|error| worker(error.to_string()))?;
    }
    Profile::new(settings).map_err(|error| worker(error.to_string()))
}

fn resolve(places: impl Iterator<Item = String>) -> Result<Vec<SocketAddr>, Fault> {
    let address = |place: String| {
        let fault = |why: String| at_target(format!("the target {place:?} {why}"));
        let mut addresses =
            place.to_socket_addrs().map_err(|error| fault(format!("cannot be resolved: {error}")))?;
        addresses.next().ok_or_else(|| fault("has no address".to_owned()))
    };
    places.map(address).collect()
}

fn read_keys(target: &Target, keys: &KeyCache) -> Result<(), Fault> {
    let Some(path) = target.key_cache.as_ref().filter(|path| Path::new(path).exists()) else { return Ok(()) };
    let read = File::open(path).and_then(|file| keys.read(BufReader::new(file)));
    read.map_err(|error| worker(format!("the key cache {path}: {error}")))
}

fn check_descriptors(players: u64) -> Result<(), Fault> {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let limit = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    let needed = players + SPARE_DESCRIPTORS;
    match limit {
        Some(limit) if limit < needed => Err(worker(format!(
            "{players} players need {needed} file descriptors, but the process may have {limit}; raise the limit with ulimit -n"
        ))),
        _ => Ok(()),
    }
}

fn least_common_multiple(one: usize, other: usize) -> usize {
    let (mut a, mut b) = (one, other);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    one / a * other
}
