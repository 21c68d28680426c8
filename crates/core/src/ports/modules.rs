//! Modules: filters that an operator adds to a running node. A shard calls an instance of a module with values, and gets values back.
//!
//! ```text
//!  Runtime::compile(code) ─► Compiled ─► instance per shard ─► Instance::call(Call) ─► Done
//! ```
//!
//! [`Compiled`] is made off the shards; [`Instance::call`] runs within a shard's turn, and its work is bounded by the fuel it is given.

use crate::model::{Event, Notification, Transport, UnixMs};
use crate::sasl::Failure as LoginFailure;
use bytes::Bytes;
use carillon_wire::stanza::{Condition, Stanza};
use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;

/// A place at which modules are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModuleHook {
    /// A message to an account, before any feature sees it.
    SubmitMessage,
    /// A message to a room, before its room sees it.
    RoomMessage,
    /// A notification, before it is stored.
    Notification,
    /// A tick of a match that the module decides.
    MatchTick,
    /// Write the state of a match.
    MatchSave,
    /// Take the state of a match that was written before.
    MatchLoad,
    /// A message of another that has come for an account, at the account's home, before it is kept or given to a session.
    Arrived,
    /// A login whose proof is right, before the client is told.
    Authorise,
    /// A session of an account was bound.
    Opened,
    /// A session of an account has ended.
    Closed,
    /// What a push tells an app, before its push service is asked.
    PushRender,
    /// An event is stored, of those that webhooks are told of.
    Event,
}

impl ModuleHook {
    /// All of them.
    pub const ALL: [ModuleHook; 12] = [
        ModuleHook::SubmitMessage,
        ModuleHook::RoomMessage,
        ModuleHook::Notification,
        ModuleHook::MatchTick,
        ModuleHook::MatchSave,
        ModuleHook::MatchLoad,
        ModuleHook::Arrived,
        ModuleHook::Authorise,
        ModuleHook::Opened,
        ModuleHook::Closed,
        ModuleHook::PushRender,
        ModuleHook::Event,
    ];

    /// Its name: that of the function which a module exports for it.
    pub const fn name(self) -> &'static str {
        match self {
            ModuleHook::SubmitMessage => "submit_message",
            ModuleHook::RoomMessage => "room_message",
            ModuleHook::Notification => "notification",
            ModuleHook::MatchTick => "match_tick",
            ModuleHook::MatchSave => "match_save",
            ModuleHook::MatchLoad => "match_load",
            ModuleHook::Arrived => "arrived",
            ModuleHook::Authorise => "authorise",
            ModuleHook::Opened => "opened",
            ModuleHook::Closed => "closed",
            ModuleHook::PushRender => "push_render",
            ModuleHook::Event => "event",
        }
    }

    /// Fuel that its calls, and those before them, may use in one turn of a shard. What only observes leaves some to what decides.
    pub const fn turn_fuel(self) -> u64 {
        match HookSet::OBSERVERS.has(self) {
            true => OBSERVED_FUEL,
            false => TURN_FUEL,
        }
    }
}

/// The hooks that a module has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HookSet(u16);

impl HookSet {
    /// Those that filter what accounts send, are sent, and do.
    pub const FILTERS: HookSet = HookSet(0)
        .with(ModuleHook::SubmitMessage)
        .with(ModuleHook::RoomMessage)
        .with(ModuleHook::Notification)
        .with(ModuleHook::Arrived)
        .with(ModuleHook::Authorise)
        .with(ModuleHook::PushRender);

    /// Those that are told something and decide nothing.
    pub const OBSERVERS: HookSet =
        HookSet(0).with(ModuleHook::Opened).with(ModuleHook::Closed).with(ModuleHook::Event);

    /// Those that are about accounts.
    pub const ACCOUNTS: HookSet = HookSet(HookSet::FILTERS.0 | HookSet::OBSERVERS.0);

    /// Those that decide matches: a module has all of them, or none.
    pub const MATCH: HookSet =
        HookSet(0).with(ModuleHook::MatchTick).with(ModuleHook::MatchSave).with(ModuleHook::MatchLoad);

    /// All hooks.
    pub const ALL: HookSet = HookSet(HookSet::ACCOUNTS.0 | HookSet::MATCH.0);

    /// Adds a hook.
    #[must_use]
    pub const fn with(self, hook: ModuleHook) -> HookSet {
        HookSet(self.0 | 1 << hook as u8)
    }

    /// Whether a hook is among them.
    pub const fn has(self, hook: ModuleHook) -> bool {
        self.0 & (1 << hook as u8) != 0
    }

    /// With those of another set.
    #[must_use]
    pub const fn and(self, others: HookSet) -> HookSet {
        HookSet(self.0 | others.0)
    }

