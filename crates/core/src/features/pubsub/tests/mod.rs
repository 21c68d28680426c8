//! What followers see, whatever the order in which things happen on a node.

mod cluster;

use crate::command::TopicOp;
use crate::model::*;
use carillon_wire::jid::BareJid;
use cluster::{Client, Cluster};
use proptest::prelude::*;

const ACCOUNTS: [&str; 3] = ["ann", "bob", "cid"];
const TOPICS: [&str; 2] = ["t0", "t1"];

/// Something that somebody does, or something that is under way goes on.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Publish(usize),
    Subscribe(usize, usize),
    Unsubscribe(usize, usize),
    Connect(usize),
    Available(usize),
    Close(usize),
    Step(usize),
    Retract(usize, bool),
    Purge(usize),
    Delete(usize),
    Configure(usize, bool),
}

/// A cluster and what the test knows of it.
struct Play {
    cluster: Cluster,
    published: usize,
}

impl Play {
    /// Two topics that nobody follows yet, each with an item from before the node was started.
    fn new() -> Play {
        let mut play = Play { cluster: Cluster::new(), published: 0 };
        for topic in TOPICS {
            play.cluster.had_before(topic, &format!("{topic}-before"));
        }
        play
    }

    fn publish(&mut self, topic: &str) {
        self.published += 1;
        let id = Some(format!("i{}", self.published).into());
        self.cluster.operate(topic, TopicOp::Publish { id, payload: Payload::Json("1".into()) });
    }

    fn does(&mut self, deed: Deed) {
        let cluster = &mut self.cluster;
        match deed {
            Deed::Publish(topic) => self.publish(TOPICS[topic]),
            Deed::Subscribe(account, topic) => {
                cluster.operate(TOPICS[topic], TopicOp::Subscribe { account: jid(ACCOUNTS[account]) });
            }
            Deed::Unsubscribe(account, topic) => {
                cluster.operate(TOPICS[topic], TopicOp::Unsubscribe { account: jid(ACCOUNTS[account]) });
            }
            Deed::Connect(account) => cluster.connect(ACCOUNTS[account]),
            Deed::Available(_) | Deed::Close(_) if cluster.clients.is_empty() => {}
            Deed::Available(i) => cluster.available(i % cluster.clients.len()),
            Deed::Close(i) => cluster.close(i % cluster.clients.len()),
            Deed::Step(pick) => drop(cluster.step(pick)),
            Deed::Retract(topic, is_old) => {
                let (old, new) = (format!("{}-before", TOPICS[topic]), format!("i{}", self.published));
                let id = if is_old { old } else { new };
                cluster.operate(TOPICS[topic], TopicOp::Retract { id: id.into(), notify: None });
            }
            Deed::Purge(topic) => cluster.operate(TOPICS[topic], TopicOp::Purge),
            Deed::Delete(topic) => cluster.operate(TOPICS[topic], TopicOp::Delete),
            Deed::Configure(topic, is_loud) => {
                let send_last_published_item =
                    if is_loud { SendLast::OnSubAndPresence } else { SendLast::OnSub };
                let config = TopicConfig { send_last_published_item, max_items: 3, ..TopicConfig::default() };
                cluster.operate(TOPICS[topic], TopicOp::Put { config });
            }
        }
    }

    /// Everything under way ends, and everyone who is connected becomes available.
    fn settle(&mut self) {
        self.cluster.settle();
        for client in 0..self.cluster.clients.len() {
            self.cluster.available(client);
        }
        self.cluster.settle();
    }

    /// The place of an item in the order of commits.
    fn place(&self, item: &str) -> usize {
        self.cluster.committed.iter().position(|(_, id)| **id == *item).expect("what is told was committed")
    }

    /// The items of a topic that a client was told of, by their places.
    fn told(&self, client: &Client, topic: &str) -> Vec<(usize, bool)> {
        let of_topic = client.got.iter().filter(|got| got.topic == topic);
        of_topic.filter_map(|got| Some((self.place(got.item.as_deref()?), got.is_last))).collect()
    }

    /// Nothing twice, nothing older after something newer, and no gap. Only after a change of subscription may the last
    /// item come again, and gaps be.
    fn check_order(&self, changed: bool) {
        for client in &self.cluster.clients {
            for topic in TOPICS {
                let told = self.told(client, topic);
                for (before, after) in told.iter().zip(told.iter().skip(1)) {
                    let again = changed && after.1 && after.0 == before.0;
                    assert!(after.0 > before.0 || again, "{}: {topic}: {:?}", client.account, client.got);
                    let between = &self.cluster.committed[before.0 + 1..after.0.max(before.0 + 1)];
                    let missed = between.iter().any(|(name, _)| **name == *topic);
                    assert!(changed || !missed, "{}: {topic}: missed one: {:?}", client.account, client.got);
                }
            }
        }
    }

