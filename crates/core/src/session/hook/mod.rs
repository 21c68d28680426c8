//! Hooks: the typed places where features join in. A hook is a plain function with an exact signature; a feature is a
//! table of them ([`Feature`]); the order in which they run is that of [`crate::features::ORDER`].
//!
//! ```text
//!  client ─► receive ─► submit ─► (service | iq | routed) ─► deliver ─► emit ─► client
//!                                               └► absent                 └► emitted
//! ```
//!
//! A filter (`submit`, `emit`) that refuses stops the stanza. Observers (`receive`, `emitted`, `open`, `close`, `unacked`)
//! cannot. What a feature starts comes back to it alone: a timer by its [`Timer`], an acknowledgement by its [`Tracked`].

mod decision;
mod list;
mod login;
mod rules;

pub use crate::connection::ProofKind;
pub use decision::*;
pub(crate) use list::each_hook;
pub use list::{Hooks, taken_twice};
pub use login::*;
pub use rules::{Handling, RulesHandler};

use crate::ReplyTo;
use crate::command::{Command, PendingIq, Refusal, SessionInfo, TopicIq, TopicOutcome};
use crate::error::{StanzaError, StreamError};
use crate::event::Leave;
use crate::feature_state::{PerAccount, PerShard};
use crate::message::{AccountMessage, Announcement, Requester, ShardMessage};
use crate::model::{
    Event, Mono, Node, Notification, NotificationId, Place, Policy, PrivacyLists, PubsubEvent, Record,
    RecordParts, Roster, SessionId, Settlement, Standing, StanzaKind, Trace, Wake, Wants,
};
use crate::ports::Directory;
use crate::ports::modules::{ActiveModule, PushText};
use crate::sasl::Inline;
use crate::session::homes::AtHome;
use crate::session::{BoundSession, Cx, Progress, Resume, Sessions, Wait};
use crate::settings::Settings;
use crate::shard::{
    Addressee, Chat, ModuleFigures, Names, Recipients, RefusedWrite, RoomSlice, Timer, Track, Tracked,
};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{Child, IqType, Payload, SharedStanza, Stanza};
use carillon_wire::xml::Element;
use smallvec::SmallVec;
use std::sync::Arc;

/// What a feature is: its declarations, from which disco#info and docs/coverage.md are made, and its hooks.
pub struct Feature {
    /// Its name in `features.disabled` and in the manual.
    pub name: &'static str,
    /// One sentence on what it does.
    pub about: &'static str,
    /// The specifications it follows.
    pub specs: &'static [Spec],
    /// Namespaces it adds to the disco#info of the server.
    pub server_features: &'static [&'static str],
    /// Namespaces it adds to the disco#info of an account.
    pub account_features: &'static [&'static str],
    /// Whether a domain has it: only then its namespaces are told to accounts of it.
    pub in_domain: fn(policy: &Policy) -> bool,
    /// Category and type of the identities it adds to the disco#info of an account.
    pub account_identities: &'static [(&'static str, &'static str)],
    /// Namespaces it takes inline in Bind 2 (XEP-0386).
    pub inline_features: &'static [&'static str],
    /// Nodes of the server at which it says more of itself (XEP-0030 §3.2).
    pub server_nodes: &'static [ServerNode],
    /// Addresses of its own, in every domain.
    pub services: &'static [Service],
    /// Whether it has what it needs by the settings; without that it is as disabled.
    pub is_on: fn(settings: &Settings) -> bool,
    /// Its hooks.
    pub hooks: Hooks,
}

/// An address of a feature in every domain: `HOST.DOMAIN`, unless that is the name of a domain. The domain's own accounts reach it, and those
/// of others if it `is_for_others` and both policies say so ([`Domains::reachable`](crate::model::Domains::reachable)).
#[derive(Debug)]
pub struct Service {
    /// The first label of its host name.
    pub host: &'static str,
    /// What it is called, for people (XEP-0030).
    pub name: &'static str,
    /// Category and type of its identity (XEP-0030).
    pub identity: (&'static str, &'static str),
    /// Handles stanzas for this address. What it passes is answered as by any host: by service discovery if that is enabled,
    /// else by an error.
    pub submit: SubmitHook,
    /// The name from which the home of one of its places (a topic, a room) is found ([`Directory`]), given the place's own
    /// name and the domain's; none where it has no places.
    pub place: Option<fn(name: &str, domain: &str) -> String>,
    /// Whether accounts of other domains may reach it: what it knows of an account is known by the account's whole address.
    pub is_for_others: bool,
}

