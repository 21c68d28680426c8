//! What nodes send each other.

use super::*;
use crate::command::*;
use crate::message::{
    AccountMessage, Addressees, Announcement, BroadcastNews, GameMessage, NewMatch, Pace, QueueAddress,
    Requester, RoomAbout, RoomAudience, RoomEvent, RoomOp, RoomRecipient, RoomSeat, RoomStanza, RosterCause,
    ShardMessage, Wish,
};
use crate::model::*;
use crate::ports::Fault;
use crate::ports::modules::PushText;
use crate::ports::store::notifications::{NotificationQuery, Whose};
use carillon_wire::frame::game::{EndReason, Mode, SeatState};
use carillon_wire::jid::{BareJid, Jid};
use carillon_wire::stanza::{MessageType, PresenceType, SharedStanza, Stanza};

const PLACE: Place = Place { node: NodeId(3), shard: ShardId(1) };
const SESSION: SessionId = SessionId { slot: 5, generation: 2 };
const NOW: UnixMs = UnixMs(1_795_167_000_125);

fn ann() -> BareJid {
    BareJid::new("ann@example.org").unwrap()
}

fn full() -> Jid {
    Jid::new("ann@example.org/phone").unwrap()
}

fn chat() -> Stanza {
    Stanza::message(MessageType::Chat).with_from(full()).with_to(full()).with_id("c1")
}

fn settlement() -> Option<Settlement> {
    Some(Settlement { place: PLACE, session: SESSION, number: 9 })
}

fn reply() -> ReplyTo {
    ReplyTo { node: NodeId(3), number: 1 << 40 }
}

fn notification() -> Arc<Notification> {
    Arc::new(Notification {
        id: NotificationId::new(NOW, 7, 8),
        domain: DomainId(1),
        to: ann(),
        audience: Audience::Always,
        priority: Priority::High,
        expires: Some(NOW),
        collapse_key: Some("k".into()),
        key: Some(KeyId(4)),
        payload: Payload::Json("{\"a\":1}".into()),
        accepted: NOW,
        send_at: None,
    })
}

fn broadcast() -> Arc<Broadcast> {
    Arc::new(Broadcast {
        id: NotificationId(9),
        domain: DomainId(1),
        audience: Audience::Connected,
        priority: Priority::Low,
        payload: Payload::Xml(Bytes::from_static(b"<a xmlns='urn:x'/>")),
        key: Some(KeyId(4)),
        created: NOW,
        expires: NOW.plus(5),
        topic: Some(BroadcastTopic { id: TopicId(4), name: "news".into() }),
        pace: BroadcastPace {
            rate: Some(7),
            not_before: Some(NOW),
            window: Some(DayWindow { from: 1, to: 1439, ahead: 60 }),
        },
        state: BroadcastState::Paused,
        ended: Some(NOW),
        revision: 1 << 40,
    })
}

fn trace() -> Trace {
    let opened = Some(Opened { at: NOW, agent: AgentClass::Tablet });
    Trace { opened, ..Trace::of(&notification()) }
}

fn expired_message() -> ExpiredMessage {
    let stanza = Bytes::from_static(b"<message/>");
    ExpiredMessage {
        to: ann(),
        message: OfflineMessage { seq: 1 << 33, received: NOW, stanza, expires: Some(NOW) },
    }
}

fn item() -> Arc<Item> {
    Arc::new(Item {
        topic: TopicId(4),
        domain: DomainId(1),
        name: "news".into(),
        id: "i1".into(),
        publisher: Some(ann()),
        published: NOW,
        payload: Bytes::from_static(b"<a xmlns='urn:x'/>"),
        revision: Revision(8),
    })
}

