//! Accounts made on the stream that logs in to them.

use super::talk::*;
use crate::client::{Client, Entropy, Options, Outbox, Profile};

const REGISTER: &str = "<iq id='register' type='set'><query xmlns='jabber:iq:register'>\
    <username>alice</username><password>secret</password></query></iq>";
const CONFLICT: &str = "<iq id='register' type='error'><error type='cancel'>\
    <conflict xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>";

fn newcomer() -> Talk {
    let profile = Profile::new(bare()).expect("valid settings");
    let options = Options::new("alice@example.org".parse().expect("a JID"), "secret", &profile);
    let options = options.with_resource("r").with_registration(true);
    let mut talk = Talk { client: Client::new(options, Entropy::from_seed(SEED)), out: Outbox::default() };
    talk.client.start(&mut talk.out);
    talk.server(HEADER).server(OFFER_PLAIN).client(&[OPEN, REGISTER].concat()).events(&["connected"]);
    talk
}

#[test]
fn a_new_account_is_logged_in_to_at_once() {
    let mut talk = newcomer();
    talk.server("<iq id='register' type='result'/>").client(AUTH_PLAIN).events(&["registered"]);
    talk.server(SUCCESS).client(OPEN).server(HEADER).server(OFFER_BIND).client(BIND).server(BOUND);
    talk.events(&["authenticated by PLAIN", "bound alice@example.org/r", "ready"]);
}

#[test]
fn an_account_that_is_there_already_is_as_good() {
    newcomer().server(CONFLICT).client(AUTH_PLAIN).events(&[]);
}

#[test]
fn a_refusal_ends_the_login() {
    let refusal = CONFLICT.replace("conflict", "not-allowed");
    newcomer()
        .server(refusal)
        .client("</stream:stream>")
        .events(&["closed: registration failed: not-allowed"]);
}

#[test]
fn an_answer_to_something_else_is_none() {
    newcomer()
        .server("<iq id='other' type='result'/>")
        .events(&["closed: unexpected <iq/> while registering"]);
}

#[test]
fn the_limit_of_registrations_is_asked_for() {
    let profile = Profile::new(bare()).expect("valid settings");
    let options = Options::new("alice@example.org".parse().expect("a JID"), "secret", &profile);
    let options = options.with_registration(true).with_limit_asked();
    let asked = "<iq id='register-form' type='get'><query xmlns='jabber:iq:register'/></iq>";
    for (form, events) in [
        (
            "<query xmlns='jabber:iq:register'><limit xmlns='urn:carillon:registration:0' accounts='3' seconds='60'/></query>",
            &["3 accounts in 60 s from one address"][..],
        ),
        ("<query xmlns='jabber:iq:register'><username/></query>", &[]),
    ] {
        let options = options.clone();
        let mut talk =
            Talk { client: Client::new(options, Entropy::from_seed(SEED)), out: Outbox::default() };
        talk.client.start(&mut talk.out);
        talk.server(HEADER).server(OFFER_PLAIN).client(&[OPEN, asked].concat()).events(&["connected"]);
        let answer = format!("<iq id='register-form' type='result'>{form}</iq>");
        talk.server(&answer).client(REGISTER).events(events);
    }
}
