//! What the core spends, by count: allocations a login and a delivery. Counts do not depend on the machine or on what else
//! it does, so they fail when, and only when, the code spends more.
//!
//! `cargo run -p xtask -- instructions` runs the same two tests under valgrind and counts instructions.

#[path = "../chat/world.rs"]
#[expect(dead_code, reason = "the conversations use more of it")]
mod world;

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use carillon_core::command::{Actor, Command, Outcome, RoomMemberChange, RoomOutcome, RoomRequest, TopicOp};
use carillon_core::model::*;
use carillon_core::ports::store::accounts::CreateAccount;
use carillon_core::ports::store::endpoints::{RegisterEndpoint, RegisterEndpointAnswer};
use carillon_core::sasl::scram;
use carillon_core::settings::Settings;
use carillon_load::client::{
    Client, ClientEvent, Entropy, Options, Outbox, Profile, Settings as Login, StreamManagement, Transport,
};
use carillon_wire::Framing;
use carillon_wire::jid::BareJid;
use world::World;

const DOMAIN: &str = "example.org";
const TOPIC: &str = "news";
/// Logins before anything is counted: tables have grown then, and buffers are there.
const WARM: usize = 64;
const COUNTED: usize = 448;
const PLAIN_LOGINS: usize = 64;
const HEADER: &str = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' \
    to='example.org' version='1.0'>";
const ITEMS: usize = 10;
/// Allocations of a whole login. Effects and their bytes are in buffers that are used again, as in the server.
const LOGIN_MAX: usize = 150;
/// A delivery allocates nothing.
const DELIVERIES_AN_ALLOCATION: usize = 1000;
/// Clients in the room. A slice of a walk is smaller.
const OCCUPANTS: usize = COUNTED;
/// Allocations of a message in a room of so many, from its sender's client to the last of them.
const ROOM_MESSAGE_MAX: usize = 64;
/// Clients in the same room before anything is counted, when few are in it.
const FEW_OCCUPANTS: usize = 64;
/// Clients that enter, one after the other.
const ENTERING: usize = 64;
/// Allocations of entering a room in which nobody but moderators is shown, from the client's presence to the subject that it is given.
const ENTER_MAX: usize = 140;
/// Allocations beside that for each occupant who is shown, where all are.
const SHOWN_MAX: usize = 2;
/// Allocations of a notification that is kept, delivered and acknowledged; one is the topic of its push.
const NOTIFICATION_MAX: usize = 26;
/// What such a notification asks the store: to keep it, and to end it.
const NOTIFICATION_ASKS: usize = 2;
const NOTIFICATIONS: usize = 1000;
/// Allocations of a chat message from one account to another.
const MESSAGE_MAX: usize = 18;
const MESSAGES: usize = 1000;
/// The same, kept in the archives of both.
const ARCHIVED_MESSAGE_MAX: usize = 32;
/// So many that tables are as full as they are on a node with 15,000 sessions on two shards.
const IDLE: usize = 7500;
/// Bytes and allocations of an idle session, with its part of the tables.
const IDLE_BYTES_MAX: usize = 1240;
const IDLE_MAX: usize = 4;
/// Rooms of five, each client in ten of them, as in `bench/rooms`; and clients whose tables have grown before.
const ROOMS: usize = 400;
const ROOM_CLIENTS: usize = 200;
const SEATS: usize = 5;
/// Bytes and allocations of a room of five, at its home and at the sessions, with its part of the tables: of one whose occupants say nothing in their
/// presence, of one whose occupants say what their clients can do, and of one of MUC Light.
const ROOM_BYTES_MAX: [usize; 3] = [2200, 3700, 1260];
const ROOM_ALLOCATIONS_MAX: [usize; 3] = [23, 33, 11];

/// Accounts, and what their clients need.
struct Crowd {
    world: World,
    profile: Arc<Profile>,
}

impl Crowd {
    fn new(count: usize) -> Crowd {
        Crowd::with(count, StreamManagement::Off)
    }

    fn with(count: usize, stream_management: StreamManagement) -> Crowd {
        Crowd::by(count, stream_management, Settings::default())
    }

