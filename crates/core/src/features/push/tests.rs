//! When apps are woken.

use crate::command::{Command, Hearing, Outcome};
use crate::model::*;
use crate::ports::Page;
use crate::ports::store::push::{ClaimPushes, EnablePush, EnablePushAnswer, ListRegistrations};
use crate::settings::{PushApp, Settings};
use crate::sim::client::{Kind, PASSWORD, XmppClient};
use crate::sim::{Plan, World};
use carillon_wire::Framing;
use carillon_wire::jid::BareJid;

/// A node with two accounts, of which alice has an app that wants to be woken.
fn world() -> World {
    let mut settings = Settings::default();
    settings.push.apps = vec![
        PushApp { name: "chat".into(), service: AppService::Apns, domains: vec!["d".into()] },
        PushApp { name: "theirs".into(), service: AppService::Fcm, domains: vec!["other".into()] },
    ];
    let mut world = World::new(Plan { settings, ..Plan::default() });
    world.domain("d", Policy::default());
    for account in ["alice", "bob"] {
        world.account("d", account, PASSWORD, 1);
    }
    let keys = WebPushKeys {
        endpoint: "https://push.example/".into(),
        p256dh: [4; 65],
        auth: PushSecret([1; 16].into()),
    };
    let enable = EnablePush {
        domain: world.domain_id("d"),
        local: "alice".into(),
        node: "phone".into(),
        channel: PushChannel::WebPush(keys),
        shown: PushShown::Whole,
        wakes: PushWakes::default(),
        rooms: Vec::new(),
        now: world.now().unix,
        per_account_max: 2,
        per_room_max: 2,
    };
    assert!(matches!(world.ask(enable), EnablePushAnswer::Enabled(_)));
    world
}

fn login(world: &mut World, account: &str) -> usize {
    let kind = Kind { framing: Framing::Tcp, is_managed: false, resumes: false, sends_receipts: false };
    let (mut client, conn) = (XmppClient::new(account, "d", kind), world.open(Framing::Tcp, true));
    client.login().iter().for_each(|piece| world.bytes(conn, piece.as_bytes()));
    world.settle();
    while let Some(element) = world.received(conn) {
        client.hears(&element).iter().for_each(|answer| world.bytes(conn, answer.as_bytes()));
    }
    world.bytes(conn, client.becomes_available("").as_bytes());
    world.settle();
    conn
}

/// The topics of the pushes that are due.
fn due(world: &mut World) -> Vec<Box<str>> {
    let (now, page) = (world.now().unix, Page { entries: 100, bytes: 1 << 20 });
    let pushes = world.ask(ClaimPushes { owner: 1, now, until: now, held: Vec::new(), page });
    pushes.into_iter().map(|push| push.topic).collect()
}

fn say(world: &mut World, conn: usize, content: &str) {
    let message = format!("<message to='alice@d' type='chat'>{content}</message>");
    world.bytes(conn, message.as_bytes());
    world.settle();
}

fn notify(world: &mut World, n: u64, audience: Audience, key: Option<&str>) {
    let now = world.now().unix;
    let notification = Notification {
        id: NotificationId::new(now, bucket("alice@d"), n),
        domain: world.domain_id("d"),
        to: BareJid::new("alice@d").expect("an address"),
        audience,
        priority: Priority::Normal,
        expires: None,
        collapse_key: key.map(Into::into),
        key: None,
        payload: Payload::Json("{}".into()),
        accepted: now,
        send_at: None,
    };
    world.command("alice@d", Command::Notify(notification.into()));
    world.settle();
}

#[test]
fn what_is_kept_for_who_is_away_wakes_at_once() {
    let mut world = world();
    let bob = login(&mut world, "bob");
    say(&mut world, bob, "<body>hi</body>");
    say(&mut world, bob, "<body>are you there?</body>");
    notify(&mut world, 1, Audience::Always, Some("news"));
    assert_eq!(due(&mut world), ["m:bob@d".into(), "k:news".into()] as [Box<str>; 2]);
}

#[test]
fn what_says_nothing_or_is_not_kept_wakes_nobody() {
    let mut world = world();
    let bob = login(&mut world, "bob");
    say(&mut world, bob, "<active xmlns='http://jabber.org/protocol/chatstates'/>");
    say(
        &mut world,
        bob,
        "<store xmlns='urn:xmpp:hints'/><displayed xmlns='urn:xmpp:chat-markers:0' id='1'/>",
    );
    say(&mut world, bob, "<body>hi</body><no-store xmlns='urn:xmpp:hints'/>");
    notify(&mut world, 1, Audience::Connected, None);
    assert!(due(&mut world).is_empty());
    world.pass(60_000);
    assert!(due(&mut world).is_empty());
}

