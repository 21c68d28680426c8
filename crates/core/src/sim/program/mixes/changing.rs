//! Topics are configured, emptied and deleted.

use super::super::actions::Action::{
    Available, Close, Configure, Connect, ConnectLight, Delete, Publish, Purge, Retract, Subscribe,
    Unsubscribe,
};
use super::Recipe;

pub(super) const RECIPE: Recipe = Recipe {
    actions: &[
        (24, Publish),
        (16, Connect),
        (16, Available),
        (8, Close),
        (4, ConnectLight),
        (12, Subscribe),
        (6, Unsubscribe),
        (4, Retract),
        (4, Purge),
        (4, Delete),
        (8, Configure),
    ],
    ..Recipe::TOPICS
};
