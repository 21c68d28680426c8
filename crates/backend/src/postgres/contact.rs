//! The contacts of accounts, as rows.

use super::column::{int, number, text, whole_jid};
use super::connection::Connection;
use super::error::{Error, Result};
use bytes::Bytes;
use carillon_core::form::{Clock, decode};
use carillon_core::model::{AccountId, Contact, Standing};
use carillon_wire::jid::BareJid;
use tokio_postgres::Row;

/// A contact of an account, by its address.
pub(super) const CONTACT: &str =
    "SELECT jid, name, groups, standing, listed, request FROM contact WHERE account = $1 AND jid = $2";

/// The contact in the six columns from `first`.
pub(super) fn contact(row: &Row, first: usize) -> Result<Contact> {
    let groups = match row.try_get::<_, Option<&[u8]>>(first + 2)? {
        Some(groups) => decode(groups, Clock::default()).map_err(|_| Error::Corrupt("not groups"))?,
        None => Vec::new(),
    };
    let standing = number(row, first + 3)?;
    Ok(Contact {
        jid: whole_jid(row, first)?,
        name: text(row, first + 1)?,
        groups,
        standing: Standing::of_bits(standing.try_into().map_err(|_| Error::Corrupt("no standing"))?),
        is_listed: row.try_get(first + 4)?,
        request: row.try_get::<_, Option<&[u8]>>(first + 5)?.map(Bytes::copy_from_slice),
    })
}

/// What the roster of an account says of a contact.
pub(super) fn said(db: &Connection, account: AccountId, jid: &BareJid) -> Result<Option<Contact>> {
    let row = db.opt(CONTACT, &[&int(account.0), &jid.as_str()])?;
    row.map(|row| contact(&row, 0)).transpose()
}
