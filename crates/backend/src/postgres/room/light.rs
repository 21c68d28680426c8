//! What is only of rooms of MUC Light: whom accounts do not let add them.

use super::super::column::{short, text};
use super::super::error::{Error, Result};
use super::super::snapshot::Snapshot;
use super::super::transaction::Transaction;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::rooms::{
    ChangeRoomBlocks, ChangeRoomBlocksAnswer, RoomBlocks, RoomRefusers,
};
use carillon_wire::jid::BareJid;

impl Answers<RoomRefusers, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &RoomRefusers) -> Result<Vec<BareJid>> {
        let RoomRefusers { domain, kind, room, by, accounts, rooms_max } = asked;
        let jids: Vec<&str> = accounts.iter().map(BareJid::as_str).collect();
        let locals: Vec<&str> = accounts.iter().map(|jid| jid.local().unwrap_or_default()).collect();
        let refusers = self.db.query(
            "SELECT asked.place FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS asked (jid, local, place)
             WHERE ($11 AND EXISTS (SELECT 1 FROM account a JOIN room_block b ON b.account = a.id
                 WHERE a.domain = $1 AND a.local = asked.local AND asked.jid <> $4
                 AND ((NOT b.is_room AND b.jid IN ($4, $5)) OR (b.is_room AND b.jid IN ($6, $7)))))
             OR (SELECT count(*) FROM (SELECT 1 FROM room_member m JOIN room r ON r.id = m.room
                 WHERE m.jid = asked.jid AND m.affiliation >= $8 AND r.kind = $9 LIMIT $10) AS rooms) >= $10",
            &[
                &i64::from(domain.0),
                &jids,
                &locals,
                &by.as_str(),
                &by.domain(),
                &room.as_str(),
                &room.domain(),
                &short(RoomAffiliation::Member),
                &short(*kind),
                &i64::from(*rooms_max),
                &(*kind == RoomKind::MucLight),
            ],
        )?;
        let mut found = Vec::new();
        for row in refusers {
            let place: i64 = row.try_get(0)?;
            let account = usize::try_from(place - 1).ok().and_then(|place| accounts.get(place));
            found.extend(account.cloned());
        }
        Ok(found)
    }
}

impl Answers<RoomBlocks, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &RoomBlocks) -> Result<Vec<RoomBlock>> {
        let rows = self.db.query(
            "SELECT b.is_room, b.jid FROM account a JOIN room_block b ON b.account = a.id
             WHERE a.domain = $1 AND a.local = $2 ORDER BY b.is_room, b.jid",
            &[&i64::from(asked.domain.0), &asked.local],
        )?;
        let mut blocks = Vec::with_capacity(rows.len());
        for row in rows {
            let jid: Box<str> = text(&row, 1)?;
            let jid = BareJid::new(&jid).map_err(|_| Error::Corrupt("no address"))?;
            blocks.push(RoomBlock { is_room: row.try_get(0)?, jid });
        }
        Ok(blocks)
    }
}

impl Answers<ChangeRoomBlocks, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ChangeRoomBlocks) -> Result<ChangeRoomBlocksAnswer> {
        let ChangeRoomBlocks { domain, local, changes, max } = asked;
        let found = self.db.opt(
            "SELECT id, room_blocks FROM account WHERE domain = $1 AND local = $2",
            &[&i64::from(domain.0), local],
        )?;
        let Some(found) = found else { return Ok(ChangeRoomBlocksAnswer::NoAccount) };
        let (account, count): (i64, i64) = (found.try_get(0)?, found.try_get(1)?);
        let (kinds, jids): (Vec<bool>, Vec<&str>) =
            changes.iter().map(|(block, _)| (block.is_room, block.jid.as_str())).unzip();
        let rows = self.db.query(
            "SELECT is_room, jid FROM room_block
             WHERE account = $1 AND (is_room, jid) IN (SELECT * FROM unnest($2::boolean[], $3::text[]))",
            &[&account, &kinds, &jids],
        )?;
        let mut known = std::collections::BTreeSet::new();
        for row in &rows {
            let (is_room, jid): (bool, String) = (row.try_get(0)?, row.try_get(1)?);
            known.insert((is_room, jid));
        }
        let key = |block: &RoomBlock| (block.is_room, block.jid.as_str().to_owned());
        let (mut new, mut gone) = (Vec::new(), Vec::new());
        for (block, is_wanted) in changes {
            match (known.contains(&key(block)), is_wanted) {
                (false, true) => new.push(block),
                (true, false) => gone.push(block),
                _ => {}
            }
        }
        new.sort_unstable();
        new.dedup();
        gone.sort_unstable();
        gone.dedup();
        let after = count + new.len() as i64 - gone.len() as i64;
        if after > i64::from(*max) {
            return Ok(ChangeRoomBlocksAnswer::Full);
        }
        if !new.is_empty() || !gone.is_empty() {
            self.run("UPDATE account SET room_blocks = $2 WHERE id = $1", &[&account, &after])?;
        }
        for block in gone {
            self.run(
                "DELETE FROM room_block WHERE account = $1 AND is_room = $2 AND jid = $3",
                &[&account, &block.is_room, &block.jid.as_str()],
            )?;
        }
        for block in new {
            self.run(
                "INSERT INTO room_block (account, is_room, jid) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                &[&account, &block.is_room, &block.jid.as_str()],
            )?;
        }
        Ok(ChangeRoomBlocksAnswer::Changed)
    }
}
