//! The registry of a front.

use super::column::{blob, code, corrupt, id_blob, int, ms, notification_id, opt_text, text, uint};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::code::Code;
use crate::rows::page::Room;
use bytes::Bytes;
use carillon_core::model::{CellEndpoints, CellKey, CellRecord, HeldRequest, MoveStep, Moving, Placement};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::cells::{
    CELLS_MAX, CellInUse, CellReport, ChangeCell, CreateCell, CreateCellRefused, ExpireHeld, Held, HeldById,
    Hold, HoldAnswer, IsHeld, ListCells, MoveDevice, MovingDevices, Place, Placed, PlacedIn, Placements,
    Release, RemoveCell, Unplace,
};
use carillon_core::ports::{Missing, Part};
use carillon_wire::jid::BareJid;
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

/// What [`report`] reads.
macro_rules! cells {
    ($rest:literal) => {
        concat!(
            "SELECT name, weight, url, secret, host, c2s_port, c2s_tls_port, websocket_url, drain, rate, devices, held, held_bytes
             FROM cell ",
            $rest
        )
    };
}

/// What [`placement`] reads.
macro_rules! placements {
    ($rest:literal) => {
        concat!("SELECT device, cell, generation, moves_to, moves_from, enables FROM placement ", $rest)
    };
}

/// What [`request`] reads.
macro_rules! held {
    ($rest:literal) => {
        concat!("SELECT seq, id, cell, series, device, path, body, expires FROM held ", $rest)
    };
}

impl Answers<ListCells, Error> for Snapshot<'_> {
    fn answer(&mut self, _: &ListCells) -> Result<Vec<CellReport>> {
        self.db.prepare_cached(cells!("ORDER BY name"))?.query_map([], report)?.collect()
    }
}

impl Answers<Placements, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Placements) -> Result<Vec<Placed>> {
        let mut holds = self.db.prepare_cached("SELECT 1 FROM held WHERE device = ?1 LIMIT 1")?;
        let placed = |device: &BareJid| {
            let is_held = holds.exists([device.as_str()])?;
            Ok(Placed { placement: find(self.db, device)?, is_held })
        };
        asked.devices.iter().map(placed).collect()
    }
}

impl Answers<PlacedIn, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &PlacedIn) -> Result<Vec<Placement>> {
        let after = asked.after.as_ref().map_or("", |device| device.as_str());
        let mut query = self.db.prepare_cached(placements!(
            "WHERE cell = ?1 AND moves_to IS NULL AND moves_from IS NULL AND device > ?2 ORDER BY device LIMIT ?3"
        ))?;
        query.query_map(params![asked.cell, after, asked.limit], placement)?.collect()
    }
}

impl Answers<MovingDevices, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &MovingDevices) -> Result<Vec<Placement>> {
        let after = asked.after.as_ref().map_or("", |device| device.as_str());
        // Each half goes through an index of its own, which has no others.
        let mut query = self.db.prepare_cached(
            "SELECT device, cell, generation, moves_to, moves_from, enables FROM placement WHERE moves_to IS NOT NULL AND device > ?1
             UNION ALL
             SELECT device, cell, generation, moves_to, moves_from, enables FROM placement WHERE moves_from IS NOT NULL AND device > ?1
             ORDER BY device LIMIT ?2",
        )?;
        query.query_map(params![after, asked.limit], placement)?.collect()
    }
}

impl Answers<Held, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Held) -> Result<Part<HeldRequest>> {
        let mut query = self.db.prepare_cached(held!(
            "WHERE cell = ?1 AND seq > ?2 AND NOT EXISTS (
                 SELECT 1 FROM placement p WHERE p.device = held.device AND p.moves_to IS NOT NULL)
             ORDER BY seq"
        ))?;
        let mut rows = query.query(params![asked.cell, int(asked.after)])?;
        let (mut entries, mut room) = (Vec::new(), Room::new(asked.page));
        while let Some(row) = rows.next()? {
            if !room.takes(blob(row, 6)?.len()) {
                return Ok(Part { entries, more: true });
            }
            entries.push(request(row)?);
        }
        Ok(Part { entries, more: false })
    }
}

