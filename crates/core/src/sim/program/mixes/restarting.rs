//! Sessions that are resumed, on a node that restarts in order.

use super::super::actions::Action::{
    Available, Cancel, Chat, Close, Connect, Leave, Lose, NotifyAnyhow, Pass, Refuse, Request, Restart,
    Return, Slow, Stall, Unavailable, Work,
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
        (8, Close),
        (35, Return),
        (2, Leave),
        (8, Slow),
        (10, Pass),
        (4, Refuse),
        (2, Lose),
        (2, Stall),
        (6, Request),
        (6, Restart),
    ],
    resumes: true,
    ..Recipe::ACCOUNTS
};
