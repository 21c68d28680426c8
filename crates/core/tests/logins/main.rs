//! Logins that are tried together, that fail, and that are overtaken by what an operator does.

mod client;
#[path = "../chat/world.rs"]
#[expect(dead_code, reason = "the conversations use more of it")]
mod world;

use carillon_core::Security;
use carillon_core::command::{Command, KickReason};
use carillon_core::model::{AccountState, Policy};
use carillon_core::ports::store::accounts::SetAccountState;
use carillon_core::sasl::ChannelBinding;
use carillon_core::settings::Settings;
use carillon_wire::jid::Jid;
use client::{BIND, Client, secured};
use world::World;

const DOMAIN: &str = "localhost";
const HERE: &str = "192.0.2.1";
const ELSEWHERE: &str = "198.51.100.9";

fn world() -> World {
    let mut world = World::new(Settings::default());
    world.domain(DOMAIN, Policy { registration: true, ..Policy::default() });
    world.account(DOMAIN, "alice", "secret");
    world
}

/// Has an account disabled as the HTTP API does it.
fn disable(world: &mut World, local: &str) {
    let state = AccountState::Disabled(world.now());
    let domain = world.domain_id(DOMAIN);
    world.ask(SetAccountState { domain, local: local.into(), state }).expect("the account is there");
    kick(world, local, KickReason::Disabled);
}

fn kick(world: &mut World, local: &str, reason: KickReason) {
    let jid = Jid::new(&format!("{local}@{DOMAIN}")).expect("a JID");
    world.command(jid.as_str(), Command::Kick { jid: jid.clone(), reason });
}

/// How many of these were told that they are wrong, and how many that they may not try now.
fn told(answers: &[String]) -> (usize, usize) {
    let count = |word: &str| answers.iter().filter(|answer| answer.contains(word)).count();
    (count("<not-authorized"), count("<temporary-auth-failure"))
}

#[test]
fn forty_guesses_at_once_are_no_more_than_ten_by_scram() {
    let world = &mut world();
    let mut clients: Vec<_> = (0..40).map(|_| Client::open(world, HERE)).collect();
    let nonces: Vec<_> = clients.iter_mut().map(|client| client.scram_first(world, "alice")).collect();
    let guess = |(client, nonce): (&mut Client, &String)| client.scram_guess(world, nonce);
    let answers: Vec<_> = clients.iter_mut().zip(&nonces).map(guess).collect();
    assert_eq!(told(&answers), (10, 30));
}

#[test]
fn forty_guesses_at_once_are_no_more_than_ten_by_plain() {
    let world = &mut world();
    let mut clients: Vec<_> = (0..40).map(|_| Client::open(world, HERE)).collect();
    world.hold_derived();
    let mut answers: Vec<_> =
        clients.iter_mut().map(|client| client.plain(world, "alice", "wrong")).collect();
    assert_eq!(world.derived(), 10, "no more are worth the work");
    world.let_derived_go();
    answers.extend(clients.iter().map(|client| client.received(world)));
    assert_eq!(told(&answers), (10, 30));
}

#[test]
fn many_right_passwords_at_once_are_let_in() {
    let world = &mut world();
    let mut clients: Vec<_> = (0..40).map(|_| Client::open(world, HERE)).collect();
    let firsts: Vec<_> =
        clients.iter_mut().map(|c| c.scram_challenge(world, "alice", "SCRAM-SHA-256")).collect();
    for (client, challenge) in clients.iter_mut().zip(&firsts) {
        let answer = client.scram_prove(world, challenge, "secret");
        assert!(answer.contains("<success"), "{answer}");
    }
    // By turns, what is counted at the start is given back.
    for _ in 0..40 {
        let answer = Client::open(world, HERE).plain(world, "alice", "secret");
        assert!(answer.contains("<success"), "{answer}");
    }
}

#[test]
fn nobody_locks_an_account_out_for_others() {
    let world = &mut world();
    let token = Client::open(world, HERE).token(world, "alice", "secret").expect("a token");
    for n in 0..12 {
        // As many addresses as the widest bound takes, ten guesses from each.
        let address = format!("203.0.113.{n}");
        (0..10).for_each(|_| drop(Client::open(world, &address).plain(world, "alice", "wrong")));
    }
    let answer = Client::open(world, ELSEWHERE).plain(world, "alice", "secret");
    assert!(answer.contains("<temporary-auth-failure"), "from where it never logged in: {answer}");
    let answer = Client::open(world, HERE).plain(world, "alice", "secret");
    assert!(answer.contains("<success"), "from where it logged in lately: {answer}");
    let answer = Client::open(world, ELSEWHERE).redeem(world, "alice", &token);
    assert!(answer.contains("<success"), "a token is not guessed: {answer}");
}

#[test]
fn wrong_tokens_count_against_the_address() {
    let world = &mut world();
    for _ in 0..50 {
        let answer = Client::open(world, ELSEWHERE).redeem(world, "alice", "guessed");
        assert!(answer.contains("<not-authorized"), "{answer}");
        // In that time the other shard has heard of it.
        world.pass(100);
    }
    let answer = Client::open(world, ELSEWHERE).redeem(world, "alice", "guessed");
    assert!(answer.contains("<temporary-auth-failure"), "{answer}");
    let answer = Client::open(world, HERE).plain(world, "alice", "secret");
    assert!(answer.contains("<success"), "{answer}");
}