impl Answers<HeldById, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &HeldById) -> Result<Option<Box<HeldRequest>>> {
        let mut query = self.db.prepare_cached(held!("WHERE id = ?1 ORDER BY seq LIMIT 1"))?;
        query.query_row([id_blob(asked.id)], |row| request(row).map(Box::new)).optional()
    }
}

impl Answers<IsHeld, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &IsHeld) -> Result<bool> {
        let mut query =
            self.db.prepare_cached("SELECT 1 FROM held WHERE cell = ?1 AND series = ?2 LIMIT 1")?;
        query.exists(params![asked.cell, asked.series])
    }
}

impl Answers<CreateCell, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CreateCell) -> Result<std::result::Result<(), CreateCellRefused>> {
        match cell(self.db, &asked.cell.name)? {
            Some(found) if found.cell == asked.cell => return Ok(Ok(())),
            Some(_) => return Ok(Err(CreateCellRefused::Exists)),
            None => {}
        }
        let cells: u32 =
            self.db.prepare_cached("SELECT count(*) FROM cell")?.query_row([], |row| row.get(0))?;
        if cells >= CELLS_MAX {
            return Ok(Err(CreateCellRefused::TooMany));
        }
        self.put_cell(&asked.cell)?;
        Ok(Ok(()))
    }
}

impl Answers<ChangeCell, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ChangeCell) -> Result<std::result::Result<(), Missing>> {
        let Some(found) = cell(self.db, &asked.name)? else { return Ok(Err(Missing)) };
        self.put_cell(&asked.change.of(&found.cell))?;
        Ok(Ok(()))
    }
}

impl Answers<RemoveCell, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &RemoveCell) -> Result<std::result::Result<(), CellInUse>> {
        let Some(found) = cell(self.db, &asked.name)? else { return Ok(Ok(())) };
        let mut moves = self.db.prepare_cached(
            "SELECT 1 FROM placement WHERE moves_to = ?1 UNION ALL SELECT 1 FROM placement WHERE moves_from = ?1 LIMIT 1",
        )?;
        if found.devices > 0 || found.held > 0 || moves.exists([&asked.name])? {
            return Ok(Err(CellInUse));
        }
        self.run("DELETE FROM cell WHERE name = ?1", [&asked.name])?;
        Ok(Ok(()))
    }
}

impl Answers<Place, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Place) -> Result<std::result::Result<Placement, Missing>> {
        if let Some(found) = find(self.db, &asked.device)? {
            return Ok(Ok(found));
        }
        if cell(self.db, &asked.cell)?.is_none() {
            return Ok(Err(Missing));
        }
        let (device, cell) = (asked.device.clone(), asked.cell.clone());
        let placed = Placement { device, cell, generation: 1, moving: Moving::No, enables: true };
        self.run(
            "INSERT INTO placement (device, cell, generation) VALUES (?1, ?2, 1)",
            params![asked.device.as_str(), asked.cell],
        )?;
        self.count_devices(&asked.cell, 1)?;
        Ok(Ok(placed))
    }
}

impl Answers<Unplace, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Unplace) -> Result<()> {
        let Some(found) = find(self.db, &asked.device)? else { return Ok(()) };
        let (held, bytes) = self.held_of(&asked.device)?;
        self.run("DELETE FROM held WHERE device = ?1", [asked.device.as_str()])?;
        self.run("DELETE FROM placement WHERE device = ?1", [asked.device.as_str()])?;
        self.count_held(&found.cell, -held, -bytes)?;
        self.count_devices(&found.cell, -1)
    }
}