    fn by(count: usize, stream_management: StreamManagement, mut settings: Settings) -> Crowd {
        // All of it happens in one moment.
        settings.limits.rates.stanzas_per_second = 0;
        let mut world = World::new(settings);
        world.domain(DOMAIN, Policy::default());
        let domain = world.domain_id(DOMAIN);
        let credentials = scram::keys("pw", b"0123456789abcdef", 4096).expect("a password");
        for i in 0..count {
            let (local, credentials, now) = (format!("u{i}").into(), credentials.clone(), world.now());
            world.ask(CreateAccount { domain, local, credentials, is_in_band: false, now });
        }
        // TLS is none of the core's business: to it the connection is secured, to the client it is plain.
        let login = Login { transport: Transport::Plain, stream_management, ..Login::default() };
        Crowd { world, profile: Profile::new(login).expect("plain text needs nothing") }
    }

    /// Accounts that enter a room in which nobody but moderators is shown.
    fn of_a_room(count: usize) -> Crowd {
        let mut settings = Settings::default();
        settings.limits.room_presence = 0;
        Crowd::by(count, StreamManagement::Off, settings)
    }

    /// All of them log in and enter the room.
    fn enter_all(&mut self, count: usize) -> Vec<usize> {
        let conns: Vec<usize> = (0..count).map(|number| self.enter(number)).collect();
        for conn in &conns {
            while self.world.received(*conn).is_some() {}
        }
        conns
    }

    fn enter(&mut self, number: usize) -> usize {
        let (conn, _) = self.log_in(number);
        let room = format!("tea@rooms.{DOMAIN}");
        self.world.bytes(conn, entry(number).as_bytes());
        if number == 0 {
            let form = "<query xmlns='http://jabber.org/protocol/muc#owner'><x xmlns='jabber:x:data' type='submit'/></query>";
            self.world.bytes(conn, format!("<iq type='set' id='c' to='{room}'>{form}</iq>").as_bytes());
        }
        conn
    }

    /// A whole login: header, SCRAM, header, bind, presence. The connection stays.
    fn log_in(&mut self, number: usize) -> (usize, Client) {
        let jid = BareJid::new(&format!("u{number}@{DOMAIN}")).expect("a JID");
        let conn = self.world.open(Framing::Tcp, true);
        let entropy = Entropy::from_system().expect("the system has some");
        let mut client = Client::new(Options::new(jid, "pw", &self.profile), entropy);
        let mut out = Outbox::default();
        client.start(&mut out);
        while !out.events.iter().any(|event| matches!(event, ClientEvent::Ready)) {
            let bytes = std::mem::take(&mut out.bytes);
            self.world.bytes(conn, &bytes);
            while let Some(bytes) = self.world.received(conn) {
                client.receive(&bytes, &mut out);
            }
        }
        let bytes = std::mem::take(&mut out.bytes);
        self.world.bytes(conn, &bytes);
        (conn, client)
    }

    /// A notification for an account, to be kept until it is acknowledged.
    fn notify(&mut self, number: usize, nth: u64) {
        let to = BareJid::new(&format!("u{number}@{DOMAIN}")).expect("a JID");
        let accepted = self.world.now();
        let notification = Notification {
            id: NotificationId::new(accepted, bucket(to.as_str()), nth),
            domain: self.world.domain_id(DOMAIN),
            to: to.clone(),
            audience: Audience::Always,
            priority: Priority::Normal,
            expires: Some(accepted.plus(60_000)),
            collapse_key: None,
            key: None,
            payload: Payload::Json(format!("{{\"n\":{nth},\"text\":\"{}\"}}", "x".repeat(370)).into()),
            accepted,
            send_at: None,
        };
        let outcome = self.world.command(to.as_str(), Command::Notify(notification.into()));
        assert!(matches!(outcome, Outcome::Notified(_)), "{outcome:?}");
    }

    fn ask_room(&mut self, kind: RoomKind, number: usize, request: RoomRequest) {
        let (domain, name) = (self.world.domain_id(DOMAIN), format!("room-{number}"));
        let address = kind.address(&name, DOMAIN);
        let command = Command::Room { domain, kind, name: name.into(), request: Box::new(request) };
        let outcome = self.world.command(&address, command);
        assert!(
            matches!(outcome, Outcome::Room(Ok(RoomOutcome::Record { .. } | RoomOutcome::Done))),
            "{outcome:?}"
        );
    }

