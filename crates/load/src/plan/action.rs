//! What players do in a phase. A new action is a variant here and a file in `worker/actions/`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::shape::Shape;
use super::span::Span;

/// A phase of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Its name in reports and overrides; without one, the action's name.
    pub name: Option<String>,
    /// The time limit; after it the test continues with the next phase and the report says so.
    pub timeout: Span,
    /// The action.
    #[serde(flatten)]
    pub action: Action,
}

/// The action of a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Action {
    /// All players without a session log in. Metric `login`, from when the login was due.
    Login(Login),
    /// All players and their contacts subscribe to each other's presence, where they have not done so before.
    Befriend(Contacts),
    /// Players log in, ask for their rosters and become available: metrics `login`, `roster` from the session to the roster,
    /// `contacts` from the session to the presence of every contact that was there before, and `presence`.
    Arrive(Arrive),
    /// Nothing happens. Idle CPU time and memory are measured at its end.
    Hold {
        /// The duration.
        #[serde(rename = "for")]
        span: Span,
    },
    /// All players subscribe to a topic, which is created if it does not exist.
    Subscribe {
        /// The topic; it is created as open, so that everyone may subscribe.
        topic: String,
    },
    /// One publisher and many subscribers: the latency of each item to each subscriber (`RTT`) and to the last
    /// (`last_delivery`), from when the item was due.
    Publish(Publish),
    /// Notifications over HTTP to single players: `RTT` from due to delivered, `receipt` from due to the receipt.
    Notify(Notify),
    /// Messages between neighbours: `RTT` from due to received.
    Talk(Talk),
    /// Players enter rooms (XEP-0045, or MUC Light), which the first occupant of each makes.
    EnterRooms(Rooms),
    /// Messages in rooms that players have entered: `RTT` from due to heard, by each occupant.
    Speak(Speak),
    /// Players read their archives (XEP-0313) page by page, the newest first: metric `page`, from the request to the end of the page.
    ReadArchive(ReadArchive),
    /// Messages between neighbours while a share of the players lose their connection at once, come back later and resume
    /// their streams (XEP-0198 §5): metrics `resume`, `login` of those who cannot, and `RTT`.
    Resume(Resume),
    /// Players find each other by the matchmaker (`POST /v1/matchmaking/{queue}`), take their seats over TLS, and send an input per
    /// tick: `login` from the ticket to the seat, `RTT` from when an input was due to the tick that it is in.
    Play(Play),
    /// All connections are closed at once, without a stream end.
    Drop,
    /// Waits until the server shows no more sessions than before the test. Metric `gone`, from the drop.
    AwaitGone,
    /// Players chosen at random drop their connection and log in again. Metric `login`, from when it was due.
    Churn {
        /// Reconnections per second of all players together.
        rate: Shape,
        /// The duration.
        #[serde(rename = "for")]
        span: Span,
    },
}

/// How players log in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Login {
    /// Logins per second of all players together; without a rate, as fast as they complete.
    pub rate: Option<Shape>,
    /// The most logins in flight of all players together.
    pub in_flight: u32,
    /// The number of steps; a step begins when all players of the one before are logged in.
    pub steps: u32,
}

/// Who is whose contact: see `worker::ring`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Contacts {
    /// The number of contacts of each player, an even number.
    pub contacts: u32,
    /// The number of consecutive players among whom a player has its contacts.
    pub bucket: u32,
}

/// How players become available.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Arrive {
    /// Their contacts.
    #[serde(flatten)]
    pub contacts: Contacts,
    /// Logins per second of all players together; without a rate, as fast as rosters are received.
    pub rate: Option<Shape>,
    /// The most players of all together that are logging in or waiting for their rosters.
    pub in_flight: u32,
}

/// A fan-out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Publish {
    /// The topic to which all players are subscribed.
    pub topic: String,
    /// How the publisher publishes.
    pub by: PublishMethod,
    /// The number of items.
    pub items: u32,
    /// Items per second; without a rate the next item is due when all players have received the last one.
    pub rate: Option<Shape>,
    /// The approximate size of an item's payload.
    pub payload_bytes: usize,
}

/// A way to publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublishMethod {
    /// As an XMPP client, by XEP-0060.
    Pubsub,
    /// By Carillon's HTTP API.
    Http,
}