    /// Whether one of others is among them.
    pub const fn has_any(self, others: HookSet) -> bool {
        self.0 & others.0 != 0
    }

    /// Those that are in it, in the order of [`ModuleHook::ALL`].
    pub fn iter(self) -> impl Iterator<Item = ModuleHook> {
        ModuleHook::ALL.into_iter().filter(move |hook| self.has(*hook))
    }
}

/// What a module decides about. It is moved into the call and comes back, so that only what a module reads is copied.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// A message stanza, whose `from` is its sender.
    Message(Stanza),
    /// A notification.
    Notification(Arc<Notification>),
    /// A match.
    Match(Box<MatchSubject>),
    /// A client that logs in, or whose session came or ended.
    Client(Box<ClientSubject>),
    /// What a push tells.
    Push(Box<PushText>),
    /// Something that happened.
    Event(Box<Event>),
}

/// What a module is told of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSubject {
    /// The account that it logs in to, or the full JID of its session.
    pub jid: Box<str>,
    /// Its address, the last one where its connection was lost; none if that is not known any more.
    pub address: Option<IpAddr>,
    /// What carries its stanzas; none if that is not known any more.
    pub transport: Option<Transport>,
    /// At [`ModuleHook::Authorise`]: the mechanism of SASL.
    pub mechanism: Option<Box<str>>,
    /// At [`ModuleHook::Authorise`]: what it says of itself by SASL2.
    pub agent: Option<Box<Agent>>,
    /// At [`ModuleHook::Closed`]: why.
    pub reason: Option<&'static str>,
}

/// What a client says of itself (XEP-0388 §2.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agent {
    /// Which of the account's clients it is.
    pub id: Option<Box<str>>,
    /// Its software.
    pub software: Option<Box<str>>,
    /// Its device.
    pub device: Option<Box<str>>,
}

/// What a push tells, and a device shows of it: no more than its app may be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushText {
    /// What it is about: `message` or `notification`.
    pub kind: Box<str>,
    /// The account.
    pub account: Box<str>,
    /// Which way it goes: `web_push`, `webhook`, `apns` or `fcm`.
    pub channel: Box<str>,
    /// Who sent the message, or the room it is from.
    pub from: Option<Box<str>>,
    /// The title that a device shows.
    pub title: Option<Box<str>>,
    /// The text that a device shows.
    pub body: Option<Box<str>>,
    /// What the app is told beside, as JSON.
    pub data: Option<Box<str>>,
}

impl PushText {
    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        let PushText { kind, account, channel, from, title, body, data } = self;
        let texts = [from, title, body, data].into_iter().flatten().chain([kind, account, channel]);
        texts.map(|text| text.len()).sum()
    }
}

crate::form! { struct PushText { kind, account, channel, from, title, body, data } }

/// What a module is told of a match that it decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchSubject {
    /// The tick that is closed, or the last one that was.
    pub tick: u32,
    /// How many seats there are.
    pub seats: u8,
    /// Ticks per second.
    pub tick_rate: u8,
    /// The number that the random decisions of the match follow from.
    pub seed: u64,
    /// At a tick: what each seat does, in their order. See [`SeatInput::put`].
    pub inputs: Vec<u8>,
    /// At [`ModuleHook::MatchLoad`]: the state.
    pub state: Vec<u8>,
}

/// What a seat does in a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeatInput<'a> {
    /// Nothing: it never sent an input.
    None,
    /// It sent this.
    Given(&'a [u8]),
    /// It sent nothing, and its last input counts again.
    Repeated(&'a [u8]),
    /// Its player has left.
    Left,
}

impl SeatInput<'_> {
    /// Appends it as a module reads it: a byte that says what it is, the length of the input in two bytes, little-endian, and the input.
    pub fn put(self, out: &mut Vec<u8>) {
        let (kind, input) = match self {
            SeatInput::None => (0, &[][..]),
            SeatInput::Given(input) => (1, input),
            SeatInput::Repeated(input) => (2, input),
            SeatInput::Left => (3, &[][..]),
        };
        let length = u16::try_from(input.len()).expect("an input has 512 bytes at most");
        out.push(kind);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(input);
    }
}

/// One call of a module. The same call of instances with the same history has the same outcome.
#[derive(Clone, Debug)]
pub struct Call {
    /// Which of its functions.
    pub hook: ModuleHook,
    /// What is decided about.
    pub subject: Subject,
    /// The time that the module is told.
    pub now: UnixMs,
    /// What the module's random numbers follow from.
    pub seed: u64,
    /// How much work it may do.
    pub fuel: u64,
}

