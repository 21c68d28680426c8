//! A scenario: a TOML file of players and phases.

use serde::{Deserialize, Serialize};

use super::action::{Action, Phase};
use crate::client::InitialPresence;

/// What a load test does, phase after phase. Nobody enters a phase before everybody is done with the one before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// One word, as in `carillon-load run NAME`.
    pub name: String,
    /// One sentence: what it measures.
    pub summary: String,
    /// Who takes part.
    pub players: Players,
    /// What they do.
    pub phases: Vec<Phase>,
}

/// Who takes part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Players {
    /// How many.
    pub count: u32,
    /// What they speak.
    #[serde(default)]
    pub protocol: Protocol,
    /// Ask for stream management (XEP-0198).
    #[serde(default)]
    pub stream_management: bool,
    /// Answer requests for receipts (XEP-0184).
    #[serde(default)]
    pub receipts: bool,
    /// Log in by SASL2 and Bind 2 when the server offers them.
    #[serde(default)]
    pub sasl2: bool,
    /// Ask for a token at the first login and come back by it from then on (XEP-0484); with `sasl2`.
    #[serde(default)]
    pub fast: bool,
    /// Resume TLS sessions by ticket.
    #[serde(default)]
    pub tls_resumption: bool,
    /// The presence sent after each login.
    #[serde(default)]
    pub presence: InitialPresence,
    /// Make the accounts by in-band registration (XEP-0077) before the first login.
    #[serde(default)]
    pub register: bool,
}

/// What players speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// XMPP, over the transport of the target.
    #[default]
    Xmpp,
    /// The light protocol for subscribers that speak no XMPP.
    Light,
}

/// What is wrong with a scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It is not TOML, or not of a scenario's form. The text says where.
    #[error("{0}")]
    Form(#[from] toml::de::Error),
    /// A value makes no sense.
    #[error("{at}: {why}")]
    Value {
        /// The key, as in an override: `publish.items`.
        at: String,
        /// What is wrong.
        why: String,
    },
    /// An override (`--set`) names nothing of the scenario.
    #[error("the scenario has no setting {key:?}; known are {known}")]
    Unknown {
        /// As given.
        key: String,
        /// What there is, comma separated.
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
        self.phases.iter().position(|phase| matches!(phase.action, Action::Login(_)))
    }
}

#[cfg(test)]
#[path = "scenario_tests.rs"]
mod tests;
