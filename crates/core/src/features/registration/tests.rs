//! Registrations that are begun on several shards at the same time.

use crate::model::Policy;
use crate::settings::Settings;
use crate::sim::{Plan, World};
use carillon_wire::Framing;

const HEADER: &str = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' \
    to='d' version='1.0'>";

/// How many of so many clients of one address are registered, where two may be.
fn registered(clients: usize) -> usize {
    let mut settings = Settings::default();
    settings.limits.registrations_per_address = 2;
    let mut world = World::new(Plan { shards: 4, settings, ..Plan::default() });
    world.domain("d", Policy { registration: true, ..Policy::default() });
    let conns: Vec<usize> = (0..clients).map(|_| world.open(Framing::Tcp, true)).collect();
    conns.iter().for_each(|conn| world.bytes(*conn, HEADER.as_bytes()));
    world.settle();
    for conn in &conns {
        while world.received(*conn).is_some() {}
        let register = format!(
            "<iq type='set' id='1'><query xmlns='jabber:iq:register'><username>u{conn}</username>\
             <password>secret</password></query></iq>"
        );
        world.bytes(*conn, register.as_bytes());
    }
    world.settle();
    let is_registered = |world: &mut World, conn: usize| {
        let mut answer = Vec::new();
        while let Some(element) = world.received(conn) {
            answer.extend(element);
        }
        String::from_utf8_lossy(&answer).contains("type='result'")
    };
    conns.into_iter().filter(|conn| is_registered(&mut world, *conn)).count()
}

#[test]
fn an_address_that_registers_on_all_shards_at_once_has_no_more_than_its_bound() {
    assert_eq!(registered(2), 2);
    // None, as nobody can say which of them came first.
    assert!(registered(8) <= 2, "of eight");
}
