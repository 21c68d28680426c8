//! Who is not to be added to a room, and what is only of rooms of MUC Light: whom accounts do not let add them.

use super::super::column::{corrupt, text};
use super::super::snapshot::Snapshot;
use super::super::transaction::Transaction;
use crate::rows::code::Code;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::rooms::{
    ChangeRoomBlocks, ChangeRoomBlocksAnswer, RoomBlocks, RoomRefusers,
};
use carillon_wire::jid::BareJid;
use rusqlite::{Error, OptionalExtension, Result, params};

impl Answers<RoomRefusers, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &RoomRefusers) -> Result<Vec<BareJid>> {
        let RoomRefusers { domain, kind, room, by, accounts, rooms_max } = asked;
        let mut refusers = Vec::new();
        for account in accounts {
            // Nobody blocks itself.
            let blocks =
                *kind == RoomKind::MucLight && account != by && self.blocks(*domain, account, by, room)?;
            if blocks || self.rooms_of(*kind, account, *rooms_max)? >= *rooms_max {
                refusers.push(account.clone());
            }
        }
        Ok(refusers)
    }
}

impl Snapshot<'_> {
    /// Whether an account does not let itself be added by this one, or to this room of MUC Light.
    fn blocks(&self, domain: DomainId, account: &BareJid, by: &BareJid, room: &BareJid) -> Result<bool> {
        self.db
            .prepare_cached(
                "SELECT 1 FROM account a JOIN room_block b ON b.account = a.id
                 WHERE a.domain = ?1 AND a.local = ?2 AND (
                     (b.is_room = 0 AND b.jid IN (?3, ?4)) OR (b.is_room = 1 AND b.jid IN (?5, ?6)))",
            )?
            .exists(params![
                domain.0,
                account.local().unwrap_or_default(),
                by.as_str(),
                by.domain(),
                room.as_str(),
                room.domain()
            ])
    }

    /// Of how many rooms of a kind an account is a member; counted up to `max`.
    fn rooms_of(&self, kind: RoomKind, account: &BareJid, max: u32) -> Result<u32> {
        self.db
            .prepare_cached(
                "SELECT count(*) FROM (SELECT 1 FROM room_member m JOIN room r ON r.id = m.room
                 WHERE m.jid = ?1 AND m.affiliation >= ?2 AND r.kind = ?3 LIMIT ?4)",
            )?
            .query_row(params![account.as_str(), RoomAffiliation::Member.code(), kind.code(), max], |row| {
                row.get(0)
            })
    }
}

impl Answers<RoomBlocks, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &RoomBlocks) -> Result<Vec<RoomBlock>> {
        let mut query = self.db.prepare_cached(
            "SELECT b.is_room, b.jid FROM account a JOIN room_block b ON b.account = a.id
             WHERE a.domain = ?1 AND a.local = ?2 ORDER BY b.is_room, b.jid",
        )?;
        let rows = query.query_map(params![asked.domain.0, asked.local], |row| {
            let jid: Box<str> = text(row, 1)?;
            let jid = BareJid::new(&jid).map_err(|_| corrupt(1, "no address"))?;
            Ok(RoomBlock { is_room: row.get(0)?, jid })
        })?;
        rows.collect()
    }
}

impl Answers<ChangeRoomBlocks, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ChangeRoomBlocks) -> Result<ChangeRoomBlocksAnswer> {
        let ChangeRoomBlocks { domain, local, changes, max } = asked;
        let found = self
            .db
            .prepare_cached("SELECT id, room_blocks FROM account WHERE domain = ?1 AND local = ?2")?
            .query_row(params![domain.0, local], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, u32>(1)?)))
            .optional()?;
        let Some((account, count)) = found else { return Ok(ChangeRoomBlocksAnswer::NoAccount) };
        let (mut new, mut gone) = (Vec::new(), Vec::new());
        for (block, is_wanted) in changes {
            let is_there = self
                .db
                .prepare_cached("SELECT 1 FROM room_block WHERE account = ?1 AND is_room = ?2 AND jid = ?3")?
                .exists(params![account, block.is_room, block.jid.as_str()])?;
            match (is_there, is_wanted) {
                (false, true) => new.push(block),
                (true, false) => gone.push(block),
                _ => {}
            }
        }
        new.sort_unstable();
        new.dedup();
        gone.sort_unstable();
        gone.dedup();
        let after = (count as usize + new.len()).saturating_sub(gone.len());
        if after > *max as usize {
            return Ok(ChangeRoomBlocksAnswer::Full);
        }
        if !new.is_empty() || !gone.is_empty() {
            self.run("UPDATE account SET room_blocks = ?2 WHERE id = ?1", params![account, after as i64])?;
        }
        for block in gone {
            self.run(
                "DELETE FROM room_block WHERE account = ?1 AND is_room = ?2 AND jid = ?3",
                params![account, block.is_room, block.jid.as_str()],
            )?;
        }
        for block in new {
            self.run(
                "INSERT INTO room_block (account, is_room, jid) VALUES (?1, ?2, ?3)",
                params![account, block.is_room, block.jid.as_str()],
            )?;
        }
        Ok(ChangeRoomBlocksAnswer::Changed)
    }
}
