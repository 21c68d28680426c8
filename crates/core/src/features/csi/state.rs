//! What is known of a session.

use carillon_wire::stanza::Stanza;

/// What is held back; none while the client is active.
#[derive(Debug, Default)]
pub struct State(pub(super) Option<Box<Held>>);

/// The newest presence of each sender, oldest first.
#[derive(Debug, Default)]
pub(super) struct Held(pub(super) Vec<Stanza>);