/// Notifications to single players.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Notify {
    /// Notifications per second of all players together.
    pub rate: Shape,
    /// The duration.
    #[serde(rename = "for")]
    pub span: Span,
    /// `active`, `connected` or `always`.
    pub audience: String,
    /// The most notifications per HTTP request (a batch as NDJSON).
    pub batch: u32,
    /// The approximate size of a payload.
    pub payload_bytes: usize,
}

/// Real-time matches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Play {
    /// The number of players in each match.
    pub seats: u32,
    /// Ticks per second.
    pub tick_rate: u32,
    /// The duration.
    #[serde(rename = "for")]
    pub span: Span,
    /// For how many ticks ahead an input is sent: more than one where the round trip takes longer than a tick.
    pub ahead: u32,
    /// The size of an input.
    pub payload_bytes: usize,
    /// The share of the players whose connection is cut once, halfway, and who come back with their token.
    pub cut_share: f64,
    /// The most players of all together that are taking their seats.
    pub in_flight: u32,
}

/// How archives are read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadArchive {
    /// The most messages per page.
    pub page: u32,
    /// The most pages per player; 0 for all.
    pub pages: u32,
    /// The most players of all together who are reading.
    pub in_flight: u32,
}

/// Conversations between neighbours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Talk {
    /// The number of consecutive players who talk to each other.
    pub bucket: u32,
    /// Messages per second of all players together. Without a rate the loop is closed: in pairs, each answers at once.
    pub rate: Option<Shape>,
    /// The duration.
    #[serde(rename = "for")]
    pub span: Span,
    /// The size of a message's body.
    pub payload_bytes: usize,
}

/// Who is in which room: see `worker::rooms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rooms {
    /// The number of consecutive players who share rooms with each other only: a multiple of `occupants`.
    pub bucket: u32,
    /// The number of players in each room.
    pub occupants: u32,
    /// The number of rooms that each player is in.
    pub rooms: u32,
    /// Whether they are rooms of MUC Light.
    pub light: bool,
}

/// Messages in rooms.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Speak {
    /// The rooms, which players have entered.
    #[serde(flatten)]
    pub rooms: Rooms,
    /// Messages per second of all players together; each is heard by all occupants of its room.
    pub rate: Shape,
    /// The duration.
    #[serde(rename = "for")]
    pub span: Span,
    /// The size of a message's body.
    pub payload_bytes: usize,
}

/// Lost connections, and the traffic around them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Resume {
    /// The number of consecutive players who talk to each other.
    pub bucket: u32,
    /// Messages per second of all players together; without a rate, or with 0, there are none.
    pub rate: Option<Shape>,
    /// The size of a message's body.
    pub payload_bytes: usize,
    /// Who is cut, when and for how long.
    pub cut: Cut,
    /// How they come back.
    #[serde(rename = "return")]
    pub comeback: Return,
    /// Whether a player whose stream is not resumed sends what the server has not handled again, in its new session.
    pub resend: bool,
}

/// The cuts of a [`Resume`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// The share of the players that is cut in each round, more than 0 and at most 1.
    #[serde(default = "Cut::default_players")]
    pub players: f64,
    /// How long a round lasts before its cut.
    #[serde(default = "Cut::default_after")]
    pub after: Span,
    /// The absence: from the cut to the return of the first player.
    #[serde(rename = "for", default = "Cut::default_span")]
    pub span: Span,
    /// The number of rounds.
    #[serde(default = "Cut::default_rounds")]
    pub rounds: u32,
}

/// The returns of a [`Resume`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Return {
    /// The returns of a round are spread evenly over this time.
    #[serde(default)]
    pub over: Span,
}

impl Phase {
    /// The name of the phase.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.action.name())
    }

    pub(super) fn default_timeout() -> Span {
        Span::from_secs(600)
    }
}

impl Action {
    /// The number of steps: all workers finish a step before the next begins.
    pub fn steps(&self) -> u32 {
        match self {
            Self::Login(login) => login.steps.max(1),
            // The topic is made, then everyone subscribes.
            Self::Subscribe { .. } => 2,
            // The rooms are made, then the others enter.
            Self::EnterRooms(_) => 2,
            // A closed loop: one item a step.
            Self::Publish(Publish { rate: None, items, .. }) => (*items).max(1),
            _ => 1,
        }
    }

