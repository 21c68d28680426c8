//! Accounts follow topics, and leave them.

use super::super::actions::Action::{
    Available, Close, Connect, ConnectLight, Publish, Subscribe, Unsubscribe,
};
use super::Recipe;

pub(super) const RECIPE: Recipe = Recipe {
    actions: &[
        (24, Publish),
        (16, Connect),
        (16, Available),
        (8, Close),
        (4, ConnectLight),
        (16, Subscribe),
        (8, Unsubscribe),
    ],
    ..Recipe::TOPICS
};
