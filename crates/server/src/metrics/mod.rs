//! The node's figures, summed over its shards.

pub(crate) mod flight;

use self::flight::FlightRecorder;
use crate::listen::Refusal;
use carillon_core::model::{DomainId, Domains, UnixMs};
use carillon_core::shard::{
    Counters, DomainCounters, Latency, MatchFigures, ModuleFigures, PerDomain, Reasons, RoomFigures,
};
use std::sync::{Arc, Mutex, PoisonError};

/// What a node has written of its sessions, and had of those of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogFigures {
    /// Writings of shards, each of any number of sessions.
    pub writes: u64,
    /// Sessions in them.
    pub sessions: u64,
    /// Sessions of dead nodes that go on here.
    pub adopted: u64,
    /// Those that cannot.
    pub not_adopted: u64,
    /// Shards whose sessions are to be written down, while there is nobody to keep them.
    pub away: u64,
}

/// A snapshot of the node's figures. Counters count since the start; nothing is ever reset.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Milliseconds since the node was started.
    pub uptime_ms: u64,
    /// Connections open now, logged in or not.
    pub connections: u64,
    /// Sessions bound now.
    pub sessions: u64,
    /// Of these, the sessions that have no connection, and wait for their clients to resume them.
    pub parked: u64,
    /// Sessions with available presence now.
    pub available: u64,
    /// Sessions of the light protocol now.
    pub light_sessions: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections refused at a bound, before any handshake.
    pub refused: u64,
    /// The same by reason.
    pub refusals: Vec<(&'static str, u64)>,
    /// Connections whose handshake is not complete now.
    pub handshakes_in_flight: u64,
    /// TLS handshakes completed.
    pub handshakes: u64,
    /// Logins that succeeded.
    pub logins: u64,
    /// Logins that were answered without a question to the store.
    pub logins_remembered: u64,
    /// Logins that failed, by SASL condition.
    pub login_failures: Reasons,
    /// Time from a client's first SASL element to the server's success.
    pub login: Latency,
    /// Sessions that were resumed.
    pub resumed: u64,
    /// Parked sessions of the process before this one that were restored at the start.
    pub restored: u64,
    /// Parked sessions of the process before this one whose time was up at the start.
    pub not_restored: u64,
    /// Sessions that ended, by what ended them.
    pub sessions_ended: Reasons,
    /// Logins per second over the last ten seconds.
    pub logins_per_second: f64,
    /// Stanzas received from clients.
    pub stanzas_in: u64,
    /// Stanzas sent to clients.
    pub stanzas_out: u64,
    /// Stanzas that a feature took, by what it did with them.
    pub stanzas_taken: Reasons,
    /// Stanzas that were not given to a session when they came, by the reason.
    pub stanzas_held: Reasons,
    /// Bytes received, after decryption.
    pub bytes_in: u64,
    /// Bytes sent, before encryption.
    pub bytes_out: u64,
    /// Sends: pieces of a stream that were given to the kernel.
    pub sends: u64,
    /// System calls for these sends: fewer than sends where io_uring is allowed.
    pub send_calls: u64,
    /// Topic items and notifications given to connections.
    pub deliveries: u64,
    /// Deliveries per second over the last ten seconds.
    pub deliveries_per_second: f64,
    /// Time from the acceptance of an item or a notification until it is given to a connection.
    pub delivery: Latency,
    /// Median of that time over the last minute, in milliseconds.
    pub delivery_p50_ms: f64,
    /// 99th percentile of that time over the last minute, in milliseconds.
    pub delivery_p99_ms: f64,
    /// Notifications accepted.
    pub notifications_accepted: u64,
    /// Notifications acknowledged.
    pub notifications_acknowledged: u64,
    /// Times that broadcasts were given to connections.
    pub broadcasts_given: u64,
    /// Accounts that acknowledged broadcasts.
    pub broadcasts_acknowledged: u64,
    /// Time from giving a notification to a connection until the device acknowledges it.
    pub acknowledgement: Latency,
    /// Notifications that ended without being acknowledged: expired, replaced, cancelled, or dropped for a reason.
    pub notifications_ended: Reasons,
    /// Items published.
    pub published: u64,
    /// Items that did not come to a shard with followers from the home of their topic, and were read from the store there.
    pub items_recovered: u64,
    /// Publications refused because the topic's subscribers could not be given them as fast.
    pub too_fast: u64,
    /// Deliveries of topic items that wait now.
    pub waiting_deliveries: u64,
    /// Memory of the topic items whose deliveries wait now, in bytes.
    pub waiting_bytes: u64,
    /// Stream errors sent, by condition.
    pub stream_errors: Reasons,
    /// Errors sent over the light protocol, by code.
    pub light_errors: Reasons,
    /// Counters per domain, for as many domains as the settings allow, then those of all other domains together.
    pub domains: Vec<DomainFigures>,
    /// Slow readers disconnected because their queue was full.
    pub overflows: u64,
    /// Slow readers disconnected because all queues together were full.
    pub common_overflows: u64,
    /// Memory of what waits in the queues of connections now, in bytes.
    pub out_queue_bytes: u64,
    /// Connections whose sessions are on other nodes of the cell now.
    pub relayed: u64,
    /// Sessions whose connections are on other nodes of the cell now.
    pub carried: u64,
    /// Stanzas sent to other nodes of the cell of which nobody has said that they are settled.
    pub unsettled: u64,
    /// Memory of what is remembered of these stanzas, in bytes.
    pub unsettled_bytes: u64,
    /// What was written to the log of sessions.
    pub log: LogFigures,
    /// Resident memory of the process in bytes.
    pub resident_bytes: u64,
    /// Questions that the store failed to answer to shards.
    pub faults: u64,
    /// Notifications and messages whose end the store refused to write until the node gave up: they may be delivered again.
    pub given_up: u64,
    /// When the TLS certificate in use expires.
    pub certificate_expires: Option<UnixMs>,
    /// The store's figures.
    pub store: carillon_core::ports::StoreStats,
    /// The event log's figures; none when there is no event log.
    pub events: Option<crate::events::EventLogStatus>,
    /// Shards of the node.
    pub shards: u16,
    /// The figures of each module that is active.
    pub modules: Vec<ModuleFigures>,
    /// Connections of QUIC.
    pub quic: QuicFigures,
    /// Matches and the matchmaker.
    pub matches: MatchFigures,
    /// What the rooms count, over all shards.
    pub rooms: RoomFigures,
}

