//! However much the clients of an account ask, and however often they log in, the store has a few of its reads in hand, and their answers have
//! so many bytes at most.

use super::READS_MAX;
use crate::Input;
use crate::model::*;
use crate::ports::Computed;
use crate::ports::store::roster::ReadRecord;
use crate::ports::store::subscriptions::SubscriptionsOf;
use crate::ports::store::{Ask, accounts};
use crate::ports::{Answer, Question};
use crate::settings::Settings;
use crate::sim::client::{Kind, PASSWORD, XmppClient};
use crate::sim::{Plan, World};
use crate::topic::xml::ITEMS_BYTES_MAX;
use carillon_wire::Framing;
use std::sync::Arc;

const KIND: Kind = Kind { framing: Framing::Tcp, is_managed: false, resumes: false, sends_receipts: false };

/// A session of alice's, bound; it reads nothing of what it is sent from then on.
fn session(world: &mut World) -> usize {
    let (client, conn) = (XmppClient::new("alice", "d", KIND), world.open(Framing::Tcp, true));
    client.login().iter().for_each(|piece| world.bytes(conn, piece.as_bytes()));
    while !world.connection(conn).is_over() && !is_bound(world, conn) {
        world.settle_without_store();
        // Its own questions are behind those that were there before.
        let steps: Vec<_> = world.disk.steps().collect();
        let login = steps.last().copied();
        login.into_iter().for_each(|step| world.choose(crate::sim::Choice::Store(step)));
    }
    conn
}

fn is_bound(world: &mut World, conn: usize) -> bool {
    let mut is_bound = false;
    while let Some(element) = world.received(conn) {
        is_bound |= element.windows(5).any(|part| part == b"<jid>");
    }
    is_bound
}

/// What reads something: of one's own account, of another, of a topic.
const READS: [&str; 10] = [
    "<iq type='get' id='1'><pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='n'/></pubsub></iq>",
    "<iq type='get' id='2'><vCard xmlns='vcard-temp'/></iq>",
    "<iq type='get' id='3'><query xmlns='jabber:iq:private'><a xmlns='urn:a'/></query></iq>",
    "<iq type='get' id='4'><query xmlns='jabber:iq:roster'/></iq>",
    "<iq type='get' id='5'><blocklist xmlns='urn:xmpp:blocking'/></iq>",
    "<iq type='get' id='6' to='bob@d'><vCard xmlns='vcard-temp'/></iq>",
    "<iq type='get' id='7' to='bob@d'><pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='n'/></pubsub></iq>",
    "<iq type='get' id='8' to='pubsub.d'><pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='t'/></pubsub></iq>",
    "<iq type='get' id='9' to='pubsub.d'><query xmlns='http://jabber.org/protocol/disco#items'/></iq>",
    "<iq type='set' id='a' to='pubsub.d'><pubsub xmlns='http://jabber.org/protocol/pubsub'><subscribe node='t' jid='alice@d'/></pubsub></iq>",
];

/// What logins read, each once, and the record of an account, which is read once for all that wait for it.
fn is_of_login(ask: &Ask) -> bool {
    accounts::Identity::of(ask).is_some()
        || accounts::Login::of(ask).is_some()
        || SubscriptionsOf::of(ask).is_some()
        || ReadRecord::of(ask).is_some()
}

/// The reads of clients that the store has in hand, and the bytes of their answers.
fn in_hand(world: &mut World) -> (usize, usize) {
    let asked: Vec<Ask> = world.disk.under_way().filter(|ask| !is_of_login(ask)).cloned().collect();
    let answers = asked.iter().filter(|ask| matches!(ask, Ask::Read(_))).map(|ask| world.disk.answer(ask));
    let answers: Vec<Answer> = answers.collect();
    (asked.len(), answers.iter().map(Answer::memory_bytes).sum())
}

