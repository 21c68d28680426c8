//! The record layer against itself, with everything in a peer's hands that a real one keeps from us: its keys.

mod known;
mod model;
mod violations;

use super::keys::{Half, Keys};
use super::record::kind;
use super::suite::Suite;
use super::{Circumstances, Fault, OpenedRecords};

const SUITES: [Suite; 3] = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::Chacha20Poly1305];

/// A client and a server, connected.
fn peers(suite: Suite) -> (Keys, Keys) {
    let secrets = [[1; 48], [2; 48]];
    let half = |at: usize| Half::from_secret(suite, &secrets[at][..suite.secret_len()], 0).unwrap();
    (Keys::new(suite, half(0), half(1)), Keys::new(suite, half(1), half(0)))
}

/// A record of the client's making.
fn record(client: &mut Keys, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    client.sealer().unwrap().record(kind, content, &mut wire).unwrap();
    wire
}

/// The same, with padding: zeros after the content type.
fn padded(client: &mut Keys, kind: u8, content: &[u8], padding: usize) -> Vec<u8> {
    let (last, zeros) = (0, vec![0; padding - 1]);
    record(client, last, &[content, &[kind], &zeros].concat())
}

/// What a call of `open` led to.
struct Outcome {
    opened: Result<OpenedRecords, Fault>,
    plain: Vec<u8>,
    reply: Vec<u8>,
}

fn open(keys: &mut Keys, wire: &[u8]) -> Outcome {
    open_in(keys, wire, Circumstances::default())
}

fn open_in(keys: &mut Keys, wire: &[u8], circumstances: Circumstances) -> Outcome {
    let (mut plain, mut reply) = (Vec::new(), Vec::new());
    let opened = keys.open(&mut wire.to_vec(), &mut plain, &mut reply, circumstances);
    Outcome { opened, plain, reply }
}

/// A cheap source of numbers that differ, always the same.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.roll(256) as u8).collect()
    }
}
