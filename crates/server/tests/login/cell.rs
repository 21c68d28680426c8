//! Nodes of a cell, within one process: whichever a client connects to, it is served as by one.

use super::client::{BIND, Client, HEADER, Tls, auth, tls};
use super::{ask, options, store, websocket_in_one_breath};
use carillon_backend::BusOptions;
use carillon_backend::memory::Hub;
use carillon_core::command::{Command, KickReason, Outcome};
use carillon_core::model::{Epoch, NodeId};
use carillon_core::ports::{Computed, Directory};
use carillon_server::{Beginning, Cell, Server};
use std::io::{ErrorKind, Read};
use std::sync::Arc;

const NODES: u32 = 3;
const SHARDS: u16 = 2;

fn nodes() -> Vec<NodeId> {
    (1..=NODES).map(NodeId).collect()
}

/// As many nodes over one store.
fn start() -> Vec<Server> {
    let hub = Hub::new(BusOptions::default()).unwrap();
    let accounts = Arc::new(store::Accounts::new());
    let node = |own: NodeId| {
        let (options, tls) = options(SHARDS);
        let hub = hub.clone();
        let cell = Cell {
            node: own,
            name: format!("n{}", own.0).into(),
            others: nodes().into_iter().filter(|node| *node != own).collect(),
            leaving: Vec::new(),
            yields: false,
            told: Box::new(|_, _| {}),
            bus: Box::new(move |hears| Ok(hub.join(Epoch(own.0.into()), hears))),
            log: None,
        };
        let beginning = Beginning { cell: Some(cell), ..Beginning::default() };
        Server::start_after(&options, &tls, &Arc::default(), accounts.clone(), beginning).unwrap()
    };
    nodes().into_iter().map(node).collect()
}

fn home(user: &str) -> u32 {
    Computed::among(&nodes(), NodeId(1), SHARDS).home(&format!("{user}@localhost")).node.0
}

/// Names of accounts that are at home on each node.
fn users() -> Vec<String> {
    let users: Vec<String> = (0..10).map(|n| format!("u{n}")).collect();
    assert!((1..=NODES).all(|node| users.iter().any(|user| home(user) == node)));
    users
}

fn chat(from: &mut Client<Tls>, to: &str, body: &str) {
    from.send(&format!("<message to='{to}@localhost' type='chat'><body>{body}</body></message>"));
}

fn hears(client: &mut Client<Tls>, body: &str) {
    client.until(&format!("<body>{body}</body>"));
    client.until("</message>");
}

#[test]
fn who_connects_to_any_node_talks_to_who_connects_to_another() {
    let nodes = start();
    let users = users();
    let port = |n: usize| nodes[n % nodes.len()].ports().c2s.unwrap();
    let login = |(n, user): (usize, &String)| {
        let mut client = Client::connect(port(n)).starttls();
        client.login(user);
        client
    };
    let mut clients: Vec<_> = users.iter().enumerate().map(login).collect();
    for n in 0..users.len() {
        let to = (n + 1) % users.len();
        let body = format!("hello {to}");
        chat(&mut clients[n], &users[to], &body);
        hears(&mut clients[to], &body);
    }
    // More than may be on its way, without an answer in between: the order is kept, and nothing is lost.
    let long = "x".repeat(10_000);
    for n in 0..60 {
        chat(&mut clients[0], &users[1], &format!("{n} {long}"));
    }
    for n in 0..60 {
        hears(&mut clients[1], &format!("{n} {long}"));
    }
    for node in &nodes {
        let Outcome::Sessions(sessions) =
            ask(node, Command::Sessions { domain: None, account: None, limit: 99 })
        else {
            panic!()
        };
        assert_eq!(sessions.len(), users.len(), "each node knows of all");
    }
    for (n, client) in clients.iter_mut().enumerate() {
        let jid = carillon_wire::jid::Jid::new(&format!("{}@localhost", users[n])).unwrap();
        let kicked = ask(&nodes[(n + 1) % nodes.len()], Command::Kick { jid, reason: KickReason::Operator });
        assert!(matches!(kicked, Outcome::Count(1)), "{kicked:?}");
        client.until("</stream:stream>");
    }
}

#[test]
fn whoever_sends_everything_in_one_breath_is_served_elsewhere() {
    let nodes = start();
    for (n, user) in users().iter().enumerate() {
        let node = &nodes[n % nodes.len()];
        let mut client = Client {
            stream: tls(Client::connect(node.ports().c2s_tls.unwrap()).stream),
            read: String::new(),
        };
        client.send(&[HEADER, &auth(user), HEADER, BIND, "<presence/>"].concat());
        client.ping();
        client.send("</stream:stream>");
        client.until("</stream:stream>");
        websocket_in_one_breath(node.ports().websocket.unwrap(), user);
    }
}

#[test]
fn a_session_is_carried_to_the_node_that_had_one_of_its_account_before() {
    let nodes = start();
    let login = |node: usize, user: &str| {
        let mut client = Client::connect(nodes[node % nodes.len()].ports().c2s.unwrap()).starttls();
        client.login(user);
        client
    };
    let users = users();
    let (peer, users) = users.split_last().unwrap();
    let mut peer_client = login(2, peer);
    for (n, user) in users.iter().enumerate() {
        let mut before = login(n, user);
        // It comes to another node, and is made at the first: which closes the session that it replaces.
        let mut carried = login(n + 1, user);
        before.until("</stream:stream>");
        let long = "x".repeat(10_000);
        // More than may be on its way, without an answer in between.
        for n in 0..60 {
            chat(&mut carried, peer, &format!("{n} {long}"));
        }
        for n in 0..60 {
            hears(&mut peer_client, &format!("{n} {long}"));
        }
        chat(&mut peer_client, user, "and back");
        hears(&mut carried, "and back");
    }
}

#[test]
fn a_node_that_goes_takes_its_clients_along_and_no_others() {
    let mut servers = start();
    let users = users();
    let node_of = |n: usize| n % NODES as usize;
    let mut clients: Vec<_> = users
        .iter()
        .enumerate()
        .map(|(n, user)| {
            let mut client = Client::connect(servers[node_of(n)].ports().c2s.unwrap()).starttls();
            client.login(user);
            client
        })
        .collect();
    drop(servers.pop());
    let gone = NodeId(NODES);
    let left: Vec<NodeId> = nodes().into_iter().filter(|node| *node != gone).collect();
    for (server, own) in servers.iter().zip(&left) {
        server.node().lose(gone);
        let directory: Arc<dyn Directory> = Arc::new(Computed::among(&left, *own, SHARDS));
        server.node().move_homes(&directory);
    }
    for (n, (user, client)) in users.iter().zip(&mut clients).enumerate() {
        if node_of(n) == servers.len() {
            let ended = client.stream.read_to_string(&mut String::new());
            assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() == ErrorKind::UnexpectedEof));
            *client = Client::connect(servers[1].ports().c2s.unwrap()).starttls();
            client.login(user);
        } else {
            client.ping();
        }
    }
    for n in 0..users.len() {
        let to = (n + 1) % users.len();
        let body = format!("hello {to}");
        chat(&mut clients[n], &users[to], &body);
        hears(&mut clients[to], &body);
    }
}
