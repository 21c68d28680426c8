//! A shard hears of broadcasts.

use super::super::xml;
use crate::message::{BroadcastNews, ShardMessage};
use crate::model::{Broadcast, Set};
use crate::session::{Cx, Sessions};
use std::sync::Arc;

/// Broadcasts were created or changed.
pub(in crate::features::notifications) fn heard(news: BroadcastNews, cx: &mut Cx<'_>) {
    let BroadcastNews { changed, is_all, tell } = news;
    if tell {
        return cx.post_all(|| {
            let news = BroadcastNews { changed: changed.clone(), is_all, tell: false };
            ShardMessage::Broadcasts(Box::new(news))
        });
    }
    for broadcast in changed {
        // Of one that is new to a node alone, nobody was given anything.
        let asks = !(super::walk::is_alone(cx) && cx.features.notifications.broadcasts.heard_all);
        let contents = [false, true].map(|receipt| xml::payload(&content(&broadcast), receipt));
        let counter = cx.shard.random.number();
        cx.features.notifications.broadcasts.put(broadcast, contents, asks, counter);
    }
    cx.features.notifications.broadcasts.heard_all |= is_all;
}

fn content(broadcast: &Broadcast) -> xml::Content<'_> {
    xml::Content {
        priority: broadcast.priority,
        sent: broadcast.created,
        expires: Some(broadcast.expires),
        collapse_key: None,
        payload: &broadcast.payload,
    }
}

/// How many accounts have a session here that would be given a broadcast now.
pub(in crate::features::notifications) fn count_reached(
    broadcast: &Arc<Broadcast>,
    sessions: &Sessions,
) -> u64 {
    let mut accounts = Set::default();
    for session in sessions.all_bound() {
        if super::walk::is_for(broadcast, session) {
            accounts.insert(session.account);
        }
    }
    accounts.len() as u64
}
