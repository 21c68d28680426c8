//! What requests of clients cost a node, by their size: a client that knows the worst of each feature must not make it work more than its bytes
//! are worth. Each test does something twice, the second time with four times as much, or with something that should not matter.
//!
//! `cargo run -p xtask -- instructions` runs each under valgrind, counts the instructions within [`less`] and [`more`], and compares them to the
//! limit that the test prints. Here it is seen that the requests are what they claim to be.

#[path = "../chat/world.rs"]
#[expect(dead_code, reason = "the conversations use more of it")]
mod world;

mod crowd;
mod requests;

use carillon_core::model::{Revision, TopicId};
use carillon_core::shard::Subscribers;
use crowd::Crowd;
use requests::Request;

/// Bytes of the smaller of two requests, about.
const BYTES: usize = 12 * 1024;
/// The larger one has four times as many, and may cost so many times as much.
const LINEAR_MAX: f64 = 5.0;

/// What is asked to do something, and tells what it hears then.
trait Asked {
    fn says(&mut self, text: &str) -> String;
}

impl Asked for Crowd {
    fn says(&mut self, text: &str) -> String {
        Crowd::says(self, text)
    }
}

/// Does the smaller thing: counted from here.
#[inline(never)]
fn less(asked: &mut dyn Asked, text: &str) -> String {
    asked.says(text)
}

/// Does the larger one.
#[inline(never)]
fn more(asked: &mut dyn Asked, text: &str) -> String {
    asked.says(text)
}

/// Makes a request, and another one four times as large.
fn grows(request: &Request) {
    println!("limit: {LINEAR_MAX}");
    let mut crowd = Crowd::new(1);
    // Tables and buffers are there, and what is asked for first is known.
    crowd.says(&request.of(256));
    let (smaller, larger) = (request.of(BYTES), request.of(4 * BYTES));
    assert!(larger.len() < 256 * 1024, "a stanza may be so large");
    let smaller = crowd.addressed(request, smaller);
    let answer = less(&mut crowd, &smaller);
    assert!(answer.contains(request.answer), "{answer}");
    let larger = crowd.addressed(request, larger);
    let answer = more(&mut crowd, &larger);
    assert!(answer.contains(request.answer), "{answer}");
}

/// A test for each request.
macro_rules! requests {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            grows(&requests::$name());
        }
    )*};
}

requests! {
    groups_of_a_contact blocked_addresses unblocked_addresses unblocked_strangers features_of_a_client identities_of_a_client
    forms_of_a_client fields_of_a_client values_of_a_client options_of_a_publication fields_of_a_configuration
    affiliations_of_a_topic fields_of_an_archive_query a_vcard private_elements fields_of_an_inbox_query fields_of_a_mongoose_inbox
    states_of_a_client messages_that_carbons_copy directed_presence
    members_of_a_room outcasts_of_a_room roles_of_a_room fields_of_a_room words_in_a_room invited_to_a_room
    occupants_of_a_light_room fields_of_a_light_room blocked_in_light_rooms
    options_of_a_push rules_of_a_privacy_list rules_of_the_default_list rules_of_a_message wishes_of_a_player fields_of_a_command
}

/// What somebody asks, or is sent, is decided by what the record says of the sender: it is looked up, and not looked for.
#[test]
fn contacts_of_who_is_asked() {
    println!("limit: 1.05");
    let mut crowd = Crowd::new(2 + CONTACTS);
    let asks: String = (0..50)
        .map(|n| {
            format!(
                "<iq type='get' id='{n}' to='u1@example.org'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>"
            )
        })
        .collect();
    crowd.befriends(1, 0..1);
    crowd.is_there(1);
    crowd.says(&asks);
    let one = less(&mut crowd, &asks);
    crowd.befriends(1, 2..CONTACTS);
    crowd.is_there(1);
    crowd.says(&asks);
    let other = more(&mut crowd, &asks);
    let told = |answers: &str| answers.matches("type='registered'").count();
    assert_eq!((told(&one), told(&other)), (50, 50));
}

/// A presence costs what its contacts cost, however many others are blocked.
#[test]
fn blocked_addresses_of_who_says_a_presence() {
    println!("limit: 1.5");
    let mut crowd = Crowd::new(1 + CONTACTS);
    crowd.befriends_all();
    crowd.says("<presence><status>a</status></presence>");
    let one = less(&mut crowd, "<presence><status>b</status></presence>");
    crowd.blocks_strangers(CONTACTS);
    let other = more(&mut crowd, "<presence><status>b</status></presence>");
    assert!(one.contains("<status>b</status>") && other.contains("<status>b</status>"), "{one} {other}");
}

/// The same, however many rules of a privacy list decide who is told it.
#[test]
fn rules_of_who_says_a_presence() {
    println!("limit: 1.5");
    let mut crowd = Crowd::new(1 + CONTACTS);
    crowd.befriends_all();
    chooses(&mut crowd, 1, "presence-out");
    crowd.says("<presence><status>a</status></presence>");
    let one = less(&mut crowd, "<presence><status>b</status></presence>");
    chooses(&mut crowd, CONTACTS, "presence-out");
    let other = more(&mut crowd, "<presence><status>b</status></presence>");
    assert!(one.contains("<status>b</status>") && other.contains("<status>b</status>"), "{one} {other}");
}

