//! Values as columns: times, names and ids.

use super::error::{Error, Result};
use crate::rows::code::Code;
use bytes::BytesMut;
use carillon_core::model::*;
use carillon_wire::jid::BareJid;
use std::error::Error as StdError;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

/// A number of 128 bits as a column: it sorts as the number does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id(pub(super) u128);

impl From<NotificationId> for Id {
    fn from(id: NotificationId) -> Id {
        Id(id.0)
    }
}

impl ToSql for Id {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn StdError + Sync + Send>> {
        out.extend_from_slice(&self.0.to_be_bytes());
        Ok(IsNull::No)
    }

    accepts!(UUID);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Id {
    fn from_sql(_: &Type, raw: &'a [u8]) -> std::result::Result<Id, Box<dyn StdError + Sync + Send>> {
        Ok(Id(u128::from_be_bytes(raw.try_into()?)))
    }

    accepts!(UUID);
}

/// An enumeration as it is stored.
pub(super) fn short(value: impl Code) -> i16 {
    value.code() as i16
}

/// The enumeration in a column.
pub(super) fn code<T: Code>(row: &Row, column: usize) -> Result<T> {
    T::of(row.try_get::<_, i16>(column)?.into()).ok_or(UNKNOWN)
}

/// The enumeration in a column that may be null.
pub(super) fn opt_code<T: Code>(row: &Row, column: usize) -> Result<Option<T>> {
    let code: Option<i16> = row.try_get(column)?;
    code.map(|code| T::of(code.into()).ok_or(UNKNOWN)).transpose()
}

const UNKNOWN: Error = Error::Corrupt("a number this version has no meaning for");

/// A number as it is stored, which has no more than 63 bits. What is beyond means "as late as can be" in every place
/// where it could occur.
pub(super) fn int(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A time that may be missing, as it is stored.
pub(super) fn opt_int(at: Option<UnixMs>) -> Option<i64> {
    at.map(|at| int(at.0))
}

/// The number in a column, which was put there by [`int`].
pub(super) fn uint(row: &Row, column: usize) -> Result<u64> {
    u64::try_from(row.try_get::<_, i64>(column)?).map_err(|_| Error::Corrupt("a negative number"))
}

/// A number of four bytes in a column.
pub(super) fn number(row: &Row, column: usize) -> Result<u32> {
    u32::try_from(row.try_get::<_, i64>(column)?).map_err(|_| Error::Corrupt("a number out of its range"))
}

/// The same in a column that may be null.
pub(super) fn opt_number(row: &Row, column: usize) -> Result<Option<u32>> {
    let n: Option<i64> = row.try_get(column)?;
    n.map(|n| u32::try_from(n).map_err(|_| Error::Corrupt("a number out of its range"))).transpose()
}

/// The time in a column.
pub(super) fn ms(row: &Row, column: usize) -> Result<UnixMs> {
    uint(row, column).map(UnixMs)
}

/// The time in a column that may be null.
pub(super) fn opt_ms(row: &Row, column: usize) -> Result<Option<UnixMs>> {
    Ok(row.try_get::<_, Option<i64>>(column)?.map(|n| UnixMs(n.max(0) as u64)))
}

/// The text in a column, read without a copy in between.
pub(super) fn text(row: &Row, column: usize) -> Result<Box<str>> {
    Ok(row.try_get::<_, &str>(column)?.into())
}

/// The text in a column that may be null.
pub(super) fn opt_text(row: &Row, column: usize) -> Result<Option<Box<str>>> {
    Ok(row.try_get::<_, Option<&str>>(column)?.map(Box::from))
}

/// The bytes in a column.
pub(super) fn blob(row: &Row, column: usize) -> Result<&[u8]> {
    Ok(row.try_get(column)?)
}

/// The notification's id in a column.
pub(super) fn notification_id(row: &Row, column: usize) -> Result<NotificationId> {
    Ok(NotificationId(row.try_get::<_, Id>(column)?.0))
}

/// The account's address of a local part and a domain name that were prepared when they were stored.
pub(super) fn jid(row: &Row, local: usize, domain: usize) -> Result<BareJid> {
    let (local, domain) = (row.try_get::<_, &str>(local)?, row.try_get::<_, &str>(domain)?);
    BareJid::from_parts(Some(local), domain).map_err(|_| Error::Corrupt("no address"))
}

/// The whole address in a column.
pub(super) fn whole_jid(row: &Row, column: usize) -> Result<BareJid> {
    BareJid::new(row.try_get::<_, &str>(column)?).map_err(|_| Error::Corrupt("no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_beyond_63_bits_become_the_last_one() {
        assert_eq!(int(u64::MAX), i64::MAX);
        assert_eq!(int(7), 7);
    }
}