/// The counters of a domain.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainFigures {
    /// Its name; none for the domains that are counted together.
    pub name: Option<Arc<str>>,
    /// The figures.
    pub counters: DomainCounters,
}

/// What connections of QUIC count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuicFigures {
    /// Connections now.
    pub connections: u64,
    /// Connections whose clients have shown that they have their addresses.
    pub accepted: u64,
    /// Connections whose clients were asked to show it.
    pub retried: u64,
    /// Connections that moved to the shard of their match.
    pub moved: u64,
    /// Packets that another shard received than the one that they are for.
    pub passed_on: u64,
    /// Packets received.
    pub packets_in: u64,
    /// Packets sent.
    pub packets_out: u64,
    /// Packets that the system did not take.
    pub packets_unsent: u64,
    /// Datagrams of players.
    pub datagrams_in: u64,
    /// Datagrams for players.
    pub datagrams_out: u64,
    /// Datagrams of players who sent more than they may.
    pub datagrams_dropped: u64,
    /// Datagrams that were too long, and were sent by the stream.
    pub fallbacks: u64,
}

/// The counters of a shard's sockets and TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IoCounters {
    /// Questions to the log of sessions, and the sessions in them.
    pub(crate) log_writes: u64,
    pub(crate) sessions_logged: u64,
    pub(crate) accepted: u64,
    /// By [`Refusal::index`].
    pub(crate) refusals: [u64; Refusal::ALL.len()],
    pub(crate) handshakes: u64,
    pub(crate) quic: QuicFigures,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) sends: u64,
    pub(crate) send_calls: u64,
    pub(crate) overflows: u64,
    pub(crate) common_overflows: u64,
    /// Now.
    pub(crate) out_queue_bytes: u64,
    pub(crate) sessions_restored: u64,
    pub(crate) sessions_expired: u64,
    /// Now: connections whose sessions are on other nodes, and sessions whose connections are.
    pub(crate) relayed: u64,
    pub(crate) carried: u64,
    /// Now: stanzas for other nodes that are not settled, and their bytes.
    pub(crate) unsettled: u64,
    pub(crate) unsettled_bytes: u64,
}

