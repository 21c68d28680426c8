//! The same with sessions that are resumed, on a node that ends without a word, restarts in order, and goes on in other processes.

use super::super::actions::Action::{
    AskForRoster, Available, Befriend, Chat, Close, Connect, Crash, EditRoster, Leave, Lose, Pass, Refuse,
    Restart, Return, Slow, Stall, Unavailable, Upgrade,
};
use super::Recipe;

pub(super) const RECIPE: Recipe = Recipe {
    actions: &[
        (50, Befriend),
        (12, EditRoster),
        (15, AskForRoster),
        (6, Chat),
        (12, Connect),
        (25, Available),
        (6, Unavailable),
        (8, Close),
        (25, Return),
        (2, Leave),
        (4, Slow),
        (8, Pass),
        (4, Refuse),
        (2, Lose),
        (2, Stall),
        (1, Crash),
        (3, Restart),
        (5, Upgrade),
    ],
    resumes: true,
    ..Recipe::ACCOUNTS
};
