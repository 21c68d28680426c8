//! Rows in the one form that both stores are read in: what is copied is written from it, and checksums are made of it.

use sha2::{Digest, Sha256};

/// What a column holds, by its type on PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Int,
    Small,
    Bool,
    Text,
    Bytes,
    Uuid,
}

/// A column that is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: ColumnKind,
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// Rows, one behind the other: of each value a byte that says what it is, then a number in eight bytes, or a length in four and as many bytes.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Rows {
    pub(crate) fn push(&mut self, value: Value<'_>) {
        encode(&mut self.bytes, value);
    }

    /// Ends a row.
    pub(crate) fn end(&mut self) {
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many bytes they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    /// The values of the last row in these columns, as a row of their own.
    pub(crate) fn last(&self, columns: &[usize]) -> Option<Vec<u8>> {
        let last: Vec<Value<'_>> = values(self.iter().last()?).collect();
        let mut key = Vec::new();
        columns.iter().for_each(|column| encode(&mut key, last[*column]));
        Some(key)
    }
}

fn encode(out: &mut Vec<u8>, value: Value<'_>) {
    let mut sized = |tag, bytes: &[u8]| {
        out.push(tag);
        // No value of a store is larger than its bound for a stanza or a file of some MiB.
        out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(bytes);
    };
    match value {
        Value::Text(text) => sized(TEXT, text.as_bytes()),
        Value::Bytes(bytes) => sized(BYTES, bytes),
        Value::Null => out.push(NULL),
        Value::Int(n) => {
            out.push(INT);
            out.extend_from_slice(&n.to_le_bytes());
        }
    }
}

/// The values of a row.
pub(crate) fn values(mut row: &[u8]) -> impl Iterator<Item = Value<'_>> {
    std::iter::from_fn(move || {
        let (tag, rest) = row.split_first()?;
        row = rest;
        let mut take = |count: usize| {
            let (taken, rest) = row.split_at_checked(count)?;
            row = rest;
            Some(taken)
        };
        match *tag {
            NULL => Some(Value::Null),
            INT => take(8)?.try_into().ok().map(i64::from_le_bytes).map(Value::Int),
            tag => {
                let length = take(4)?.try_into().ok().map(u32::from_le_bytes)?;
                let bytes = take(length as usize)?;
                if tag == TEXT {
                    std::str::from_utf8(bytes).ok().map(Value::Text)
                } else {
                    Some(Value::Bytes(bytes))
                }
            }
        }
    })
}

const NULL: u8 = 0;
const INT: u8 = 1;
const TEXT: u8 = 2;
const BYTES: u8 = 3;

/// How many rows there are, and a checksum of them, whatever order they are read in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Rows.
    pub rows: u64,
    /// The sum of half of the SHA-256 of each.
    pub checksum: u128,
}

impl Sum {
    pub(crate) fn add(&mut self, rows: &Rows) {
        for row in rows.iter() {
            let digest = Sha256::digest(row);
            let half: [u8; 16] = digest[..16].try_into().expect("a SHA-256 has 32 bytes");
            self.checksum = self.checksum.wrapping_add(u128::from_be_bytes(half));
        }
        self.rows += rows.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let row = [Value::Int(-7), Value::Null, Value::Text("é"), Value::Bytes(&[0, 1]), Value::Text("")];
        let mut rows = Rows::default();
        for _ in 0..2 {
            row.into_iter().for_each(|value| rows.push(value));
            rows.end();
        }
        assert_eq!(rows.iter().map(|row| values(row).collect::<Vec<_>>()).collect::<Vec<_>>(), [row, row]);
        let key = rows.last(&[2, 0]).expect("there is a row");
        assert_eq!(values(&key).collect::<Vec<_>>(), [Value::Text("é"), Value::Int(-7)]);
    }

    #[test]
    fn a_checksum_knows_rows_and_not_their_order() {
        let sum = |numbers: &[i64]| {
            let (mut rows, mut sum) = (Rows::default(), Sum::default());
            for n in numbers {
                rows.push(Value::Int(*n));
                rows.end();
            }
            sum.add(&rows);
            sum
        };
        assert_eq!(sum(&[1, 2, 3]), sum(&[3, 1, 2]));
        // Two rows that are the same do not cancel each other out.
        assert_ne!(sum(&[1, 2, 2]).checksum, sum(&[1, 3, 3]).checksum);
        assert_ne!(sum(&[1, 2]).checksum, sum(&[1, 4]).checksum);
    }
}
