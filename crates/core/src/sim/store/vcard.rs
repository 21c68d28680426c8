//! What accounts tell of themselves.

use super::{Committed, answers};
use crate::ports::Missing;
use crate::ports::store::vcard::{ReadVcard, StoreVcard};
use bytes::Bytes;

answers! {
    ReadVcard => read;
    StoreVcard => keep;
}

fn read(store: &Committed, asked: &ReadVcard) -> Option<Bytes> {
    let account = store.account(asked.domain, &asked.local)?;
    Some(account.vcard.clone()).filter(|xml| !xml.is_empty())
}

fn keep(store: &mut Committed, asked: &StoreVcard) -> Result<(), Missing> {
    let account = store.account_mut(asked.domain, &asked.local).ok_or(Missing)?;
    account.vcard = asked.xml.clone();
    Ok(())
}