impl Answers<MoveDevice, Error> for Transaction<'_> {
    fn answer(
        &mut self,
        asked: &MoveDevice,
    ) -> Result<std::result::Result<Placement, Option<Box<Placement>>>> {
        let MoveDevice { device, generation, step } = asked;
        if let MoveStep::Begin { to, .. } = step
            && cell(self.db, to)?.is_none()
        {
            return Ok(Err(None));
        }
        let Some(found) = find(self.db, device)? else { return Ok(Err(None)) };
        if found.is_after(step, *generation) {
            return Ok(Ok(found));
        }
        let next = Some(&found).filter(|found| found.generation == *generation);
        let Some(next) = next.and_then(|found| found.after(step)) else {
            return Ok(Err(Some(Box::new(found))));
        };
        let (to, from) = cells_of(&next.moving);
        self.run(
            "UPDATE placement SET cell = ?2, generation = ?3, moves_to = ?4, moves_from = ?5, enables = ?6 WHERE device = ?1",
            params![device.as_str(), next.cell, int(next.generation), to, from, next.enables],
        )?;
        if next.cell != found.cell {
            let (held, bytes) = self.held_of(device)?;
            self.run("UPDATE held SET cell = ?2 WHERE device = ?1", params![device.as_str(), next.cell])?;
            self.count_held(&found.cell, -held, -bytes)?;
            self.count_held(&next.cell, held, bytes)?;
            self.count_devices(&found.cell, -1)?;
            self.count_devices(&next.cell, 1)?;
        }
        Ok(Ok(next))
    }
}

impl Answers<Hold, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Hold) -> Result<HoldAnswer> {
        let Hold { request, bytes_max } = asked;
        let name = match &request.device {
            Some(device) => find(self.db, device)?.map(|placement| placement.cell),
            None => Some(request.cell.clone()),
        };
        let found = name.map(|name| cell(self.db, &name)).transpose()?.flatten();
        let Some(CellReport { cell, held_bytes, .. }) = found else { return Ok(HoldAnswer::Missing) };
        let id = id_blob(request.id);
        let mut same = self.db.prepare_cached("SELECT 1 FROM held WHERE id = ?1 AND cell = ?2")?;
        if same.exists(params![id, cell.name])? {
            return Ok(HoldAnswer::Held);
        }
        if held_bytes + request.bytes() > *bytes_max {
            return Ok(HoldAnswer::Full);
        }
        self.run(
            "INSERT INTO held (id, cell, series, device, path, body, expires, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                id,
                cell.name,
                request.series,
                request.device.as_ref().map(BareJid::as_str),
                request.path,
                &*request.body,
                int(request.expires.0),
                int(request.bytes())
            ],
        )?;
        self.count_held(&cell.name, 1, int(request.bytes()))?;
        Ok(HoldAnswer::Held)
    }
}

impl Answers<Release, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Release) -> Result<()> {
        for seq in &asked.seqs {
            self.forget_held(*seq, Some(&asked.cell))?;
        }
        Ok(())
    }
}

impl Answers<ExpireHeld, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ExpireHeld) -> Result<()> {
        let expired: Vec<u64> = self
            .db
            .prepare_cached("SELECT seq FROM held WHERE expires <= ?1 ORDER BY expires, seq LIMIT ?2")?
            .query_map(params![int(asked.now.0), asked.max], |row| uint(row, 0))?
            .collect::<Result<_>>()?;
        expired.iter().try_for_each(|seq| self.forget_held(*seq, None))
    }
}

