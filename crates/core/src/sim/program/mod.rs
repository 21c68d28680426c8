//! Random programs: what people and providers do, and in which order what is under way goes on, from a seed.
//!
//! A program is replayed by its seed and its number of steps, and by nothing else: it reads no clock and nothing of the system,
//! and no hash table is gone through in an order that another process would not have. What must hold is looked at after each
//! step ([`Program::step`]) and when nothing is under way any more ([`Program::finish`]).

mod actions;
mod chats;
mod contacts;
mod ending;
mod mixes;
mod moving;
mod notifications;
mod people;
mod rooms;
mod sent;
mod shared;
#[cfg(test)]
mod tests;
mod topics;

pub use mixes::Mix;

use super::client::{Got, LightClient, XmppClient};
use super::world::{Plan, World};
use super::{Dice, client};
use crate::command::Outcome;
use crate::model::{NotificationId, Policy, RoomEvents, UnixMs};
use crate::ports::Question;
use crate::ports::store::items::Publish;
use crate::settings::{Fanout, Light, Limits, Settings, Timeouts};
use chats::Chats;
use contacts::Rosters;
use notifications::Notifications;
use rooms::Room;
use shared::Shared;
use std::collections::BTreeSet;
use std::sync::mpsc::Receiver;

/// The domain of all accounts and topics.
const DOMAIN: &str = "d";
const ACCOUNTS: [&str; 3] = ["ann", "bob", "cid"];
const TOPICS: [&str; 2] = ["t0", "t1"];

/// How long a session waits for its client to resume it.
const RESUME_MS: u64 = 20_000;

/// Says what does not hold, unless it does.
fn holds(is_so: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(what()) }
}

/// A program that ran to its end, and nothing was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The number of its history: see [`Trace`](crate::sim::Trace).
    pub hash: u64,
    /// How many lines its history has.
    pub lines: u64,
    /// How many notifications and messages were accepted for good.
    pub accepted: u64,
    /// How many of these a client has; the others wait, or ended for a reason.
    pub delivered: u64,
}

/// Something that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// After which step; none when it was found in the end.
    pub step: Option<u64>,
    /// What.
    pub what: String,
}

/// What is to become of the history of a program.
pub enum History<'a> {
    /// Nothing: the program runs several times as fast.
    Nothing,
    /// Its number.
    Hash,
    /// Its number, and its text is given to this.
    Text(&'a mut dyn FnMut(&str)),
}

