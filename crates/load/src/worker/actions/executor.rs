//! What an action does for the players of one thread.

use std::time::Instant;

use carillon_wire::stanza::Stanza;

use crate::light::LightEvent;
use crate::worker::context::ActionContext;

/// Executes an action for the players of one thread. It is called from the start of the step on, and learns what happens to
/// the players until the next step begins, even after it is done.
pub(in crate::worker) trait Executor: Send {
    /// Does what is due. Called after each batch of events, and at the time that it asked for.
    fn tick(&mut self, context: &mut ActionContext<'_>) -> Next;

    /// A player has logged in.
    fn ready(&mut self, _number: usize, _context: &mut ActionContext<'_>) {}

    /// A player's login failed, or its session was lost.
    fn lost(&mut self, _number: usize, _context: &mut ActionContext<'_>) -> Loss {
        Loss::Final
    }

    /// A player's stream was not resumed, and the server had not handled these stanzas of it. The player logs in anew.
    fn not_resumed(&mut self, _number: usize, _unhandled: Vec<Box<[u8]>>) {}

    /// A player received a stanza.
    fn stanza(&mut self, _number: usize, _stanza: &Stanza, _context: &mut ActionContext<'_>) {}

    /// A player of the light protocol received something.
    fn light(&mut self, _number: usize, _event: &LightEvent, _context: &mut ActionContext<'_>) {}
}

/// What a loss means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Loss {
    /// The player has failed.
    Final,
    /// The action brings it back.
    ComesBack,
}

/// What comes after a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::worker) enum Next {
    /// The step is not done; with a time, the next tick is due then.
    At(Option<Instant>),
    /// This thread's share of the step is done.
    Done,
}

/// Does nothing: there is no such phase, or the orchestrator does it.
pub(in crate::worker) struct Idle;

impl Executor for Idle {
    fn tick(&mut self, _context: &mut ActionContext<'_>) -> Next {
        Next::Done
    }
}
