//! Items are published; who follows what does not change.

use super::super::actions::Action::{Available, Close, Connect, ConnectLight, Publish};
use super::Recipe;

pub(super) const RECIPE: Recipe = Recipe {
    actions: &[(30, Publish), (20, Connect), (20, Available), (10, Close), (5, ConnectLight)],
    ..Recipe::TOPICS
};