/// Runs a program of so many steps to its end, on so many nodes.
///
/// # Errors
/// What did not hold first.
pub fn run(
    seed: u64,
    mix: Mix,
    nodes: u16,
    steps: u64,
    mut history: History<'_>,
) -> Result<Finished, Failure> {
    let mut program = Program::new(seed, mix, nodes);
    match history {
        History::Nothing => program.world.trace.stop(),
        History::Hash => {}
        History::Text(_) => program.world.trace.keep_text(),
    }
    let mut tell = |program: &mut Program| {
        if let History::Text(told) = &mut history {
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
    let (accepted, delivered) = program.count();
    let trace = &program.world.trace;
    Ok(Finished { hash: trace.hash(), lines: trace.lines(), accepted, delivered })
}

/// A program that runs.
pub struct Program {
    mix: Mix,
    dice: Dice,
    /// The node.
    pub world: World,
    limits: Limits,
    /// Whether a message that its sender was told of is never lost (the domain's policy).
    messages_durable: bool,
    /// Whether the domain keeps messages in archives.
    archive: bool,
    clients: Vec<Connected>,
    /// How often everything was looked at.
    looks: u64,
    /// For how many of the next steps the store does nothing.
    stalls: usize,
    /// The node is about to leave its process.
    is_moving: bool,
    /// The latest time that the system clock ever showed.
    latest: UnixMs,
    /// Shards that have yet to hear that something was lost.
    lost: Vec<usize>,
    /// How many items were published.
    published: usize,
    /// Items in the order of their commits, by topic.
    published_items: Vec<(String, String)>,
    /// How many notifications were sent.
    notified: u64,
    /// How many requests clients sent.
    requested: u64,
    /// Outcomes that nobody has had.
    outcomes: Vec<(Option<NotificationId>, Receiver<Outcome>)>,
    notifications: Notifications,
    chats: Chats,
    rosters: Rosters,
    shared: Shared,
    room: Room,
}

/// A client and its connection.
struct Connected {
    link: usize,
    client: Client,
    /// How much of what the node sent it was looked at.
    seen_bytes: u64,
    /// The notifications that it was sent.
    given: BTreeSet<NotificationId>,
    /// Those that it was sent over a connection that it lost, and did not receive: in a resumed session they come again, whatever became of
    /// them meanwhile.
    again: BTreeSet<NotificationId>,
    /// The same of chat messages.
    chats_again: BTreeSet<usize>,
    /// How many stanzas it was sent since stream management was enabled; none without.
    places: Option<u32>,
    /// How many of them the server knows to be acknowledged.
    acknowledged: u32,
    /// The bodies of live chat messages that are not acknowledged: their places and lengths.
    bodies: Vec<(u32, usize)>,
    /// Whether the server has dealt with its presence.
    was_available: bool,
    /// Nothing comes to it any more.
    is_over: bool,
    /// All that it had been sent had arrived when its connection was lost.
    had_all: bool,
}

enum Client {
    Xmpp(Box<XmppClient>),
    Light(LightClient),
}

impl Connected {
    fn new(link: usize, client: Client) -> Connected {
        Connected {
            link,
            client,
            seen_bytes: 0,
            given: BTreeSet::new(),
            again: BTreeSet::new(),
            chats_again: BTreeSet::new(),
            places: None,
            acknowledged: 0,
            bodies: Vec::new(),
            was_available: false,
            is_over: false,
            had_all: false,
        }
    }

    fn got(&self) -> &[Got] {
        match &self.client {
            Client::Xmpp(client) => &client.got,
            Client::Light(client) => &client.got,
        }
    }

    fn had_notification(&self, wanted: &str) -> bool {
        self.got().iter().any(|got| matches!(got, Got::Notification { id } if id == wanted))
    }

    fn xmpp(&self) -> Option<&XmppClient> {
        if let Client::Xmpp(client) = &self.client { Some(client) } else { None }
    }

    fn is_of(&self, account: &str) -> bool {
        self.xmpp().is_some_and(|client| client.account == account)
    }

    fn name(&self) -> &str {
        self.xmpp().map_or("a light client", |client| &client.account)
    }
}

impl Program {
    /// A program of this seed, on so many nodes.
    pub fn new(seed: u64, mix: Mix, nodes: u16) -> Program {
        let mut dice = Dice::new(seed);
        let recipe = mix.recipe();
        // A fan-out takes one session at a time.
        let fanout = Fanout { slice: 1, ..Fanout::default() };
        let light = Light { domain: DOMAIN.into(), ..Light::default() };
        let limits = (recipe.limits)(Limits::default());
        let settings =
            Settings { fanout, light, limits: limits.clone(), scram_iterations: 1, ..Settings::default() };
        // Who does not come back in a program ends in it.
        let timeouts = Timeouts { resume_ms: RESUME_MS, ..Timeouts::default() };
        let settings = Settings { timeouts, ..settings };
        let plan = Plan {
            nodes,
            // Two shards are enough where what is between nodes is looked at.
            shards: if nodes == 1 { 3 } else { 2 },
            settings,
            seed: dice.roll(),
            queue_bytes_max: sent::QUEUE_BYTES_MAX,
            links_are_instant: recipe.is_about_topics,
        };
        let mut world = World::new(plan);
        let messages_durable = dice.below(4) > 0;
        let archive = dice.below(3) == 0;
        world.domain(
            DOMAIN,
            Policy {
                sessions_max: 1000,
                messages_durable,
                archive,
                room_events: RoomEvents::All,
                ..Policy::default()
            },
        );
        ACCOUNTS.iter().for_each(|local| world.account(DOMAIN, local, client::PASSWORD, 1));
        world.disk.log_commits();
        let latest = world.now().unix;
        let mut program = Program {
            mix,
            dice,
            world,
            limits,
            messages_durable,
            archive,
            clients: Vec::new(),
            looks: 0,
            stalls: 0,
            is_moving: false,
            latest,
            lost: Vec::new(),
            published: 0,
            published_items: Vec::new(),
            notified: 0,
            requested: 0,
            outcomes: Vec::new(),
            notifications: Notifications::default(),
            chats: Chats::default(),
            rosters: Rosters::default(),
            shared: Shared::default(),
            room: Room::default(),
        };
        program.begin();
        program
    }

    /// One step: somebody does something, or something that is under way goes on.
    ///
    /// # Errors
    /// What does not hold.
    pub fn step(&mut self) -> Result<(), String> {
        if self.dice.below(3) == 0 {
            self.somebody_does_something()?;
        } else {
            self.goes_on();
        }
        self.look()
    }

    /// Notes what was committed, what clients were sent, and what they make of it; looks at all that must hold after each step.
    fn look(&mut self) -> Result<(), String> {
        self.looks += 1;
        self.take_outcomes()?;
        // What a commit did counts from the next step on: this one may have caused it by what it sent.
        self.check_sent()?;
        self.note_committed();
        self.check_told()?;
        self.clients_hear();
        self.check_presences()?;
        self.check_answers()
    }

    fn note_committed(&mut self) {
        for (ask, answer) in self.world.disk.committed() {
            if Publish::of(&ask).is_some()
                && let Ok(Some(item)) = Publish::answer(answer.clone())
            {
                self.published_items.push((item.name.to_string(), item.id.to_string()));
            }
            self.note_write(&ask, &answer);
            self.note_chats(&ask, &answer);
            self.note_room(&ask, &answer);
            self.note_rosters(&ask);
            self.note_shared(&ask, &answer);
        }
    }

    /// No client is answered what it did not ask, or twice, or is told that more was dealt with than it sent.
    fn check_answers(&self) -> Result<(), String> {
        let mut clients = self.clients.iter().filter_map(Connected::xmpp);
        let is_right = clients.clone().all(|client| client.covered <= client.sent);
        holds(is_right, || format!("more is acknowledged than was sent: {:?}", clients.clone().next_back()))?;
        let nonsense =
            clients.find_map(|client| client.nonsense.as_ref().map(|text| (&client.account, text)));
        nonsense.map_or(Ok(()), |(account, text)| Err(format!("{account} was sent {text}")))
    }

    fn count(&self) -> (u64, u64) {
        let all = [self.count_notifications(), self.count_chats(), self.count_room()];
        (all.iter().map(|of| of.0).sum(), all.iter().map(|of| of.1).sum())
    }

    fn is_open(&self, connected: &Connected) -> bool {
        self.world.connection(connected.link).is_open()
    }

    fn is_available(&self, connected: &Connected) -> bool {
        // One that could not resume its session has none.
        let has_session = |client: &XmppClient| client.error.is_none() && !client.is_returning;
        let is_available = |client: &XmppClient| client.is_available && has_session(client);
        self.is_open(connected) && connected.xmpp().is_some_and(is_available)
    }
}
