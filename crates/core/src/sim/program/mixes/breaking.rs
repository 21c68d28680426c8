//! Chats on a node that ends without a word, with a store that does what it says is unknown.

use super::super::actions::Action::{
    Available, Chat, Close, Connect, Crash, Leave, Lose, Pass, Refuse, Slow, Stall, Unavailable,
};
use super::Recipe;

pub(super) const RECIPE: Recipe = Recipe {
    actions: &[
        (50, Chat),
        (15, Connect),
        (25, Available),
        (12, Unavailable),
        (6, Close),
        (3, Leave),
        (8, Slow),
        (8, Pass),
        (4, Refuse),
        (3, Lose),
        (2, Stall),
        (1, Crash),
    ],
    ..Recipe::ACCOUNTS
};
