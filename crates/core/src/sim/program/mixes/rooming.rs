//! Clients speak in a room while they come and go and resume their sessions, on a node that ends without a word, restarts in order, and goes
//! on in other processes, with a store that refuses and does what it says is unknown.

use super::super::actions::Action::{
    Available, Close, Connect, Crash, Enter, Leave, LeaveRoom, Lose, Pass, Refuse, Restart, Return, Slow,
    Speak, Stall, Unavailable, Upgrade,
};
use super::Recipe;

pub(super) const RECIPE: Recipe = Recipe {
    actions: &[
        (60, Speak),
        (30, Enter),
        (5, LeaveRoom),
        (10, Connect),
        (20, Available),
        (4, Unavailable),
        (10, Close),
        (20, Return),
        (2, Leave),
        (6, Slow),
        (6, Pass),
        (3, Refuse),
        (2, Lose),
        (2, Stall),
        (1, Crash),
        (1, Restart),
        (1, Upgrade),
    ],
    resumes: true,
    ..Recipe::ACCOUNTS
};
