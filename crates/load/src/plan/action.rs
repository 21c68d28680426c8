//! What players do in a phase. A new action is a variant here and a file beside `worker/actions/`.

use serde::{Deserialize, Serialize};

use super::shape::Shape;
use super::span::Span;

/// A step of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// What it is called in reports and in overrides; the action's name when there is none.
    pub name: Option<String>,
    /// Given up after this long; the test goes on with the next phase and the report says so.
    pub timeout: Span,
    /// What is done.
    #[serde(flatten)]
    pub action: Action,
}

/// What is done in a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Action {
    /// Everyone who is not in session logs in. Metric `login`, from when the login was due.
    Login(Login),
    /// Everyone stays as they are, for so long. Idle CPU and memory are taken at its end.
    Hold {
        /// How long.
        #[serde(rename = "for")]
        span: Span,
    },
    /// Everyone subscribes to a topic; it is created if it is not there.
    Subscribe {
        /// Which; it is made so that anyone may follow it.
        topic: String,
    },
    /// One publisher, everyone subscribed: each item's latency to each subscriber (`RTT`), and to the last
    /// (`last_delivery`), from when the item was due.
    Publish(Publish),
    /// Notifications over HTTP to players by name: `RTT` from due to delivered, `receipt` from due to the receipt.
    Notify(Notify),
    /// Messages among neighbours: `RTT` from due to received by the neighbour.
    Talk(Talk),
    /// All connections are dropped at once, without a word.
    Drop,
    /// Waits until the server shows no session any more. Metric `gone`, from the drop.
    AwaitGone,
    /// Players chosen at random drop their connection and log in again. Metric `login`, from when it was due.
    Churn {
        /// Reconnections a second, of all players together.
        rate: Shape,
        /// How long.
        #[serde(rename = "for")]
        span: Span,
    },
}

/// How players log in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Login {
    /// Logins a second, of all players together; without it, as fast as they complete.
    pub rate: Option<Shape>,
    /// The most logins under way at once, of all players together.
    pub in_flight: u32,
    /// In how many steps players are let in; the next step begins when the last one is in.
    pub steps: u32,
}

/// A fan-out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Publish {
    /// The topic everyone is subscribed to.
    pub topic: String,
    /// How the publisher publishes.
    pub by: PublishMethod,
    /// How many items.
    pub items: u32,
    /// Items a second; without it the next item is due when the last one has reached everyone.
    pub rate: Option<Shape>,
    /// About the size of an item's payload.
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
    /// Notifications a second, of all players together.
    pub rate: Shape,
    /// How long.
    #[serde(rename = "for")]
    pub span: Span,
    /// `active`, `connected` or `always`.
    pub audience: String,
    /// The most notifications of one HTTP request (a batch, NDJSON).
    pub batch: u32,
    /// About the size of a payload.
    pub payload_bytes: usize,
}

/// Conversations among neighbours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Talk {
    /// Players who talk to each other: buckets of neighbours by number.
    pub bucket: u32,
    /// Messages a second, of all players together. Without it the loop is closed: in pairs, each answers at once.
    pub rate: Option<Shape>,
    /// How long.
    #[serde(rename = "for")]
    pub span: Span,
    /// Bytes of a message's body.
    pub payload_bytes: usize,
}

impl Phase {
    /// What the phase is called.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.action.name())
    }

    pub(super) fn default_timeout() -> Span {
        Span::from_secs(600)
    }
}

impl Action {
    /// In how many steps it is done: all workers finish one before the next begins.
    pub fn steps(&self) -> u32 {
        match self {
            Self::Login(login) => login.steps.max(1),
            // The topic is made, then everyone subscribes.
            Self::Subscribe { .. } => 2,
            // A closed loop: one item a step.
            Self::Publish(Publish { rate: None, items, .. }) => (*items).max(1),
            _ => 1,
        }
    }

    /// The word after `do =`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Login(_) => "login",
            Self::Hold { .. } => "hold",
            Self::Subscribe { .. } => "subscribe",
            Self::Publish(_) => "publish",
            Self::Notify(_) => "notify",
            Self::Talk(_) => "talk",
            Self::Drop => "drop",
            Self::AwaitGone => "await-gone",
            Self::Churn { .. } => "churn",
        }
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

impl Notify {
    pub(super) fn default_audience() -> String {
        "always".to_owned()
    }

    pub(super) fn default_batch() -> u32 {
        1000
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
