//! Chats and notifications where little may wait: for an account in the store, and unacknowledged by a client.

use super::super::actions::Action::{
    Ask, Available, Chat, Close, Connect, Leave, Notify, NotifyAnyhow, Pass, Refuse, Slow, Unavailable, Work,
};
use super::Recipe;
use crate::settings::Limits;

pub(super) const RECIPE: Recipe = Recipe {
    actions: &[
        (25, Chat),
        (25, NotifyAnyhow),
        (10, Notify),
        (12, Connect),
        (20, Available),
        (6, Unavailable),
        (4, Close),
        (2, Leave),
        (10, Slow),
        (8, Pass),
        (3, Refuse),
        (20, Work),
        (10, Ask),
    ],
    limits: |limits| Limits {
        offline_messages: 5,
        pending_notifications: 6,
        unacknowledged: 20,
        unacknowledged_bytes: 12 * 1024,
        ..limits
    },
    ..Recipe::ACCOUNTS
};
