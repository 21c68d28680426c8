//! Keeping messages. Those that follow each other share three statements: one that looks, one that numbers them, one that keeps them.

use super::super::column::{int, opt_ms, short, uint};
use super::super::error::{Error, Result};
use super::super::transaction::Transaction;
use super::{inbox, preferences};
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::archive::{KeepMessage, KeepMessageAnswer};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

impl Answers<KeepMessage, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &KeepMessage) -> Result<KeepMessageAnswer> {
        keep_all(self, &[asked])?.pop().ok_or(Error::Corrupt("a message has no answer"))
    }
}

/// Keeps all of them, in their order; an answer for each.
pub(in super::super) fn keep_all(
    write: &Transaction<'_>,
    keeps: &[&KeepMessage],
) -> Result<Vec<KeepMessageAnswer>> {
    let mut answers = Vec::with_capacity(keeps.len());
    // What an account has seen is looked for among what is written.
    for run in keeps.chunk_by(|one, _| one.displayed.is_none()) {
        let mut conversations = Conversations::find(write, run)?;
        let kept = conversations.choose(write, run)?;
        conversations.begin(write, &kept)?;
        let seqs = numbers(write, kept.iter().flatten().count())?;
        conversations.enter(write, &kept, &seqs)?;
        let mut seqs = seqs.into_iter();
        for kept in &kept {
            let answer = kept.as_ref().zip(kept.as_ref().and_then(|_| seqs.next())).map(|(kept, seq)| {
                let (sender, recipient) = (kept.sender.is_some(), kept.recipient.is_some());
                KeepMessageAnswer::Kept { id: ArchiveId(seq), sender, recipient }
            });
            answers.push(answer.unwrap_or(KeepMessageAnswer::NotKept));
        }
        if let Some(Some(Kept {
            asked: KeepMessage { displayed: Some(id), .. }, sender: Some(place), ..
        })) = kept.last()
        {
            let of = &conversations.all[*place];
            inbox::displayed(write, of.account, of.peer(), id)?;
        }
    }
    Ok(answers)
}

/// A message that enters an archive; its sides are places among the conversations.
struct Kept<'a> {
    asked: &'a KeepMessage,
    sender: Option<usize>,
    recipient: Option<usize>,
}

/// An archive that messages may enter, and the conversation there.
struct Side<'a> {
    account: i64,
    /// What the account wants in its archive; 0 for everything.
    wish: i64,
    jid: &'a str,
    /// None until the conversation begins.
    peer: Option<i64>,
    conversation: Conversation,
    changed: bool,
}

impl Side<'_> {
    fn peer(&self) -> i64 {
        self.peer.unwrap_or_default()
    }
}

/// What a run of messages is about.
struct Conversations<'a> {
    all: Vec<Side<'a>>,
    /// Where those of a domain, an account and another side are; none without such an account.
    places: HashMap<(DomainId, &'a str, &'a str), Option<usize>>,
    /// When the newest message of each archive was received.
    received: HashMap<i64, UnixMs>,
}

