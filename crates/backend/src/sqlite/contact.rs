//! The contacts of accounts, as rows.

use super::column::{corrupt, int, text, whole_jid};
use bytes::Bytes;
use carillon_core::form::{Clock, decode};
use carillon_core::model::{AccountId, Contact, Standing};
use carillon_wire::jid::BareJid;
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

/// A contact of an account, by its address.
pub(super) const CONTACT: &str =
    "SELECT jid, name, groups, standing, listed, request FROM contact WHERE account = ?1 AND jid = ?2";

/// The contact in the six columns from `first`.
pub(super) fn contact(row: &Row<'_>, first: usize) -> Result<Contact> {
    let groups = match row.get_ref(first + 2)?.as_blob_or_null().map_err(Error::from)? {
        Some(groups) => decode(groups, Clock::default()).map_err(|_| corrupt(first + 2, "not groups"))?,
        None => Vec::new(),
    };
    let request = row.get_ref(first + 5)?.as_blob_or_null().map_err(Error::from)?;
    Ok(Contact {
        jid: whole_jid(row, first)?,
        name: text(row, first + 1)?,
        groups,
        standing: Standing::of_bits(row.get(first + 3)?),
        is_listed: row.get(first + 4)?,
        request: request.map(Bytes::copy_from_slice),
    })
}

/// What the roster of an account says of a contact.
pub(super) fn said(db: &Connection, account: AccountId, jid: &BareJid) -> Result<Option<Contact>> {
    let mut query = db.prepare_cached(CONTACT)?;
    query.query_row(params![int(account.0), jid.as_str()], |row| contact(row, 0)).optional()
}
