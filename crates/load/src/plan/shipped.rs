//! The scenarios that are part of the program.

use super::scenario::{Scenario, ScenarioError};

/// The scenarios by name.
const SHIPPED: [(&str, &str); 15] = [
    ("login-storm", include_str!("../../scenarios/login-storm.toml")),
    ("idle", include_str!("../../scenarios/idle.toml")),
    ("fanout", include_str!("../../scenarios/fanout.toml")),
    ("direct", include_str!("../../scenarios/direct.toml")),
    ("one-to-one", include_str!("../../scenarios/one-to-one.toml")),
    ("rooms", include_str!("../../scenarios/rooms.toml")),
    ("muclight", include_str!("../../scenarios/muclight.toml")),
    ("archive", include_str!("../../scenarios/archive.toml")),
    ("mass-disconnect", include_str!("../../scenarios/mass-disconnect.toml")),
    ("resume", include_str!("../../scenarios/resume.toml")),
    ("rosters", include_str!("../../scenarios/rosters.toml")),
    ("roster-login", include_str!("../../scenarios/roster-login.toml")),
    ("churn", include_str!("../../scenarios/churn.toml")),
    ("match", include_str!("../../scenarios/match.toml")),
    ("janus", include_str!("../../scenarios/janus.toml")),
];

impl Scenario {
    /// The shipped scenario with this name, if there is one.
    pub fn shipped(name: &str) -> Option<Self> {
        let scenario: Result<Self, ScenarioError> = Self::parse(Self::text(name)?);
        Some(scenario.expect("shipped scenarios are read in a test"))
    }

    /// The text of a shipped scenario, with its comments.
    pub fn text(name: &str) -> Option<&'static str> {
        SHIPPED.iter().find_map(|(known, text)| (*known == name).then_some(*text))
    }

    /// The names of the shipped scenarios.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }
}
