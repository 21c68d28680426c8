//! Keeping a message.

use super::super::archive_tail::{Newest, TailEntry};
use super::super::column::{int, number};
use super::super::transaction::Transaction;

use super::{inbox, preferences};
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::archive::{KeepMessage, KeepMessageAnswer};
use rusqlite::{Error, OptionalExtension, Result, params};

/// What a message is to one of its sides.
enum Found {
    /// There is no such account.
    Nobody,
    /// The account does not want it.
    Unwanted,
    /// It enters the account's archive, in this conversation.
    Wanted { account: i64, peer: u32 },
}

impl Answers<KeepMessage, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &KeepMessage) -> Result<KeepMessageAnswer> {
        let find = |side: &Option<ArchiveSide>| side.as_ref().map(|side| find(self, side)).transpose();
        let recipient = find(&asked.recipient)?;
        if let Some(Found::Nobody) = recipient {
            return Ok(KeepMessageAnswer::NotKept);
        }
        let place = |found: Option<Found>| match found {
            Some(Found::Wanted { account, peer }) => Some((account, peer)),
            _ => None,
        };
        let (sender, recipient) = (place(find(&asked.sender)?), place(recipient));
        if sender.is_none() && recipient.is_none() {
            return Ok(KeepMessageAnswer::NotKept);
        }
        let seq = self.newest_message.seq + 1;
        let received = kept_at(asked.received, self.newest_message.received);
        self.run(
            "INSERT INTO archive_message (seq, received, sender, sender_peer, recipient, recipient_peer, stanza, contents)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                int(seq),
                int(received.0),
                sender.map(|(account, _)| account),
                sender.map(|(_, peer)| peer),
                recipient.map(|(account, _)| account),
                recipient.map(|(_, peer)| peer),
                &asked.stanza[..],
                asked.has_contents
            ],
        )?;
        self.newest_message = Newest { seq, received };
        let sides =
            [(sender, EntryKind::Sent), (recipient.filter(|_| recipient != sender), EntryKind::Received)];
        for (side, kind) in sides {
            let Some((account, peer)) = side else { continue };
            let kind = if asked.has_contents { kind } else { EntryKind::Other };
            self.archived.push((account, TailEntry::new(seq, peer, asked.stanza.len(), kind)));
        }
        if let (Some((account, peer)), Some(displayed)) = (sender, &asked.displayed) {
            inbox::displayed(self, account, peer, displayed)?;
        }
        let (sender, recipient) = (sender.is_some(), recipient.is_some());
        Ok(KeepMessageAnswer::Kept { id: ArchiveId(seq), sender, recipient })
    }
}

fn find(write: &Transaction<'_>, side: &ArchiveSide) -> Result<Found> {
    let found = write
        .db
        .prepare_cached("SELECT id, archive FROM account WHERE domain = ?1 AND local = ?2")?
        .query_row(params![side.domain.0, side.local], |row| Ok((row.get(0)?, row.get(1)?)));
    let Some((account, wish)): Option<(i64, i64)> = found.optional()? else { return Ok(Found::Nobody) };
    if wish != 0 && !preferences::wants(write.db, account, wish, &side.peer)? {
        return Ok(Found::Unwanted);
    }
    Ok(Found::Wanted { account, peer: peer(write, account, side.peer.bare_str())? })
}

/// The number of a conversation, which begins here if it is new.
fn peer(write: &Transaction<'_>, account: i64, jid: &str) -> Result<u32> {
    let known = write
        .db
        .prepare_cached("SELECT id FROM archive_peer WHERE account = ?1 AND jid = ?2")?
        .query_row(params![account, jid], |row| row.get(0));
    if let Some(known) = known.optional()? {
        return Ok(known);
    }
    write.run("INSERT INTO archive_peer (account, jid) VALUES (?1, ?2)", params![account, jid])?;
    number(write.db.last_insert_rowid())
}