/// Who chooses a list has it decided for each contact what that is shown, and whose presence is shown: by look-ups, too.
#[test]
fn rules_of_a_list_that_is_chosen() {
    println!("limit: 1.5");
    let mut crowd = Crowd::new(1 + CONTACTS);
    crowd.befriends_all();
    crowd.says("<presence/>");
    let none = "<iq type='set' id='3'><query xmlns='jabber:iq:privacy'><active/></query></iq>";
    chooses(&mut crowd, 1, "presence-in");
    crowd.says(none);
    let one = less(&mut crowd, CHOSEN);
    crowd.says(none);
    chooses(&mut crowd, CONTACTS, "presence-in");
    crowd.says(none);
    let other = more(&mut crowd, CHOSEN);
    assert!(one.contains("type='result'") && other.contains("type='result'"), "{one} {other}");
}

const CHOSEN: &str = "<iq type='set' id='2'><query xmlns='jabber:iq:privacy'><active name='a'/></query></iq>";

/// The session has a list of so many rules about strangers, which decides for it.
fn chooses(crowd: &mut Crowd, rules: usize, kind: &str) {
    let rule = |n: usize| {
        format!("<item type='jid' value='s{n}@x.example' action='deny' order='{n}'><{kind}/></item>")
    };
    let items: String = (0..rules).map(rule).collect();
    let list = format!(
        "<iq type='set' id='1'><query xmlns='jabber:iq:privacy'><list name='a'>{items}</list></query></iq>"
    );
    for text in [&list, CHOSEN] {
        let heard = crowd.says(text);
        assert!(heard.contains("type='result'"), "{heard}");
    }
}

/// Followers of a topic who all have been given its item by another way, as after the death of a node.
struct Followers {
    subscribers: Subscribers,
    left: u32,
}

const TOPIC: TopicId = TopicId(1);

impl Followers {
    fn new(count: u32) -> Followers {
        let mut subscribers = Subscribers::default();
        for slot in 0..count {
            subscribers.add(TOPIC, slot, None);
            subscribers.note_given(TOPIC, slot, Revision(5));
        }
        Followers { subscribers, left: count }
    }
}

impl Asked for Followers {
    /// Some of them leave.
    fn says(&mut self, _: &str) -> String {
        for _ in 0..64 {
            self.subscribers.remove(TOPIC, 0);
            self.left -= 1;
        }
        self.subscribers.followers(TOPIC).len().to_string()
    }
}

/// What a follower who leaves was given is not looked for among what all others were.
#[test]
fn followers_of_a_topic_who_leave() {
    println!("limit: 1.5");
    let (mut few, mut many) = (Followers::new(1000), Followers::new(64_000));
    assert_eq!(less(&mut few, ""), few.left.to_string());
    assert_eq!(more(&mut many, ""), many.left.to_string());
}

const CONTACTS: usize = 2000;

/// Who blocks many at once takes its presence from those that are contacts: they are not looked for one by one.
#[test]
fn contacts_of_who_blocks_many() {
    println!("limit: 2");
    let mut crowd = Crowd::new(1 + CONTACTS);
    let block = |from: usize| {
        let items: String = (from..from + 400).map(|n| format!("<item jid='s{n}@x.example'/>")).collect();
        format!("<iq type='set' id='1'><block xmlns='urn:xmpp:blocking'>{items}</block></iq>")
    };
    crowd.says("<presence/>");
    let one = less(&mut crowd, &block(0));
    crowd.befriends_all();
    let other = more(&mut crowd, &block(400));
    assert!(one.contains("type='result'") && other.contains("type='result'"), "{one} {other}");
}

/// What is sent to an absent account, or asked of it, is decided by what its record says of the sender.
#[test]
fn contacts_of_who_is_absent() {
    println!("limit: 1.5");
    let mut crowd = Crowd::new(2 + CONTACTS);
    let text = "<message to='u1@example.org' type='chat'><body>hi</body></message>\
        <iq type='get' id='1' to='u1@example.org'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>";
    crowd.befriends(1, 2..3);
    crowd.says(text);
    let one = less(&mut crowd, text);
    crowd.befriends(1, 3..CONTACTS);
    let other = more(&mut crowd, text);
    assert!(one.contains("<service-unavailable") && one == other, "{one} {other}");
}

/// What is told of a roster that the client knows is not made (RFC 6121 §2.6).
#[test]
fn a_roster_that_is_known() {
    println!("limit: 1.5");
    let mut crowd = Crowd::new(1 + CONTACTS);
    let get = "<iq type='get' id='1'><query xmlns='jabber:iq:roster' ver='VER'/></iq>";
    crowd.says(get);
    let empty = less(&mut crowd, &get.replace("VER", "0"));
    crowd.befriends_all();
    let whole = crowd.says(get);
    let version = whole.split_once("ver='").and_then(|(_, rest)| rest.split_once('\'')).expect("a version").0;
    assert!(whole.matches("<item").count() == CONTACTS && !empty.contains("<item"), "{whole}");
    let known = more(&mut crowd, &get.replace("VER", version));
    assert!(known.contains("type='result'") && !known.contains("<item"), "{known}");
}
