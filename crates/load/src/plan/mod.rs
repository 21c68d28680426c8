//! What a load test is, as data: a [`Scenario`] (who takes part, and the [phases](Action) they go through), the
//! [`Target`] it is run against, and the [`Shape`]s of its traffic. Everything here is read from TOML or JSON, checked
//! once, and the same in the orchestrator and in its workers.

mod action;
mod allow;
mod check;
mod curve;
mod overrides;
mod phase;
mod scenario;
mod shape;
mod shipped;
mod span;
mod target;

pub use action::{
    Action, Arrive, Contacts, Cut, Login, Notify, Phase, Play, Publish, PublishMethod, ReadArchive, Resume,
    Return, Rooms, Speak, Talk,
};
pub use allow::{Allow, FaultKind};
pub use scenario::{Players, Protocol, Scenario, ScenarioError};
pub use shape::{NamedShape, Shape};
pub use span::Span;
pub use target::{Target, TransportKind};
