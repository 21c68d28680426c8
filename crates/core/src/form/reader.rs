//! Reading: bytes that get fewer, the clock of the reader, and what was read already that others share.

use super::shared::{Kept, Shareable};
use super::{MAGIC, OLDEST, Unreadable, VERSION};

/// The time of a reader.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// The present instant on the reader's clock of timers.
    pub now_ms: u64,
    /// How many milliseconds have passed since the value was written.
    pub elapsed_ms: u64,
}

/// Where bytes stop being the form of a value, and what should be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an encoded value is malformed at byte {at}: {what}")]
pub struct Malformed {
    /// The offset of the byte, counted from the magic number.
    pub at: usize,
    /// What is wrong there.
    pub what: &'static str,
}

/// Values on their way in.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// The number of all bytes, the head's included.
    length: usize,
    version: u16,
    clock: Clock,
    /// What others may share, in the order in which it was complete.
    kept: Vec<Kept>,
    depth: u8,
}

impl<'a> Reader<'a> {
    /// A reader of these bytes, behind their head.
    ///
    /// # Errors
    /// If the head is not one of a version that this release reads.
    pub fn new(bytes: &'a [u8], clock: Clock) -> Result<Reader<'a>, Unreadable> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(Unreadable::NotOurs)?;
        let (length, version) = (bytes.len(), VERSION);
        let mut input = Reader { rest, length, version, clock, kept: Vec::new(), depth: 0 };
        let version = input.number()?;
        input.version = u16::try_from(version).unwrap_or(u16::MAX);
        match input.version {
            0..OLDEST => Err(Unreadable::Older(input.version)),
            OLDEST..=VERSION => Ok(input),
            _ => Err(Unreadable::Newer(input.version)),
        }
    }

    /// A reader of what [`Writer::headless`](super::Writer::headless) wrote.
    pub fn headless(bytes: &'a [u8], clock: Clock) -> Reader<'a> {
        Reader { rest: bytes, length: bytes.len(), version: VERSION, clock, kept: Vec::new(), depth: 0 }
    }

    /// A reader of values of another version than the head says.
    #[cfg(test)]
    pub(crate) fn of_version(self, version: u16) -> Reader<'a> {
        Reader { version, ..self }
    }

    /// The version of the form that is read.
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The reader's time.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The offset of the next byte, counted from the magic number.
    pub fn position(&self) -> usize {
        self.length - self.rest.len()
    }

    /// Whether every byte was read.
    pub fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// Nothing more is read.
    ///
    /// # Errors
    /// If there are bytes left.
    pub fn finish(self) -> Result<(), Malformed> {
        if self.is_done() { Ok(()) } else { Err(self.malformed("bytes follow the value")) }
    }

    /// The error that what was just read is wrong.
    pub fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { at: self.position(), what }
    }

    /// Reads so many bytes.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn raw(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(self.malformed("it ends too early"))?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads so many bytes, where the number is part of the type.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(self.malformed("it ends too early"))?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// Reads the number of a variant.
    ///
    /// # Errors
    /// If there is none.
    pub fn tag(&mut self) -> Result<u8, Malformed> {
        let [tag] = self.array()?;
        Ok(tag)
    }

    /// The error that there is no variant of this number, which was just read.
    pub fn unknown_tag(&self, what: &'static str) -> Malformed {
        Malformed { at: self.position().saturating_sub(1), what }
    }

    /// Reads a number of up to 128 bits.
    ///
    /// # Errors
    /// If it has more bits, or more bytes than it needs.
    pub fn long_number(&mut self) -> Result<u128, Malformed> {
        let at = self.position();
        let wrong = |what| Malformed { at, what };
        let (mut number, mut shift) = (0u128, 0u32);
        loop {
            let byte = self.tag()?;
            let bits = u128::from(byte & 0x7f);
            if shift > 0 && byte == 0 {
                return Err(wrong("a number has a byte too many"));
            }
            if shift >= u128::BITS || bits << shift >> shift != bits {
                return Err(wrong("a number is too large"));
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    /// Reads a number.
    ///
    /// # Errors
    /// If it has more than 64 bits, or more bytes than it needs.
    pub fn number(&mut self) -> Result<u64, Malformed> {
        // Most are short.
        if let [byte @ 0..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        let at = self.position();
        u64::try_from(self.long_number()?).map_err(|_| Malformed { at, what: "a number is too large" })
    }

    /// Reads a signed number.
    ///
    /// # Errors
    /// As [`Reader::number`].
    pub fn signed(&mut self) -> Result<i64, Malformed> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads an instant, and moves it to the reader's clock of timers: it is as far from now as it was when it was written, less the time
    /// that has passed since. What is before that clock's beginning is its beginning.
    ///
    /// # Errors
    /// As [`Reader::signed`].
    pub fn instant(&mut self) -> Result<u64, Malformed> {
        let distance = i128::from(self.signed()?);
        let at = i128::from(self.clock.now_ms) + distance - i128::from(self.clock.elapsed_ms);
        Ok(at.clamp(0, i128::from(u64::MAX)) as u64)
    }

    /// Reads a string of bytes.
    ///
    /// # Errors
    /// If it is longer than what is left.
    pub fn string(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.count()?;
        self.raw(length)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// If it is longer than what is left, or no UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        let at = self.position();
        std::str::from_utf8(self.string()?).map_err(|_| Malformed { at, what: "a text is not UTF-8" })
    }

    /// Reads the number of elements of a list, of which each takes a byte or more.
    ///
    /// # Errors
    /// If that is more than there are bytes left.
    pub fn count(&mut self) -> Result<usize, Malformed> {
        let at = self.position();
        let count = usize::try_from(self.number()?).ok().filter(|count| *count <= self.rest.len());
        count.ok_or(Malformed { at, what: "it is longer than what is left" })
    }

    /// For how many of `count` elements there may be room before they are read: all, unless they would take much more memory than there
    /// are bytes left.
    pub fn capacity_for<T>(&self, count: usize) -> usize {
        count.min(self.rest.len().saturating_mul(GROWTH_MAX) / size_of::<T>().max(1))
    }

    /// Reads what is inside of something else, unless that is nested too deep.
    ///
    /// # Errors
    /// As what is inside; and if it is nested too deep.
    pub fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        if self.depth == DEPTH_MAX {
            return Err(self.malformed("it is nested too deep"));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// Reads a value that others may share.
    pub(super) fn shared<S: Shareable>(
        &mut self,
        read: impl FnOnce(&mut Reader<'a>) -> Result<S, Malformed>,
    ) -> Result<S, Malformed> {
        let at = self.position();
        let Some(number) = self.number()?.checked_sub(1) else {
            let value = self.deeper(read)?;
            self.kept.push(value.keep());
            return Ok(value);
        };
        let kept = usize::try_from(number).ok().and_then(|number| self.kept.get(number));
        kept.and_then(S::of).ok_or(Malformed { at, what: "what it shares was not read before" })
    }
}

/// Bytes of memory, per byte that is left, that a list may take before its elements are read. No form is so much shorter than its
/// value.
const GROWTH_MAX: usize = 16;
/// How deep values may be nested. The types allow no end: the last item of a topic's event is an event again.
const DEPTH_MAX: u8 = 32;
