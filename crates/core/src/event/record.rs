//! Reading what a [`super::Journal`] encoded.

use super::{Field, Kind, Shape};
use crate::model::{NotificationId, UnixMs};
use std::net::IpAddr;
use std::net::Ipv6Addr;

/// The entries in `bytes`, up to the first incomplete one.
pub fn records(bytes: &[u8]) -> Records<'_> {
    Records { bytes }
}

/// Entries one by one.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
}

/// An encoded entry.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// What kind of thing happened.
    pub kind: Kind,
    /// When it happened.
    pub at: UnixMs,
    /// Its number in its shard, without gaps.
    pub seq: u64,
    /// Its length in bytes.
    pub size: usize,
    values: &'a [u8],
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A text; empty for none.
    Text(&'a str),
    /// A whole number.
    Number(u64),
    /// The id of a notification.
    Notification(NotificationId),
    /// An IP address.
    Address(IpAddr),
    /// Yes, no, or unknown.
    Flag(Option<bool>),
}

/// How a flag that is not known is encoded; one that is known is 0 or 1.
pub(super) const UNKNOWN: u8 = 2;

impl<'a> Records<'a> {
    /// The bytes that were not read: none, or an incomplete entry.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let mut cursor = self.bytes;
        let len = u32::from_le_bytes(array(&mut cursor)?) as usize;
        let (mut inner, rest) = cursor.split_at_checked(len)?;
        let kind = Kind::of(u8::from_le_bytes(array(&mut inner)?))?;
        let at = UnixMs(u64::from_le_bytes(array(&mut inner)?));
        let seq = u64::from_le_bytes(array(&mut inner)?);
        let record = Record { kind, at, seq, size: 4 + len, values: inner };
        // One whose values do not fill it is torn, too.
        let mut left = inner;
        for field in kind.fields() {
            value(field.shape, &mut left)?;
        }
        if !left.is_empty() {
            return None;
        }
        self.bytes = rest;
        Some(record)
    }
}

impl<'a> Record<'a> {
    /// Its fields with their values.
    pub fn fields(&self) -> impl Iterator<Item = (&'static Field, Value<'a>)> + use<'a> {
        let mut values = self.values;
        self.kind.fields().iter().map_while(move |field| Some((field, value(field.shape, &mut values)?)))
    }
}

fn value<'a>(shape: Shape, from: &mut &'a [u8]) -> Option<Value<'a>> {
    Some(match shape {
        Shape::Text => {
            let len = u32::from_le_bytes(array(from)?) as usize;
            let (text, rest) = from.split_at_checked(len)?;
            *from = rest;
            Value::Text(std::str::from_utf8(text).ok()?)
        }
        Shape::Number => Value::Number(u64::from_le_bytes(array(from)?)),
        Shape::Notification => Value::Notification(NotificationId(u128::from_le_bytes(array(from)?))),
        Shape::Address => Value::Address(Ipv6Addr::from(array(from)?).to_canonical()),
        // An entry that an older release noted ends before its flag.
        Shape::Flag if from.is_empty() => Value::Flag(None),
        Shape::Flag => Value::Flag(match u8::from_le_bytes(array(from)?) {
            0 => Some(false),
            1 => Some(true),
            UNKNOWN => None,
            _ => return None,
        }),
    })
}

fn array<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*array)
}