fn commands() -> Vec<Command> {
    let (domain, account, name, id) = (DomainId(1), ann(), Box::from("news"), NotificationId(5));
    let whose = Whose::Account(domain, "ann".into());
    let states = States::ALL;
    let query = NotificationQuery { whose, states, key: None, from: id, before: id, limit: 3 };
    vec![
        Command::Notify(notification()),
        Command::NotifyFollowed { notification: notification(), context: TraceContext { trace: 1, span: 2 } },
        Command::Cancel { id },
        Command::Trace { id },
        Command::TracesInMemory { query: Arc::new(query), ids: [id, id].into() },
        Command::Topic { domain, name, actor: Actor::Account(full()), op: TopicOp::Listen },
        Command::Kick { jid: full(), reason: KickReason::Credentials },
        Command::Changed { accounts: [account.clone()].into() },
        Command::Act { account: account.clone(), stanza: Box::new(chat()) },
        Command::RevokeTokens { domain, account: account.clone() },
        Command::RemoveAccount { domain, account: account.clone() },
        Command::ContactsRemoved { changes: Vec::new() },
        Command::Presence { accounts: [account.clone()].into() },
        Command::TopicFigures { topics: [TopicId(1), TopicId(2)].into() },
        Command::Sessions { domain: Some(domain), account: Some(account.clone()), limit: 100 },
        Command::RenderPush { account: account.clone(), text: Box::new(push_text()) },
        Command::Hears { account, room: BareJid::new("tea@rooms.example.org").unwrap(), said: NOW },
    ]
}

fn push_text() -> PushText {
    let (title, body) = (Some("title".into()), Some("text".into()));
    PushText { kind: "message".into(), channel: "apns".into(), title, body, ..PushText::default() }
}

fn operations() -> Vec<TopicOp> {
    let (config, id) =
        (TopicConfig { deliver_payloads: false, ..TopicConfig::default() }, Box::<str>::from("i1"));
    let change = ConfigChange { max_items: Some(3), ..ConfigChange::default() };
    let payload = Payload::Xml(Bytes::from_static(b"<a xmlns='urn:x'/>"));
    let operation = Some(OperationId::new(NOW, 77));
    let from = ItemsFrom::After(id.clone());
    vec![
        TopicOp::Create { config: config.clone() },
        TopicOp::Put { config: config.clone() },
        TopicOp::Configure { config },
        TopicOp::Amend { change: change.clone() },
        TopicOp::Describe,
        TopicOp::Manage,
        TopicOp::Delete,
        TopicOp::Publish { id: Some(id.clone()), payload: payload.clone(), operation },
        TopicOp::PublishIf { id: None, payload, options: change.clone() },
        TopicOp::PublishNothing { options: change },
        TopicOp::Retract { id: id.clone(), notify: Some(true) },
        TopicOp::Purge,
        TopicOp::Items { ids: vec![id], from: from.clone(), max: Some(3), bytes_max: 100 },
        TopicOp::ItemNames { from, max: 3 },
        TopicOp::Subscribe { account: ann() },
        TopicOp::Unsubscribe { account: ann() },
        TopicOp::Listen,
        TopicOp::Subscribers { after: Some(ann()), max: 3 },
        TopicOp::SetAffiliations { changes: vec![(ann(), Affiliation::Owner)] },
    ]
}

fn account_messages() -> Vec<AccountMessage> {
    let stanza = || Box::new(chat());
    let presence = || Arc::new(Stanza::presence(PresenceType::Available).with_from(full()));
    vec![
        AccountMessage::Request { requester: Requester::Session(SESSION), stanza: stanza() },
        AccountMessage::Request { requester: Requester::Command(4), stanza: stanza() },
        AccountMessage::Sent { number: 7, stanza: stanza() },
        AccountMessage::Announced {
            presence: presence(),
            step: Announcement::Update,
            list: Some("a".into()),
        },
        AccountMessage::Presence(presence()),
        AccountMessage::Probe(full()),
        AccountMessage::Asks { from: full(), of: full() },
        AccountMessage::BlockListChanged(Arc::new(BlockListChange {
            account: ann(),
            before: Generation(1),
            after: Generation(2),
            blocked: vec![full()],
            unblocked: Vec::new(),
            by_lists: true,
        })),
        AccountMessage::PrivacyChanged(Arc::new(PrivacyChange {
            account: ann(),
            before: Generation(1),
            after: Generation(2),
            lists: privacy_lists(),
            changed: vec!["a".into()],
        })),
        AccountMessage::Wants(SESSION),
        AccountMessage::Asked(stanza()),
        AccountMessage::Stanza { stanza: stanza(), settlement: settlement() },
        AccountMessage::Reload,
    ]
}