#[test]
fn what_a_live_session_takes_wakes_nobody() {
    let mut world = world();
    let (bob, _alice) = (login(&mut world, "bob"), login(&mut world, "alice"));
    say(&mut world, bob, "<body>hi</body>");
    notify(&mut world, 1, Audience::Always, None);
    assert!(due(&mut world).is_empty());
    world.pass(60_000);
    assert!(due(&mut world).is_empty());
}

/// Bob makes a room of which alice is a member, and is not there.
fn makes_a_room(world: &mut World, bob: usize) {
    let muc = "http://jabber.org/protocol/muc";
    let form = "<x xmlns='jabber:x:data' type='submit'/>";
    let item = "<item affiliation='member' jid='alice@d'/>";
    for text in [
        format!("<presence to='tea@rooms.d/Bob'><x xmlns='{muc}'/></presence>"),
        format!("<iq type='set' id='c' to='tea@rooms.d'><query xmlns='{muc}#owner'>{form}</query></iq>"),
        format!("<iq type='set' id='m' to='tea@rooms.d'><query xmlns='{muc}#admin'>{item}</query></iq>"),
    ] {
        does(world, bob, &text);
    }
}

/// Bob makes a room of MUC Light with alice.
fn makes_a_light_room(world: &mut World, bob: usize) {
    let occupants = "<occupants><user affiliation='member'>alice@d</user></occupants>";
    let query = format!("<query xmlns='urn:xmpp:muclight:0#create'>{occupants}</query>");
    does(world, bob, &format!("<iq type='set' id='c' to='tea@muclight.d'>{query}</iq>"));
}

/// A client asks for something, and is not refused.
fn does(world: &mut World, conn: usize, text: &str) {
    world.bytes(conn, text.as_bytes());
    world.settle();
    let answers: Vec<_> = std::iter::from_fn(|| world.received(conn)).collect();
    let texts: String = answers.iter().map(|answer| String::from_utf8_lossy(answer)).collect();
    assert!(!texts.is_empty() && !texts.contains("type='error'"), "{texts}");
}

fn says_in(world: &mut World, conn: usize, room: &str, content: &str) {
    does(world, conn, &format!("<message to='{room}' type='groupchat' id='1'>{content}</message>"));
}

/// Bob says something in a room of which alice is a member, and is not there; what is due then.
fn said_in_a_room(content: &str) -> Vec<Box<str>> {
    let mut world = world();
    let bob = login(&mut world, "bob");
    makes_a_room(&mut world, bob);
    says_in(&mut world, bob, "tea@rooms.d", content);
    due(&mut world)
}

#[test]
fn who_is_mentioned_in_a_room_and_is_not_there_is_woken() {
    let mention =
        |of: &str| format!("<reference xmlns='urn:xmpp:reference:0' type='mention' uri='xmpp:{of}'/>");
    let room = ["r:tea@rooms.d".into()] as [Box<str>; 1];
    for (content, wakes) in [
        ("<body>hi all</body>".to_owned(), false),
        (format!("<body>hi me</body>{}", mention("bob@d")), false),
        (format!("<body>hi stranger</body>{}", mention("carol@d")), false),
        (format!("<active xmlns='http://jabber.org/protocol/chatstates'/>{}", mention("alice@d")), false),
        (format!("<body>hi you</body>{}", mention("alice@d")), true),
        (format!("<body>hi you</body>{}", mention("alice@d/phone")), true),
    ] {
        assert_eq!(said_in_a_room(&content), room[..usize::from(wakes)], "{content}");
    }
}

#[test]
fn who_is_mentioned_in_a_light_room_is_woken() {
    let mut world = world();
    let bob = login(&mut world, "bob");
    makes_a_light_room(&mut world, bob);
    says_in(&mut world, bob, "tea@muclight.d", "<body>hi all</body>");
    assert_eq!(due(&mut world), [] as [Box<str>; 0]);
    says_in(&mut world, bob, "tea@muclight.d", "<body>hi @alice!</body>");
    assert_eq!(due(&mut world), ["r:tea@muclight.d".into()] as [Box<str>; 1]);
}