fn world() -> World {
    let mut world = World::new(Plan::default());
    world.domain("d", Policy::default());
    ["alice", "bob"].iter().for_each(|name| world.account("d", name, PASSWORD, 1));
    // The last of five items stays, a quarter of what a page may have.
    let conn = session(&mut world);
    for n in 0..5 {
        let payload = "x".repeat(ITEMS_BYTES_MAX / 4 - 8 * 1024);
        let to = ["", " to='pubsub.d'"];
        for (to, node) in to.iter().zip(["n", "t"]) {
            let publish = format!(
                "<iq type='set' id='p'{to}><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='{node}'>\
                 <item id='{n}'><x xmlns='urn:x'>{payload}</x></item></publish></pubsub></iq>"
            );
            world.bytes(conn, publish.as_bytes());
            world.settle();
        }
    }
    world.lose(conn);
    world.pass(60_000);
    world.settle();
    world
}

#[test]
fn what_an_account_reads_is_bounded_over_sessions_and_logins() {
    let mut world = world();
    let (mut reads_most, mut bytes_most, mut answered) = (0, 0, 0);
    for round in 0..6 {
        let sessions: Vec<usize> = (0..5).map(|_| session(&mut world)).collect();
        for conn in &sessions {
            for _ in 0..10 {
                READS.iter().for_each(|read| world.bytes(*conn, read.as_bytes()));
            }
        }
        // The store answers some of them, in any order, before all connections are lost.
        for pick in 0..30 * round {
            world.settle_without_store();
            let (reads, bytes) = in_hand(&mut world);
            (reads_most, bytes_most) = (reads.max(reads_most), bytes.max(bytes_most));
            let steps: Vec<_> = world.disk.steps().collect();
            if let Some(step) = steps.get(pick % steps.len().max(1)) {
                world.choose(crate::sim::Choice::Store(*step));
                answered += 1;
            }
        }
        world.settle_without_store();
        sessions.iter().for_each(|conn| world.lose(*conn));
    }
    assert!(answered > 100, "{answered}");
    assert_eq!(reads_most, usize::from(READS_MAX));
    let page = ITEMS_BYTES_MAX / 4;
    assert!(bytes_most > page / 2 && bytes_most <= usize::from(READS_MAX) * page, "{bytes_most}");
    // In the end nothing is left of it.
    world.settle();
    world.pass(60_000);
    world.settle();
    let conn = session(&mut world);
    world.bytes(conn, READS[1].as_bytes());
    world.settle_without_store();
    assert_eq!(in_hand(&mut world).0, 1);
}

#[test]
fn a_client_that_does_not_read_what_it_asked_for_is_asked_for_no_more() {
    let mut world = world();
    let conn = session(&mut world);
    world.has_room(conn, Some(0));
    for _ in 0..100 {
        world.bytes(conn, READS[0].as_bytes());
    }
    world.settle();
    assert!(!world.connection(conn).is_over(), "it is not ended for what it has not read");
    let queued = world.connection(conn).queued();
    assert!(queued > ITEMS_BYTES_MAX / 8 && queued < ITEMS_BYTES_MAX / 4, "one answer waits: {queued}");
}

#[test]
fn what_homes_answer_is_charged_to_the_account_that_asks() {
    let mut world = world();
    let burst = Settings::default().limits.rates.bytes_burst as usize;
    let conns = [session(&mut world), session(&mut world)];
    for n in 0..50 {
        let group = "g".repeat(1000);
        let item = format!("<item jid='c{n}@x.example'><group>{group}</group></item>");
        let set = format!("<iq type='set' id='s'><query xmlns='jabber:iq:roster'>{item}</query></iq>");
        world.bytes(conns[0], set.as_bytes());
        world.settle();
    }
    let heard = |world: &mut World| {
        let mut bytes = 0;
        for conn in conns {
            while let Some(element) = world.received(conn) {
                bytes += element.len();
            }
        }
        bytes
    };
    heard(&mut world);
    // A roster of 50 KB, asked for in two sessions until four times the burst would have been answered.
    let roster = READS[3].as_bytes();
    for _ in 0..2 * burst / 50_000 {
        conns.iter().for_each(|conn| world.bytes(*conn, roster));
        world.settle();
    }
    let bytes = heard(&mut world);
    assert!((burst / 2..=burst + 200_000).contains(&bytes), "{bytes} bytes of {burst}");
    // The rest is answered as fast as the account may send.
    world.pass(200);
    world.settle();
    let bytes = heard(&mut world);
    assert!((50_000..600_000).contains(&bytes), "{bytes} bytes");
}

