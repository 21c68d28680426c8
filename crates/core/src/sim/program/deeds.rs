//! What happens.

use super::{ACCOUNTS, DOMAIN, Mix, Program, TOPICS};
use crate::command::{Actor, Command, TopicOp};
use crate::model::{
    Audience, Item, Notification, NotificationId, Payload, Priority, Revision, SendLast, TopicConfig, bucket,
    topic_address,
};
use crate::ports::Fault;
use crate::ports::store::items::Publish;
use crate::ports::store::topics::{CreateTopic, CreateTopicAnswer};
use crate::sim::Choice;
use crate::sim::store::Step;
use carillon_wire::jid::BareJid;

/// Something that somebody does.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Publish,
    Connect,
    ConnectLight,
    Available,
    Close,
    Subscribe,
    Unsubscribe,
    Retract,
    Purge,
    Delete,
    Configure,
    Notify,
    Slow,
    Pass,
    Refuse,
    Crash,
    NotifyAnyhow,
    Ask,
    Cancel,
    Work,
    Lose,
}

/// How often each is done, of a hundred times or so.
fn deeds(mix: Mix) -> &'static [(usize, Deed)] {
    use Deed::{
        Ask, Available, Cancel, Close, Configure, Connect, ConnectLight, Crash, Delete, Lose, Notify,
        NotifyAnyhow, Pass, Publish, Purge, Refuse, Retract, Slow, Subscribe, Unsubscribe, Work,
    };
    match mix {
        Mix::Publishing => &[(30, Publish), (20, Connect), (20, Available), (10, Close), (5, ConnectLight)],
        Mix::Following => &[
            (24, Publish),
            (16, Connect),
            (16, Available),
            (8, Close),
            (4, ConnectLight),
            (16, Subscribe),
            (8, Unsubscribe),
        ],
        Mix::Changing => &[
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
        Mix::Notifying => {
            &[(40, Notify), (15, Connect), (20, Available), (8, Close), (8, Slow), (6, Pass), (4, Refuse)]
        }
        Mix::Crashing => &[
            (40, Notify),
            (15, Connect),
            (20, Available),
            (8, Close),
            (8, Slow),
            (6, Pass),
            (4, Refuse),
            (1, Crash),
        ],
        Mix::Living => &[
            (50, NotifyAnyhow),
            (40, Ask),
            (10, Cancel),
            (60, Work),
            (20, Connect),
            (25, Available),
            (12, Close),
            (8, Slow),
            (12, Pass),
            (4, Refuse),
            (4, Lose),
            (1, Crash),
        ],
    }
}

impl Program {
    /// What there is before the first step: topics with an item of which the shards do not know, and who follows them.
    pub(super) fn begin(&mut self) {
        for topic in TOPICS {
            self.had_before(topic, &format!("{topic}-before"));
        }
        if self.mix == Mix::Publishing {
            for (account, topic) in [(0, 0), (0, 1), (1, 0), (2, 1)] {
                self.operate(TOPICS[topic], TopicOp::Subscribe { account: jid(ACCOUNTS[account]) });
            }
            self.world.settle();
        }
    }

    fn had_before(&mut self, name: &str, id: &str) {
        let (domain, now) = (self.world.domain_id(DOMAIN), self.world.now().unix);
        let (config, affiliations) = (TopicConfig::default(), Vec::new());
        let create = CreateTopic { domain, name: name.into(), config, affiliations, owned_max: 0, now };
        let CreateTopicAnswer::Created(record) = self.world.ask(create) else { panic!("{name} is new") };
        let item = Item {
            topic: record.id,
            domain,
            name: name.into(),
            id: id.into(),
            publisher: None,
            published: now,
            payload: Default::default(),
            revision: Revision(0),
        };
        self.world.ask(Publish { item, keep: 1 });
        self.committed.push((name.to_owned(), id.to_owned()));
    }

    /// Somebody does something.
    pub(super) fn somebody_does_something(&mut self) {
        let deeds = deeds(self.mix);
        let mut place = self.dice.below(deeds.iter().map(|(weight, _)| weight).sum());
        for (weight, deed) in deeds {
            match place.checked_sub(*weight) {
                Some(rest) => place = rest,
                None => return self.does(*deed),
            }
        }
    }