/// The figures of a shard as last published.
#[derive(Default)]
pub(crate) struct ShardFigures {
    published: Mutex<Snapshot>,
    /// What the shard was given last.
    pub(crate) flight: FlightRecorder,
}

/// The figures of a shard, or of several, at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) io: IoCounters,
    pub(crate) core: Counters,
}

impl ShardFigures {
    /// Publishes figures, unless another thread is reading them: a shard does not wait. Whether it did.
    pub(crate) fn publish(&self, io: &IoCounters, core: &Counters) -> bool {
        let Ok(mut snapshot) = self.published.try_lock() else { return false };
        *snapshot = Snapshot { io: *io, core: core.clone() };
        true
    }

    /// Publishes figures that another thread waits for.
    pub(crate) fn publish_blocking(&self, io: &IoCounters, core: &Counters) {
        let snapshot = Snapshot { io: *io, core: core.clone() };
        *self.published.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    /// The figures as last published.
    pub(crate) fn read(&self) -> Snapshot {
        self.published.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Snapshot {
    /// The sum over the shards.
    pub(crate) fn sum<'a>(figures: impl IntoIterator<Item = &'a Arc<ShardFigures>>) -> Snapshot {
        figures.into_iter().map(|figures| figures.read()).fold(Snapshot::default(), Snapshot::plus)
    }

    fn plus(mut self, other: Snapshot) -> Snapshot {
        add_io(&mut self.io, other.io);
        add_core(&mut self.core, other.core);
        self
    }

    /// Parked sessions.
    pub(crate) fn parked(&self) -> u64 {
        self.core.parked
    }

    /// The part of the status that shards count. `domains` has the names.
    pub(crate) fn status(self, domains: &Domains) -> Status {
        let Snapshot { io, core } = self;
        Status {
            domains: figures_of(&core.domains, domains),
            sessions: core.sessions,
            parked: core.parked,
            available: core.available,
            light_sessions: core.light,
            accepted: io.accepted,
            refused: io.refusals.iter().sum(),
            refusals: Refusal::ALL.map(|refusal| (refusal.label(), io.refusals[refusal.index()])).into(),
            handshakes: io.handshakes,
            quic: io.quic,
            logins: core.logins,
            logins_remembered: core.logins_remembered,
            login_failures: core.login_failures,
            login: core.login,
            resumed: core.resumed,
            restored: io.sessions_restored,
            not_restored: io.sessions_expired,
            sessions_ended: core.sessions_ended,
            stanzas_in: core.stanzas_in,
            stanzas_out: core.stanzas_out,
            stanzas_taken: core.stanzas_taken,
            stanzas_held: core.stanzas_held,
            bytes_in: io.bytes_in,
            bytes_out: io.bytes_out,
            sends: io.sends,
            send_calls: io.send_calls,
            deliveries: core.deliveries,
            delivery: core.latency,
            notifications_accepted: core.notifications_accepted,
            notifications_acknowledged: core.notifications_acknowledged,
            broadcasts_given: core.broadcasts_given,
            broadcasts_acknowledged: core.broadcasts_acknowledged,
            acknowledgement: core.acknowledgement,
            notifications_ended: core.notifications_ended,
            published: core.published,
            items_recovered: core.items_recovered,
            too_fast: core.too_fast,
            waiting_deliveries: core.backlog.deliveries as u64,
            waiting_bytes: core.backlog.bytes as u64,
            stream_errors: core.stream_errors,
            light_errors: core.light_errors,
            overflows: io.overflows,
            common_overflows: io.common_overflows,
            out_queue_bytes: io.out_queue_bytes,
            relayed: io.relayed,
            carried: io.carried,
            unsettled: io.unsettled,
            unsettled_bytes: io.unsettled_bytes,
            log: LogFigures {
                writes: io.log_writes,
                sessions: io.sessions_logged,
                adopted: core.sessions_adopted,
                not_adopted: core.sessions_not_adopted,
                away: core.session_log_away,
            },
            faults: core.faults,
            given_up: core.given_up,
            modules: core.modules,
            matches: core.matches,
            rooms: core.rooms,
            ..Status::default()
        }
    }
}

/// The figures of each domain that is counted by itself, by name, and of all others.
fn figures_of(counted: &PerDomain, domains: &Domains) -> Vec<DomainFigures> {
    let name = |id: DomainId| domains.numbered(id).map(|domain| domain.name.clone());
    let known = counted
        .known()
        .iter()
        .filter_map(|(id, counters)| Some(DomainFigures { name: Some(name(*id)?), counters: *counters }));
    known.chain([DomainFigures { name: None, counters: counted.others() }]).collect()
}

/// Adds variables to the fields of their names.
macro_rules! add_numbers {
    ($sum:ident; $($field:ident)*) => { $($sum.$field += $field;)* };
}

// Each field is named, so that one that is added and not summed does not compile.

fn add_io(sum: &mut IoCounters, other: IoCounters) {
    let IoCounters {
        accepted,
        refusals,
        handshakes,
        quic,
        bytes_in,
        bytes_out,
        sends,
        send_calls,
        overflows,
        common_overflows,
        out_queue_bytes,
        sessions_restored,
        sessions_expired,
        relayed,
        carried,
        unsettled,
        unsettled_bytes,
        log_writes,
        sessions_logged,
    } = other;
    add_numbers! {
        sum;
        accepted handshakes bytes_in bytes_out sends send_calls overflows common_overflows
        out_queue_bytes sessions_restored sessions_expired relayed carried unsettled unsettled_bytes
        log_writes sessions_logged
    }
    sum.refusals.iter_mut().zip(refusals).for_each(|(sum, more)| *sum += more);
    add_quic(&mut sum.quic, quic);
}

fn add_quic(sum: &mut QuicFigures, other: QuicFigures) {
    let QuicFigures {
        connections,
        accepted,
        retried,
        moved,
        passed_on,
        packets_in,
        packets_out,
        packets_unsent,
        datagrams_in,
        datagrams_out,
        datagrams_dropped,
        fallbacks,
    } = other;
    add_numbers! {
        sum;
        connections accepted retried moved passed_on packets_in packets_out packets_unsent
        datagrams_in datagrams_out datagrams_dropped fallbacks
    }
}

fn add_core(sum: &mut Counters, other: Counters) {
    let Counters {
        connections,
        sessions,
        parked,
        available,
        light,
        logins,
        logins_remembered,
        login_failures,
        login,
        resumed,
        sessions_adopted,
        sessions_not_adopted,
        session_log_away,
        sessions_ended,
        stanzas_in,
        stanzas_out,
        stanzas_taken,
        stanzas_held,
        deliveries,
        notifications_accepted,
        notifications_acknowledged,
        broadcasts_given,
        broadcasts_acknowledged,
        notifications_ended,
        acknowledgement,
        published,
        items_recovered,
        too_fast,
        backlog,
        faults,
        given_up,
        stream_errors,
        light_errors,
        latency,
        domains,
        modules,
        matches,
        rooms,
    } = other;
    add_numbers! {
        sum;
        connections sessions parked available logins logins_remembered resumed stanzas_in
        stanzas_out deliveries notifications_accepted notifications_acknowledged broadcasts_given
        broadcasts_acknowledged published items_recovered too_fast backlog faults given_up light
        sessions_adopted sessions_not_adopted session_log_away
    }
    sum.matches.add(&matches);
    sum.rooms.add(&rooms);
    ModuleFigures::add_all(&mut sum.modules, modules);
    sum.login_failures.add_all(&login_failures);
    sum.login.add(&login);
    sum.sessions_ended.add_all(&sessions_ended);
    sum.stanzas_taken.add_all(&stanzas_taken);
    sum.stanzas_held.add_all(&stanzas_held);
    sum.notifications_ended.add_all(&notifications_ended);
    sum.acknowledgement.add(&acknowledgement);
    sum.stream_errors.add_all(&stream_errors);
    sum.light_errors.add_all(&light_errors);
    sum.latency.add(&latency);
    sum.domains.add(&domains);
}

/// Resident memory of this process in bytes; 0 if the system does not tell.
pub(crate) fn resident_bytes() -> u64 {
    // Unlike `statm` this needs no page size.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