/// What a module decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on as it is.
    Pass,
    /// It ends here, and nobody is told.
    Drop,
    /// It ends here, and its sender is told why.
    Reject(Rejection),
    /// It goes on with other content.
    Replace(Replacement),
    /// What became of a match.
    Match(Box<MatchVerdict>),
    /// The login fails.
    Refuse(LoginRefusal),
    /// It has taken note: it decides nothing.
    Noted,
}

impl Verdict {
    /// Its name in figures.
    pub const fn name(&self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Drop => "drop",
            Verdict::Reject(_) => "reject",
            Verdict::Replace(_) => "replace",
            Verdict::Match(_) => "match",
            Verdict::Refuse(_) => "reject",
            Verdict::Noted => "noted",
        }
    }
}

/// Why a module refuses a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginRefusal {
    /// The condition that the client is told (RFC 6120 §6.5).
    pub failure: LoginFailure,
    /// Whether its stream ends, with `<policy-violation/>` (RFC 6120 §4.9.3.14).
    pub ends_stream: bool,
    /// A sentence for people.
    pub text: Option<Box<str>>,
}

impl LoginRefusal {
    /// By the name of a condition that a module may give; none if it may not give this one.
    pub fn named(condition: &str, text: Option<Box<str>>) -> Option<LoginRefusal> {
        let (failure, ends_stream) = match condition {
            "not-authorized" => (LoginFailure::NotAuthorized, false),
            "account-disabled" => (LoginFailure::AccountDisabled, false),
            "credentials-expired" => (LoginFailure::CredentialsExpired, false),
            "temporary-auth-failure" => (LoginFailure::TemporaryAuthFailure, false),
            "policy-violation" => (LoginFailure::NotAuthorized, true),
            _ => return None,
        };
        Some(LoginRefusal { failure, ends_stream, text })
    }
}

/// What a module makes of a match. The parts are those of the hook that was called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchVerdict {
    /// The match is over.
    pub is_over: bool,
    /// What all seats are told of the tick.
    pub update: Vec<u8>,
    /// What some seats are told in place of that.
    pub own: Vec<(u8, Vec<u8>)>,
    /// The state that was saved.
    pub state: Vec<u8>,
    /// What came of the match that is over.
    pub outcome: Vec<u8>,
}

/// Why a module rejects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The error condition (RFC 6120 §8.3.3).
    pub condition: Condition,
    /// A sentence for people.
    pub text: Option<Box<str>>,
}

/// What a module replaces. Nothing of it has been checked but that texts are UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// The text of a message's `<body/>`, not escaped.
    Body(Box<str>),
    /// The whole payload: the XML within a message, or the JSON or XML of a notification, of the kind that it had.
    Payload(Bytes),
    /// Parts of what a push tells; what is none stays.
    Push {
        /// The title.
        title: Option<Box<str>>,
        /// The text.
        body: Option<Box<str>>,
        /// What the app is told beside, as JSON.
        data: Option<Box<str>>,
    },
}

/// Why a call of a module did not end with a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The module trapped: it did what WebAssembly forbids, or gave up.
    Trap,
    /// It used up the fuel of the call.
    Fuel,
    /// It ran until the deadline that catches what fuel does not.
    Deadline,
    /// Its stack is full.
    Stack,
    /// It wanted more memory than it may have.
    Memory,
    /// Its output is larger than it may be.
    Output,
    /// Its output is not what a verdict may be.
    Verdict,
    /// It could not be started.
    Start,
    /// It was not called, because modules have used up the fuel of the turn.
    Turn,
    /// It was not called, because it failed in the same turn or is off.
    Off,
}

impl Failure {
    /// Its name in figures and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Failure::Trap => "trap",
            Failure::Fuel => "fuel",
            Failure::Deadline => "deadline",
            Failure::Stack => "stack",
            Failure::Memory => "memory",
            Failure::Output => "output",
            Failure::Verdict => "verdict",
            Failure::Start => "start",
            Failure::Turn => "turn",
            Failure::Off => "off",
        }
    }
}

/// A failure, with what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Its kind.
    pub failure: Failure,
    /// A sentence for the operator.
    pub detail: Box<str>,
}

/// How many counters a module has.
pub const MODULE_COUNTERS: usize = 8;

/// What a module noted during a call. Both are bounded by whoever runs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Lines for the operator.
    pub lines: Vec<Box<str>>,
    /// What it added to its counters.
    pub counts: [u64; MODULE_COUNTERS],
}

/// The end of a call.
#[derive(Debug)]
pub struct Done {
    /// What was decided about, unchanged.
    pub subject: Subject,
    /// The verdict, or why there is none. After a failure the instance must be made anew ([`Instance::renew`]).
    pub result: Result<Verdict, Failed>,
    /// The work that was done.
    pub fuel: u64,
    /// What the module noted.
    pub notes: Notes,
}

