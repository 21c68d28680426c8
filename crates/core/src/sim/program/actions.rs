//! What happens.

use super::{ACCOUNTS, DOMAIN, Mix, Program, TOPICS};
use crate::command::{Actor, Command, TopicOp};
use crate::model::{Item, Payload, Revision, SendLast, TopicConfig, UnixMs, topic_address};
use crate::ports::Fault;
use crate::ports::store::items::Publish;
use crate::ports::store::topics::{CreateTopic, CreateTopicAnswer};
use crate::sim::Choice;
use crate::sim::store::Step;
use carillon_wire::jid::BareJid;

/// Something that somebody does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Publish,
    Connect,
    ConnectLight,
    Available,
    Unavailable,
    Close,
    Return,
    Leave,
    Subscribe,
    Unsubscribe,
    Forget,
    TellLost,
    MoveTopics,
    Retract,
    Purge,
    Delete,
    Configure,
    Notify,
    NotifyAnyhow,
    Ask,
    Cancel,
    Chat,
    Address,
    Request,
    Befriend,
    AskForRoster,
    EditRoster,
    Share,
    Enter,
    LeaveRoom,
    Speak,
    Slow,
    Pass,
    Jump,
    Work,
    Refuse,
    Lose,
    Stall,
    Crash,
    Restart,
    Upgrade,
}

impl Program {
    /// What there is before the first step: topics with an item of which the shards do not know, and who follows them.
    pub(super) fn begin(&mut self) {
        for topic in TOPICS {
            self.had_before(topic, &format!("{topic}-before"));
        }
        if matches!(self.mix, Mix::Publishing | Mix::Losing) {
            for (account, topic) in [(0, 0), (0, 1), (1, 0), (2, 1)] {
                self.operate(TOPICS[topic], TopicOp::Subscribe { account: jid(ACCOUNTS[account]) });
            }
            self.world.settle();
        }
        if self.mix == Mix::Rooming {
            self.has_room();
        }
        if !self.mix.recipe().is_about_topics {
            ACCOUNTS.iter().for_each(|account| self.connect(account));
        }
    }

    fn had_before(&mut self, name: &str, id: &str) {
        let (domain, now) = (self.world.domain_id(DOMAIN), self.world.now().unix);
        // What is lost on the way is to be found.
        let max_items = if self.mix == Mix::Losing { 10_000 } else { 1 };
        let (config, affiliations) = (TopicConfig { max_items, ..TopicConfig::default() }, Vec::new());
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
        self.world.ask(Publish { item, keep: 1, bytes_max: u64::MAX });
        self.published_items.push((name.to_owned(), id.to_owned()));
    }

    /// Somebody does something.
    pub(super) fn somebody_does_something(&mut self) -> Result<(), String> {
        let actions = self.mix.recipe().actions;
        let mut place = self.dice.below(actions.iter().map(|(weight, _)| weight).sum());
        for (weight, action) in actions {
            match place.checked_sub(*weight) {
                Some(rest) => place = rest,
                None => return self.does(*action),
            }
        }
        Ok(())
    }

