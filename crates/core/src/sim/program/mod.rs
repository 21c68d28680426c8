//! Random programs: what people and providers do, and in which order what is under way goes on, from a seed.
//!
//! A program is replayed by its seed and its number of steps, and by nothing else: it reads no clock and nothing of the system,
//! and no hash table is gone through in an order that another process would not have. What must hold is looked at after each
//! step ([`Program::step`]) and when nothing is under way any more ([`Program::finish`]).

mod checks;
mod deeds;
mod lives;
mod people;
#[cfg(test)]
mod tests;

use super::client::{Got, LightClient, XmppClient};
use super::world::{Plan, World};
use super::{Dice, client};
use crate::command::Outcome;
use crate::model::{NotificationId, Policy};
use crate::ports::Question;
use crate::ports::store::items::Publish;
use crate::ports::store::notifications::EndNotifications;
use crate::settings::{Fanout, Light, Settings};
use lives::Lives;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Receiver;

/// The domain of all accounts and topics.
const DOMAIN: &str = "d";
const ACCOUNTS: [&str; 3] = ["ann", "bob", "cid"];
const TOPICS: [&str; 2] = ["t0", "t1"];
/// Bytes that may wait for a connection: few, so that the bound is met.
const QUEUE_BYTES_MAX: usize = 16 * 1024;
/// The room past the bound for a stream error, and an element that was taken when nothing waited.
const QUEUE_BYTES_MORE: usize = 4096 + 64 * 1024;

/// What happens in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Items are published, clients come and go. Who follows what does not change.
    Publishing,
    /// And accounts follow topics, and leave them.
    Following,
    /// And topics are configured, emptied and deleted.
    Changing,
    /// Notifications are sent to clients that acknowledge in their ways, over links that are slow and cut anywhere, with a store
    /// that refuses.
    Notifying,
    /// The same, on a node that ends without a word and starts again.
    Crashing,
    /// Notifications of all kinds: for who is there or for later, that replace others, expire, are cancelled and sent again; with a store that
    /// does what it says is unknown, and now and then a crash.
    Living,
}

impl Mix {
    /// All of them.
    pub const ALL: [Mix; 6] =
        [Mix::Publishing, Mix::Following, Mix::Changing, Mix::Notifying, Mix::Crashing, Mix::Living];

    /// The one that a seed runs, where nobody says which.
    pub fn of(seed: u64) -> Mix {
        Mix::ALL[(seed % Mix::ALL.len() as u64) as usize]
    }

    fn is_about_topics(self) -> bool {
        matches!(self, Mix::Publishing | Mix::Following | Mix::Changing)
    }
}

/// A program that ran to its end, and nothing was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The number of its history: see [`Trace`](crate::sim::Trace).
    pub hash: u64,
    /// How many lines its history has.
    pub lines: u64,
}

/// Something that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// After which step; none when it was found in the end.
    pub step: Option<u64>,
    /// What.
    pub what: String,
}

/// Runs a program of so many steps to its end. `told` is given the text of its history, where it is wanted.
///
/// # Errors
/// What did not hold first.
pub fn run(
    seed: u64,
    mix: Mix,
    steps: u64,
    mut told: Option<&mut dyn FnMut(&str)>,
) -> Result<Finished, Failure> {
    let mut program = Program::new(seed, mix);
    if told.is_some() {
        program.world.trace.keep_text();
    }
    let mut tell = |program: &mut Program| {
        if let Some(told) = &mut told {
            told(&program.world.trace.take_text());
        }
    };
    for step in 0..steps {
        let done = program.step();
        tell(&mut program);
        done.map_err(|what| Failure { step: Some(step), what })?;
    }
    let done = program.finish();
    tell(&mut program);
    done.map_err(|what| Failure { step: None, what })?;
    Ok(Finished { hash: program.world.trace.hash(), lines: program.world.trace.lines() })
}

