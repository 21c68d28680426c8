//! The binary form of values that leave a process: what a session is made of, written to the store at a restart or handed to a new
//! process. One form, with one version; docs/session-form.md describes it, docs/adr/0017 says why it is our own.
//!
//! A type has a form when it implements [`Form`], nearly always by a line of [`form!`](crate::form!) below its definition. The line
//! names the type's fields once more, so that one that was forgotten does not compile. There are no names in the form, and no types: it
//! is read by the type that wrote it.
//!
//! ```text
//!  encode(value) ─► Writer: head, numbers, texts, lists, what is shared once ─► bytes
//!  bytes ─► Reader: every length is checked before anything is allocated ─► value, or where it is malformed
//! ```
//!
//! An instant of the clock of timers is written as its distance from now, and read on the clock of the reader, so that a deadline goes on
//! running. This module is below the types that have a form and knows none of them: here instants are milliseconds, and
//! `model` makes a `Mono` of them.

mod macros;
mod reader;
mod shared;
mod std_types;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod wire_types;
mod writer;

pub use reader::{Clock, Malformed, Reader};
use std::sync::atomic::{AtomicU16, Ordering};
pub use writer::Writer;

/// A type that has a binary form.
///
/// What is read is what was written, but for the time that passed and what a type leaves out because it means nothing in another
/// process; the type says so. A form takes at least one byte: lists rely on that.
pub trait Form: Sized {
    /// Appends the value.
    fn write(&self, out: &mut Writer);

    /// Reads a value.
    ///
    /// # Errors
    /// If the bytes are not the form of any value of this type.
    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// Appends the elements of a list.
    fn write_all(values: &[Self], out: &mut Writer) {
        for value in values {
            value.write(out);
        }
    }

    /// Reads the elements of a list. [`Reader::count`] read their number.
    ///
    /// # Errors
    /// As [`Form::read`].
    fn read_all(count: usize, input: &mut Reader<'_>) -> Result<Vec<Self>, Malformed> {
        let mut values = Vec::with_capacity(input.capacity_for::<Self>(count));
        for _ in 0..count {
            values.push(Self::read(input)?);
        }
        Ok(values)
    }
}

/// The newest version of the form. It is written, unless [`speak`] says otherwise.
pub const VERSION: u16 = 5;
/// The oldest version that can be written: that of the release before.
pub const WRITTEN_OLDEST: u16 = 4;
/// The oldest version that is read.
pub const OLDEST: u16 = 1;
/// What each encoded value begins with.
pub const MAGIC: [u8; 4] = *b"CrlF";

/// The version that is written, and the newest that may be.
static SPOKEN: AtomicU16 = AtomicU16::new(VERSION);
static LIMIT: AtomicU16 = AtomicU16::new(VERSION);

/// From now on values are written in this version, as other processes read no newer one. What came into the form later is left out, and is to
/// others as it is in values of that version.
pub fn speak(version: u16) {
    SPOKEN.store(version.clamp(WRITTEN_OLDEST, announced()), Ordering::Relaxed);
}

/// The version that is written.
pub fn spoken() -> u16 {
    SPOKEN.load(Ordering::Relaxed)
}

/// From now on others are told that this process knows no newer version than this one, and none is written.
pub fn limit(version: u16) {
    LIMIT.store(version.clamp(WRITTEN_OLDEST, VERSION), Ordering::Relaxed);
    speak(spoken());
}

/// The newest version that others are to write for this process: [`VERSION`], unless [`limit`] says otherwise.
pub fn announced() -> u16 {
    LIMIT.load(Ordering::Relaxed)
}

/// Why bytes cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// They do not begin as the form does.
    #[error("these bytes are no encoded value")]
    NotOurs,
    /// A newer release wrote them.
    #[error("version {0} of the form is newer than {VERSION}, the newest that this release reads")]
    Newer(u16),
    /// A release wrote them that is too old.
    #[error("version {0} of the form is older than {OLDEST}, the oldest that this release reads")]
    Older(u16),
    /// They begin as the form does, and go on otherwise.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// The form of one value, with its head. `now_ms` is the present instant on the clock of timers. For several values that share
/// something, use one [`Writer`].
pub fn encode<T: Form>(value: &T, now_ms: u64) -> Vec<u8> {
    let mut out = Writer::new(now_ms);
    value.write(&mut out);
    out.finish()
}

/// The value that [`encode`] wrote.
///
/// # Errors
/// [`Unreadable`]; also if bytes follow the value.
pub fn decode<T: Form>(bytes: &[u8], clock: Clock) -> Result<T, Unreadable> {
    let mut input = Reader::new(bytes, clock)?;
    let value = T::read(&mut input)?;
    input.finish()?;
    Ok(value)
}