impl<'a> Conversations<'a> {
    /// Those of all sides, as they are before.
    fn find(write: &Transaction<'_>, run: &[&'a KeepMessage]) -> Result<Conversations<'a>> {
        let mut places = HashMap::new();
        let mut keys = Vec::new();
        for side in run.iter().flat_map(|one| [&one.sender, &one.recipient]).flatten() {
            let key = (side.domain, &*side.local, side.peer.bare_str());
            if let Entry::Vacant(place) = places.entry(key) {
                place.insert(None);
                keys.push(key);
            }
        }
        let domains: Vec<i64> = keys.iter().map(|(domain, ..)| domain.0.into()).collect();
        let (locals, jids): (Vec<&str>, Vec<&str>) =
            keys.iter().map(|(_, local, jid)| (*local, *jid)).unzip();
        let mut found =
            Conversations { all: Vec::with_capacity(keys.len()), places, received: HashMap::new() };
        for row in write.db.query(FIND, &[&domains, &locals, &jids])? {
            let place = uint(&row, 0)?.checked_sub(1).and_then(|place| keys.get(place as usize));
            let key = *place.ok_or(Error::Corrupt("a conversation that was not asked for"))?;
            let account: i64 = row.try_get(1)?;
            found.places.insert(key, Some(found.all.len()));
            found.received.insert(account, opt_ms(&row, 4)?.unwrap_or(UnixMs(0)));
            found.all.push(Side {
                account,
                wish: row.try_get(2)?,
                jid: key.2,
                peer: row.try_get(3)?,
                conversation: inbox::conversation(&row, 5)?,
                changed: false,
            });
        }
        Ok(found)
    }

    /// Which archives each message enters; none for one that enters none.
    fn choose(&self, write: &Transaction<'_>, run: &[&'a KeepMessage]) -> Result<Vec<Option<Kept<'a>>>> {
        let wanted = |side: &ArchiveSide| -> Result<Option<Option<usize>>> {
            let Some(Some(place)) = self.places.get(&(side.domain, &*side.local, side.peer.bare_str()))
            else {
                return Ok(None);
            };
            let Side { account, wish, .. } = self.all[*place];
            let wants = wish == 0 || preferences::wants(write.db, account, wish, &side.peer)?;
            Ok(Some(wants.then_some(*place)))
        };
        let one = |asked: &&'a KeepMessage| {
            let recipient = match &asked.recipient {
                None => None,
                Some(side) => match wanted(side)? {
                    // There is no such account: it is nobody's.
                    None => return Ok(None),
                    Some(place) => place,
                },
            };
            let sender = asked.sender.as_ref().map(wanted).transpose()?.flatten().flatten();
            let is_kept = sender.is_some() || recipient.is_some();
            Ok(is_kept.then_some(Kept { asked, sender, recipient }))
        };
        run.iter().map(one).collect()
    }

    /// Begins those of the messages that are not begun.
    fn begin(&mut self, write: &Transaction<'_>, kept: &[Option<Kept<'_>>]) -> Result<()> {
        let mut new = HashMap::new();
        for place in kept.iter().flatten().flat_map(|kept| [kept.sender, kept.recipient]).flatten() {
            let side = &self.all[place];
            if side.peer.is_none() {
                new.insert((side.account, side.jid), place);
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        let (accounts, jids): (Vec<i64>, Vec<&str>) = new.keys().copied().unzip();
        let sql = "INSERT INTO archive_peer (account, jid) SELECT * FROM unnest($1::bigint[], $2::text[]) RETURNING account, jid, id";
        for row in write.returning(sql, &[&accounts, &jids])? {
            if let Some(place) = new.get(&(row.try_get(0)?, row.try_get(1)?)) {
                self.all[*place].peer = row.try_get(2)?;
            }
        }
        Ok(())
    }

    /// Writes the messages, with these numbers, and how the conversations stand then.
    fn enter(&mut self, write: &Transaction<'_>, kept: &[Option<Kept<'_>>], seqs: &[u64]) -> Result<()> {
        if seqs.is_empty() {
            return Ok(());
        }
        let (mut messages, mut entries) = (Messages::default(), Entries::default());
        for (Kept { asked, sender, recipient }, seq) in kept.iter().flatten().zip(seqs) {
            let mut received = asked.received;
            for place in [sender, recipient].into_iter().flatten() {
                let last = self.received.get(&self.all[*place].account).copied().unwrap_or_default();
                received = received.max(kept_at(received, last));
            }
            let columns =
                |place: &Option<usize>| place.map(|place| (self.all[place].account, self.all[place].peer()));
            let (from, to) = (columns(sender), columns(recipient));
            messages.push(asked, *seq, received, from, to);
            // Whoever writes to itself has it once.
            let to =
                recipient.filter(|_| from.is_none_or(|(account, _)| to.is_none_or(|to| to.0 != account)));
            for (place, kind) in [(*sender, EntryKind::Sent), (to, EntryKind::Received)] {
                let Some(place) = place else { continue };
                let kind = if asked.has_contents { kind } else { EntryKind::Other };
                let side = &mut self.all[place];
                // What an archive gets after it was erased has a higher number than what was erased.
                side.conversation.add(ArchiveId(*seq), kind);
                side.changed = true;
                entries.push(side, *seq, kind, asked.stanza.len());
                self.received.insert(side.account, received);
            }
        }
        let changed = self.all.iter().filter(|side| side.changed);
        let (accounts, peers): (Vec<i64>, Vec<i64>) =
            changed.clone().map(|side| (side.account, side.peer())).unzip();
        let mut rows = inbox::Rows::default();
        changed.for_each(|side| rows.push(&side.conversation));
        let inbox::Rows { last, read, unread, marked, folder, moved, muted } = &rows;
        write.db.pipeline(&[
            (MESSAGES, &messages.params()),
            (ENTRIES, &entries.params()),
            (INBOX, &[&accounts, &peers, last, read, unread, marked, folder, moved, muted]),
        ])
    }
}

/// Messages as columns.
#[derive(Default)]
struct Messages<'a> {
    seqs: Vec<i64>,
    received: Vec<i64>,
    senders: Vec<Option<i64>>,
    sender_peers: Vec<Option<i64>>,
    recipients: Vec<Option<i64>>,
    recipient_peers: Vec<Option<i64>>,
    contents: Vec<bool>,
    stanzas: Vec<&'a [u8]>,
}