impl Service {
    /// The home of the place with this name; of the service itself in this domain, if it has no places.
    pub fn home(&self, name: &str, domain: &str, cx: &Cx<'_>) -> Place {
        self.home_by(name, domain, &*cx.shard.directory)
    }

    /// The same by another directory.
    pub fn home_by(&self, name: &str, domain: &str, directory: &dyn Directory) -> Place {
        let address = match self.place {
            Some(place) => place(name, domain),
            None => format!("{}.{domain}", self.host),
        };
        directory.home(&address)
    }
}

/// A node of the server that describes a feature (XEP-0030 §3.2).
#[derive(Debug)]
pub struct ServerNode {
    /// Its name.
    pub node: &'static str,
    /// What it is called, for people.
    pub name: &'static str,
    /// Its features.
    pub features: &'static [&'static str],
}

/// A specification that a feature follows, and how far.
pub struct Spec {
    /// e.g. `XEP-0199` or `RFC 6121`.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The version followed; empty for an RFC.
    pub version: &'static str,
    /// What is supported and what is not.
    pub coverage: &'static str,
}

impl Feature {
    /// A feature without a name and without hooks, to start from.
    pub const NONE: Feature = Feature {
        name: "",
        about: "",
        specs: &[],
        server_features: &[],
        account_features: &[],
        account_identities: &[],
        in_domain: |_| true,
        is_on: |_| true,
        inline_features: &[],
        server_nodes: &[],
        services: &[],
        hooks: Hooks::NONE,
    };
}

