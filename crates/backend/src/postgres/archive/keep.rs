//! Keeping a message.

use super::super::column::{int, ms, short, uint};
use super::super::error::{Error, Result};
use super::super::transaction::Transaction;
use super::{erased, inbox, preferences};
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::archive::{KeepMessage, KeepMessageAnswer};

/// What a message is to one of its sides.
enum Found {
    /// There is no such account.
    Nobody,
    /// The account does not want it.
    Unwanted,
    /// It enters the account's archive, in this conversation.
    Wanted(i64, i64),
}

impl Answers<KeepMessage, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &KeepMessage) -> Result<KeepMessageAnswer> {
        let find = |side: &Option<ArchiveSide>| side.as_ref().map(|side| find(self, side)).transpose();
        let recipient = find(&asked.recipient)?;
        if let Some(Found::Nobody) = recipient {
            return Ok(KeepMessageAnswer::NotKept);
        }
        let place = |found: Option<Found>| match found {
            Some(Found::Wanted(account, peer)) => Some((account, peer)),
            _ => None,
        };
        let (sender, recipient) = (place(find(&asked.sender)?), place(recipient));
        if sender.is_none() && recipient.is_none() {
            return Ok(KeepMessageAnswer::NotKept);
        }
        let mut received = asked.received;
        for (account, _) in [sender, recipient].into_iter().flatten() {
            received = received.max(kept_at(received, last_received(self, account)?));
        }
        let row = self.db.one(
            "INSERT INTO archive_message (received, sender, sender_peer, recipient, recipient_peer, contents, stanza)
             VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING seq",
            &[
                &int(received.0),
                &sender.map(|(account, _)| account),
                &sender.map(|(_, peer)| peer),
                &recipient.map(|(account, _)| account),
                &recipient.map(|(_, peer)| peer),
                &asked.has_contents,
                &&asked.stanza[..],
            ],
        )?;
        let seq = uint(&row, 0)?;
        let sides =
            [(sender, EntryKind::Sent), (recipient.filter(|_| recipient != sender), EntryKind::Received)];
        for (side, kind) in sides {
            let Some((account, peer)) = side else { continue };
            let kind = if asked.has_contents { kind } else { EntryKind::Other };
            enter(self, account, peer, (seq, kind), asked.stanza.len() as u64)?;
        }
        if let (Some((account, peer)), Some(displayed)) = (sender, &asked.displayed) {
            inbox::displayed(self, account, peer, displayed)?;
        }
        let (sender, recipient) = (sender.is_some(), recipient.is_some());
        Ok(KeepMessageAnswer::Kept { id: ArchiveId(seq), sender, recipient })
    }
}

/// When the newest message of an archive was received.
fn last_received(write: &Transaction<'_>, account: i64) -> Result<UnixMs> {
    let row = write.db.opt(
        "SELECT m.received FROM archive_entry e JOIN archive_message m ON m.seq = e.seq
         WHERE e.account = $1 ORDER BY e.seq DESC LIMIT 1",
        &[&account],
    )?;
    Ok(row.map(|row| ms(&row, 0)).transpose()?.unwrap_or(UnixMs(0)))
}

/// Puts a message into an archive and its conversation.
fn enter(
    write: &Transaction<'_>,
    account: i64,
    peer: i64,
    (seq, kind): (u64, EntryKind),
    bytes: u64,
) -> Result<()> {
    write.run(
        "WITH entered AS (INSERT INTO archive_entry (account, seq, peer, kind) VALUES ($1, $2, $3, $4))
         INSERT INTO archive (account, messages, bytes) VALUES ($1, 1, $5)
         ON CONFLICT (account) DO UPDATE SET messages = archive.messages + 1, bytes = archive.bytes + $5",
        &[&account, &int(seq), &peer, &short(kind), &int(bytes)],
    )?;
    if seq > erased(write.db, account)? {
        let mut noted = inbox::row(write.db, account, peer)?;
        noted.add(ArchiveId(seq), kind);
        inbox::put(write, account, peer, &noted)?;
    }
    Ok(())
}

fn find(write: &Transaction<'_>, side: &ArchiveSide) -> Result<Found> {
    let found = write.db.opt(
        "SELECT id, archive FROM account WHERE domain = $1 AND local = $2",
        &[&i64::from(side.domain.0), &side.local],
    )?;
    let Some(row) = found else { return Ok(Found::Nobody) };
    let (account, wish): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    if wish != 0 && !preferences::wants(write.db, account, wish, &side.peer)? {
        return Ok(Found::Unwanted);
    }
    let jid = side.peer.bare_str();
    if let Some(known) = super::conversation(write.db, account, jid)? {
        return Ok(Found::Wanted(account, known));
    }
    let row = write
        .db
        .one("INSERT INTO archive_peer (account, jid) VALUES ($1, $2) RETURNING id", &[&account, &jid])?;
    Ok(Found::Wanted(account, row.try_get(0)?))
}