    fn follow(&mut self, number: usize) {
        let account = BareJid::new(&format!("u{number}@{DOMAIN}")).expect("a JID");
        self.topic(TopicOp::Subscribe { account });
    }

    fn publish(&mut self, number: usize) {
        let payload =
            Payload::Json(format!("{{\"number\":{number},\"text\":\"{}\"}}", "x".repeat(400)).into());
        self.topic(TopicOp::Publish { id: None, payload, operation: None });
    }

    fn topic(&mut self, op: TopicOp) {
        let domain = self.world.domain_id(DOMAIN);
        let command = Command::Topic { domain, name: TOPIC.into(), actor: Actor::Provider, op };
        self.world.command(&format!("{TOPIC}@pubsub.{DOMAIN}"), command);
    }
}

#[test]
fn a_login() {
    let mut crowd = Crowd::new(WARM + COUNTED);
    (0..WARM).for_each(|i| drop(crowd.log_in(i)));
    let before = crowd.world.spent();
    (WARM..WARM + COUNTED).for_each(|i| drop(crowd.log_in(i)));
    let calls = (crowd.world.spent() - before) as usize / COUNTED;
    println!("a login: {calls} allocations");
    assert!(calls <= LOGIN_MAX, "{calls} allocations a login");
}

/// Endpoints of this server as a push service are rows of the store: a login with fifty of them spends and asks what one without spends and asks.
#[test]
fn endpoints_cost_nothing_while_nobody_pushes() {
    let mut crowd = Crowd::new(WARM + 2 * COUNTED);
    let domain = crowd.world.domain_id(DOMAIN);
    (0..WARM).for_each(|i| drop(crowd.log_in(i)));
    for number in 0..50 * COUNTED {
        let (local, application) =
            (format!("u{}", WARM + COUNTED + number / 50).into(), [(number % 50) as u8; 32]);
        let id = EndpointId(1 + number as u128);
        let now = crowd.world.now();
        let (resource, expires) = ("phone".into(), now.plus(1_000_000));
        let question = RegisterEndpoint {
            domain,
            local,
            id,
            resource,
            application,
            instance: [0; 32],
            sender: None,
            now,
            expires,
            per_account_max: 50,
        };
        assert_eq!(crowd.world.ask(question), RegisterEndpointAnswer::Registered(id));
    }
    let mut spend = |from: usize| {
        let (spent, asked) = (crowd.world.spent(), crowd.world.asked());
        (from..from + COUNTED).for_each(|i| drop(crowd.log_in(i)));
        ((crowd.world.spent() - spent) as usize / COUNTED, crowd.world.asked() - asked)
    };
    let without = spend(WARM);
    assert_eq!(spend(WARM + COUNTED), without, "(allocations of a login, questions to the store)");
}

