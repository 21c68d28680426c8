//! States that clients of a lockstep match send.

use super::*;
use crate::game::tests::{Rig, Seen, rules};
use crate::model::MatchRules;
use carillon_wire::frame::game::{ErrorCode, Mode};

/// Ten ticks per second; a state is wanted after every tenth.
fn begun(seats: u8) -> Rig {
    Rig::begun(seats, MatchRules { snapshot_ticks: 10, ..rules(Mode::Lockstep) })
}

/// Who is asked for the state after a tick, and who of them for its hash only.
fn asked(rig: &mut Rig, seats: u8, tick: u32) -> (u8, Vec<u8>) {
    let (mut whole, mut hash) = (None, Vec::new());
    for seat in 0..seats {
        match rig.seen(seat.into()).last() {
            Some(Seen::Wanted(at, true)) if *at == tick => assert!(whole.replace(seat).is_none()),
            Some(Seen::Wanted(at, false)) if *at == tick => hash.push(seat),
            other => panic!("{seat}: {other:?}"),
        }
    }
    (whole.unwrap(), hash)
}

fn say(rig: &mut Rig, seat: u8, tick: u32, state: &[u8]) {
    rig.with(|play, sink| play.hash(seat, tick, state_hash(state), sink));
}

fn send_state(rig: &mut Rig, seat: u8, tick: u32, state: &[u8]) {
    let total = state.len() as u32;
    for (at, part) in state.chunks(3).enumerate() {
        let offset = 3 * at as u32;
        assert!(rig.play.wants(seat, tick, offset, total));
        rig.with(|play, sink| play.take_part(total, part, sink));
    }
}

#[test]
fn who_comes_late_is_given_a_state_that_most_have_and_the_ticks_since() {
    let mut rig = begun(3);
    rig.send(0, 1, &["0123456789012345678901234567890123456789"]).unwrap();
    rig.after(1000);
    let (provider, others) = asked(&mut rig, 3, 10);
    send_state(&mut rig, provider, 10, b"the state");
    say(&mut rig, provider, 10, b"the state");
    // One says it so far: of three that is not most.
    assert_eq!(rig.figures.snapshots_taken, 0);
    say(&mut rig, others[0], 10, b"the state");
    assert_eq!(rig.figures.snapshots_taken, 1);
    rig.after(300);
    rig.join(others[1], 9, 0).unwrap();
    let seen = rig.seen(9);
    let ticks: Vec<u32> = seen[2..]
        .iter()
        .map(|seen| match seen {
            Seen::Tick { tick, .. } => *tick,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(seen[1], Seen::Snapshot { tick: 10, text: "the state".into() });
    assert_eq!(ticks, [11, 12, 13]);
    // Who lacks little is given the ticks: they are shorter.
    rig.join(others[1], 10, 9).unwrap();
    assert!(matches!(rig.seen(10)[1], Seen::Tick { tick: 10, .. }));
}

#[test]
fn what_is_forgotten_is_in_the_state() {
    let mut rig = begun(2);
    rig.log_bytes_max = 300;
    rig.after(10_000);
    rig.seen(0);
    assert_eq!(rig.join(0, 5, 0), Err(ErrorCode::TooOld));
    let (provider, _) = {
        rig.seen(1);
        rig.after(1000);
        asked(&mut rig, 2, 110)
    };
    send_state(&mut rig, provider, 110, b"x");
    say(&mut rig, 0, 110, b"x");
    say(&mut rig, 1, 110, b"x");
    rig.join(0, 5, 0).unwrap();
    assert_eq!(rig.seen(5)[1], Seen::Snapshot { tick: 110, text: "x".into() });
}

#[test]
fn a_state_that_others_do_not_have_is_not_kept() {
    let mut rig = begun(3);
    rig.after(1000);
    let (liar, others) = asked(&mut rig, 3, 10);
    // It says the hash of the others, and sends something else.
    say(&mut rig, liar, 10, b"the state");
    for other in others {
        say(&mut rig, other, 10, b"the state");
    }
    send_state(&mut rig, liar, 10, b"a lie");
    assert_eq!((rig.figures.snapshots_taken, rig.figures.snapshots_refused), (0, 1));
    assert_eq!(rig.play.snapshot_for(0), None);
    // The next time another one is asked.
    rig.after(1000);
    assert_ne!(asked(&mut rig, 3, 20).0, liar);
}

#[test]
fn nothing_is_taken_that_was_not_asked_for() {
    let mut rig = begun(2);
    rig.after(1000);
    let (provider, others) = asked(&mut rig, 2, 10);
    assert!(rig.play.wants(provider, 10, 0, 9));
    assert!(!rig.play.wants(others[0], 10, 0, 9));
    assert!(!rig.play.wants(provider, 9, 0, 9));
    assert!(!rig.play.wants(provider, 10, 3, 9));
    send_state(&mut rig, provider, 10, b"abc");
    assert!(!rig.play.wants(provider, 10, 3, 9));
}