#[test]
fn an_app_is_woken_by_every_message_of_the_rooms_that_it_names() {
    for (make, room) in [
        (makes_a_room as fn(&mut World, usize), "tea@rooms.d"),
        (makes_a_light_room as fn(&mut World, usize), "tea@muclight.d"),
    ] {
        let mut world = world();
        let bob = login(&mut world, "bob");
        make(&mut world, bob);
        let (alice, token) = (login(&mut world, "alice"), "A0".repeat(32));
        let mut enable = |rooms: &[&str]| {
            let field = |name: &str, values: &str| format!("<field var='{name}'>{values}</field>");
            let value = |value: &str| format!("<value>{value}</value>");
            let rooms: String = rooms.iter().map(|room| value(room)).collect();
            let fields =
                [field("app", &value("chat")), field("token", &value(&token)), field("rooms", &rooms)]
                    .concat();
            let form = format!("<x xmlns='jabber:x:data' type='submit'>{fields}</x>");
            let enable = format!("<enable xmlns='urn:xmpp:push:0' jid='push.d' node='phone'>{form}</enable>");
            world.bytes(alice, format!("<iq type='set' id='e'>{enable}</iq>").as_bytes());
            world.settle();
            let answers = std::iter::from_fn(|| world.received(alice));
            answers.map(|answer| String::from_utf8_lossy(&answer).into_owned()).collect::<String>()
        };
        for wrong in ["tea@rooms.other", "rooms.d", "tea@d", "x y"] {
            assert!(enable(&[room, wrong]).contains("<not-acceptable"), "{wrong}");
        }
        assert!(enable(&vec![room; PUSH_ROOMS_MAX + 1]).contains("<not-acceptable"));
        assert!(enable(&[room, "coffee@rooms.d"]).contains("<item-not-found"));
        assert!(enable(&[room]).contains("type='result'"));
        world.lose(alice);
        world.settle();
        says_in(&mut world, bob, room, "<active xmlns='http://jabber.org/protocol/chatstates'/>");
        assert_eq!(due(&mut world), [] as [Box<str>; 0]);
        says_in(&mut world, bob, room, "<body>hi all</body>");
        assert_eq!(due(&mut world), [format!("r:{room}").into()] as [Box<str>; 1]);
    }
}

#[test]
fn whether_an_account_has_what_a_room_said_its_home_knows() {
    let mut world = world();
    let bob = login(&mut world, "bob");
    makes_a_room(&mut world, bob);
    makes_a_light_room(&mut world, bob);
    let alice = login(&mut world, "alice");
    let said = world.now().unix;
    let (until, account) = (said.plus(10_000), BareJid::new("alice@d").expect("an address"));
    let hears = |world: &mut World, room: &str| {
        let room = BareJid::new(room).expect("an address");
        let asked = Command::Hears { account: account.clone(), room, said };
        match world.command("alice@d", asked) {
            Outcome::Hearing(hearing) => hearing,
            other => panic!("{other:?}"),
        }
    };
    // She hears the one room, and is not in the other.
    assert_eq!(hears(&mut world, "tea@muclight.d"), Hearing::Until(until));
    assert_eq!(hears(&mut world, "tea@rooms.d"), Hearing::None);
    does(
        &mut world,
        alice,
        "<presence to='tea@rooms.d/A'><x xmlns='http://jabber.org/protocol/muc'/></presence>",
    );
    assert_eq!(hears(&mut world, "tea@rooms.d"), Hearing::Until(until));
    world.pass(10_000);
    for room in ["tea@rooms.d", "tea@muclight.d"] {
        assert_eq!(hears(&mut world, room), Hearing::Has, "a session that acknowledges nothing has it");
    }
    world.lose(alice);
    world.settle();
    for room in ["tea@rooms.d", "tea@muclight.d"] {
        assert_eq!(hears(&mut world, room), Hearing::None);
    }
}

#[test]
fn apps_on_devices_are_registered_where_an_operator_knows_them() {
    let mut world = world();
    let alice = login(&mut world, "alice");
    let mut enable = |app: &str, token: &str| {
        let field = |name, value| format!("<field var='{name}'><value>{value}</value></field>");
        let form = format!(
            "<x xmlns='jabber:x:data' type='submit'>{}{}</x>",
            field("app", app),
            field("token", token)
        );
        let enable = format!("<enable xmlns='urn:xmpp:push:0' jid='push.d' node='tablet'>{form}</enable>");
        world.bytes(alice, format!("<iq type='set' id='e'>{enable}</iq>").as_bytes());
        world.settle();
        let answers = std::iter::from_fn(|| world.received(alice));
        let texts = answers.map(|answer| String::from_utf8_lossy(&answer).into_owned());
        texts.filter(|text| text.contains("<iq")).collect::<String>()
    };
    let token = "A0".repeat(32);
    assert!(enable("other", &token).contains("<item-not-found"));
    assert!(enable("theirs", &token).contains("<item-not-found"), "it is of another domain");
    assert!(enable("chat", "xyz").contains("<not-acceptable"));
    assert!(enable("chat", &token).contains("type='result'"));
    let listed = ListRegistrations {
        domain: Some(world.domain_id("d")),
        account: Some("alice".into()),
        after: RegistrationId(0),
        max: 9,
    };
    let channels: Vec<_> = world.ask(listed).entries.into_iter().map(|made| made.channel).collect();
    let token = PushSecret("a0".repeat(32).into_bytes().into());
    let app = PushChannel::App(AppToken { service: AppService::Apns, app: "chat".into(), token });
    assert!(channels.contains(&app), "{channels:?}");
}
