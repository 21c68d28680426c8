//! What players do in a phase: one file per action, and the table that selects it.

mod arrive;
mod befriend;
mod churn;
mod closed_loop_pairs;
mod drop;
mod enter_rooms;
mod executor;
mod hold;
mod in_flight;
mod login;
mod meeting;
mod open_loop_messages;
mod read_archive;
mod receive_items;
mod receive_notifications;
mod resume;
mod speak;
mod subscribe;

use super::player_states::PlayerStates;
use super::setup::Setup;
use super::step::StepStart;
use crate::plan::Action;
use arrive::Arrive;
use befriend::Befriend;
use churn::Churn;
use closed_loop_pairs::ClosedLoopPairs;
use drop::Drop;
use enter_rooms::EnterRooms;
pub(super) use executor::{Executor, Idle, Loss, Next};
use hold::Hold;
use login::LogIn;
use open_loop_messages::OpenLoopMessages;
use read_archive::ReadArchives;
use receive_items::ReceiveItems;
use receive_notifications::ReceiveNotifications;
use resume::CutAndResume;
use speak::SpeakInRooms;
use subscribe::Subscribe;

/// The executor of an action.
pub(super) fn executor(
    action: Option<&Action>,
    step: &StepStart,
    setup: &Setup,
    states: &PlayerStates,
) -> Box<dyn Executor> {
    let Some(action) = action else { return Box::new(Idle) };
    match action {
        Action::Login(login) => Box::new(LogIn::new(login, step, setup, states)),
        Action::Befriend(contacts) => Box::new(Befriend::new(*contacts, setup, states)),
        Action::Arrive(arrive) => Box::new(Arrive::new(arrive, step, setup, states)),
        Action::Hold { span } => Box::new(Hold::new(*span, step)),
        Action::Subscribe { topic } => Box::new(Subscribe::new(topic, step, states)),
        Action::Publish(publish) => Box::new(ReceiveItems::new(publish, step, setup, states)),
        Action::Notify(_) => Box::new(ReceiveNotifications::new(step, setup, states)),
        Action::Talk(talk) => match &talk.rate {
            Some(rate) => Box::new(OpenLoopMessages::new(talk, rate, step, setup, states)),
            None => Box::new(ClosedLoopPairs::new(talk, step, setup, states)),
        },
        Action::EnterRooms(rooms) => Box::new(EnterRooms::new(*rooms, step, setup, states)),
        Action::Speak(speak) => Box::new(SpeakInRooms::new(speak, step, setup, states)),
        Action::ReadArchive(read) => Box::new(ReadArchives::new(read, setup, states)),
        Action::Resume(resume) => Box::new(CutAndResume::new(resume, step, setup, states)),
        Action::Drop => Box::new(Drop),
        Action::Churn { rate, span } => Box::new(Churn::new(rate, *span, step, setup, states)),
        // The orchestrator does the one, and a thread of its own the other.
        Action::AwaitGone | Action::Play(_) => Box::new(Idle),
    }
}