/// An instance of a module on one shard. It keeps its memory from one call to the next.
pub trait Instance: Send + Debug {
    /// Calls one of the module's functions. It does not wait, allocates within the module's bounds, and does no more work than the fuel allows.
    fn call(&mut self, call: Call) -> Done;

    /// Begins anew, with the memory that the module starts with, and with so much fuel at most. Returns what it took.
    ///
    /// # Errors
    /// If the module cannot be started.
    fn renew(&mut self, fuel: u64) -> Result<u64, Failed>;
}

/// The name of a version of a module: the SHA-256 of its code.
pub type ModuleHash = [u8; 32];

/// A module that was checked and compiled.
pub trait Compiled: Send + Sync + Debug {
    /// The hash of its code.
    fn hash(&self) -> ModuleHash;

    /// The hooks that it has.
    fn hooks(&self) -> HookSet;

    /// An instance of it, which has been started. `config`: what the operator tells it.
    ///
    /// # Errors
    /// If it cannot be started within its bounds.
    fn instance(&self, config: &Arc<str>) -> Result<Box<dyn Instance>, Failed>;

    /// An instance of it for one match, which has been started, and what fuel that took. It has at most [`MATCH_MEMORY_BYTES`].
    ///
    /// # Errors
    /// If it cannot be started within its bounds.
    fn match_instance(&self, config: &Arc<str>) -> Result<(Box<dyn Instance>, u64), Failed>;
}

/// Why code is not a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAModule {
    /// The code is at fault.
    Invalid(String),
    /// Others are being compiled, or one that took too long still is: later.
    Busy,
}

/// What compiles modules.
pub trait Runtime: Send + Sync + Debug {
    /// Checks and compiles code, within bounds of time and size. Not for a shard's thread.
    ///
    /// # Errors
    /// If it is not a module, or compiling it takes too long.
    fn compile(&self, code: &[u8]) -> Result<Arc<dyn Compiled>, NotAModule>;
}

/// For whom a version of a module is activated. For others the version before it decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleScope {
    /// The domain; none for all.
    pub domain: Option<Arc<str>>,
    /// How many accounts of a hundred, chosen by a hash of the account's name.
    pub percent: u8,
}

impl ModuleScope {
    /// Everybody.
    pub const ALL: ModuleScope = ModuleScope { domain: None, percent: 100 };
}

/// What a module's failure means for what it was to decide about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// It goes on.
    Open,
    /// It goes no further.
    Closed,
}

impl OnFailure {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            OnFailure::Open => "open",
            OnFailure::Closed => "closed",
        }
    }
}

/// A module that is activated, with instances for one shard.
#[derive(Debug)]
pub struct ActiveModule {
    /// Its name. Modules are called in the order of their names.
    pub name: Arc<str>,
    /// For whom `version` decides.
    pub scope: ModuleScope,
    /// Whether `version` decides nothing, and is compared with `base`.
    pub is_shadow: bool,
    /// What a failure means.
    pub on_failure: OnFailure,
    /// When it was activated.
    pub since: UnixMs,
    /// The version that is activated.
    pub version: ModuleVersion,
    /// The last good version before it.
    pub base: Option<ModuleVersion>,
}

/// A version of a module on one shard.
#[derive(Debug)]
pub struct ModuleVersion {
    /// The hash of its code.
    pub hash: ModuleHash,
    /// What the operator tells it.
    pub config: Arc<str>,
    /// The hooks that it has.
    pub hooks: HookSet,
    /// The instance that is called.
    pub instance: Box<dyn Instance>,
    /// What makes further instances, for matches.
    pub compiled: Arc<dyn Compiled>,
}

impl ActiveModule {
    /// The hooks that one of its versions has.
    pub fn hooks(&self) -> HookSet {
        let base = self.base.as_ref().map_or(HookSet::default(), |base| base.hooks);
        self.version.hooks.and(base)
    }
}

/// Fuel of one call: a unit is about one instruction of WebAssembly, or one byte that an instruction copies.
pub const CALL_FUEL: u64 = 1_000_000;

/// Fuel that an instance may use to start.
pub const START_FUEL: u64 = 5_000_000;

/// Memory of an instance for a match.
pub const MATCH_MEMORY_BYTES: usize = 4 << 20;

/// Fuel of all modules in one turn of a shard; as much again of those that decide matches.
pub const TURN_FUEL: u64 = 10_000_000;

/// How far calls of what only observes may use [`TURN_FUEL`] up. An instance can be started and called within it.
pub const OBSERVED_FUEL: u64 = 7_000_000;

const _: () = assert!(START_FUEL + CALL_FUEL < OBSERVED_FUEL && OBSERVED_FUEL < TURN_FUEL);
