//! A scenario: a TOML file of players and phases.

use serde::{Deserialize, Serialize};

use super::action::Phase;
use super::allow::Allow;
use crate::client::InitialPresence;

/// What a load test does, phase after phase. A phase begins when all players are done with the one before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The name in `carillon-load run NAME`: one word.
    pub name: String,
    /// What it measures, in one sentence.
    pub summary: String,
    /// The players.
    pub players: Players,
    /// What the test may miss and pass all the same.
    #[serde(default)]
    pub allow: Allow,
    /// The phases, in order.
    pub phases: Vec<Phase>,
}

/// The players.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Players {
    /// The number of players.
    pub count: u32,
    /// Their protocol.
    #[serde(default)]
    pub protocol: Protocol,
    /// Ask for stream management (XEP-0198).
    #[serde(default)]
    pub stream_management: bool,
    /// Ask for streams that can be resumed, and resume them after a lost connection (XEP-0198 §5).
    #[serde(default)]
    pub resumption: bool,
    /// Answer requests for receipts (XEP-0184).
    #[serde(default)]
    pub receipts: bool,
    /// Log in by SASL2 and Bind 2 when the server offers them.
    #[serde(default)]
    pub sasl2: bool,
    /// Request a token at the first login and use it for later ones (XEP-0484); requires `sasl2`.
    #[serde(default)]
    pub fast: bool,
    /// Resume TLS sessions by ticket.
    #[serde(default)]
    pub tls_resumption: bool,
    /// The presence sent after each login.
    #[serde(default)]
    pub presence: InitialPresence,
    /// Register the accounts by in-band registration (XEP-0077) before the first login.
    #[serde(default)]
    pub register: bool,
}

/// The protocol of the players.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// XMPP, over the transport of the target.
    #[default]
    Xmpp,
    /// The light protocol for subscribers without XMPP.
    Light,
}

/// Why a scenario is invalid.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It is not TOML, or does not have the form of a scenario. The text says where.
    #[error("{0}")]
    Form(#[from] toml::de::Error),
    /// A value is invalid.
    #[error("{at}: {why}")]
    Value {
        /// The key as in an override, for example `publish.items`.
        at: String,
        /// Why the value is invalid.
        why: String,
    },
    /// An override (`--set`) names an unknown key.
    #[error("the scenario has no setting {key:?}; known are {known}")]
    Unknown {
        /// The key as given.
        key: String,
        /// The known keys, separated by commas.
        known: String,
    },
}

impl Scenario {
    /// Reads a scenario from TOML and checks it.
    pub fn parse(toml: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(toml)?;
        scenario.check()?;
        Ok(scenario)
    }

    /// The phase in which players log in for the first time, if there is one.
    pub fn first_login(&self) -> Option<usize> {
        self.phases.iter().position(|phase| phase.action.logs_in())
    }
}

#[cfg(test)]
#[path = "scenario_tests.rs"]
mod tests;