impl<'a> Messages<'a> {
    fn push(
        &mut self,
        asked: &'a KeepMessage,
        seq: u64,
        received: UnixMs,
        sender: Option<(i64, i64)>,
        recipient: Option<(i64, i64)>,
    ) {
        self.seqs.push(int(seq));
        self.received.push(int(received.0));
        self.senders.push(sender.map(|(account, _)| account));
        self.sender_peers.push(sender.map(|(_, peer)| peer));
        self.recipients.push(recipient.map(|(account, _)| account));
        self.recipient_peers.push(recipient.map(|(_, peer)| peer));
        self.contents.push(asked.has_contents);
        self.stanzas.push(&asked.stanza);
    }

    fn params(&self) -> [&(dyn tokio_postgres::types::ToSql + Sync); 8] {
        [
            &self.seqs,
            &self.received,
            &self.senders,
            &self.sender_peers,
            &self.recipients,
            &self.recipient_peers,
            &self.contents,
            &self.stanzas,
        ]
    }
}

/// What enters archives, as columns.
#[derive(Default)]
struct Entries {
    accounts: Vec<i64>,
    seqs: Vec<i64>,
    peers: Vec<i64>,
    kinds: Vec<i16>,
    bytes: Vec<i64>,
}

impl Entries {
    fn push(&mut self, side: &Side<'_>, seq: u64, kind: EntryKind, bytes: usize) {
        self.accounts.push(side.account);
        self.seqs.push(int(seq));
        self.peers.push(side.peer());
        self.kinds.push(short(kind));
        self.bytes.push(bytes as i64);
    }

    fn params(&self) -> [&(dyn tokio_postgres::types::ToSql + Sync); 5] {
        [&self.accounts, &self.seqs, &self.peers, &self.kinds, &self.bytes]
    }
}

/// So many numbers, ascending. Whoever holds the locks of the archives gives them higher ones than any in them.
fn numbers(write: &Transaction<'_>, count: usize) -> Result<Vec<u64>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let sql = "SELECT nextval('archive_message_seq_seq') FROM generate_series(1, $1::bigint)";
    let rows = write.db.query(sql, &[&(count as i64)])?;
    rows.iter().map(|row| uint(row, 0)).collect()
}

/// Accounts, what they want, their conversations as they stand, and when their newest messages were received. Each conversation is looked up by itself:
/// as plain joins these would be taken for cheaper by the account alone, and filtered.
const FIND: &str = "SELECT k.place, a.id, a.archive, p.id,
        (SELECT m.received FROM archive_entry e JOIN archive_message m ON m.seq = e.seq
            WHERE e.account = a.id ORDER BY e.seq DESC LIMIT 1),
        coalesce(i.last, 0), coalesce(i.read, 0), coalesce(i.unread, 0), coalesce(i.marked, 0), coalesce(i.folder, 0::smallint),
        coalesce(i.moved, 0), coalesce(i.muted, 0)
    FROM unnest($1::bigint[], $2::text[], $3::text[]) WITH ORDINALITY AS k (domain, local, jid, place)
    JOIN account a ON a.domain = k.domain AND a.local = k.local
    LEFT JOIN LATERAL (SELECT id FROM archive_peer WHERE account = a.id AND jid = k.jid LIMIT 1) AS p ON true
    LEFT JOIN LATERAL (SELECT * FROM inbox WHERE account = a.id AND peer = p.id LIMIT 1) AS i ON true";

const MESSAGES: &str = "INSERT INTO archive_message (seq, received, sender, sender_peer, recipient, recipient_peer, contents, stanza)
    OVERRIDING SYSTEM VALUE
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::boolean[], $8::bytea[])";

const ENTRIES: &str = "WITH entry AS (
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::bigint[])
            AS e (account, seq, peer, kind, bytes)),
    entered AS (INSERT INTO archive_entry (account, seq, peer, kind) SELECT account, seq, peer, kind FROM entry)
    INSERT INTO archive (account, messages, bytes) SELECT account, count(*), sum(bytes)::bigint FROM entry GROUP BY account
    ON CONFLICT (account) DO UPDATE SET messages = archive.messages + excluded.messages, bytes = archive.bytes + excluded.bytes";

const INBOX: &str = "INSERT INTO inbox (account, peer, last, read, unread, marked, folder, moved, muted)
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::smallint[], $8::bigint[],
        $9::bigint[])
    ON CONFLICT (account, peer) DO UPDATE SET last = excluded.last, read = excluded.read, unread = excluded.unread,
        marked = excluded.marked, folder = excluded.folder, moved = excluded.moved, muted = excluded.muted";
