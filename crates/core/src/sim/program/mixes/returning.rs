//! Chats and notifications of clients that lose their connections and resume their sessions.

use super::super::actions::Action::{
    Available, Cancel, Chat, Close, Connect, Crash, Leave, Lose, NotifyAnyhow, Pass, Refuse, Request, Return,
    Slow, Stall, Unavailable, Work,
};
use super::Recipe;

pub(super) const RECIPE: Recipe = Recipe {
    actions: &[
        (40, Chat),
        (30, NotifyAnyhow),
        (6, Cancel),
        (20, Work),
        (15, Connect),
        (25, Available),
        (6, Unavailable),
        (12, Close),
        (25, Return),
        (2, Leave),
        (8, Slow),
        (10, Pass),
        (4, Refuse),
        (2, Lose),
        (2, Stall),
        (6, Request),
        (1, Crash),
    ],
    resumes: true,
    ..Recipe::ACCOUNTS
};
