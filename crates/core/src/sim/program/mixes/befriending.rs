//! Contacts come and go, with a store that refuses and does what it says is unknown.

use super::super::actions::Action::{
    AskForRoster, Available, Befriend, Close, Connect, EditRoster, Leave, Lose, Pass, Refuse, Slow, Stall,
    Unavailable,
};
use super::Recipe;

pub(super) const RECIPE: Recipe = Recipe {
    actions: &[
        (50, Befriend),
        (12, EditRoster),
        (15, AskForRoster),
        (12, Connect),
        (25, Available),
        (8, Unavailable),
        (5, Close),
        (2, Leave),
        (4, Slow),
        (6, Pass),
        (4, Refuse),
        (2, Lose),
        (2, Stall),
    ],
    ..Recipe::ACCOUNTS
};
