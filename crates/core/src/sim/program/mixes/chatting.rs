//! Chats with who is there, who is away, and who comes and goes.

use super::super::actions::Action::{
    Available, Chat, Close, Connect, Leave, Notify, Pass, Refuse, Request, Slow, Stall, Unavailable,
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
        (2, Stall),
        (5, Request),
        (6, Notify),
    ],
    ..Recipe::ACCOUNTS
};
