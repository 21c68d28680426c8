//! Whole lives of notifications of all kinds.

use super::super::actions::Action::{
    Ask, Available, Cancel, Close, Connect, Crash, Leave, Lose, NotifyAnyhow, Pass, Refuse, Slow,
    Unavailable, Work,
};
use super::Recipe;

pub(super) const RECIPE: Recipe = Recipe {
    actions: &[
        (50, NotifyAnyhow),
        (40, Ask),
        (12, Cancel),
        (60, Work),
        (20, Connect),
        (25, Available),
        (5, Unavailable),
        (10, Close),
        (3, Leave),
        (8, Slow),
        (12, Pass),
        (6, Refuse),
        (4, Lose),
        (1, Crash),
    ],
    ..Recipe::ACCOUNTS
};
