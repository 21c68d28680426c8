//! Random programs: a client and a modelled server send and acknowledge, and the connection is cut with whatever is under way
//! in both directions. Every stanza is handled once, in order.

use proptest::prelude::*;

use carillon_wire::jid::Jid;

use super::talk::*;
use crate::client::{
    Client, ClientEvent, Entropy, Options, Outbox, Profile, Resumable, SendOutcome, Settings,
    StreamManagement, stanzas,
};

/// A step of a program.
#[derive(Clone, Debug)]
enum Deed {
    ClientSends,
    ServerSends,
    ServerAcknowledges,
    ServerRequests,
    /// So many bytes arrive.
    ToServer(usize),
    ToClient(usize),
    Cut,
}

/// The server's side of a session, with what is under way on its connection.
#[derive(Default)]
struct Server {
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    /// The bodies of handled messages.
    handled: Vec<u32>,
    /// The number of messages that were sent and acknowledged, of those that were sent.
    acknowledged: u32,
    sent: u32,
}

const MESSAGE: &str = "<message to='bob@example.org' type='chat'><body>";
const ENABLED: &str = "<enabled xmlns='urn:xmpp:sm:3' id='x' resume='true'/>";

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => Just(Deed::ClientSends),
        4 => Just(Deed::ServerSends),
        1 => Just(Deed::ServerAcknowledges),
        1 => Just(Deed::ServerRequests),
        4 => (1usize..200).prop_map(Deed::ToServer),
        4 => (1usize..200).prop_map(Deed::ToClient),
        1 => Just(Deed::Cut),
    ]
}

fn settings() -> Settings {
    let unacknowledged_bytes_max = 1000;
    Settings { stream_management: StreamManagement::Resumable, unacknowledged_bytes_max, ..bare() }
}

impl Server {
    fn say(&mut self, text: &str) {
        self.to_client.extend_from_slice(text.as_bytes());
    }

    fn send_message(&mut self, number: u32) {
        self.say(&format!("<message id='{number}'/>"));
    }

    fn acknowledge(&mut self) {
        self.say(&format!("<a xmlns='urn:xmpp:sm:3' h='{}'/>", self.handled.len()));
    }

    /// Handles what has arrived whole.
    fn hear(&mut self, arrived: &mut String) {
        while let Some(end) = element_end(arrived) {
            let element: String = arrived.drain(..end).collect();
            if let Some(number) = element.strip_prefix(MESSAGE).and_then(|rest| rest.split('<').next()) {
                self.handled.push(number.parse().expect("a number"));
            } else if element.starts_with("<r ") {
                self.acknowledge();
            } else if let Some(h) = attribute(&element, " h='") {
                self.acknowledged = h;
            } else {
                panic!("{element}");
            }
            if element.starts_with("<resume ") {
                let handled = self.handled.len();
                self.say(&format!("<resumed xmlns='urn:xmpp:sm:3' previd='x' h='{handled}'/>"));
                (self.acknowledged..self.sent).for_each(|number| self.send_message(number));
            }
        }
    }
}

fn attribute(element: &str, begin: &str) -> Option<u32> {
    element.split(begin).nth(1)?.split('\'').next()?.parse().ok()
}

/// The end of the first element, if it is whole.
fn element_end(text: &str) -> Option<usize> {
    let end = if text.starts_with("<message") { "</message>" } else { "/>" };
    text.find(end).map(|at| at + end.len())
}

/// A client on a new connection, authenticated; it has asked for its stream if it had one.
fn connect(resumable: Option<Box<Resumable>>) -> (Talk, String) {
    let profile = Profile::new(settings()).expect("valid settings");
    let options = Options::new("alice@example.org".parse().expect("a JID"), "secret", &profile);
    let entropy = Entropy::from_seed(SEED);
    let client = match resumable {
        Some(resumable) => Client::resuming(options, entropy, resumable),
        None => Client::new(options, entropy),
    };
    let mut talk = Talk { client, out: Outbox::default() };
    talk.client.start(&mut talk.out);
    talk.server([HEADER, OFFER_PLAIN, SUCCESS, HEADER].concat());
    talk.out.bytes.clear();
    talk.server(OFFER_BIND);
    let said = String::from_utf8(std::mem::take(&mut talk.out.bytes)).expect("text");
    (talk, said)
}

fn received(talk: &mut Talk, numbers: &mut Vec<u32>) {
    for event in talk.out.events.drain(..) {
        match event {
            ClientEvent::Stanza(stanza) => {
                numbers.push(stanza.id.expect("the server numbers them").parse().expect("a number"));
            }
            ClientEvent::NotResumed { .. } => panic!("{event:?}"),
            _ => {}
        }
    }
}

proptest! {
    #[test]
    fn every_stanza_is_handled_once_and_in_order(deeds in prop::collection::vec(deed(), 0..120)) {
        let (mut talk, _) = connect(None);
        talk.server([BOUND, ENABLED].concat());
        talk.out.bytes.clear();
        talk.out.events.clear();
        let mut server = Server::default();
        let (mut arrived, mut numbers, mut sent) = (String::new(), Vec::new(), 0);
        // At the end the connection is cut once more, and everything arrives.
        let end = [Deed::Cut, Deed::ToServer(usize::MAX), Deed::ToClient(usize::MAX), Deed::ToServer(usize::MAX)];
        for deed in deeds.into_iter().chain(end) {
            match deed {
                Deed::ClientSends => {
                    let bob = Jid::new("bob@example.org").expect("a JID");
                    let message = stanzas::message(bob, &sent.to_string());
                    sent += u32::from(talk.client.send(&message, &mut talk.out) == SendOutcome::Sent);
                }
                Deed::ServerSends => {
                    server.send_message(server.sent);
                    server.sent += 1;
                }
                Deed::ServerAcknowledges => server.acknowledge(),
                Deed::ServerRequests => server.say("<r xmlns='urn:xmpp:sm:3'/>"),
                Deed::ToServer(bytes) => {
                    let bytes = bytes.min(server.to_server.len());
                    let text: Vec<u8> = server.to_server.drain(..bytes).collect();
                    arrived += std::str::from_utf8(&text).expect("ASCII");
                    server.hear(&mut arrived);
                }
                Deed::ToClient(bytes) => {
                    let bytes = bytes.min(server.to_client.len());
                    let text: Vec<u8> = server.to_client.drain(..bytes).collect();
                    talk.server(text);
                    received(&mut talk, &mut numbers);
                }
                Deed::Cut => {
                    talk.client.receive_end(&mut talk.out);
                    let resumable = talk.client.take_resumable().expect("the server allows it");
                    (server.to_server, server.to_client) = (Vec::new(), Vec::new());
                    arrived.clear();
                    let (back, said) = connect(Some(resumable));
                    talk = back;
                    talk.out.events.clear();
                    server.to_server.extend_from_slice(said.as_bytes());
                }
            }
            server.to_server.append(&mut talk.out.bytes);
        }
        prop_assert!(talk.client.ready().is_some());
        prop_assert_eq!(server.handled, (0..sent).collect::<Vec<_>>());
        prop_assert_eq!(numbers, (0..server.sent).collect::<Vec<_>>());
    }
}