fn privacy_lists() -> PrivacyLists {
    let about = [
        RuleAbout::Jid(full()),
        RuleAbout::Group("Friends".into()),
        RuleAbout::Subscription(SubscriptionState::To),
        RuleAbout::All,
    ];
    let kinds = StanzaKinds::ALL.and(StanzaKind::Message).and(StanzaKind::PresenceOut);
    let rules =
        about.into_iter().zip(1..).map(|(about, order)| PrivacyRule { order, about, denies: true, kinds });
    PrivacyLists {
        default: Some("a".into()),
        lists: vec![PrivacyList { name: "a".into(), rules: rules.collect() }],
    }
}

fn messages() -> Vec<ShardMessage> {
    let (domain, topic, account) = (DomainId(1), TopicId(4), ann());
    let event = Arc::new(PubsubEvent::last_item(&item(), "example.org", true));
    let iq = PendingIq { from: full(), to: None, id: "q".into() };
    let askers = [
        Asker::Iq(Box::new(TopicIq { iq, about: About::Items { paged: true } })),
        Asker::Command(reply()),
        Asker::Light(PLACE),
    ];
    let asked = askers.into_iter().map(|asker| {
        let (name, actor) = ("news".into(), Actor::Provider);
        ShardMessage::Topic { domain, name, actor, op: TopicOp::Listen, asker }
    });
    let address = "2001:db8::1".parse().unwrap();
    let to = Addressees::from_iter([ann(), ann()]);
    let fixed = [
        ShardMessage::Stanza { stanza: chat(), settlement: settlement() },
        ShardMessage::Reply { stanza: chat() },
        ShardMessage::ForAccounts { to, message: AccountMessage::Reload },
        ShardMessage::Settled(settlement().unwrap()),
        ShardMessage::Command { command: Command::Trace { id: NotificationId(1) }, reply: reply() },
        ShardMessage::Publication(event.clone()),
        ShardMessage::Pace { topic, place: PLACE, pace: Pace::Behind },
        ShardMessage::Subscribed { account: account.clone(), topic, last: Some(event) },
        ShardMessage::Unsubscribed { account, topic },
        ShardMessage::Listening { name: "news".into(), result: Err(Refusal::Fault(Fault::Busy)) },
        ShardMessage::Restricted { topic },
        ShardMessage::LoginFailed { address },
        ShardMessage::Registered { address },
        ShardMessage::GivenAll { domain: DomainId(7), wait_ms: 1500 },
        ShardMessage::Expired(Box::new(trace())),
        ShardMessage::MessageExpired(Box::new(expired_message())),
        ShardMessage::Broadcasts(Box::new(BroadcastNews {
            changed: vec![broadcast()],
            is_all: true,
            tell: false,
        })),
        ShardMessage::Command { command: Command::CountReached { broadcast: broadcast() }, reply: reply() },
    ];
    fixed.into_iter().chain(asked).collect()
}

/// What a session and the home of a room tell each other.
fn of_rooms() -> Vec<ShardMessage> {
    let seat = RoomSeat { place: PLACE, session: SESSION, presences: 7 };
    let room =
        |op| ShardMessage::Room { domain: DomainId(1), kind: RoomKind::MucLight, name: "tea".into(), op };
    let presence = Box::new(Stanza::presence(PresenceType::Available).with_from(full()));
    let recipient = RoomRecipient { session: SESSION, sees_addresses: true };
    let event = |about| {
        let chat = || Arc::new(SharedStanza::new(chat()));
        let said = RoomStanza { stanza: chat(), full: Some(chat()) };
        let (to, except) = (RoomAudience::Clients(Arc::new(vec![recipient])), vec![SESSION]);
        ShardMessage::RoomEvent(Box::new(RoomEvent { to, except, stanzas: vec![said], about }))
    };
    vec![
        room(RoomOp::Stanza { seat, stanza: Box::new(chat()), settlement: settlement() }),
        room(RoomOp::Gone { client: full(), seat, is_lost: true }),
        room(RoomOp::Back { seat, presence, role: RoomRole::Moderator }),
        room(RoomOp::Command { request: Box::new(RoomRequest::Describe), reply: reply() }),
        room(RoomOp::Pace { place: PLACE, is_behind: true }),
        room(RoomOp::Refused { error: Box::new(chat()) }),
        event(RoomAbout::Others),
        ShardMessage::RoomEvent(Box::new(RoomEvent {
            to: RoomAudience::Accounts(Arc::new(vec![ann()])),
            except: Vec::new(),
            stanzas: vec![RoomStanza::for_all(chat())],
            about: RoomAbout::Others,
        })),
        event(RoomAbout::Entered(full(), RoomRole::Visitor)),
        event(RoomAbout::Left { occupant: full(), presences: 7 }),
    ]
}