/// A login by password in clear, up to its success. The keys of the password are derived outside of the shard: within it the
/// 4,096 iterations would be millions of instructions.
#[test]
fn a_plain_login() {
    let mut crowd = Crowd::new(PLAIN_LOGINS);
    let message = |i| BASE64.encode(format!("\0u{i}\0pw"));
    for i in 0..PLAIN_LOGINS {
        let conn = crowd.world.open(Framing::Tcp, true);
        crowd.world.bytes(conn, HEADER.as_bytes());
        while crowd.world.received(conn).is_some() {}
        let ns = "urn:ietf:params:xml:ns:xmpp-sasl";
        let auth = format!("<auth xmlns='{ns}' mechanism='PLAIN'>{}</auth>", message(i));
        crowd.world.bytes(conn, auth.as_bytes());
        let answer = crowd.world.received(conn).expect("an answer");
        assert!(answer.starts_with(b"<success"), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(crowd.world.derived(), PLAIN_LOGINS, "the shard asks for each");
}

#[test]
fn a_notification() {
    let mut crowd = Crowd::with(1, StreamManagement::On);
    let (conn, mut client) = crowd.log_in(0);
    let mut out = Outbox::default();
    let (mut before, mut asked) = (crowd.world.spent(), crowd.world.asked());
    for nth in 0..(WARM + NOTIFICATIONS) as u64 {
        if nth == WARM as u64 {
            (before, asked) = (crowd.world.spent(), crowd.world.asked());
        }
        crowd.notify(0, nth);
        while let Some(bytes) = crowd.world.received(conn) {
            client.receive(&bytes, &mut out);
        }
        assert_eq!(out.events.drain(..).count(), 1, "the notification arrives");
        let bytes = std::mem::take(&mut out.bytes);
        crowd.world.bytes(conn, &bytes);
    }
    let calls = (crowd.world.spent() - before) as usize / NOTIFICATIONS;
    println!("a notification: {calls} allocations");
    assert!(calls <= NOTIFICATION_MAX, "{calls} allocations a notification");
    assert_eq!(crowd.world.asked() - asked, NOTIFICATIONS * NOTIFICATION_ASKS);
}

/// Who has acknowledged everything goes, by closing the stream or without a word, and the store is neither asked nor told.
#[test]
fn a_disconnect() {
    let mut crowd = Crowd::with(2, StreamManagement::On);
    let sessions = [0, 1].map(|number| {
        let (conn, mut client) = crowd.log_in(number);
        let mut out = Outbox::default();
        crowd.notify(number, 0);
        while let Some(bytes) = crowd.world.received(conn) {
            client.receive(&bytes, &mut out);
        }
        assert_eq!(out.events.len(), 1, "the notification arrives");
        crowd.world.bytes(conn, &out.bytes);
        conn
    });
    let asked = crowd.world.asked();
    crowd.world.bytes(sessions[0], b"</stream:stream>");
    crowd.world.drop_connection(sessions[1]);
    assert!(crowd.world.is_closed(sessions[0]));
    assert_eq!(crowd.world.asked(), asked);
}

#[test]
fn a_message() {
    let calls = allocations_of_a_message(Policy::default());
    println!("a message: {calls} allocations");
    assert!(calls <= MESSAGE_MAX, "{calls} allocations a message");
}

#[test]
fn an_archived_message() {
    let calls = allocations_of_a_message(Policy { archive: true, ..Policy::default() });
    println!("an archived message: {calls} allocations");
    assert!(calls <= ARCHIVED_MESSAGE_MAX, "{calls} allocations an archived message");
}

fn allocations_of_a_message(policy: Policy) -> usize {
    let mut crowd = Crowd::new(2);
    crowd.world.domain(DOMAIN, policy);
    let (sender, _) = crowd.log_in(0);
    let (receiver, _) = crowd.log_in(1);
    let words =
        format!("<message to='u1@{DOMAIN}' type='chat' id='1'><body>{}</body></message>", "x".repeat(400));
    // What they hear of their own logins.
    [sender, receiver].into_iter().for_each(|conn| while crowd.world.received(conn).is_some() {});
    let mut before = 0;
    for nth in 0..WARM + MESSAGES {
        if nth == WARM {
            before = crowd.world.spent();
        }
        crowd.world.bytes(sender, words.as_bytes());
        assert!(crowd.world.received(receiver).is_some(), "the message arrives");
        assert!(crowd.world.received(sender).is_none(), "who sent it hears nothing");
    }
    (crowd.world.spent() - before) as usize / MESSAGES
}

#[test]
fn a_delivery() {
    let mut crowd = Crowd::new(COUNTED);
    crowd.topic(TopicOp::Create { config: TopicConfig::default() });
    for i in 0..COUNTED {
        crowd.follow(i);
        drop(crowd.log_in(i));
    }
    (0..ITEMS).for_each(|i| crowd.publish(i));
    let before = crowd.world.spent_on_walks();
    (0..ITEMS).for_each(|i| crowd.publish(i));
    let calls = (crowd.world.spent_on_walks() - before) as usize;
    let deliveries = COUNTED * ITEMS;
    println!("{deliveries} deliveries: {calls} allocations");
    assert!(
        calls * DELIVERIES_AN_ALLOCATION <= deliveries,
        "{calls} allocations for {deliveries} deliveries"
    );
}

/// What is said in a room is serialised once, however many hear it: giving it to one of them allocates nothing.
#[test]
fn a_message_in_a_room() {
    let mut crowd = Crowd::of_a_room(OCCUPANTS);
    let conns = crowd.enter_all(OCCUPANTS);
    let words = format!(
        "<message to='tea@rooms.{DOMAIN}' type='groupchat' id='1'><body>{}</body></message>",
        "x".repeat(400)
    );
    let say = |crowd: &mut Crowd| {
        crowd.world.bytes(conns[0], words.as_bytes());
        for conn in &conns {
            let heard = crowd.world.received(*conn).expect("all of them hear it");
            assert!(heard.starts_with(b"<message "), "{}", String::from_utf8_lossy(&heard));
            assert!(crowd.world.received(*conn).is_none(), "and that once");
        }
    };
    (0..ITEMS).for_each(|_| say(&mut crowd));
    let (before, before_walks) = (crowd.world.spent(), crowd.world.spent_on_walks());
    (0..ITEMS).for_each(|_| say(&mut crowd));
    let walks = (crowd.world.spent_on_walks() - before_walks) as usize;
    let calls = (crowd.world.spent() - before) as usize;
    let deliveries = OCCUPANTS * ITEMS;
    println!(
        "{ITEMS} messages to {OCCUPANTS}: {calls} allocations, {walks} of them for {deliveries} deliveries"
    );
    assert!(walks * DELIVERIES_AN_ALLOCATION <= deliveries, "{walks} for {deliveries} deliveries");
    assert!(calls / ITEMS <= ROOM_MESSAGE_MAX, "{} a message", calls / ITEMS);
}

/// Where nobody but moderators is shown, what it costs that somebody enters does not grow with the room: the others are told nothing.
#[test]
fn entering_a_large_room() {
    for occupants in [FEW_OCCUPANTS, OCCUPANTS] {
        let mut crowd = Crowd::of_a_room(occupants + ENTERING);
        let entered = Entered::of(&mut crowd, occupants);
        println!("{}", entered.told(occupants));
        assert_eq!(entered.told_others, 0, "{}", entered.told(occupants));
        // The one moderator, itself, and the subject.
        assert_eq!(entered.told, 3 * ENTERING, "{}", entered.told(occupants));
        assert!(entered.calls <= ENTER_MAX * ENTERING, "{}", entered.told(occupants));
    }
}

/// Where everybody is shown, each occupant is told of whoever enters, by one presence that is made once, and whoever enters is told of each.
#[test]
fn entering_a_room_in_which_all_are_shown() {
    let occupants = FEW_OCCUPANTS;
    let mut crowd = Crowd::new(occupants + ENTERING);
    let entered = Entered::of(&mut crowd, occupants);
    println!("{}", entered.told(occupants));
    let others: usize = (occupants..occupants + ENTERING).sum();
    assert_eq!(entered.told_others, others, "{}", entered.told(occupants));
    assert_eq!(entered.told, others + 2 * ENTERING, "{}", entered.told(occupants));
    assert!(entered.calls <= ENTER_MAX * ENTERING + SHOWN_MAX * others, "{}", entered.told(occupants));
}

/// What came of it that clients entered a room.
#[derive(Default)]
struct Entered {
    /// Allocations.
    calls: usize,
    /// Stanzas that those were given who entered.
    told: usize,
    /// Those that the others were given.
    told_others: usize,
}

impl Entered {
    /// So many are in the room; then others enter.
    fn of(crowd: &mut Crowd, occupants: usize) -> Entered {
        let mut conns = crowd.enter_all(occupants);
        let mut entered = Entered::default();
        for number in occupants..occupants + ENTERING {
            let (conn, _) = crowd.log_in(number);
            while crowd.world.received(conn).is_some() {}
            let before = crowd.world.spent();
            crowd.world.bytes(conn, entry(number).as_bytes());
            entered.calls += (crowd.world.spent() - before) as usize;
            entered.told += stanzas(&mut crowd.world, conn);
            entered.told_others += conns.iter().map(|conn| stanzas(&mut crowd.world, *conn)).sum::<usize>();
            conns.push(conn);
        }
        entered
    }

    fn told(&self, occupants: usize) -> String {
        let (calls, own, others) = (self.calls, self.told, self.told_others);
        format!(
            "{ENTERING} enter a room of {occupants}: {calls} allocations, {own} stanzas for them, {others} for others"
        )
    }
}

/// How many stanzas a client is given.
fn stanzas(world: &mut World, conn: usize) -> usize {
    let given = std::iter::from_fn(|| world.received(conn));
    let count = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).expect("text");
        text.matches("<presence ").count() + text.matches("<message ").count()
    };
    given.map(count).sum()
}

