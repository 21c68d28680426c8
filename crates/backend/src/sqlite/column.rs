//! Values as columns: enumerations as numbers that never change their meaning, times, names and keys.

use crate::rows::code::Code;
use carillon_core::model::*;
use carillon_wire::jid::{BareJid, Jid};
use rusqlite::types::Type;
use rusqlite::{Error, Result, Row};

/// The enumeration in a column.
pub(super) fn code<T: Code>(row: &Row<'_>, column: usize) -> Result<T> {
    T::of(row.get(column)?).ok_or_else(|| corrupt(column, "a number this version has no meaning for"))
}

/// The address in a column.
pub(super) fn address(row: &Row<'_>, column: usize) -> Result<Jid> {
    Jid::new(&text(row, column)?).map_err(|_| corrupt(column, "not an address"))
}

/// The enumeration in a column that may be null.
pub(super) fn opt_code<T: Code>(row: &Row<'_>, column: usize) -> Result<Option<T>> {
    match row.get::<_, Option<i64>>(column)? {
        None => Ok(None),
        Some(n) => {
            T::of(n).map(Some).ok_or_else(|| corrupt(column, "a number this version has no meaning for"))
        }
    }
}

/// A number as SQLite keeps it, which has no more than 63 bits. What is beyond means "as late as can be" in every place
/// where it could occur.
pub(super) fn int(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// A time that may be missing, as SQLite keeps it.
pub(super) fn opt_int(at: Option<UnixMs>) -> Option<i64> {
    at.map(|at| int(at.0))
}

/// The number in a column, which was put there by [`int`].
pub(super) fn uint(row: &Row<'_>, column: usize) -> Result<u64> {
    let n: i64 = row.get(column)?;
    u64::try_from(n).map_err(|_| Error::IntegralValueOutOfRange(column, n))
}

/// The time in a column.
pub(super) fn ms(row: &Row<'_>, column: usize) -> Result<UnixMs> {
    uint(row, column).map(UnixMs)
}

/// The time in a column that may be null.
pub(super) fn opt_ms(row: &Row<'_>, column: usize) -> Result<Option<UnixMs>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|n| UnixMs(n.max(0) as u64)))
}

/// The text in a column, read without a copy in between.
pub(super) fn text(row: &Row<'_>, column: usize) -> Result<Box<str>> {
    let text = row.get_ref(column)?.as_str().map_err(|e| conversion(column, Type::Text, e))?;
    Ok(text.into())
}

/// The text in a column that may be null.
pub(super) fn opt_text(row: &Row<'_>, column: usize) -> Result<Option<Box<str>>> {
    let text = row.get_ref(column)?.as_str_or_null().map_err(|e| conversion(column, Type::Text, e))?;
    Ok(text.map(Box::from))
}

/// The bytes in a column, read without a copy in between.
pub(super) fn blob<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r [u8]> {
    row.get_ref(column)?.as_blob().map_err(|e| conversion(column, Type::Blob, e))
}

/// A notification's id as it is stored: sorts by time.
pub(super) fn id_blob(id: NotificationId) -> [u8; 16] {
    id.0.to_be_bytes()
}

/// The notification's id in a column.
pub(super) fn notification_id(row: &Row<'_>, column: usize) -> Result<NotificationId> {
    row.get(column).map(|bytes| NotificationId(u128::from_be_bytes(bytes)))
}

/// The account's address of a local part and a domain name that were prepared when they were stored.
pub(super) fn jid(row: &Row<'_>, local: usize, domain: usize) -> Result<BareJid> {
    let part = |column| row.get_ref(column)?.as_str().map_err(|e| conversion(column, Type::Text, e));
    BareJid::from_parts(Some(part(local)?), part(domain)?).map_err(|e| conversion(local, Type::Text, e))
}

/// The whole address in a column.
pub(super) fn whole_jid(row: &Row<'_>, column: usize) -> Result<BareJid> {
    let text = row.get_ref(column)?.as_str().map_err(|e| conversion(column, Type::Text, e))?;
    BareJid::new(text).map_err(|e| conversion(column, Type::Text, e))
}

/// A new row's number as one of four bytes.
pub(super) fn number(rowid: i64) -> Result<u32> {
    u32::try_from(rowid).map_err(|_| Error::IntegralValueOutOfRange(0, rowid))
}

/// What says that a row cannot be understood.
pub(super) fn corrupt(column: usize, what: &'static str) -> Error {
    Error::FromSqlConversionFailure(column, Type::Integer, what.into())
}

fn conversion(column: usize, kind: Type, e: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::FromSqlConversionFailure(column, kind, Box::new(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_beyond_63_bits_become_the_last_one() {
        assert_eq!(int(u64::MAX), i64::MAX);
        assert_eq!(int(7), 7);
    }

    #[test]
    fn ids_sort_as_their_bytes() {
        let (a, b) = (NotificationId(1 << 70), NotificationId(2 << 100));
        assert!(a < b && id_blob(a) < id_blob(b));
    }
}
