//! Several messages in a row for one client, at its full address, while it loses its connection and resumes its session.

use super::super::actions::Action::{
    Address, Available, Chat, Close, Connect, Crash, Lose, Pass, Refuse, Return, Slow, Stall, Work,
};
use super::Recipe;

// Nobody withdraws presence: what is addressed to a client that is not available is given to it, and what waits for its account is not.
pub(super) const RECIPE: Recipe = Recipe {
    actions: &[
        (40, Address),
        (10, Chat),
        (10, Work),
        (10, Connect),
        (25, Available),
        (15, Close),
        (30, Return),
        (6, Slow),
        (8, Pass),
        (2, Refuse),
        (2, Lose),
        (2, Stall),
        (1, Crash),
    ],
    resumes: true,
    ..Recipe::ACCOUNTS
};