fn match_result() -> MatchResult {
    let (id, reason) = (MatchId::new(PLACE, 7), EndReason::Finished);
    MatchResult { id, reason, tick: 3600, seats: 0b101, outcome: b"{}".to_vec() }
}

/// What the matchmaker and the homes of matches tell each other, and what is asked of them.
fn of_matches() -> Vec<ShardMessage> {
    let queue = QueueAddress { place: PLACE, domain: DomainId(1), name: "duel".into() };
    let (id, rules) = (MatchId::new(PLACE, 7), MatchRules::default());
    let config = QueueConfig {
        seats: 2,
        rating: RatingWindow::ANY,
        wait_max_ms: 9,
        rules: rules.clone(),
        party_max: 2,
        is_open: true,
    };
    let alike = vec![("region".into(), "eu".into())];
    let ticket =
        NewTicket { id: "t".into(), account: ann(), rating: -5, alike: alike.clone(), party: vec![ann()] };
    let new = NewMatch { id, queue: queue.clone(), rules, accounts: vec![ann()], key: [4; 32], seed: 9 };
    let game = |message| ShardMessage::Game(Box::new(message));
    let wished = |wish| {
        let (queue, iq) = (queue.clone(), Box::new(PendingIq { from: full(), to: None, id: "q".into() }));
        game(GameMessage::Asked { queue, wish: Box::new(wish), ticket: "t".into(), iq })
    };
    let asked = |request| ShardMessage::Command {
        command: Command::Queue { domain: DomainId(1), name: "duel".into(), request: Box::new(request) },
        reply: reply(),
    };
    vec![
        game(GameMessage::Begin(Box::new(new))),
        game(GameMessage::Refused { queue: queue.clone(), id }),
        game(GameMessage::Ended { queue: queue.clone(), result: match_result() }),
        wished(Wish::Enter { rating: -5, alike: alike.clone() }),
        wished(Wish::Look),
        wished(Wish::Cancel),
        asked(QueueRequest::Put { config }),
        asked(QueueRequest::Get),
        asked(QueueRequest::Delete),
        asked(QueueRequest::Enter { ticket }),
        asked(QueueRequest::Ticket { id: "t".into() }),
        asked(QueueRequest::Cancel { id: "t".into() }),
        ShardMessage::Command {
            command: Command::Match { domain: DomainId(1), id, request: MatchRequest::End },
            reply: reply(),
        },
    ]
}