/// The presence by which a client enters the room.
fn entry(number: usize) -> String {
    let room = format!("tea@rooms.{DOMAIN}");
    format!("<presence to='{room}/n{number}'><x xmlns='http://jabber.org/protocol/muc'/></presence>")
}

/// What the core has of an idle session: of a device that has presence, follows nothing, and has nothing waiting.
#[test]
fn an_idle_session() {
    let mut crowd = Crowd::new(WARM + IDLE);
    (0..WARM).for_each(|i| drop(crowd.log_in(i)));
    let kept = allocation_counter::measure(|| {
        (WARM..WARM + IDLE).for_each(|i| drop(crowd.log_in(i)));
        // What is remembered of a login is forgotten.
        crowd.world.pass(30_000);
    });
    let (bytes, calls) = (kept.bytes_current as usize / IDLE, kept.count_current as usize / IDLE);
    println!("an idle session: {bytes} bytes in {calls} allocations");
    assert!(bytes <= IDLE_BYTES_MAX && calls <= IDLE_MAX, "{bytes} bytes in {calls} allocations");
}

/// What the core has of a room of five that is in use, beside what it has of the sessions that are in it.
#[test]
fn a_room_of_five() {
    let caps = "<c xmlns='http://jabber.org/protocol/caps' hash='sha-1' node='https://client.example' ver='QgayPKawpkPSDYmwT/WM94uAlu0='/>";
    let figures = [
        bytes_of_a_room(RoomKind::Muc, ""),
        bytes_of_a_room(RoomKind::Muc, caps),
        bytes_of_a_room(RoomKind::MucLight, ""),
    ];
    println!("rooms of five (bytes, allocations): {figures:?}");
    for ((bytes, calls), (bytes_max, calls_max)) in
        figures.into_iter().zip(ROOM_BYTES_MAX.into_iter().zip(ROOM_ALLOCATIONS_MAX))
    {
        assert!(bytes <= bytes_max && calls <= calls_max, "{figures:?}");
    }
}

