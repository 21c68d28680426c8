//! When apps are woken.

use crate::command::Command;
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
        now: world.now().unix,
        per_account_max: 2,
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

/// Bob says something in a room of which alice is a member, and is not there; what is due then.
fn said_in_a_room(content: &str) -> Vec<Box<str>> {
    let mut world = world();
    let bob = login(&mut world, "bob");
    let muc = "http://jabber.org/protocol/muc";
    let form = "<x xmlns='jabber:x:data' type='submit'/>";
    let item = "<item affiliation='member' jid='alice@d'/>";
    for text in [
        format!("<presence to='tea@rooms.d/Bob'><x xmlns='{muc}'/></presence>"),
        format!("<iq type='set' id='c' to='tea@rooms.d'><query xmlns='{muc}#owner'>{form}</query></iq>"),
        format!("<iq type='set' id='m' to='tea@rooms.d'><query xmlns='{muc}#admin'>{item}</query></iq>"),
        format!("<message to='tea@rooms.d' type='groupchat' id='1'>{content}</message>"),
    ] {
        world.bytes(bob, text.as_bytes());
        world.settle();
        let answers: Vec<_> = std::iter::from_fn(|| world.received(bob)).collect();
        let refused = answers.iter().any(|answer| format!("{answer:?}").contains("type='error'"));
        assert!(!answers.is_empty() && !refused, "{answers:?}");
    }
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