/// A program that runs.
pub struct Program {
    mix: Mix,
    dice: Dice,
    /// The node.
    pub world: World,
    clients: Vec<Connected>,
    /// How many items were published.
    published: usize,
    /// Items in the order of their commits, by topic.
    committed: Vec<(String, String)>,
    /// Outcomes that nobody has had.
    outcomes: Vec<(Option<NotificationId>, Receiver<Outcome>)>,
    /// How many notifications were sent.
    notified: u64,
    /// Notifications that were accepted for good, and whose they are.
    accepted: BTreeMap<NotificationId, String>,
    /// Those whose end was committed.
    ended: BTreeSet<NotificationId>,
    /// What is known of those of all kinds.
    lives: Lives,
}

/// A client and its connection.
struct Connected {
    link: usize,
    client: Client,
    /// How much of what the node sent it was looked at.
    seen_bytes: u64,
}

enum Client {
    Xmpp(XmppClient),
    Light(LightClient),
}

impl Connected {
    fn got(&self) -> &[Got] {
        match &self.client {
            Client::Xmpp(client) => &client.got,
            Client::Light(client) => &client.got,
        }
    }

    fn xmpp(&self) -> Option<&XmppClient> {
        if let Client::Xmpp(client) = &self.client { Some(client) } else { None }
    }
}

impl Program {
    /// A program of this seed.
    pub fn new(seed: u64, mix: Mix) -> Program {
        let mut dice = Dice::new(seed);
        // A fan-out takes one session at a time.
        let fanout = Fanout { slice: 1, ..Fanout::default() };
        let light = Light { domain: DOMAIN.into(), ..Light::default() };
        let settings = Settings { fanout, light, scram_iterations: 1, ..Settings::default() };
        let plan = Plan {
            shards: 3,
            settings,
            seed: dice.roll(),
            queue_bytes_max: QUEUE_BYTES_MAX,
            links_are_instant: mix.is_about_topics(),
        };
        let mut world = World::new(plan);
        world.domain(DOMAIN, Policy { sessions_max: 1000, ..Policy::default() });
        ACCOUNTS.iter().for_each(|local| world.account(DOMAIN, local, client::PASSWORD, 1));
        world.disk.log_commits();
        let mut program = Program {
            mix,
            dice,
            world,
            clients: Vec::new(),
            published: 0,
            committed: Vec::new(),
            outcomes: Vec::new(),
            notified: 0,
            accepted: BTreeMap::new(),
            ended: BTreeSet::new(),
            lives: Lives::default(),
        };
        program.begin();
        program
    }

    /// One step: somebody does something, or something that is under way goes on.
    ///
    /// # Errors
    /// What does not hold.
    pub fn step(&mut self) -> Result<(), String> {
        if self.dice.below(10) < 4 {
            self.somebody_does_something();
        } else {
            self.goes_on();
        }
        self.look()
    }

    /// Lets all that is under way end; then what must hold in the end is looked at.
    ///
    /// # Errors
    /// What does not hold.
    pub fn finish(&mut self) -> Result<(), String> {
        self.settle()?;
        self.check_outcomes()?;
        if self.mix.is_about_topics() {
            return self.check_topics();
        }
        // What the store refused is asked for again after a while.
        for _ in 0..8 {
            self.world.leap(5000);
            self.world.tick();
            self.settle()?;
        }
        if self.mix == Mix::Living {
            self.works_on()?;
            self.check_outcomes()?;
            return self.check_lives();
        }
        self.check_notifications()
    }

    /// Notes what was committed, what clients were sent, and what they make of it.
    fn look(&mut self) -> Result<(), String> {
        for (ask, answer) in self.world.disk.committed() {
            if Publish::of(&ask).is_some()
                && let Ok(Some(item)) = Publish::answer(answer)
            {
                self.committed.push((item.name.to_string(), item.id.to_string()));
            } else if let Some(end) = EndNotifications::of(&ask) {
                self.note_ends(end);
            }
        }
        self.check_told()?;
        self.check_sent()?;
        self.clients_hear();
        Ok(())
    }
}
