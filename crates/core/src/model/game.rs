//! Real-time matches: their names, what a queue of the matchmaker asks for, and what is told of a ticket and of a match.

use super::{NodeId, Place, ShardId, UnixMs};
use carillon_wire::frame::game::{EndReason, Mode, SeatState};
use carillon_wire::jid::BareJid;
use std::fmt;
use std::str::FromStr;

/// The permanent name of a match: 32 bits of its node, 16 bits of the shard there that is its home, 64 random bits. Written as 32
/// hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MatchId(pub u128);

crate::form! { struct MatchId(number) }

impl MatchId {
    /// A new match whose home is at a place.
    pub fn new(home: Place, random: u64) -> MatchId {
        let Place { node, shard } = home;
        MatchId(u128::from(node.0) << 80 | u128::from(shard.0) << 64 | u128::from(random))
    }

    /// Where its home is.
    pub fn home(self) -> Place {
        Place { node: NodeId((self.0 >> 80) as u32), shard: ShardId((self.0 >> 64) as u16) }
    }
}

impl fmt::Display for MatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for MatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for MatchId {
    type Err = ();

    fn from_str(text: &str) -> Result<MatchId, ()> {
        let is_canonical = text.len() == 32 && text.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        let number = u128::from_str_radix(text, 16).ok().filter(|_| is_canonical).ok_or(())?;
        Some(number).filter(|number| number >> 112 == 0).map(MatchId).ok_or(())
    }
}

/// The name by which the home of a queue of the matchmaker is found.
pub fn queue_address(name: &str, domain: &str) -> String {
    format!("{name}@matches.{domain}")
}

/// What a queue of the matchmaker makes of its tickets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// How many seats a match has, 2 to 64.
    pub seats: u8,
    /// How far apart the ratings of a match may be.
    pub rating: RatingWindow,
    /// How long a ticket waits for a match at most, in milliseconds.
    pub wait_max_ms: u32,
    /// How its matches are played.
    pub rules: MatchRules,
    /// How many accounts one ticket may be of, which are in one match then.
    pub party_max: u8,
    /// Whether accounts enter tickets themselves, with the rating that they say.
    pub is_open: bool,
}

crate::form! { struct QueueConfig { seats, rating, wait_max_ms, rules, party_max, is_open } }

/// How far the ratings of a match may be apart: as far as the ticket of it that waited longest accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RatingWindow {
    /// At once.
    pub initial: u32,
    /// Per second of waiting, so much more.
    pub per_second: u32,
    /// At most.
    pub max: u32,
}

crate::form! { struct RatingWindow { initial, per_second, max } }

impl RatingWindow {
    /// No rating keeps anybody apart.
    pub const ANY: RatingWindow = RatingWindow { initial: u32::MAX, per_second: 0, max: u32::MAX };

    /// After how many milliseconds of waiting ratings that are so far apart are accepted; none for never.
    pub fn accepts_after_ms(self, apart: u64) -> Option<u64> {
        let initial = u64::from(self.initial.min(self.max));
        if apart <= initial {
            return Some(0);
        }
        if apart > u64::from(self.max) || self.per_second == 0 {
            return None;
        }
        Some(((apart - initial) * 1000).div_ceil(self.per_second.into()))
    }
}

/// How a match is played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchRules {
    /// How ticks are made.
    pub mode: Mode,
    /// Ticks per second, 1 to 60.
    pub tick_rate: u8,
    /// For how many ticks ahead clients are told to send their inputs.
    pub input_delay: u8,
    /// Bytes of the longest input.
    pub input_bytes_max: u16,
    /// How long it waits for its players at the start, in milliseconds.
    pub join_ms: u32,
    /// How long a seat is held whose connection is lost, in milliseconds.
    pub hold_ms: u32,
    /// How long it is played at most, in milliseconds of its clock.
    pub duration_max_ms: u32,
    /// How often each player may stop the clock.
    pub pauses: u8,
    /// For how long at most each time, in milliseconds.
    pub pause_max_ms: u32,
    /// The module that decides it, in the mode `authoritative`.
    pub module: Option<Box<str>>,
    /// Whether it ends when the module fails, and does not go on from the last state that was saved.
    pub ends_on_failure: bool,
    /// In the mode `lockstep`: after how many ticks the server wants to have the state of the game, for those who come late; 0 for never.
    pub snapshot_ticks: u16,
    /// How many may watch it; 0 for none.
    pub spectators: u16,
    /// How far behind they are, in milliseconds.
    pub spectator_delay_ms: u32,
}

