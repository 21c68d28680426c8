//! What players do in a phase: one file a deed, and one table that finds it.

mod churn;
mod drop;
mod hold;
mod login;
mod notify;
mod publish;
mod subscribe;
mod talk;
mod volley;

use std::time::Instant;

use carillon_wire::stanza::Stanza;

use super::crowd::{Crowd, Roster};
use super::hand::Turn;
use super::setting::Setting;
use crate::light;
use crate::plan::Deed;

/// A deed under way, for the players of one thread. It is asked from the step's beginning on, and goes on to learn what
/// happens to the players after it is done, until the next step begins.
pub(super) trait Act: Send {
    /// Does what is due. Called after everything that happened at once, and when it asked to be.
    fn tick(&mut self, crowd: &mut Crowd<'_>) -> Next;

    /// A player has logged in.
    fn ready(&mut self, _number: usize, _crowd: &mut Crowd<'_>) {}

    /// A player's login failed, or its session was lost.
    fn gone(&mut self, _number: usize, _crowd: &mut Crowd<'_>) {}

    /// A player received a stanza.
    fn stanza(&mut self, _number: usize, _stanza: &Stanza, _crowd: &mut Crowd<'_>) {}

    /// The same for a player who speaks the light protocol.
    fn light(&mut self, _number: usize, _event: &light::Event, _crowd: &mut Crowd<'_>) {}
}

/// What comes after a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// More; also at this time, if it says one.
    At(Option<Instant>),
    /// Nothing: this thread's share of the step is done.
    Done,
}

/// What nobody does anything for: there is no such phase, or it is another's to do.
pub(super) struct Rest;

impl Act for Rest {
    fn tick(&mut self, _crowd: &mut Crowd<'_>) -> Next {
        Next::Done
    }
}

/// The behaviour of a deed.
pub(super) fn act(deed: Option<&Deed>, turn: &Turn, setting: &Setting, roster: &Roster) -> Box<dyn Act> {
    let Some(deed) = deed else { return Box::new(Rest) };
    match deed {
        Deed::Login(login) => Box::new(login::LogIn::new(login, turn, setting, roster)),
        Deed::Hold { span } => Box::new(hold::Hold::new(*span, turn)),
        Deed::Subscribe { topic } => Box::new(subscribe::Subscribe::new(topic, turn, roster)),
        Deed::Publish(publish) => Box::new(publish::Await::new(publish, turn, setting, roster)),
        Deed::Notify(_) => Box::new(notify::Receive::new(turn, setting)),
        Deed::Talk(talk) => match &talk.rate {
            Some(rate) => Box::new(talk::Chat::new(talk, rate, turn, setting, roster)),
            None => Box::new(volley::Volley::new(talk, turn, setting, roster)),
        },
        Deed::Drop => Box::new(drop::Drop),
        Deed::Churn { rate, span } => Box::new(churn::Churn::new(rate, *span, turn, setting, roster)),
        // The orchestrator's to do.
        Deed::AwaitGone => Box::new(Rest),
    }
}
