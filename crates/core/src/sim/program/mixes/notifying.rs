//! Notifications for accounts that are there or not, over bad links, with a store that stalls and refuses.

use super::super::actions::Action::{
    Available, Close, Connect, Leave, Notify, Pass, Refuse, Request, Slow, Stall, Unavailable,
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
        (3, Request),
    ],
    ..Recipe::ACCOUNTS
};
