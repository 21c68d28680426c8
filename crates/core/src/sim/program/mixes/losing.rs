//! Items are published, and what shards tell each other of them is lost.

use super::super::actions::Action::{
    Available, Close, Connect, ConnectLight, Forget, MoveTopics, Pass, Publish, Refuse, Retract, TellLost,
};
use super::Recipe;

pub(super) const RECIPE: Recipe = Recipe {
    actions: &[
        (30, Publish),
        (20, Connect),
        (20, Available),
        (8, Close),
        (5, ConnectLight),
        (12, Forget),
        (6, TellLost),
        (3, MoveTopics),
        (3, Retract),
        (2, Refuse),
        (4, Pass),
    ],
    ..Recipe::TOPICS
};
