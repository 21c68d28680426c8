//! Keeping a message.

use super::super::column::{int, opt_ms, short, uint};
use super::super::error::{Error, Result};
use super::super::transaction::Transaction;
use super::{inbox, preferences};
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::archive::{KeepMessage, KeepMessageAnswer};

/// What a message is to one of its sides.
enum Found {
    /// There is no such account.
    Nobody,
    /// The account does not want it.
    Unwanted,
    /// It enters the account's archive.
    Wanted(Side),
}

/// An archive that a message enters, as it is before.
struct Side {
    account: i64,
    peer: i64,
    /// When its newest message was received.
    last_received: UnixMs,
    conversation: Conversation,
}

impl Answers<KeepMessage, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &KeepMessage) -> Result<KeepMessageAnswer> {
        let find = |side: &Option<ArchiveSide>| side.as_ref().map(|side| find(self, side)).transpose();
        let recipient = find(&asked.recipient)?;
        if let Some(Found::Nobody) = recipient {
            return Ok(KeepMessageAnswer::NotKept);
        }
        let wanted = |found: Option<Found>| match found {
            Some(Found::Wanted(side)) => Some(side),
            _ => None,
        };
        let (sender, recipient) = (wanted(find(&asked.sender)?), wanted(recipient));
        if sender.is_none() && recipient.is_none() {
            return Ok(KeepMessageAnswer::NotKept);
        }
        let mut received = asked.received;
        for side in [&sender, &recipient].into_iter().flatten() {
            received = received.max(kept_at(received, side.last_received));
        }
        let row = self.db.one(
            "INSERT INTO archive_message (received, sender, sender_peer, recipient, recipient_peer, contents, stanza)
             VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING seq",
            &[
                &int(received.0),
                &sender.as_ref().map(|side| side.account),
                &sender.as_ref().map(|side| side.peer),
                &recipient.as_ref().map(|side| side.account),
                &recipient.as_ref().map(|side| side.peer),
                &asked.has_contents,
                &&asked.stanza[..],
            ],
        )?;
        let seq = uint(&row, 0)?;
        let kept = (sender.is_some(), recipient.is_some());
        let place = sender.as_ref().map(|side| (side.account, side.peer));
        // Whoever writes to itself has it once.
        let recipient = recipient.filter(|side| place.is_none_or(|(account, _)| account != side.account));
        let sides =
            [sender.map(|side| (side, EntryKind::Sent)), recipient.map(|side| (side, EntryKind::Received))];
        enter(self, asked, seq, sides.into_iter().flatten())?;
        if let (Some((account, peer)), Some(displayed)) = (place, &asked.displayed) {
            inbox::displayed(self, account, peer, displayed)?;
        }
        Ok(KeepMessageAnswer::Kept { id: ArchiveId(seq), sender: kept.0, recipient: kept.1 })
    }
}

/// Puts a message into archives of different accounts, and the conversations that it is of.
fn enter(
    write: &Transaction<'_>,
    asked: &KeepMessage,
    seq: u64,
    sides: impl Iterator<Item = (Side, EntryKind)>,
) -> Result<()> {
    let (mut accounts, mut peers, mut kinds, mut rows) =
        (Vec::new(), Vec::new(), Vec::new(), inbox::Rows::default());
    for (Side { account, peer, mut conversation, .. }, kind) in sides {
        let kind = if asked.has_contents { kind } else { EntryKind::Other };
        // What an archive gets after it was erased has a higher number than what was erased.
        conversation.add(ArchiveId(seq), kind);
        accounts.push(account);
        peers.push(peer);
        kinds.push(short(kind));
        rows.push(&conversation);
    }
    let inbox::Rows { last, read, unread, marked, folder, moved, muted } = &rows;
    write.run(
        ENTER,
        &[
            &int(seq),
            &(asked.stanza.len() as i64),
            &accounts,
            &peers,
            &kinds,
            last,
            read,
            unread,
            marked,
            folder,
            moved,
            muted,
        ],
    )?;
    Ok(())
}

const ENTER: &str = "WITH side AS (
        SELECT * FROM unnest($3::bigint[], $4::bigint[], $5::smallint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
            $10::smallint[], $11::bigint[], $12::bigint[])
            AS s (account, peer, kind, last, read, unread, marked, folder, moved, muted)),
    entered AS (INSERT INTO archive_entry (account, seq, peer, kind) SELECT account, $1::bigint, peer, kind FROM side),
    counted AS (
        INSERT INTO archive (account, messages, bytes) SELECT account, 1, $2::bigint FROM side
        ON CONFLICT (account) DO UPDATE SET messages = archive.messages + 1, bytes = archive.bytes + excluded.bytes)
    INSERT INTO inbox (account, peer, last, read, unread, marked, folder, moved, muted)
    SELECT account, peer, last, read, unread, marked, folder, moved, muted FROM side
    ON CONFLICT (account, peer) DO UPDATE SET last = excluded.last, read = excluded.read, unread = excluded.unread,
        marked = excluded.marked, folder = excluded.folder, moved = excluded.moved, muted = excluded.muted";

fn find(write: &Transaction<'_>, side: &ArchiveSide) -> Result<Found> {
    let jid = side.peer.bare_str();
    let found = write.db.opt(FIND, &[&i64::from(side.domain.0), &side.local, &jid])?;
    let Some(row) = found else { return Ok(Found::Nobody) };
    let (account, wish): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    if wish != 0 && !preferences::wants(write.db, account, wish, &side.peer)? {
        return Ok(Found::Unwanted);
    }
    let peer = match row.try_get::<_, Option<i64>>(2)? {
        Some(known) => known,
        None => {
            let sql = "INSERT INTO archive_peer (account, jid) VALUES ($1, $2) RETURNING id";
            write.db.one(sql, &[&account, &jid])?.try_get(0)?
        }
    };
    let last_received = opt_ms(&row, 3)?.unwrap_or(UnixMs(0));
    Ok(Found::Wanted(Side { account, peer, last_received, conversation: inbox::conversation(&row, 4)? }))
}

/// An account, what it wants, its conversation with another as it stands, and when its newest message was received.
const FIND: &str = "SELECT a.id, a.archive, p.id,
        (SELECT m.received FROM archive_entry e JOIN archive_message m ON m.seq = e.seq
            WHERE e.account = a.id ORDER BY e.seq DESC LIMIT 1),
        coalesce(i.last, 0), coalesce(i.read, 0), coalesce(i.unread, 0), coalesce(i.marked, 0), coalesce(i.folder, 0::smallint),
        coalesce(i.moved, 0), coalesce(i.muted, 0)
    FROM account a LEFT JOIN archive_peer p ON p.account = a.id AND p.jid = $3
    LEFT JOIN inbox i ON i.account = a.id AND i.peer = p.id
    WHERE a.domain = $1 AND a.local = $2";