/// Bytes and allocations that each of many rooms takes.
fn bytes_of_a_room(kind: RoomKind, says: &str) -> (usize, usize) {
    let mut crowd = Crowd::new(ROOM_CLIENTS);
    for room in 0..ROOMS {
        let config = if kind == RoomKind::Muc { RoomConfig::default() } else { RoomConfig::light() };
        let config = Box::new(RoomConfig { persistent: true, ..config });
        crowd.ask_room(kind, room, RoomRequest::Create { config });
        let owner = RoomAffiliation::Owner;
        let seats = if kind == RoomKind::Muc { 1 } else { SEATS };
        let changes = (0..seats).map(|seat| RoomMemberChange {
            jid: BareJid::new(&format!("u{}@{DOMAIN}", client_of(room, seat))).expect("a JID"),
            affiliation: Some(if seat == 0 { owner } else { RoomAffiliation::Member }),
            nick: None,
            reason: None,
        });
        crowd.ask_room(kind, room, RoomRequest::SetMembers { changes: changes.collect() });
    }
    // Rooms in which nobody is are forgotten.
    (0..10).for_each(|_| crowd.world.pass(10_000));
    let conns: Vec<usize> = (0..ROOM_CLIENTS).map(|number| crowd.log_in(number).0).collect();
    let drain = |crowd: &mut Crowd| {
        conns.iter().for_each(|conn| while crowd.world.received(*conn).is_some() {});
    };
    drain(&mut crowd);
    let kept = allocation_counter::measure(|| {
        for room in 0..ROOMS {
            if kind == RoomKind::MucLight {
                crowd.ask_room(kind, room, RoomRequest::Describe);
                continue;
            }
            for seat in 0..SEATS {
                let client = client_of(room, seat);
                let to = format!("room-{room}@rooms.{DOMAIN}/u{client}");
                let presence = format!(
                    "<presence to='{to}'>{says}<x xmlns='http://jabber.org/protocol/muc'/></presence>"
                );
                crowd.world.bytes(conns[client], presence.as_bytes());
            }
            drain(&mut crowd);
        }
        crowd.world.pass(30_000);
    });
    (kept.bytes_current as usize / ROOMS, kept.count_current as usize / ROOMS)
}

/// Who has a seat in a room: each client has ten.
fn client_of(room: usize, seat: usize) -> usize {
    (room * SEATS + seat) % ROOM_CLIENTS
}
