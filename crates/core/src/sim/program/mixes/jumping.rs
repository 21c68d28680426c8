//! All of it, while the system clock is set forwards and back.

use super::super::actions::Action::{
    Ask, Available, Cancel, Chat, Close, Connect, Crash, Jump, Leave, Lose, Notify, NotifyAnyhow, Pass,
    Refuse, Slow, Stall, Unavailable, Work,
};
use super::Recipe;

pub(super) const RECIPE: Recipe = Recipe {
    actions: &[
        (20, Chat),
        (30, NotifyAnyhow),
        (10, Notify),
        (20, Ask),
        (6, Cancel),
        (40, Work),
        (14, Connect),
        (20, Available),
        (6, Unavailable),
        (6, Close),
        (2, Leave),
        (6, Slow),
        (10, Pass),
        (4, Refuse),
        (3, Lose),
        (2, Stall),
        (1, Crash),
        (6, Jump),
    ],
    ..Recipe::ACCOUNTS
};
