//! What a shard counts of matches and of the matchmaker.

use super::{Latency, Reasons};

/// The figures of the matches and queues whose home a shard is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchFigures {
    /// Matches now.
    pub matches: u64,
    /// Players connected to their matches now.
    pub players: u64,
    /// Connections that watch matches now.
    pub spectators: u64,
    /// Queues of the matchmaker now.
    pub queues: u64,
    /// Tickets that wait now.
    pub waiting: u64,
    /// Matches that began.
    pub begun: u64,
    /// Matches that were not taken, because there were too many or the shard was late.
    pub refused: u64,
    /// Matches that ended, by reason.
    pub ended: Reasons,
    /// Players that took a seat.
    pub joined: u64,
    /// Of these, players that came back.
    pub rejoined: u64,
    /// Inputs that counted in their tick, or were passed on.
    pub inputs: u64,
    /// Inputs that came after their tick was closed.
    pub inputs_late: u64,
    /// Inputs that were repeated for a player who was there and sent none.
    pub inputs_repeated: u64,
    /// Ticks.
    pub ticks: u64,
    /// Ticks given to connections.
    pub frames: u64,
    /// Ticks after which clients had different states.
    pub desyncs: u64,
    /// Clients that were refused or ended, by the code that they were told.
    pub errors: Reasons,
    /// Tickets that expired.
    pub tickets_expired: u64,
    /// Matches now that a module decides.
    pub authoritative: u64,
    /// Fuel that modules used for matches.
    pub module_fuel: u64,
    /// Failures of modules that decide matches, by kind.
    pub module_failures: Reasons,
    /// Matches that another version of their module took over between two ticks.
    pub module_swaps: u64,
    /// Snapshots given to connections.
    pub snapshots: u64,
    /// States that clients sent and most agreed to.
    pub snapshots_taken: u64,
    /// States that clients sent and most did not agree to.
    pub snapshots_refused: u64,
    /// How late ticks were closed.
    pub lateness: Latency,
    /// How long tickets waited for their match.
    pub waited: Latency,
}

impl MatchFigures {
    /// Adds the figures of another shard.
    pub fn add(&mut self, other: &MatchFigures) {
        let MatchFigures { matches, players, queues, waiting, begun, refused, ended, .. } = other;
        self.matches += matches;
        self.players += players;
        self.queues += queues;
        self.waiting += waiting;
        self.begun += begun;
        self.refused += refused;
        self.ended.add_all(ended);
        self.joined += other.joined;
        self.rejoined += other.rejoined;
        self.inputs += other.inputs;
        self.inputs_late += other.inputs_late;
        self.inputs_repeated += other.inputs_repeated;
        self.ticks += other.ticks;
        self.frames += other.frames;
        self.desyncs += other.desyncs;
        self.errors.add_all(&other.errors);
        self.tickets_expired += other.tickets_expired;
        self.authoritative += other.authoritative;
        self.module_fuel += other.module_fuel;
        self.module_failures.add_all(&other.module_failures);
        self.module_swaps += other.module_swaps;
        self.spectators += other.spectators;
        self.snapshots += other.snapshots;
        self.snapshots_taken += other.snapshots_taken;
        self.snapshots_refused += other.snapshots_refused;
        self.lateness.add(&other.lateness);
        self.waited.add(&other.waited);
    }
}
