//! Accounts publish on their own nodes, and contacts want to know, on a node that ends without a word, restarts in order, and goes on in other processes.

use super::super::actions::Action::{
    AskForRoster, Available, Befriend, Close, Connect, Crash, EditRoster, Leave, Pass, Restart, Return,
    Share, Slow, Stall, Unavailable, Upgrade,
};
use super::Recipe;

pub(super) const RECIPE: Recipe = Recipe {
    actions: &[
        (35, Share),
        (35, Befriend),
        (4, EditRoster),
        (6, AskForRoster),
        (12, Connect),
        (25, Available),
        (6, Unavailable),
        (8, Close),
        (20, Return),
        (2, Leave),
        (4, Slow),
        (8, Pass),
        (2, Stall),
        (1, Crash),
        (3, Restart),
        (4, Upgrade),
    ],
    resumes: true,
    wants_to_know: true,
    ..Recipe::ACCOUNTS
};