    /// Whoever follows a topic and is available had its last item.
    fn check_last(&self) {
        for client in self.cluster.clients.iter().filter(|client| client.available) {
            for topic in TOPICS.iter().filter(|topic| self.cluster.store.follows(&client.account, topic)) {
                let Some(last) = self.cluster.store.last(topic) else { continue };
                let told = self.told(client, topic);
                let had = told.last().is_some_and(|(place, _)| *place == self.place(&last.id));
                assert!(had, "{}: {topic}: has {told:?}, not {last:?}", client.account);
            }
        }
    }

    /// From now on exactly those who follow a topic are told, once.
    fn check_followers(&mut self) {
        for topic in TOPICS {
            self.publish(topic);
            self.cluster.settle();
            let id = format!("i{}", self.published);
            let exists = self.cluster.committed.last().is_some_and(|(_, item)| **item == *id);
            for client in self.cluster.clients.iter().filter(|client| client.available) {
                let times = client.got.iter().filter(|got| got.item.as_deref() == Some(&*id)).count();
                let follows = exists && self.cluster.store.follows(&client.account, topic);
                assert_eq!(times, usize::from(follows), "{} and {topic}: {:?}", client.account, client.got);
            }
        }
    }

    /// A new session of each account is given the last items of what it follows, and nothing else.
    fn check_logins(&mut self) {
        for account in ACCOUNTS {
            self.cluster.connect(account);
            let client = self.cluster.clients.len() - 1;
            self.settle();
            assert!(self.cluster.clients[client].bound);
            for topic in TOPICS {
                let told = self.told(&self.cluster.clients[client], topic);
                let follows = self.cluster.store.follows(account, topic);
                let last = self.cluster.store.last(topic).filter(|_| follows);
                let wanted = last.map(|item| (self.place(&item.id), true));
                assert_eq!(told, wanted.into_iter().collect::<Vec<_>>(), "{account}: {topic}");
            }
        }
    }
}

fn jid(local: &str) -> BareJid {
    BareJid::from_parts(Some(local), "d").expect("a JID")
}

/// Deeds of publishing and coming and going.
fn quiet() -> impl Strategy<Value = Deed> {
    prop_oneof![
        3 => (0..2usize).prop_map(Deed::Publish),
        2 => (0..3usize).prop_map(Deed::Connect),
        2 => (0..8usize).prop_map(Deed::Available),
        1 => (0..8usize).prop_map(Deed::Close),
        16 => (0..64usize).prop_map(Deed::Step),
    ]
}

/// And of following and leaving.
fn following() -> impl Strategy<Value = Deed> {
    prop_oneof![
        8 => quiet(),
        2 => (0..3usize, 0..2usize).prop_map(|(account, topic)| Deed::Subscribe(account, topic)),
        1 => (0..3usize, 0..2usize).prop_map(|(account, topic)| Deed::Unsubscribe(account, topic)),
    ]
}

/// And of changing the topics themselves.
fn changing() -> impl Strategy<Value = Deed> {
    prop_oneof![
        12 => following(),
        1 => (0..2usize, any::<bool>()).prop_map(|(topic, is_old)| Deed::Retract(topic, is_old)),
        1 => (0..2usize).prop_map(Deed::Purge),
        1 => (0..2usize).prop_map(Deed::Delete),
        2 => (0..2usize, any::<bool>()).prop_map(|(topic, is_loud)| Deed::Configure(topic, is_loud)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// Accounts that follow their topics all along see every item from their first on, in order, once.
    #[test]
    fn items_come_in_order_and_once(deeds in prop::collection::vec(quiet(), 0..150)) {
        let mut play = Play::new();
        for (account, topic) in [(0, 0), (0, 1), (1, 0), (2, 1)] {
            play.does(Deed::Subscribe(account, topic));
        }
        play.cluster.settle();
        deeds.into_iter().for_each(|deed| play.does(deed));
        play.settle();
        play.check_order(false);
        play.check_last();
        play.check_followers();
        play.check_logins();
    }

    /// Following and leaving meanwhile: never twice, never older after newer, and the last item in the end.
    #[test]
    fn followers_have_the_last_item(deeds in prop::collection::vec(following(), 0..150)) {
        let mut play = Play::new();
        deeds.into_iter().for_each(|deed| play.does(deed));
        play.settle();
        play.check_order(true);
        play.check_last();
        play.check_followers();
        play.check_logins();
    }

    /// Whatever becomes of the topics: in the end logins are given what the store has, and followers are told.
    #[test]
    fn logins_are_given_what_the_store_has(deeds in prop::collection::vec(changing(), 0..150)) {
        let mut play = Play::new();
        deeds.into_iter().for_each(|deed| play.does(deed));
        play.settle();
        play.check_logins();
        play.check_followers();
    }
}
