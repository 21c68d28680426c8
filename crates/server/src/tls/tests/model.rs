//! Random programs and random bytes: what is sent arrives, and nothing else happens.

use super::super::Fault;
use super::super::key_update::Request;
use super::super::record::CONTENT_MAX;
use super::{Dice, Keys, SUITES, kind, open, padded, peers};

/// Both peers, and what is under way from one to the other.
struct World {
    ends: [Keys; 2],
    wire: [Vec<u8>; 2],
    sent: [Vec<u8>; 2],
    got: [Vec<u8>; 2],
}

impl World {
    fn step(&mut self, dice: &mut Dice) {
        let from = dice.roll(2);
        match dice.roll(10) {
            0..=3 => {
                let sides = [3, 100, 2000, 3 * CONTENT_MAX][dice.roll(4)];
                let len = dice.roll(sides);
                let data = dice.bytes(len);
                self.ends[from].seal(&data, &mut self.wire[from]).unwrap();
                self.sent[from].extend(data);
            }
            4 => {
                let len = 1 + dice.roll(500);
                let data = vec![b'p'; len];
                self.wire[from].extend(padded(&mut self.ends[from], kind::APPLICATION_DATA, &data, 1 + len));
                self.sent[from].extend(data);
            }
            5 => {
                let request = [Request::NotRequested, Request::Requested][dice.roll(2)];
                self.ends[from].sealer().unwrap().update(request, &mut self.wire[from]).unwrap();
            }
            6 => {
                let (suite, secret) = (self.ends[from].suite, [9; 48]);
                let half = || super::Half::from_secret(suite, &secret[..suite.secret_len()], 0).unwrap();
                let moved = std::mem::replace(&mut self.ends[from], Keys::new(suite, half(), half()));
                self.ends[from] = Keys::from_bytes(&*moved.to_bytes()).unwrap();
            }
            _ => {
                let len = dice.roll(self.wire[from].len() + 1);
                self.deliver(from, len);
            }
        }
    }

    /// Has the peer of `from` read at most `len` bytes.
    fn deliver(&mut self, from: usize, len: usize) {
        let to = 1 - from;
        let outcome = open(&mut self.ends[to], &self.wire[from][..len]);
        let opened = outcome.opened.unwrap();
        assert!(!opened.closed);
        self.wire[from].drain(..opened.consumed);
        self.got[to].extend(outcome.plain);
        self.wire[to].extend(outcome.reply);
    }
}

#[test]
fn what_is_sent_arrives() {
    for seed in 1..=150 {
        let mut dice = Dice(seed << 32 | seed);
        let (client, server) = peers(SUITES[dice.roll(3)]);
        let mut world = World {
            ends: [client, server],
            wire: Default::default(),
            sent: Default::default(),
            got: Default::default(),
        };
        for _ in 0..60 {
            world.step(&mut dice);
        }
        // An answer to a KeyUpdate may be on the way back.
        for from in [0, 1, 0, 1] {
            world.deliver(from, world.wire[from].len());
        }
        assert!(world.wire.iter().all(Vec::is_empty), "seed {seed}");
        assert!(world.sent[0] == world.got[1] && world.sent[1] == world.got[0], "seed {seed}");
    }
}

#[test]
fn random_bytes_are_refused_and_harm_nobody() {
    let mut dice = Dice(42);
    for round in 0..20_000 {
        let (_, mut server) = peers(SUITES[round % 3]);
        let len = dice.roll(80);
        let mut wire = dice.bytes(len);
        // Most would fail at the first byte.
        if round % 4 != 0 && len >= 5 {
            wire[..5].copy_from_slice(&[23, 3, 3, 0, dice.roll(60) as u8]);
        }
        let outcome = open(&mut server, &wire);
        assert!(outcome.plain.is_empty());
        match outcome.opened {
            Ok(opened) => assert_eq!((opened.consumed, opened.closed), (0, false)),
            Err(fault) => assert!(matches!(fault, Fault::Violation(_)) && outcome.reply.len() == 24),
        }
    }
}

#[test]
fn random_content_of_sealed_records_harms_nobody() {
    let mut dice = Dice(7);
    for round in 0..20_000 {
        let (mut client, mut server) = peers(SUITES[round % 3]);
        for _ in 0..4 {
            let len = dice.roll(8);
            let mut content = dice.bytes(len);
            // Bytes that mean something are more likely to lead somewhere.
            for byte in &mut content {
                *byte = [0, 1, 2, 24, 90, *byte][dice.roll(6)];
            }
            let kind = 20 + dice.roll(4) as u8;
            let wire = super::record(&mut client, kind, &content);
            if open(&mut server, &wire).opened.is_err() {
                break;
            }
        }
    }
}

#[test]
fn serialised_keys_are_checked() {
    let (_, server) = peers(SUITES[0]);
    let good = server.to_bytes();
    assert!(Keys::from_bytes(&good[..good.len() - 1]).is_err());
    assert!(Keys::from_bytes(&[&good[..], &[0]].concat()).is_err());
    // Layout, suite, the two directions' states, bytes of a KeyUpdate seen, whether one is owed.
    for at in [0, 1, 2, 3, 4, 6] {
        let mut bad = *good;
        bad[at] = 99;
        assert!(Keys::from_bytes(&bad).is_err(), "byte {at}");
    }
    assert!(Keys::from_bytes(&*good).is_ok());
}