#[test]
fn who_is_disabled_between_challenge_and_proof_is_not_let_in() {
    let world = &mut world();
    let mut client = Client::open(world, HERE);
    let challenge = client.scram_challenge(world, "alice", "SCRAM-SHA-256");
    disable(world, "alice");
    let answer = client.scram_prove(world, &challenge, "secret");
    assert!(answer.contains("<temporary-auth-failure"), "{answer}");
    let answer = client.plain(world, "alice", "secret");
    assert!(answer.contains("<account-disabled"), "{answer}");
}

#[test]
fn who_is_disabled_or_gets_another_password_before_binding_does_not_bind() {
    type Deed = fn(&mut World);
    let deeds: [Deed; 3] = [
        |world| disable(world, "alice"),
        |world| world.password(DOMAIN, "alice", "changed"),
        |world| kick(world, "alice", KickReason::Gone),
    ];
    for deed in deeds {
        let world = &mut world();
        let mut client = Client::open(world, HERE);
        client.sasl2_plain(world, "alice", "secret", "");
        deed(world);
        let answer = client.say(world, BIND);
        assert!(answer.contains("<stream:error><not-authorized"), "{answer}");
    }
}

#[test]
fn who_is_disabled_while_a_password_is_derived_is_not_let_in() {
    let world = &mut world();
    let mut client = Client::open(world, HERE);
    world.hold_derived();
    client.plain(world, "alice", "secret");
    disable(world, "alice");
    world.let_derived_go();
    let answer = client.received(world);
    assert!(answer.contains("<temporary-auth-failure"), "{answer}");
}

#[test]
fn a_remembered_login_that_was_overtaken_does_not_bind() {
    let world = &mut world();
    let token = Client::open(world, HERE).token(world, "alice", "secret").expect("a token");
    let mut client = Client::open(world, HERE);
    let answer = client.redeem(world, "alice", &token);
    assert!(answer.contains("<success"), "{answer}");
    disable(world, "alice");
    let answer = client.say(world, BIND);
    assert!(answer.contains("<stream:error><not-authorized"), "{answer}");
}

#[test]
fn a_disabled_accounts_session_is_told_so() {
    let world = &mut world();
    let mut client = Client::open(world, HERE);
    client.sasl2_plain(world, "alice", "secret", "");
    client.say(world, BIND);
    disable(world, "alice");
    assert!(client.received(world).contains("account-disabled"));
}

#[test]
fn registrations_have_a_bound_of_their_own() {
    let world = &mut world();
    let answers: Vec<_> =
        (0..101).map(|n| Client::open(world, HERE).register(world, &format!("new{n}"))).collect();
    assert!(answers[..100].iter().all(|answer| answer.contains("type='result'")), "{answers:?}");
    assert!(answers[100].contains("<resource-constraint"), "{}", answers[100]);
    let answer = Client::open(world, HERE).plain(world, "new99", "secret");
    assert!(answer.contains("<success"), "none of them was a failed login: {answer}");
    let answer = Client::open(world, ELSEWHERE).register(world, "other");
    assert!(answer.contains("type='result'"), "{answer}");
}

#[test]
fn a_token_is_given_on_tls_only() {
    let world = &mut world();
    assert!(Client::open(world, HERE).token(world, "alice", "secret").is_some());
    let mut client = Client::open_as(world, HERE, Security::Trusted);
    let challenge = client.sasl2_scram(world, "alice");
    let answer = client.scram_prove(world, &challenge, "secret");
    assert!(answer.contains("<success"), "{answer}");
    assert!(!answer.contains("<token"), "{answer}");
}

#[test]
fn channel_binding_is_offered_where_clients_know_a_type_of_it() {
    let world = &mut world();
    let end_point = Some(b"hash of the certificate".as_slice().into());
    let offered = |world: &mut World, binding| {
        let features = Client::features(world, secured(binding));
        let (classic, sasl2) = features.split_once("</mechanisms>").expect("both lists");
        (classic.contains("-PLUS"), sasl2.contains("-PLUS"))
    };
    assert_eq!(offered(world, ChannelBinding::default()), (false, false));
    let old = ChannelBinding { exporter: None, end_point };
    assert_eq!(
        offered(world, old.clone()),
        (false, true),
        "TLS 1.2: tls-server-end-point, for those told so"
    );
    assert_eq!(offered(world, ChannelBinding { exporter: Some([7; 32]), ..old }), (true, true));
}

#[test]
fn a_type_of_channel_binding_that_there_is_not_is_no_failed_login() {
    let world = &mut world();
    let binding = ChannelBinding { exporter: Some([7; 32]), end_point: None };
    let mut client = Client::open_as(world, HERE, secured(binding));
    for _ in 0..2 {
        let answer = client.auth(world, "SCRAM-SHA-256-PLUS", "p=tls-unique,,n=alice,r=abc");
        assert!(answer.contains("<malformed-request/><text"), "{answer}");
    }
    // Four more may fail, and the fifth would end the stream.
    (0..4).for_each(|_| assert!(!client.plain(world, "alice", "wrong").contains("<stream:error")));
    let answer = client.plain(world, "alice", "secret");
    assert!(answer.contains("<success"), "{answer}");
}
