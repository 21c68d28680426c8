//! What conversations do with broadcasts.

use super::{DOMAIN, Script, serde_word};
use carillon_core::message::{BroadcastNews, ShardMessage};
use carillon_core::model::*;
use carillon_core::ports::Page;
use carillon_core::ports::store::broadcasts::{
    Broadcast as Find, BroadcastBounds, BroadcastChange, ChangeBroadcast, ChangeBroadcastAnswer,
    ChangedBroadcasts, CreateBroadcast, CreateBroadcastAnswer,
};
use carillon_core::ports::store::topics;
use std::sync::Arc;

const BOUNDS: BroadcastBounds = BroadcastBounds { open: 10, bytes: 1 << 20 };

impl Script {
    /// `broadcast AUDIENCE JSON [ttl=SECONDS] [rate=N] [topic=NAME] [after=SECONDS] as NAME`, or
    /// `broadcast NAME pauses|continues|aborts|rate=N`, or `broadcast NAME is STATE, given N times, acknowledged by N`
    pub(super) fn broadcast(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            [audience, json, options @ .., "as", name] => self.send_broadcast(audience, json, options, name),
            [name, "is", state @ ..] => self.broadcast_is(name, &state.join(" ")),
            [name, change] => self.change_broadcast(name, change),
            _ => Err("broadcast AUDIENCE JSON … as NAME".into()),
        }
    }

    fn send_broadcast(
        &mut self,
        audience: &str,
        json: &str,
        options: &[&str],
        name: &str,
    ) -> Result<(), String> {
        let option = |key: &str| options.iter().find_map(|o| o.strip_prefix(key)?.strip_prefix('='));
        let seconds = |key: &str| option(key).map(|s| s.parse::<u64>().expect("seconds") * 1000);
        let (now, domain) = (self.world.now(), self.world.domain_id(DOMAIN));
        self.notified += 1;
        let topic = option("topic").map(|name| {
            let found =
                self.world.ask(topics::Topic { domain, name: name.into() }).expect("the topic is there");
            BroadcastTopic { id: found.id, name: name.into() }
        });
        let broadcast = Broadcast {
            id: NotificationId::new(now, 0, self.notified),
            domain,
            audience: serde_word(audience)?,
            priority: Priority::Normal,
            payload: Payload::Json(json.into()),
            key: None,
            created: now,
            expires: now.plus(seconds("ttl").unwrap_or(3_600_000)),
            topic,
            pace: BroadcastPace {
                rate: option("rate").map(|rate| rate.parse().expect("a number")),
                not_before: seconds("after").map(|ms| now.plus(ms)),
                window: None,
            },
            state: BroadcastState::Running,
            ended: None,
            revision: 0,
        };
        self.bound.insert((*name).to_owned(), broadcast.id.to_string());
        let create = CreateBroadcast { broadcast: Arc::new(broadcast), bounds: BOUNDS };
        let CreateBroadcastAnswer::Created(created) = self.world.ask(create) else {
            return Err("refused".into());
        };
        self.tell_broadcasts(vec![Arc::new(*created)], false);
        Ok(())
    }

    fn change_broadcast(&mut self, name: &str, change: &str) -> Result<(), String> {
        let steer = |paused, rate| BroadcastChange::Steer { paused, rate, not_before: None, window: None };
        let change = match change {
            "pauses" => steer(Some(true), None),
            "continues" => steer(Some(false), None),
            "aborts" => BroadcastChange::Abort,
            other => {
                let rate = other.strip_prefix("rate=").ok_or("no such change")?;
                steer(None, Some(Some(rate.parse().map_err(|_| "a number")?)))
            }
        };
        let (domain, id, now) = (self.world.domain_id(DOMAIN), self.broadcast_id(name)?, self.world.now());
        match self.world.ask(ChangeBroadcast { domain, id, change, now }) {
            ChangeBroadcastAnswer::Changed(changed) => {
                self.tell_broadcasts(vec![Arc::new(changed.broadcast)], false);
                Ok(())
            }
            other => Err(format!("{other:?}")),
        }
    }

    fn broadcast_is(&mut self, name: &str, wanted: &str) -> Result<(), String> {
        let (domain, id) = (self.world.domain_id(DOMAIN), self.broadcast_id(name)?);
        let found = self.world.ask(Find { domain, id }).ok_or("there is no such broadcast")?;
        let state = format!("{:?}", found.broadcast.state).to_lowercase();
        let BroadcastProgress { given, acknowledged } = found.progress;
        let is = format!("{state}, given {given} times, acknowledged by {acknowledged}");
        (is == wanted).then_some(()).ok_or(is)
    }

    fn broadcast_id(&self, name: &str) -> Result<NotificationId, String> {
        let id = self.bound.get(name).ok_or_else(|| format!("nothing is called {name}"))?;
        id.parse().map_err(|_| "not a broadcast".to_owned())
    }

    /// The node has started: it reads which broadcasts are open.
    pub(super) fn read_broadcasts(&mut self) {
        let page = Page { entries: 1000, bytes: 4 << 20 };
        let open = self.world.ask(ChangedBroadcasts { after: 0, only_open: true, page });
        self.tell_broadcasts(open.entries.into_iter().map(Arc::new).collect(), true);
    }

    /// Tells all shards, by one of them.
    fn tell_broadcasts(&mut self, changed: Vec<Arc<Broadcast>>, is_all: bool) {
        let news = BroadcastNews { changed, is_all, tell: true };
        self.world.tell(ShardMessage::Broadcasts(Box::new(news)));
    }
}