fn outcomes_of_matches() -> Vec<Outcome> {
    let ticket = |state| {
        let ticket =
            NewTicket { id: "t".into(), account: ann(), rating: 0, alike: Vec::new(), party: Vec::new() };
        QueueOutcome::Ticket { ticket: TicketView { ticket, created: NOW, state }, created: true }
    };
    let seating = Seating {
        id: MatchId::new(PLACE, 7),
        seat: 1,
        accounts: vec![ann()],
        token: "x".into(),
        expires: NOW,
        waited_ms: 8,
        party: vec![(2, "y".into())],
    };
    let view = MatchView {
        id: MatchId::new(PLACE, 7),
        queue: "duel".into(),
        mode: Mode::Relay,
        tick: 4,
        runs: true,
        seats: vec![(ann(), SeatState::Away)],
        desyncs: 1,
        module: Some(("squares".into(), [3; 32])),
        spectators: 3,
    };
    let done = [
        QueueOutcome::Done,
        ticket(TicketState::Waiting),
        ticket(TicketState::Matched(Box::new(seating))),
        ticket(TicketState::Ended(match_result())),
        ticket(TicketState::Expired),
    ];
    let refused = Outcome::Queue(Box::new(Err(QueueRefusal::Present)));
    let queues = done.into_iter().map(|outcome| Outcome::Queue(Box::new(Ok(outcome))));
    let replay = MatchReplay {
        id: MatchId::new(PLACE, 7),
        queue: "duel".into(),
        mode: Mode::Authoritative,
        tick_rate: 20,
        seed: 5,
        accounts: vec![ann()],
        module: Some(("squares".into(), [3; 32])),
        result: Some(match_result()),
        forgotten: 2,
        tick: 4,
        frames: vec![1, 2, 3],
    };
    let token = Outcome::MatchToken { token: "x".into(), expires: NOW };
    let of_match = [Outcome::Match(Box::new(view)), token, Outcome::MatchReplay(Box::new(replay))];
    queues.chain([refused]).chain(of_match).collect()
}

fn outcomes() -> Vec<Outcome> {
    let record = TopicRecord {
        id: TopicId(4),
        domain: DomainId(1),
        name: "news".into(),
        config: TopicConfig::default(),
        affiliations: vec![(ann(), Affiliation::Publisher)],
        created: NOW,
    };
    let session = SessionInfo {
        jid: full(),
        parked: false,
        address: "192.0.2.1".parse().ok(),
        transport: Some(Transport { framing: carillon_wire::Framing::WebSocket, tls: Some(true) }),
        since: NOW,
        presence: Availability::Away,
        stream_management: true,
        topics: 3,
        unacknowledged: 4,
        via: Some(NodeId(7)),
        home: NodeId(3),
    };
    let present = AccountPresence { index: 1, sessions: 2, reach: Reach::Asleep, since: NOW };
    let done = [
        TopicOutcome::Done,
        TopicOutcome::Record { record: Arc::new(record), created: true },
        TopicOutcome::Published(item()),
        TopicOutcome::Items(vec![item(), item()]),
        TopicOutcome::ItemNames { ids: vec!["a".into()], count: 9 },
        TopicOutcome::Subscribed { new: true },
        TopicOutcome::Jids(vec![ann()]),
        TopicOutcome::Listening { topic: TopicId(4), last: None },
    ];
    let refused =
        [Refusal::Unacceptable(Unacceptable::NoOwner), Refusal::NoRoom(NoRoom::NodeBytes), Refusal::Crowded];
    let topics = done.into_iter().map(Ok).chain(refused.into_iter().map(Err)).map(Outcome::Topic);
    let fixed = [
        Outcome::Notified(Box::new(trace())),
        Outcome::Trace(Box::new(trace())),
        Outcome::Traces(vec![trace()]),
        Outcome::Count(7),
        Outcome::Presence(vec![present]),
        Outcome::TopicFigures(vec![TopicFigures { sessions: 1, published: 2, delivered: 3 }]),
        Outcome::Sessions(vec![session]),
        Outcome::Answered(Box::new(chat())),
        Outcome::PushText(None),
        Outcome::PushText(Some(Box::new(push_text()))),
        Outcome::Missing,
        Outcome::Unavailable,
        Outcome::Unknown,
    ];
    fixed.into_iter().chain(topics).collect()
}

#[test]
fn messages_between_nodes() {
    messages().iter().for_each(survives);
    of_rooms().iter().for_each(survives);
    of_matches().iter().for_each(survives);
    account_messages().iter().for_each(survives);
    survives(&RosterCause::Removal);
}

#[test]
fn commands_and_their_outcomes() {
    commands().iter().for_each(survives);
    operations().iter().for_each(survives);
    outcomes().iter().for_each(survives);
    outcomes_of_matches().iter().for_each(survives);
}