crate::form! {
    struct MatchRules {
        mode, tick_rate, input_delay, input_bytes_max, join_ms, hold_ms, duration_max_ms, pauses, pause_max_ms, module,
        ends_on_failure, snapshot_ticks, spectators, spectator_delay_ms
    }
}

impl Default for MatchRules {
    fn default() -> MatchRules {
        MatchRules {
            mode: Mode::Lockstep,
            tick_rate: 15,
            input_delay: 2,
            input_bytes_max: 64,
            join_ms: 30_000,
            hold_ms: 30_000,
            duration_max_ms: 3_600_000,
            pauses: 1,
            pause_max_ms: 30_000,
            module: None,
            ends_on_failure: false,
            snapshot_ticks: 0,
            spectators: 0,
            spectator_delay_ms: 10_000,
        }
    }
}

/// The wish of an account to play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTicket {
    /// Its name in the queue, chosen by whoever sends it.
    pub id: Box<str>,
    /// Who wants to play.
    pub account: BareJid,
    /// How good the player is.
    pub rating: i64,
    /// What all players of a match must have alike, in the order of the names.
    pub alike: Vec<(Box<str>, Box<str>)>,
    /// Who plays in the same match.
    pub party: Vec<BareJid>,
}

crate::form! { struct NewTicket { id, account, rating, alike, party } }

impl NewTicket {
    /// The most that a rating is, and the least below zero.
    pub const RATING_MAX: u32 = 1_000_000_000;
    /// How many names there may be in `alike`.
    pub const ALIKE_MAX: usize = 16;
    /// Bytes of each of them, and of its value.
    pub const ALIKE_BYTES_MAX: usize = 64;

    /// All of its accounts, in the order in which they are given seats.
    pub fn accounts(&self) -> impl Iterator<Item = &BareJid> {
        std::iter::once(&self.account).chain(&self.party)
    }

    /// How many seats it is for.
    pub fn seats(&self) -> u8 {
        u8::try_from(1 + self.party.len()).unwrap_or(u8::MAX)
    }

    /// Bytes that it takes in memory, as far as somebody chose them.
    pub fn bytes(&self) -> usize {
        let alike = self.alike.iter().map(|(name, value)| name.len() + value.len() + 32);
        let accounts = self.accounts().map(|account| account.as_str().len() + size_of::<BareJid>());
        self.id.len() + accounts.sum::<usize>() + alike.sum::<usize>()
    }
}

/// What has become of a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketView {
    /// The ticket.
    pub ticket: NewTicket,
    /// When it came.
    pub created: UnixMs,
    /// Its state.
    pub state: TicketState,
}

crate::form! { struct TicketView { ticket, created, state } }

/// The state of a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TicketState {
    /// It waits for others.
    Waiting,
    /// There is a match with a seat for it.
    Matched(Box<Seating>),
    /// Its match is over.
    Ended(MatchResult),
    /// Nobody was found in time.
    Expired,
}

crate::form! { enum TicketState { 0 = Waiting, 1 = Matched(seating), 2 = Ended(result), 3 = Expired } }

/// A seat of a match, and the right to take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seating {
    /// The match.
    pub id: MatchId,
    /// The seat.
    pub seat: u8,
    /// Who has the seats, in their order.
    pub accounts: Vec<BareJid>,
    /// What takes the seat.
    pub token: Box<str>,
    /// Until when the token may be used for the first time.
    pub expires: UnixMs,
    /// How long the ticket waited, in milliseconds.
    pub waited_ms: u64,
    /// Of the others of its party, in their order: the seat and what takes it.
    pub party: Vec<(u8, Box<str>)>,
}

