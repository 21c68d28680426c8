//! The same, on a node that ends without a word.

use super::super::actions::Action::{
    Available, Close, Connect, Crash, Leave, Notify, Pass, Refuse, Slow, Stall, Unavailable,
};
use super::Recipe;

pub(super) const RECIPE: Recipe = Recipe {
    actions: &[
        (40, Notify),
        (15, Connect),
        (20, Available),
        (5, Unavailable),
        (6, Close),
        (3, Leave),
        (8, Slow),
        (6, Pass),
        (4, Refuse),
        (2, Stall),
        (1, Crash),
    ],
    ..Recipe::ACCOUNTS
};