    /// Whether players without a session log in.
    pub fn logs_in(&self) -> bool {
        matches!(self, Self::Login(_) | Self::Arrive(_))
    }

    /// The number of consecutive players who have to do with each other only: they are never torn apart.
    pub fn bucket(&self) -> u32 {
        match self {
            Self::Talk(talk) => talk.bucket.max(2),
            Self::Resume(resume) => resume.bucket.max(2),
            Self::EnterRooms(rooms) | Self::Speak(Speak { rooms, .. }) => rooms.bucket.max(2),
            Self::Befriend(contacts) | Self::Arrive(Arrive { contacts, .. }) => contacts.bucket.max(2),
            _ => 1,
        }
    }

    /// Whether players receive messages, notifications or items in it.
    pub fn is_traffic(&self) -> bool {
        matches!(
            self,
            Self::Publish(_)
                | Self::Notify(_)
                | Self::Talk(_)
                | Self::Resume(_)
                | Self::Speak(_)
                | Self::Play(_)
        )
    }

    /// The word after `do =`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Login(_) => "login",
            Self::Befriend(_) => "befriend",
            Self::Arrive(_) => "arrive",
            Self::Hold { .. } => "hold",
            Self::Subscribe { .. } => "subscribe",
            Self::Publish(_) => "publish",
            Self::Notify(_) => "notify",
            Self::Talk(_) => "talk",
            Self::EnterRooms(_) => "enter-rooms",
            Self::Speak(_) => "speak",
            Self::ReadArchive(_) => "read-archive",
            Self::Resume(_) => "resume",
            Self::Play(_) => "play",
            Self::Drop => "drop",
            Self::AwaitGone => "await-gone",
            Self::Churn { .. } => "churn",
        }
    }
}

impl Play {
    pub(super) fn default_seats() -> u32 {
        4
    }

    pub(super) fn default_tick_rate() -> u32 {
        15
    }

    pub(super) fn default_payload() -> usize {
        8
    }
}

impl ReadArchive {
    pub(super) fn default_page() -> u32 {
        50
    }
}

impl Arrive {
    /// The logins of those who are not in session.
    pub fn login(&self) -> Login {
        Login { rate: self.rate.clone(), in_flight: self.in_flight, steps: 1 }
    }
}

impl Login {
    pub(super) fn default_in_flight() -> u32 {
        128
    }

    pub(super) fn default_steps() -> u32 {
        1
    }
}

impl Contacts {
    pub(super) fn default_contacts() -> u32 {
        20
    }

    pub(super) fn default_bucket() -> u32 {
        1000
    }
}

impl Rooms {
    pub(super) fn default_bucket() -> u32 {
        50
    }

    pub(super) fn default_occupants() -> u32 {
        5
    }

    pub(super) fn default_rooms() -> u32 {
        10
    }
}

impl Notify {
    pub(super) fn default_audience() -> String {
        "always".to_owned()
    }

    pub(super) fn default_batch() -> u32 {
        1000
    }
}

impl Resume {
    /// The duration of a round.
    pub fn round(&self) -> Duration {
        self.cut.after.0.saturating_add(self.cut.span.0).saturating_add(self.comeback.over.0)
    }

    /// The duration of all rounds, and of the same time after the last as before each cut.
    pub fn duration(&self) -> Duration {
        self.round().saturating_mul(self.cut.rounds).saturating_add(self.cut.after.0)
    }

    /// The rate, if there are messages.
    pub fn traffic(&self) -> Option<&Shape> {
        self.rate.as_ref().filter(|rate| **rate != Shape::Steady(0.0))
    }
}

impl Cut {
    fn default_players() -> f64 {
        0.5
    }

    fn default_after() -> Span {
        Span::from_secs(5)
    }

    fn default_span() -> Span {
        Span::from_secs(5)
    }

    fn default_rounds() -> u32 {
        1
    }
}

impl Default for Cut {
    fn default() -> Self {
        Self {
            players: Self::default_players(),
            after: Self::default_after(),
            span: Self::default_span(),
            rounds: Self::default_rounds(),
        }
    }
}

impl Talk {
    pub(super) fn default_bucket() -> u32 {
        10
    }
}

pub(super) fn default_payload() -> usize {
    400
}