    fn does(&mut self, action: Action) -> Result<(), String> {
        let topic = TOPICS[self.dice.below(TOPICS.len())];
        let account = ACCOUNTS[self.dice.below(ACCOUNTS.len())];
        let whose = self.somebody();
        match action {
            Action::Publish => self.publish(topic),
            Action::Connect => self.connect(account),
            Action::ConnectLight => self.connect_light(topic),
            Action::Available => self.becomes_available(whose),
            Action::Unavailable => self.becomes_unavailable(whose),
            Action::Close => self.closes(whose),
            Action::Return => {
                let whose = self.dice.below(self.clients.len());
                self.returns(whose);
            }
            Action::Leave => self.leaves(whose),
            Action::Subscribe => self.operate(topic, TopicOp::Subscribe { account: jid(account) }),
            Action::Unsubscribe => self.operate(topic, TopicOp::Unsubscribe { account: jid(account) }),
            Action::Retract => {
                // Of what is lost on its way nothing is taken back.
                let of_before = self.dice.once_in(2) || self.mix == Mix::Losing;
                let id = if of_before { format!("{topic}-before") } else { format!("i{}", self.published) };
                self.operate(topic, TopicOp::Retract { id: id.into(), notify: None });
            }
            Action::Forget => self.forgets(),
            Action::TellLost => self.tells_lost(),
            Action::MoveTopics => self.moves_topics(),
            Action::Purge => self.operate(topic, TopicOp::Purge),
            Action::Delete => self.operate(topic, TopicOp::Delete),
            Action::Configure => self.configure(topic),
            Action::Notify => self.notify(account),
            Action::NotifyAnyhow => self.notify_anyhow(account),
            Action::Ask => self.asks(),
            Action::Cancel => self.cancels(),
            Action::Chat => self.chats(whose, account),
            Action::Address => self.addresses(whose),
            Action::Request => self.requests(whose),
            Action::Befriend => self.befriends(whose, account),
            Action::AskForRoster => self.asks_for_roster(whose),
            Action::EditRoster => self.edits_roster(whose, account),
            Action::Share => self.shares(whose),
            Action::Enter => self.enters(whose),
            Action::LeaveRoom => self.leaves_room(whose),
            Action::Speak => self.speaks(whose),
            Action::Slow => self.is_slow(whose),
            Action::Pass => {
                let ms = self.dice.below(3000) as u64;
                self.passes(ms);
            }
            Action::Jump => self.jumps(),
            Action::Work => self.works(),
            Action::Refuse => self.refuses(),
            Action::Lose => self.loses_answer(),
            Action::Stall => self.stalls = self.dice.below(100),
            Action::Crash => self.crash(),
            // One at a time.
            Action::Restart | Action::Upgrade if self.is_moving => {}
            Action::Restart => return self.moves(Program::restarts),
            Action::Upgrade => return self.moves(Program::upgrades),
        }
        Ok(())
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

    /// Something that was published never comes from one shard to another. That one hears of it at once, or later.
    fn forgets(&mut self) {
        let queues = self.world.publications();
        let Some(queue) = self.dice.pick(&queues) else { return };
        let kept = self.dice.below(2);
        let shard = self.world.lose_publications(queue, kept);
        self.lost.push(shard);
        if self.dice.once_in(3) {
            self.tells_lost();
        }
    }

    /// A node has no homes of topics any more, or all have.
    fn moves_topics(&mut self) {
        let nodes = self.world.node_count();
        if nodes > 1 {
            let from = self.dice.below(nodes + 1);
            self.world.move_topics((from < nodes).then_some(from));
        }
    }

    /// The shards hear that something was lost.
    pub(super) fn tells_lost(&mut self) {
        std::mem::take(&mut self.lost).into_iter().for_each(|shard| self.world.tell_lost(shard));
    }

    /// Begins an operation of the provider's.
    fn operate(&mut self, name: &str, op: TopicOp) {
        let domain = self.world.domain_id(DOMAIN);
        let command = Command::Topic { domain, name: name.into(), actor: Actor::Provider, op };
        let outcome = self.world.begin(&topic_address(name, DOMAIN), command);
        self.outcomes.push((None, outcome));
    }

    /// Time passes, and the shards do what is due.
    pub(super) fn passes(&mut self, ms: u64) {
        self.world.leap(ms);
        self.world.tick();
        self.latest = self.latest.max(self.world.now().unix);
    }

    /// The system clock is set: by hours or by less than a second, forwards or back.
    fn jumps(&mut self) {
        let most = [1000, 60_000, 7_200_000][self.dice.below(3)];
        let (by, now) = (self.dice.below(most) as u64, self.world.now().unix);
        let then = if self.dice.once_in(2) { now.plus(by) } else { UnixMs(now.0.saturating_sub(by)) };
        self.world.set_wall_clock(then);
        self.latest = self.latest.max(then);
    }

    /// The oldest question of a shard fails, if there is one.
    fn refuses(&mut self) {
        let steps: Vec<Step> = self.world.disk.steps().collect();
        if let Some(step) = self.dice.pick(&steps) {
            self.world.disk.fail(step, Fault::Busy);
        }
    }

    /// The store does the oldest write of a shard, and says that this is unknown.
    fn loses_answer(&mut self) {
        let steps: Vec<Step> = self.world.disk.steps().collect();
        if let Some(step) = self.dice.pick(&steps) {
            self.world.disk.lose_answer(step);
        }
    }

    /// The node ends and starts again. Who waits for an outcome hears nothing.
    fn crash(&mut self) {
        self.world.crash();
        self.outcomes.clear();
        self.notifications.forget();
        self.forget_chats();
    }

    /// Something that is under way goes on.
    pub(super) fn goes_on(&mut self) {
        let mut choices = self.world.choices();
        if self.stalls > 0 {
            self.stalls -= 1;
            choices.retain(|choice| !matches!(choice, Choice::Store(_)));
        }
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