/// What a client is answered that asked a home on a node that is gone by the time.
#[test]
fn every_request_to_a_node_that_is_gone_is_answered() {
    let mut world = World::new(Plan { nodes: 2, shards: 1, ..Plan::default() });
    world.domain("d", Policy::default());
    world.account("d", "alice", PASSWORD, 1);
    let (client, conn) = (XmppClient::new("alice", "d", KIND), world.open(Framing::Tcp, true));
    for piece in client.login() {
        world.bytes(conn, piece.as_bytes());
        world.settle();
    }
    while world.received(conn).is_some() {}
    let here = (0..2).find(|shard| world.counters(*shard).sessions == 1).expect("it is bound");
    let there = 1 - here;
    let name = (0..).map(|n| format!("t{n}")).find(|name| world.home(&topic_address(name, "d")) == there);
    let name = name.expect("one of them is at home there");
    let pubsub = |kind: &str, id: &str, what: &str| {
        format!(
            "<iq type='{kind}' id='{id}' to='pubsub.d'><pubsub xmlns='http://jabber.org/protocol/pubsub'>{what}</pubsub></iq>"
        )
    };
    let publish = |id: &str, item: &str| {
        let what = format!("<publish node='{name}'><item id='{item}'><x xmlns='urn:x'/></item></publish>");
        pubsub("set", id, &what)
    };
    let configure = "<iq type='set' id='room' to='r@rooms.d'>\
        <query xmlns='http://jabber.org/protocol/muc#owner'><x xmlns='jabber:x:data' type='submit'/></query></iq>";
    let answers = |world: &mut World| {
        let mut answers = Vec::new();
        while let Some(element) = world.received(conn) {
            let text = String::from_utf8(element).expect("UTF-8");
            let attribute = |name: &str| {
                let value = text.split(&format!(" {name}='")).nth(1).and_then(|rest| rest.split('\'').next());
                value.unwrap_or_default().to_owned()
            };
            let is_timeout = text.contains("<remote-server-timeout ") && text.contains(" type='wait'");
            answers.push((attribute("id"), text.contains(" type='error'"), is_timeout));
        }
        answers
    };
    // While it is there, it answers with the client's own id.
    world.bytes(conn, publish("before", "1").as_bytes());
    world.settle();
    assert_eq!(answers(&mut world), [("before".to_owned(), false, false)]);

    // What is on its way when the node goes: one that changes something, behind which the client goes on, and one that reads.
    world.bytes(conn, publish("set", "2").as_bytes());
    world.bytes(conn, configure.as_bytes());
    world.bytes(conn, pubsub("get", "get", &format!("<items node='{name}'/>")).as_bytes());
    let is_room_there = world.home("r@rooms.d") == there;
    drop(world.take_posts(here, there));
    world.settle();
    let early = answers(&mut world);
    assert_eq!(early.len(), usize::from(!is_room_there), "{early:?}");
    let node = NodeId((here as u32 + 1) * 1000);
    world.give(here, Input::Directory(Arc::new(Computed::among(&[node], node, 1))));
    world.settle();
    let mut told = answers(&mut world);
    told.sort();
    let expected = ["get", "room", "set"].into_iter().filter(|id| *id != "room" || is_room_there);
    assert_eq!(told, expected.map(|id| (id.to_owned(), true, true)).collect::<Vec<_>>());
    // It goes on with the home that is here now.
    world.bytes(conn, publish("after", "3").as_bytes());
    world.settle();
    assert_eq!(answers(&mut world), [("after".to_owned(), false, false)]);
}
