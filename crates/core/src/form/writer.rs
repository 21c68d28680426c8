//! Writing: bytes that grow, the present instant, and what was written already that others share.

use super::shared::{Shareable, Written};
use super::{MAGIC, VERSION, spoken};

/// Values on their way out. What several of them share is written once, with the first; so values that share much, such as the
/// sessions of a shard, are written by one writer and read by one [`Reader`](super::Reader), in the same order.
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    now_ms: u64,
    version: u16,
    written: Written,
}

impl Writer {
    /// A writer that has written the head. `now_ms` is the present instant on the clock of timers.
    pub fn new(now_ms: u64) -> Writer {
        Writer::of_version(now_ms, spoken())
    }

    /// The same in this version.
    pub(crate) fn of_version(now_ms: u64, version: u16) -> Writer {
        let mut out = Writer { bytes: MAGIC.to_vec(), now_ms, version, written: Written::default() };
        out.number(u64::from(version));
        out
    }

    /// A writer of values that are inside of something with a head and a version of its own.
    pub fn headless(now_ms: u64) -> Writer {
        Writer { bytes: Vec::new(), now_ms, version: VERSION, written: Written::default() }
    }

    /// The version of the form that is written.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// How many bytes were written.
    pub fn position(&self) -> usize {
        self.bytes.len()
    }

    /// What was written.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// The present instant on the clock of timers.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Appends a number: seven bits per byte, the lowest first; all bytes but the last have the highest bit set (LEB128).
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Appends a number of up to 128 bits, as [`Writer::number`] does.
    pub fn long_number(&mut self, mut number: u128) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Appends a signed number: 0, -1, 1, -2, 2 … are written as 0, 1, 2, 3, 4 … (zigzag).
    pub fn signed(&mut self, number: i64) {
        self.number((number as u64) << 1 ^ (number >> 63) as u64);
    }

    /// Appends an instant of the clock of timers: how far it is from now.
    pub fn instant(&mut self, at_ms: u64) {
        let distance = i128::from(at_ms) - i128::from(self.now_ms);
        let bound = i128::from(i64::MAX);
        self.signed(distance.clamp(-bound, bound) as i64);
    }

    /// Appends the number of a variant.
    pub fn tag(&mut self, tag: u8) {
        self.bytes.push(tag);
    }

    /// Appends bytes as they are. Their number is not written.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a string of bytes: its length, and the bytes.
    pub fn string(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.raw(bytes);
    }

    /// Appends a value that others may share: whole the first time, by its number from then on.
    pub(super) fn shared<S: Shareable>(&mut self, value: &S, write: impl FnOnce(&mut Writer)) {
        if let Some(number) = self.written.number_of(value) {
            return self.number(number + 1);
        }
        self.number(0);
        write(self);
        // Its number is taken when it is complete: by then what it shares has one.
        self.written.add(value);
    }
}