crate::form! { struct Seating { id, seat, accounts, token, expires, waited_ms, party } }

/// How a match ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchResult {
    /// The match.
    pub id: MatchId,
    /// Why it is over.
    pub reason: EndReason,
    /// Its last tick.
    pub tick: u32,
    /// The seats whose players had not left.
    pub seats: u64,
    /// What most clients say came of it; empty if they do not say.
    pub outcome: Vec<u8>,
}

crate::form! { struct MatchResult { id, reason, tick, seats, outcome } }

/// A queue, and how it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// What it makes of its tickets.
    pub config: QueueConfig,
    /// Tickets that wait now.
    pub waiting: u64,
    /// Matches that are played now.
    pub matches: u64,
    /// Matches it has made since it was declared.
    pub made: u64,
    /// How long the tickets of the last matches waited, in milliseconds: the mean.
    pub waited_ms: u64,
    /// How far apart the ratings of the last matches were: the mean.
    pub apart: u64,
}

crate::form! { struct QueueView { config, waiting, matches, made, waited_ms, apart } }

/// A match, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchView {
    /// Its name.
    pub id: MatchId,
    /// The queue that made it.
    pub queue: Box<str>,
    /// How its ticks are made.
    pub mode: Mode,
    /// Its last tick.
    pub tick: u32,
    /// Whether its clock runs.
    pub runs: bool,
    /// Who has the seats, and what they are.
    pub seats: Vec<(BareJid, SeatState)>,
    /// How often clients computed different states.
    pub desyncs: u32,
    /// The module that decides it: its name, and the hash of its code.
    pub module: Option<(Box<str>, [u8; 32])>,
    /// How many watch it.
    pub spectators: u32,
}

crate::form! { struct MatchView { id, queue, mode, tick, runs, seats, desyncs, module, spectators } }

/// A match as it was played so far: the ticks as they were given to players, of one who sent nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchReplay {
    /// Its name.
    pub id: MatchId,
    /// The queue that made it.
    pub queue: Box<str>,
    /// How its ticks were made.
    pub mode: Mode,
    /// Ticks per second.
    pub tick_rate: u8,
    /// The number that its random decisions follow from.
    pub seed: u64,
    /// Who had the seats, in their order.
    pub accounts: Vec<BareJid>,
    /// The module that decided it last.
    pub module: Option<(Box<str>, [u8; 32])>,
    /// How it ended; none while it is played.
    pub result: Option<MatchResult>,
    /// The tick before the first that is there: older ones were forgotten.
    pub forgotten: u32,
    /// The last tick.
    pub tick: u32,
    /// Frames of `carillon-match/1` with their lengths: a tick each, of inputs.
    pub frames: Vec<u8>,
}

crate::form! {
    struct MatchReplay { id, queue, mode, tick_rate, seed, accounts, module, result, forgotten, tick, frames }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_names_its_home() {
        let home = Place { node: NodeId(70_000), shard: ShardId(513) };
        let id = MatchId::new(home, u64::MAX);
        assert_eq!(id.home(), home);
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in [
            "",
            "x",
            id.to_string().get(1..).expect("ASCII"),
            &id.to_string().to_uppercase(),
            &"f".repeat(32),
        ] {
            assert!(wrong.parse::<MatchId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_window_widens_with_time_to_its_bound() {
        let window = RatingWindow { initial: 50, per_second: 20, max: 200 };
        assert_eq!(window.accepts_after_ms(50), Some(0));
        assert_eq!(window.accepts_after_ms(51), Some(50));
        assert_eq!(window.accepts_after_ms(200), Some(7500));
        assert_eq!(window.accepts_after_ms(201), None);
        assert_eq!(RatingWindow::ANY.accepts_after_ms(u64::from(u32::MAX)), Some(0));
        assert_eq!(RatingWindow { per_second: 0, ..window }.accepts_after_ms(51), None);
    }
}