    fn does(&mut self, deed: Deed) {
        let topic = TOPICS[self.dice.below(TOPICS.len())];
        let account = ACCOUNTS[self.dice.below(ACCOUNTS.len())];
        let whose = self.dice.below(self.clients.len());
        match deed {
            Deed::Publish => self.publish(topic),
            Deed::Connect => self.connect(account),
            Deed::ConnectLight => self.connect_light(topic),
            Deed::Available => self.becomes_available(whose),
            Deed::Close => self.closes(whose),
            Deed::Subscribe => self.operate(topic, TopicOp::Subscribe { account: jid(account) }),
            Deed::Unsubscribe => self.operate(topic, TopicOp::Unsubscribe { account: jid(account) }),
            Deed::Retract => {
                let of_before = self.dice.once_in(2);
                let id = if of_before { format!("{topic}-before") } else { format!("i{}", self.published) };
                self.operate(topic, TopicOp::Retract { id: id.into(), notify: None });
            }
            Deed::Purge => self.operate(topic, TopicOp::Purge),
            Deed::Delete => self.operate(topic, TopicOp::Delete),
            Deed::Configure => self.configure(topic),
            Deed::Notify => self.notify(account),
            Deed::Slow => self.is_slow(whose),
            Deed::Pass => {
                let ms = self.dice.below(3000) as u64;
                self.world.leap(ms);
                self.world.tick();
            }
            Deed::Refuse => self.refuses(),
            Deed::Crash => self.crash(),
            Deed::NotifyAnyhow => self.notify_anyhow(),
            Deed::Ask => self.asks(),
            Deed::Cancel => self.cancels(),
            Deed::Work => self.works(),
            Deed::Lose => self.loses_answer(),
        }
    }

    pub(super) fn publish(&mut self, topic: &str) {
        self.published += 1;
        let id = Some(format!("i{}", self.published).into());
        self.operate(topic, TopicOp::Publish { id, payload: Payload::Json("1".into()), operation: None });
    }

    fn configure(&mut self, topic: &str) {
        let is_loud = self.dice.once_in(2);
        let send_last_published_item = if is_loud { SendLast::OnSubAndPresence } else { SendLast::OnSub };
        let config = TopicConfig { send_last_published_item, max_items: 3, ..TopicConfig::default() };
        self.operate(topic, TopicOp::Put { config });
    }

    /// Begins an operation of the provider's.
    fn operate(&mut self, name: &str, op: TopicOp) {
        let domain = self.world.domain_id(DOMAIN);
        let command = Command::Topic { domain, name: name.into(), actor: Actor::Provider, op };
        let outcome = self.world.begin(&topic_address(name, DOMAIN), command);
        self.outcomes.push((None, outcome));
    }

    fn notify(&mut self, account: &str) {
        self.notified += 1;
        let (to, now) = (jid(account), self.world.now().unix);
        let id = NotificationId::new(now, bucket(to.as_str()), self.notified);
        let text = "x".repeat(self.dice.below(2000));
        let notification = Notification {
            id,
            domain: self.world.domain_id(DOMAIN),
            to: to.clone(),
            audience: Audience::Always,
            priority: [Priority::Low, Priority::Normal, Priority::High][self.dice.below(3)],
            expires: None,
            collapse_key: None,
            key: None,
            payload: Payload::Json(format!("\"{text}\"").into()),
            accepted: now,
            send_at: None,
        };
        let outcome = self.world.begin(to.as_str(), Command::Notify(notification.into()));
        self.outcomes.push((Some(id), outcome));
    }

    /// The oldest question of a shard fails, if there is one.
    fn refuses(&mut self) {
        let steps: Vec<Step> = self.world.disk.steps().collect();
        if let Some(step) = self.dice.pick(&steps) {
            self.world.disk.fail(step, Fault::Busy);
        }
    }

    /// The node ends and starts again. Who waits for an outcome hears nothing.
    fn crash(&mut self) {
        self.take_outcomes();
        self.outcomes.clear();
        self.forgets();
        self.world.crash();
    }

    /// Something that is under way goes on.
    pub(super) fn goes_on(&mut self) {
        let choices = self.world.choices();
        let Some(choice) = self.dice.pick(&choices) else { return };
        let most = if self.dice.once_in(2) { 1 + self.dice.below(200) } else { usize::MAX };
        self.world.choose(match choice {
            Choice::ToServer(key, _) => Choice::ToServer(key, most),
            Choice::ToClient(key, _) => Choice::ToClient(key, most),
            other => other,
        });
    }
}

pub(super) fn jid(local: &str) -> BareJid {
    BareJid::from_parts(Some(local), DOMAIN).expect("an account has an address")
}
