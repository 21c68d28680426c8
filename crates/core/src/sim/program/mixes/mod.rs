//! What happens in programs: a mix is what is done, how often, and to what kind of node.

mod addressing;
mod befriending;
mod breaking;
mod changing;
mod chatting;
mod crashing;
mod crowding;
mod following;
mod jumping;
mod living;
mod losing;
mod notifying;
mod publishing;
mod restarting;
mod returning;
mod reuniting;
mod rooming;
mod sharing;
mod upgrading;

use super::actions::Action;
use crate::settings::Limits;

/// What happens in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Items are published, clients come and go. Who follows what does not change.
    Publishing,
    /// And accounts follow topics, and leave them.
    Following,
    /// And topics are configured, emptied and deleted.
    Changing,
    /// Notifications are sent to clients of all kinds, over links that are slow and cut anywhere, with a store that refuses.
    Notifying,
    /// The same, on a node that ends without a word and starts again.
    Crashing,
    /// Notifications of all kinds: for who is there or for later, that replace others, expire, are cancelled and sent again; with a
    /// store that does what it says is unknown, and now and then a crash.
    Living,
    /// Clients chat: with who is there, who is away, and who comes and goes.
    Chatting,
    /// The same, on a node that ends without a word and starts again, with a store that does what it says is unknown.
    Breaking,
    /// Chats and notifications, where little may wait.
    Crowding,
    /// All of it, while the system clock is set forwards and back.
    Jumping,
    /// Chats and notifications of clients that lose their connections and resume their sessions.
    Returning,
    /// The same, on a node that restarts in order at any moment.
    Restarting,
    /// The same, on a node that goes on in another process at any moment, with its connections, or begins to and takes them back.
    Upgrading,
    /// Accounts ask for each other's presence, grant it and take it back, and edit their rosters, with a store that refuses and does what it says is unknown.
    Befriending,
    /// The same with sessions that are resumed, on a node that ends without a word, restarts in order, and goes on in other processes.
    Reuniting,
    /// And they publish on their own nodes, for clients that want to know, on a node of the same kind with a store that does what it says.
    Sharing,
    /// Clients send several messages in a row to clients at their full addresses, whose connections are cut and whose sessions are resumed.
    Addressing,
    /// Clients speak in a room, whose sessions are resumed, on a node that ends without a word, restarts in order, and goes on in other processes.
    Rooming,
    /// Items are published, and what shards tell each other of them is lost. Sooner or later they hear that something was.
    Losing,
}

/// What a mix is made of.
pub(super) struct Recipe {
    /// What is done, each so often of the sum of all.
    pub(super) actions: &'static [(usize, Action)],
    /// Whether it is about topics: then links carry at once, and no client acknowledges anything.
    pub(super) is_about_topics: bool,
    /// Whether clients resume their sessions.
    pub(super) resumes: bool,
    /// Whether clients say that they want to know what accounts publish.
    pub(super) wants_to_know: bool,
    /// How little a client or an account may have waiting.
    pub(super) limits: fn(Limits) -> Limits,
}

impl Mix {
    /// All of them.
    pub const ALL: [Mix; 19] = [
        Mix::Publishing,
        Mix::Following,
        Mix::Changing,
        Mix::Notifying,
        Mix::Crashing,
        Mix::Living,
        Mix::Chatting,
        Mix::Breaking,
        Mix::Crowding,
        Mix::Jumping,
        Mix::Returning,
        Mix::Restarting,
        Mix::Upgrading,
        Mix::Befriending,
        Mix::Reuniting,
        Mix::Sharing,
        Mix::Addressing,
        Mix::Rooming,
        Mix::Losing,
    ];

    /// The one that a seed runs, where nobody says which.
    pub fn of(seed: u64) -> Mix {
        Mix::ALL[(seed % Mix::ALL.len() as u64) as usize]
    }

    pub(super) fn recipe(self) -> Recipe {
        match self {
            Mix::Publishing => publishing::RECIPE,
            Mix::Following => following::RECIPE,
            Mix::Changing => changing::RECIPE,
            Mix::Notifying => notifying::RECIPE,
            Mix::Crashing => crashing::RECIPE,
            Mix::Living => living::RECIPE,
            Mix::Chatting => chatting::RECIPE,
            Mix::Breaking => breaking::RECIPE,
            Mix::Crowding => crowding::RECIPE,
            Mix::Jumping => jumping::RECIPE,
            Mix::Returning => returning::RECIPE,
            Mix::Restarting => restarting::RECIPE,
            Mix::Upgrading => upgrading::RECIPE,
            Mix::Befriending => befriending::RECIPE,
            Mix::Reuniting => reuniting::RECIPE,
            Mix::Sharing => sharing::RECIPE,
            Mix::Addressing => addressing::RECIPE,
            Mix::Rooming => rooming::RECIPE,
            Mix::Losing => losing::RECIPE,
        }
    }
}

impl Recipe {
    /// About topics.
    const TOPICS: Recipe = Recipe {
        actions: &[],
        is_about_topics: true,
        resumes: false,
        wants_to_know: false,
        limits: |limits| limits,
    };
    /// About notifications and messages.
    const ACCOUNTS: Recipe = Recipe { is_about_topics: false, ..Recipe::TOPICS };
}