impl Transaction<'_> {
    fn put_cell(&self, cell: &CellRecord) -> Result<()> {
        let CellRecord { name, weight, url, key, endpoints, drain, rate } = cell;
        let CellEndpoints { host, c2s_port, c2s_tls_port, websocket_url } = endpoints;
        self.run(
            "INSERT INTO cell (name, weight, url, secret, host, c2s_port, c2s_tls_port, websocket_url, drain, rate)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (name) DO UPDATE SET weight = ?2, url = ?3, secret = ?4, host = ?5, c2s_port = ?6, c2s_tls_port = ?7,
                 websocket_url = ?8, drain = ?9, rate = ?10",
            params![name, weight, url, key.0, host, c2s_port, c2s_tls_port, websocket_url, drain.code(), rate],
        )
        .map(drop)
    }

    fn count_devices(&self, cell: &str, more: i64) -> Result<()> {
        self.run("UPDATE cell SET devices = devices + ?2 WHERE name = ?1", params![cell, more]).map(drop)
    }

    fn count_held(&self, cell: &str, more: i64, bytes: i64) -> Result<()> {
        if more == 0 {
            return Ok(());
        }
        self.run(
            "UPDATE cell SET held = held + ?2, held_bytes = held_bytes + ?3 WHERE name = ?1",
            params![cell, more, bytes],
        )
        .map(drop)
    }

    /// How much is held for a device.
    fn held_of(&self, device: &BareJid) -> Result<(i64, i64)> {
        let mut query =
            self.db.prepare_cached("SELECT count(*), coalesce(sum(bytes), 0) FROM held WHERE device = ?1")?;
        query.query_row([device.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn forget_held(&self, seq: u64, of: Option<&str>) -> Result<()> {
        let mut query = self.db.prepare_cached(
            "DELETE FROM held WHERE seq = ?1 AND (?2 IS NULL OR cell = ?2) RETURNING cell, bytes",
        )?;
        let forgotten = query
            .query_row(params![int(seq), of], |row| Ok((text(row, 0)?, row.get::<_, i64>(1)?)))
            .optional()?;
        match forgotten {
            Some((cell, bytes)) => self.count_held(&cell, -1, -bytes),
            None => Ok(()),
        }
    }
}

fn cell(db: &Connection, name: &str) -> Result<Option<CellReport>> {
    db.prepare_cached(cells!("WHERE name = ?1"))?.query_row([name], report).optional()
}

fn find(db: &Connection, device: &BareJid) -> Result<Option<Placement>> {
    db.prepare_cached(placements!("WHERE device = ?1"))?.query_row([device.as_str()], placement).optional()
}

fn report(row: &Row<'_>) -> Result<CellReport> {
    let endpoints = CellEndpoints {
        host: opt_text(row, 4)?,
        c2s_port: row.get(5)?,
        c2s_tls_port: row.get(6)?,
        websocket_url: opt_text(row, 7)?,
    };
    let cell = CellRecord {
        name: text(row, 0)?,
        weight: row.get(1)?,
        url: text(row, 2)?,
        key: CellKey(text(row, 3)?),
        endpoints,
        drain: code(row, 8)?,
        rate: row.get(9)?,
    };
    Ok(CellReport { cell, devices: uint(row, 10)?, held: uint(row, 11)?, held_bytes: uint(row, 12)? })
}

fn placement(row: &Row<'_>) -> Result<Placement> {
    Ok(Placement {
        device: device(&text(row, 0)?)?,
        cell: text(row, 1)?,
        generation: uint(row, 2)?,
        moving: match (opt_text(row, 3)?, opt_text(row, 4)?) {
            (Some(to), _) => Moving::To(to),
            (None, Some(from)) => Moving::From(from),
            (None, None) => Moving::No,
        },
        enables: row.get(5)?,
    })
}

fn request(row: &Row<'_>) -> Result<HeldRequest> {
    Ok(HeldRequest {
        seq: uint(row, 0)?,
        id: notification_id(row, 1)?,
        cell: text(row, 2)?,
        series: text(row, 3)?,
        device: opt_text(row, 4)?.map(|text| device(&text)).transpose()?,
        path: text(row, 5)?,
        body: Bytes::copy_from_slice(blob(row, 6)?),
        expires: ms(row, 7)?,
    })
}

fn device(text: &str) -> Result<BareJid> {
    BareJid::new(text).map_err(|_| corrupt(0, "an address"))
}

/// The columns of a move.
fn cells_of(moving: &Moving) -> (Option<&str>, Option<&str>) {
    match moving {
        Moving::No => (None, None),
        Moving::To(to) => (Some(to), None),
        Moving::From(from) => (None, Some(from)),
    }
}