/// Adds stream features to `features`.
pub type OfferHook = fn(cx: &Cx<'_>, features: &mut Vec<Element>);
/// A session was bound.
pub type OpenHook = fn(session: &mut BoundSession, cx: &mut Cx<'_>);
/// The node shuts down, and a session is about to end by it: what its client is told before its stream is closed.
pub type ShutdownHook = fn(session: &mut BoundSession, cx: &mut Cx<'_>);
/// A session ends.
pub type CloseHook = fn(session: &mut BoundSession, leave: Leave, cx: &mut Cx<'_>);
/// A session was parked. `waiting`: the stanza from its client that still waits for an answer. The number under which the session wants
/// to be told that this is settled ([`SettledHook`]), if it counts it.
pub type ParkedHook =
    fn(session: &mut BoundSession, waiting: Option<&Stanza>, cx: &mut Cx<'_>) -> Option<u32>;
/// A session is about to go on in another process, where nobody who sent it something is found: has the store keep what it may not have.
pub type LeavesHook = fn(session: SessionId, sessions: &mut Sessions, cx: &mut Cx<'_>);
/// A session was resumed.
pub type ResumedHook = fn(session: &mut BoundSession, cx: &mut Cx<'_>);
/// A parked session came from another process, and is in its account's list: brings what the feature knows of it in line with this one.
pub type RestoredHook = fn(session: &mut BoundSession, names: &mut Names, cx: &mut Cx<'_>);
/// Nodes came or went, and homes are elsewhere than `before` said; that of the session's account is where it was.
pub type HomesMovedHook = fn(session: &mut BoundSession, before: &dyn Directory, cx: &mut Cx<'_>);
/// A session goes on in another process.
pub type TakenHook = fn(session: &BoundSession, cx: &mut Cx<'_>);
/// Whether a stanza of a resumed session was handled before, and comes once more because the client did not know.
pub type RepeatedHook = fn(session: &mut BoundSession, stanza: &Stanza) -> bool;
/// Decides whether a stanza that has come for an account is delivered now. One that it holds it delivers later
/// ([`route::stanza`](crate::route::stanza)).
pub type ArrivedHook = fn(stanza: Stanza, settlement: Option<Settlement>, cx: &mut Cx<'_>) -> Arrival;
/// Why the record of an account denies a stanza to or from an address; none if it passes.
pub type FilterHook = fn(record: &PerAccount, passing: &Passing<'_>) -> Option<Denial>;
/// The name of the privacy list that a session has chosen, and that decides for it alone instead of what decides for its account (XEP-0016 §2.2).
pub type SessionListHook = fn(session: &BoundSession) -> Option<&str>;
/// Some see the account from now on, or do not any more.
pub type SeenHook = fn(home: &AtHome<'_>, seen: &Seen<'_>, sessions: &Sessions, cx: &mut Cx<'_>);
/// Takes a message, or gives it back because it is not this feature's.
pub type AccountMessageHook = fn(
    message: AccountMessage,
    home: &mut AtHome<'_>,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Option<AccountMessage>;
/// Says in messages, which are given to all features then, of what the account's sessions were not told: what these messages said, as far as it
/// is still so, and how the record differs from what it was, if that is given.
pub type MissedHook =
    fn(was: Option<&PerAccount>, messages: &[AccountMessage], home: &AtHome<'_>) -> Vec<AccountMessage>;
/// A session is available, or is not any more, and its account's other sessions have been told: tells those whom it concerns besides.
pub type AnnouncedHook =
    fn(session: &mut BoundSession, presence: &Stanza, step: Announcement, cx: &mut Cx<'_>);
/// Finds out what the client can do, by what its presence says ([`WantsHook`]).
pub type DiscoverHook = fn(session: &mut BoundSession, cx: &mut Cx<'_>);
/// The nodes of which the client of a session wants the events, if that is known.
pub type WantsHook = for<'a> fn(session: SessionId, cx: &'a Cx<'_>) -> Option<&'a Wants>;
/// Gives the session what its client can take.
pub type CapableHook = fn(session: &mut BoundSession, cx: &mut Cx<'_>);
/// Takes a response to a request of the feature, if it is one.
pub type ResponseHook = fn(session: &mut BoundSession, response: &Stanza, cx: &mut Cx<'_>);
/// A stanza from the client was dealt with.
pub type ReceiveHook = fn(session: &mut BoundSession, cx: &mut Cx<'_>);
/// May change a message of an account that no session sends. `has_session`: whether the account has one.
pub type ActedHook = fn(account: &BareJid, stanza: &mut Stanza, has_session: bool, cx: &mut Cx<'_>);
/// Decides on a stanza from the client, whose `from` is the client's JID. May change it, and may wait for an answer before it
/// decides.
pub type SubmitHook =
    fn(session: &mut BoundSession, stanza: &mut Stanza, cx: &mut Cx<'_>) -> Result<Flow, StanzaError>;
/// Decides on a message that an account sends, before any other feature sees it; may change it. `is_for_service`: it is for an address of
/// a feature, such as a room. Why it goes no further, if it does not.
pub type ScreenHook = fn(
    sender: &BareJid,
    message: &mut Stanza,
    is_for_service: bool,
    cx: &mut Cx<'_>,
) -> Result<Option<Taken>, StanzaError>;
/// Decides on a message of another that has come for an account, before any other feature sees it there; may change it. Why it goes no further, if
/// it does not.
pub type ScreenArrivedHook = fn(message: &mut Stanza, cx: &mut Cx<'_>) -> Result<Option<Taken>, StanzaError>;
/// Replaces the modules of a shard; what their random numbers follow from, and where they are counted.
pub type SetModulesHook =
    fn(modules: Vec<ActiveModule>, seed: u64, features: &mut PerShard, figures: &mut Vec<ModuleFigures>);
/// Decides on a notification before it is accepted; may change it. Whether it goes on.
pub type AdmitHook = fn(notification: &mut Arc<Notification>, cx: &mut Cx<'_>) -> bool;
/// Decides on what a push for an account tells. What is told instead; none if it is not sent.
pub type RenderPushHook =
    fn(account: &BareJid, text: Box<PushText>, cx: &mut Cx<'_>) -> Option<Box<PushText>>;
/// An event is stored: how a notification ended, or what happened to a room, without the message.
pub type EventHook = fn(event: &Event, cx: &mut Cx<'_>);
/// The number under which the session wants to be told ([`SettledHook`]) that this stanza is settled ([`Settlement`]), if it waits for
/// that: the one that it was counted under, or a new one.
pub type UnsettledHook =
    fn(session: &mut BoundSession, stanza: &Stanza, counted: Option<u32>, cx: &Cx<'_>) -> Option<u32>;
/// The stanza with this number is settled.
pub type SettledHook = fn(session: &mut BoundSession, number: u32, cx: &mut Cx<'_>);
/// Changes what is planned for a stanza to an account, at the account's home.
pub type RoutedHook = fn(stanza: &Stanza, sessions: &[&BoundSession], plan: &mut Plan, cx: &mut Cx<'_>);
/// Why a message must wait behind older ones that this session is still to be given, if it must. It is not given to the session now;
/// if that is so for all sessions, [`AbsentHook`] takes it.
pub type MustWaitHook = fn(session: &BoundSession, stanza: &Stanza, cx: &Cx<'_>) -> Option<Held>;
/// Takes responsibility for a message that none of the account's sessions takes, or refuses it. Returns how it took it, if it did. A hook
/// that has yet to store it takes the settlement, too, and settles when that is done.
pub type AbsentHook = fn(
    stanza: &Stanza,
    sessions: &[&BoundSession],
    settlement: &mut Option<Settlement>,
    cx: &mut Cx<'_>,
) -> Result<Option<Taken>, StanzaError>;
/// Something that is about to be stored for an account.
#[derive(Clone, Copy, Debug)]
pub enum Stored<'a> {
    /// A message.
    Message(&'a Stanza),
    /// A notification.
    Notification(&'a Notification),
    /// A message of a room, in which accounts are mentioned.
    Mention(&'a Stanza),
    /// A message of a room, for those who want all of them. Its topic is known already.
    InRoom(&'a Stanza),
}

/// When something that is about to be stored wakes its account, if it does. `is_attended`: the account may have a session with a connection.
pub type WakesHook = fn(stored: Stored<'_>, is_attended: bool, cx: &Cx<'_>) -> Option<Wake>;
/// Whether a session, which has a connection, is given what a room says.
pub type HearsHook = fn(session: &BoundSession, room: &BareJid) -> bool;
/// Stores messages that were given to parked sessions.
pub struct KeepHandler {
    /// The kind under whose number ([`Fate::Stored`](crate::shard::Fate::Stored)) an acknowledgement is told.
    pub kind: Tracked,
    /// Whether a message that no session takes is kept.
    pub keeps: fn(message: &Stanza) -> bool,
    /// Asks the store to keep a message, or settles it if it is not worth that.
    pub keep:
        fn(message: &Stanza, recipients: Arc<Recipients>, settlement: Option<Settlement>, cx: &mut Cx<'_>),
}

/// Takes out the traces of some accounts, which are at home elsewhere from now on.
pub type TakeTraces = fn(is_wanted: &dyn Fn(&BareJid) -> bool, cx: &mut Cx<'_>) -> Vec<Trace>;

/// Keeps what is known of notifications.
pub struct TracesHandler {
    /// Takes traces out, of about so many bytes: those of notifications that have not ended, or that have; none when none are left.
    pub take: fn(have_ended: bool, bytes_max: usize, cx: &mut Cx<'_>) -> Vec<Trace>,
    /// Takes out those of an account, which is at home elsewhere from now on.
    pub take_of: fn(account: &BareJid, cx: &mut Cx<'_>) -> Vec<Trace>,
    /// The same for many.
    pub take_where: TakeTraces,
    /// Whether that of a notification is here.
    pub knows: fn(id: NotificationId, cx: &Cx<'_>) -> bool,
    /// Keeps one that another process had, and whose account's home is here.
    pub put: fn(trace: Trace, cx: &mut Cx<'_>),
}

/// Changes a stanza that is given to one session alone.
pub type DeliverHook = fn(session: &mut BoundSession, stanza: &mut Stanza, cx: &mut Cx<'_>);
/// Decides whether something is written now.
pub type EmitHook = fn(session: &mut BoundSession, outgoing: &Outgoing<'_>, cx: &mut Cx<'_>) -> Emit;
/// Something was written.
pub type EmittedHook = fn(session: &mut BoundSession, outgoing: &Outgoing<'_>, cx: &mut Cx<'_>);
/// Keeps a chat message that was written until it has arrived. If it does not, it goes another way.
pub type GivenHook = fn(session: &mut BoundSession, stanza: Stanza, chat: Chat, cx: &mut Cx<'_>);
/// Initial presence was sent: what waits for the session is given from now on. `before`: whether features that come earlier
/// in the order still have something, which must not be overtaken. Returns whether this feature has.
pub type AvailableHook =
    fn(session: &mut BoundSession, presence: &Stanza, before: CatchUp, cx: &mut Cx<'_>) -> CatchUp;
/// Goes on with what waits for the session ([`crate::session::backlog`]). Returns whether anything is left; later features
/// wait for it.
pub type CatchUpHook = fn(session: &mut BoundSession, cx: &mut Cx<'_>) -> CatchUp;
/// The client closed its stream: whether the session must learn how much has arrived ([`UnackedHook`]) before it ends.
pub type AwaitsArrivalHook = fn(session: &BoundSession) -> bool;
/// Whether the store would give another session of the account something that this one was given.
pub type InFlightHook = fn(session: &BoundSession) -> bool;
/// Gives the session what happened on a topic.
pub type PublicationHook = fn(session: &mut BoundSession, event: &Arc<PubsubEvent>, cx: &mut Cx<'_>);
/// Gives what rooms say to some of those on this shard who are to be given it, if it is for those whom this feature knows.
pub type RoomHook = fn(slice: &RoomSlice<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>);
/// Carries a command out, or gives it back because it is not this feature's.
pub type CommandHook = fn(
    command: Command,
    reply: ReplyTo,
    sessions: &mut Sessions,
    cx: &mut Cx<'_>,
) -> Option<(Command, ReplyTo)>;
/// Takes a message, or gives it back because it is not this feature's.
pub type MessageHook =
    fn(message: ShardMessage, sessions: &mut Sessions, cx: &mut Cx<'_>) -> Option<ShardMessage>;
/// Repeats the writes of this feature, and gives back the others.
pub type RetryHook = fn(refused: Vec<RefusedWrite>, cx: &mut Cx<'_>) -> Vec<RefusedWrite>;
/// A write that the store refused is not repeated any more, because too many wait.
pub type GivenUpHook = fn(write: &RefusedWrite, cx: &mut Cx<'_>);
/// Does what the feature has postponed in this shard.
pub type TickHook = fn(cx: &mut Cx<'_>);
/// Makes deliveries that are under way to many sessions: about `max`, so that other work goes between. Returns whether more can be made at once.
pub type WalkHook = fn(max: usize, sessions: &mut Sessions, cx: &mut Cx<'_>) -> bool;
/// Answers an IQ about the topic with this name.
pub type TopicAnswerHook =
    fn(iq: TopicIq, name: &str, result: Result<TopicOutcome, Refusal>, cx: &mut Cx<'_>);
/// Adds what the feature knows of a session.
pub type DescribeHook = fn(session: &BoundSession, info: &mut SessionInfo);
/// All but the last `bytes` of the `sent` that were written have arrived at the peer's side ([`crate::Effect::CountUnacked`]).
pub type UnackedHook = fn(session: &mut BoundSession, bytes: u64, sent: u32, cx: &mut Cx<'_>);
/// A timer fired.
pub type WakeHook = fn(session: &mut BoundSession, cx: &mut Cx<'_>) -> Result<(), StreamError>;

/// Answers an IQ request, at once or later.
pub type IqHandle =
    fn(session: &mut BoundSession, request: &Request<'_>, cx: &mut Cx<'_>) -> Result<IqAnswer, StanzaError>;
/// Handles an element that is no stanza. Returns the reply, if there is one.
pub type NonzaHandle = fn(
    session: &mut BoundSession,
    element: &Element,
    cx: &mut Cx<'_>,
) -> Result<Option<Element>, StreamError>;

/// Answers one kind of IQ request.
pub struct IqHandler {
    /// `get` or `set`.
    pub kind: IqType,
    /// The payload's name.
    pub name: &'static str,
    /// The payload's namespace.
    pub ns: &'static str,
    /// The addresses at which it is answered.
    pub at: At,
    /// The function that answers.
    pub handle: IqHandle,
}

/// An IQ request to the server or to the client's own account.
pub struct Request<'a> {
    /// The whole stanza.
    pub stanza: &'a Stanza,
    /// Its payload.
    pub payload: &'a Element,
    /// The address it was sent to.
    pub at: At,
}

impl Request<'_> {
    /// The request, to be answered later.
    pub fn pending(&self, session: &BoundSession) -> PendingIq {
        PendingIq::new(self.stanza, &session.jid)
    }
}

/// One of the server's own addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The domain.
    Server,
    /// The client's own account: no `to`, or its own bare JID.
    Account,
    /// Either.
    Both,
    /// A feature's own address ([`Service`]).
    Service,
}

/// Answers, at the account's home and by its record, one kind of IQ request that a session of the account sends to it.
pub struct HomeHandler {
    /// `get` or `set`.
    pub kind: IqType,
    /// The payload's name.
    pub name: &'static str,
    /// The payload's namespace.
    pub ns: &'static str,
    /// The function that answers, now or later ([`home::answer`](crate::session::home::answer)).
    pub answer: fn(
        requester: Requester,
        request: &Stanza,
        home: &AtHome<'_>,
        sessions: &mut Sessions,
        cx: &mut Cx<'_>,
    ),
}

/// Answers some requests of an account's own sessions instead of the feature that they are for, at the account's home. The session's input
/// waits for the answer.
pub struct InsteadHandler {
    /// Whether a request with this payload is one of them.
    pub takes: fn(kind: IqType, payload: &Child<'_>) -> bool,
    /// The function that answers, now or later.
    pub answer: fn(request: &Stanza, home: &AtHome<'_>, cx: &mut Cx<'_>),
}

/// Answers, on behalf of an account, one kind of IQ request that another sends to its bare JID. It has passed the account's filters, but there
/// need not be such an account.
pub struct AskedHandler {
    /// `get` or `set`.
    pub kind: IqType,
    /// The payload's name.
    pub name: &'static str,
    /// The payload's namespace.
    pub ns: &'static str,
    /// Where it is answered, and the function that answers.
    pub answer: AnswerOther,
    /// Whether the answer has nothing to do with the account: then it is given to those whom the account blocks, too.
    pub is_same_for_all: bool,
}

/// Answers a request of another account.
#[derive(Clone, Copy)]
pub enum AnswerOther {
    /// Without the account's record, now or later. No other feature is asked.
    Now(fn(request: &Stanza, cx: &mut Cx<'_>)),
    /// By the account's record: whether this feature answers. If not, the next one that has such a handler is asked.
    AtHome(fn(request: &Stanza, home: &AtHome<'_>, sessions: &mut Sessions, cx: &mut Cx<'_>) -> bool),
}

/// Answers one top-level element that is no stanza, also when it comes inline in Bind 2.
pub struct NonzaHandler {
    /// The element's name.
    pub name: &'static str,
    /// Its namespace.
    pub ns: &'static str,
    /// The reply, if any: written to the stream, or put into `<bound/>`.
    pub handle: NonzaHandle,
    /// What becomes of it when the client has no session yet and may still bind one; if nothing, its stream ends.
    pub unbound: Option<Unbound>,
    /// The answer before the client has authenticated; if none, its stream ends.
    pub unauthenticated: Option<fn() -> Element>,
}

/// What becomes of an element that comes before a resource is bound.
#[derive(Clone, Copy)]
pub enum Unbound {
    /// It is answered.
    Reply(fn() -> Element),
    /// The client wants to resume a session; or the reply, if it asks for one that cannot be.
    Resume(fn(&Element) -> Result<Resume, Element>),
}

/// How clients resume sessions.
pub struct ResumptionHandler {
    /// What a client of SASL2 wants to resume; or the reply, if it asks for one that cannot be.
    pub inline: fn(inline: &Inline) -> Option<Result<Resume, Element>>,
    /// Whether the client can have as many stanzas of the session as it says.
    pub check: fn(session: &BoundSession, h: u32) -> Result<(), StreamError>,
    /// The answer to a client that resumes this session.
    pub resumed: fn(session: &mut BoundSession) -> Element,
    /// The client was answered, and has so many stanzas: it is sent the others.
    pub go_on: fn(session: &mut BoundSession, h: u32, cx: &mut Cx<'_>),
    /// The session is parked, and its client did not come back at once: what others wait for is not to wait for that.
    pub away: fn(session: SessionId, sessions: &mut Sessions, cx: &mut Cx<'_>),
    /// The answer when there is no such session.
    pub failed: fn() -> Element,
    /// How far the session has come.
    pub progress: fn(session: &BoundSession) -> Option<Progress>,
    /// Who waits until the client acknowledges what it was sent: what a log has of the session says so of them.
    pub settlements: fn(session: &BoundSession) -> Vec<Settlement>,
    /// The same of what the client acknowledged a moment ago.
    pub recent: fn(session: &mut BoundSession, now: Mono) -> Vec<Settlement>,
    /// The session is parked here as a log had it, because its node died. Of the client's stanzas these are in the queues of others that go on as
    /// well. `old`: its name there.
    pub orphaned: fn(session: &mut BoundSession, held: &[u32], old: Settlement),
    /// Who waited, at the node that died, for the stanza of the client with this number, if it may be one that the client repeats.
    pub origin: fn(session: &BoundSession, number: u32) -> Option<Settlement>,
    /// Another waits from now on for a message that the client was sent. Whether there is one.
    pub repoint: fn(session: &mut BoundSession, old: &Settlement, new: Settlement) -> bool,
    /// A session of a dead node does not go on: what its client may not have is routed to its account.
    pub given_up: fn(session: Box<BoundSession>, cx: &mut Cx<'_>),
}

/// The answer to an IQ request.
#[derive(Debug)]
pub enum IqAnswer {
    /// A result without a payload.
    Empty,
    /// A result with this payload.
    Payload(Element),
    /// A result with a payload that is written already.
    Ready(Payload),
    /// The feature answers later ([`Request::pending`]); the session's input goes on meanwhile.
    Later,
    /// The feature waits for an answer itself; until then the session's input waits behind this request.
    Wait(Wait<IqAnswer>),
}

/// A command of the server (XEP-0050), done in one step.
pub struct CommandHandler {
    /// Its node.
    pub node: &'static str,
    /// What it is called, for people.
    pub name: &'static str,
    /// Whether a session may give it.
    pub is_offered: fn(session: &BoundSession, cx: &Cx<'_>) -> bool,
    /// Carries it out.
    pub handle: fn(
        session: &mut BoundSession,
        request: &Request<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<IqAnswer, StanzaError>,
}

/// The commands that a session may give.
pub type CommandsHook = fn(session: &BoundSession, cx: &Cx<'_>) -> Vec<&'static CommandHandler>;

/// Something on its way to the client.
#[derive(Debug)]
pub enum Outgoing<'a> {
    /// A stanza, and what is tracked of it.
    Stanza(&'a Stanza, &'a Track),
    /// An event of a topic, which is serialised already.
    PubsubEvent(&'a Arc<PubsubEvent>),
    /// What a room gives to many, which is serialised already. The hooks `deliver` did not see it.
    Shared(&'a Arc<SharedStanza>, Addressee),
}

/// Whether something of a feature still waits for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatchUp {
    /// Nothing waits.
    Done,
    /// Something waits, and is on its way.
    Waits,
}

/// Handles a timer of a session.
pub struct TimerHandler {
    /// The timer.
    pub timer: Timer,
    /// The function that is called when it fires.
    pub handle: WakeHook,
}

/// Handles acknowledgements of a kind of tracked stanza.
pub struct TrackedHandler {
    /// The kind.
    pub kind: Tracked,
    /// The client acknowledged these (XEP-0198).
    pub acknowledged: fn(session: &mut BoundSession, ids: &[u128], cx: &mut Cx<'_>),
    /// The session is resumed, and its client did not receive this: whether it is not to be given any more. Then the feature forgets it.
    pub is_over: fn(session: &mut BoundSession, id: u128, cx: &mut Cx<'_>) -> bool,
}

/// A part of an account's record, with the function that takes it. The store is asked for the parts that enabled features take, and for no
/// others.
#[derive(Clone, Copy)]
pub enum RecordPart {
    /// The roster.
    Roster(fn(record: &mut PerAccount, roster: &Roster)),
    /// Whom it blocks, sorted.
    Blocked(fn(record: &mut PerAccount, list: &[Jid])),
    /// Its nodes, sorted by their names.
    Nodes(fn(record: &mut PerAccount, nodes: &[Node])),
    /// Its privacy lists, if it has any.
    Privacy(fn(record: &mut PerAccount, lists: &PrivacyLists)),
}

impl RecordPart {
    /// The part of the question to the store.
    pub const fn wanted(self) -> RecordParts {
        match self {
            RecordPart::Roster(_) => RecordParts { roster: true, ..RecordParts::NONE },
            RecordPart::Blocked(_) => RecordParts { blocked: true, ..RecordParts::NONE },
            RecordPart::Nodes(_) => RecordParts { nodes: true, ..RecordParts::NONE },
            RecordPart::Privacy(_) => RecordParts { privacy: true, ..RecordParts::NONE },
        }
    }

    /// Passes the part to the feature.
    pub fn give(self, record: &mut PerAccount, read: &Record) {
        match self {
            RecordPart::Roster(take) => take(record, &read.roster),
            RecordPart::Blocked(take) => take(record, &read.blocked),
            RecordPart::Nodes(take) => take(record, &read.nodes),
            RecordPart::Privacy(take) => {
                if let Some(lists) = &read.privacy {
                    take(record, lists);
                }
            }
        }
    }
}

/// Is told of a contact: its address, and where the subscriptions stand.
pub type EachContact<'a> = dyn FnMut(&str, Standing) + 'a;

/// Is told of a group.
pub type EachGroup<'a> = dyn FnMut(&str) + 'a;

/// Says who is whom to an account, by its record.
pub struct ContactsHandler {
    /// Where the subscriptions between the account and another stand; without any if the other is no contact.
    pub standing: fn(record: &PerAccount, other: &str) -> Standing,
    /// Names all contacts.
    pub each: fn(record: &PerAccount, each: &mut EachContact<'_>),
    /// Names the groups of a contact; those of all, some of them several times, if no contact is named.
    pub groups: fn(record: &PerAccount, contact: Option<&str>, each: &mut EachGroup<'_>),
}

/// Says whom an account blocks, by its record.
pub struct BlocksHandler {
    /// Whether an address is blocked.
    pub has: fn(record: &PerAccount, other: &Jid) -> bool,
    /// All that is blocked, sorted.
    pub all: fn(record: &PerAccount) -> Vec<Jid>,
}

/// Which way a stanza goes, as seen from the account whose record is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It is sent to the account.
    In,
    /// The account sends it.
    Out,
}

/// A stanza to or from another, which an account's record is asked about.
pub struct Passing<'a> {
    /// Which way it goes.
    pub direction: Direction,
    /// What it is.
    pub kind: StanzaKind,
    /// Whom it is from or for.
    pub other: &'a Jid,
    /// The list that its session has chosen, if it is of a session that has.
    pub list: Option<&'a str>,
    /// Who knows whether the other is a contact.
    pub contacts: Option<&'static ContactsHandler>,
    /// Who knows whether the other is blocked.
    pub blocks: Option<&'static BlocksHandler>,
}

/// Some see an account from now on, or do not any more.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Who is covered by these ([`is_covered`](crate::model::is_covered)), sorted.
    pub entries: &'a [Jid],
    /// Whether they see it from now on.
    pub is_seen: bool,
    /// The session that they see; none for all sessions that have not chosen a list of their own.
    pub session: Option<SessionId>,
}

/// A stanza does not pass: the error for whoever sent it.
#[derive(Clone, Copy, Debug)]
pub struct Denial(pub fn() -> StanzaError);

/// The sessions that get a stanza.
pub type Plan = SmallVec<[Delivery; 4]>;

/// A stanza planned for one session of an account.
#[derive(Debug)]
pub struct Delivery {
    /// The session's slot.
    pub slot: u32,
    /// The stanza it gets instead, if it does not get the original.
    pub instead: Option<Stanza>,
    /// What is tracked of it.
    pub track: Track,
}
