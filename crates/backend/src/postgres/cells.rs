//! The registry of a front.

use super::column::{
    Id, blob, code, int, ms, notification_id, number, opt_number, opt_text, short, text, uint,
};
use super::connection::Connection;
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
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
use std::collections::{HashMap, HashSet};
use tokio_postgres::Row;

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
        self.db.query(cells!("ORDER BY name COLLATE \"C\""), &[])?.iter().map(report).collect()
    }
}

impl Answers<Placements, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Placements) -> Result<Vec<Placed>> {
        let devices: Vec<&str> = asked.devices.iter().map(BareJid::as_str).collect();
        let rows = self.db.query(placements!("WHERE device = ANY ($1::text[])"), &[&devices])?;
        let found = rows.iter().map(|row| Ok((text(row, 0)?, placement(row)?)));
        let found: HashMap<Box<str>, Placement> = found.collect::<Result<_>>()?;
        let rows =
            self.db.query("SELECT DISTINCT device FROM held WHERE device = ANY ($1::text[])", &[&devices])?;
        let held: HashSet<Box<str>> = rows.iter().map(|row| text(row, 0)).collect::<Result<_>>()?;
        let placed =
            |device: &str| Placed { placement: found.get(device).cloned(), is_held: held.contains(device) };
        Ok(devices.into_iter().map(placed).collect())
    }
}

impl Answers<PlacedIn, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &PlacedIn) -> Result<Vec<Placement>> {
        let after = asked.after.as_ref().map_or("", |device| device.as_str());
        let rows = self.db.query(
            placements!(
                "WHERE cell = $1 AND moves_to IS NULL AND moves_from IS NULL AND device > $2 ORDER BY device LIMIT $3"
            ),
            &[&asked.cell, &after, &i64::from(asked.limit)],
        )?;
        rows.iter().map(placement).collect()
    }
}

impl Answers<MovingDevices, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &MovingDevices) -> Result<Vec<Placement>> {
        let after = asked.after.as_ref().map_or("", |device| device.as_str());
        // Each half goes through an index of its own, which has no others.
        let rows = self.db.query(
            "SELECT device, cell, generation, moves_to, moves_from, enables FROM placement WHERE moves_to IS NOT NULL AND device > $1
             UNION ALL
             SELECT device, cell, generation, moves_to, moves_from, enables FROM placement WHERE moves_from IS NOT NULL AND device > $1
             ORDER BY device LIMIT $2",
            &[&after, &i64::from(asked.limit)],
        )?;
        rows.iter().map(placement).collect()
    }
}

impl Answers<Held, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Held) -> Result<Part<HeldRequest>> {
        let rows = self.db.query(
            held!(
                "WHERE cell = $1 AND seq > $2 AND NOT EXISTS (
                     SELECT 1 FROM placement p WHERE p.device = held.device AND p.moves_to IS NOT NULL)
                 ORDER BY seq LIMIT $3"
            ),
            &[&asked.cell, &int(asked.after), &(i64::from(asked.page.entries) + 1)],
        )?;
        let (mut entries, mut room) = (Vec::new(), Room::new(asked.page));
        for row in &rows {
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
        let row = self.db.opt(held!("WHERE id = $1 ORDER BY seq LIMIT 1"), &[&Id::from(asked.id)])?;
        row.map(|row| request(&row).map(Box::new)).transpose()
    }
}

impl Answers<IsHeld, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &IsHeld) -> Result<bool> {
        let found = self.db.opt(
            "SELECT 1 FROM held WHERE cell = $1 AND series = $2 LIMIT 1",
            &[&asked.cell, &asked.series],
        )?;
        Ok(found.is_some())
    }
}

impl Answers<CreateCell, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CreateCell) -> Result<std::result::Result<(), CreateCellRefused>> {
        match cell(self.db, &asked.cell.name)? {
            Some(found) if found.cell == asked.cell => return Ok(Ok(())),
            Some(_) => return Ok(Err(CreateCellRefused::Exists)),
            None => {}
        }
        if number(&self.db.one("SELECT count(*) FROM cell", &[])?, 0)? >= CELLS_MAX {
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
        let moves = self.db.opt(
            "SELECT 1 FROM placement WHERE moves_to = $1 UNION ALL SELECT 1 FROM placement WHERE moves_from = $1 LIMIT 1",
            &[&asked.name],
        )?;
        if found.devices > 0 || found.held > 0 || moves.is_some() {
            return Ok(Err(CellInUse));
        }
        self.run("DELETE FROM cell WHERE name = $1", &[&asked.name])?;
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
            "INSERT INTO placement (device, cell, generation) VALUES ($1, $2, 1)",
            &[&asked.device.as_str(), &asked.cell],
        )?;
        self.count_devices(&asked.cell, 1)?;
        Ok(Ok(placed))
    }
}

impl Answers<Unplace, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &Unplace) -> Result<()> {
        let Some(found) = find(self.db, &asked.device)? else { return Ok(()) };
        let (held, bytes) = self.held_of(&asked.device)?;
        self.run("DELETE FROM held WHERE device = $1", &[&asked.device.as_str()])?;
        self.run("DELETE FROM placement WHERE device = $1", &[&asked.device.as_str()])?;
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
            "UPDATE placement SET cell = $2, generation = $3, moves_to = $4, moves_from = $5, enables = $6 WHERE device = $1",
            &[&device.as_str(), &next.cell, &int(next.generation), &to, &from, &next.enables],
        )?;
        if next.cell != found.cell {
            let (held, bytes) = self.held_of(device)?;
            self.run("UPDATE held SET cell = $2 WHERE device = $1", &[&device.as_str(), &next.cell])?;
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
        let id = Id::from(request.id);
        if self.db.opt("SELECT 1 FROM held WHERE id = $1 AND cell = $2", &[&id, &cell.name])?.is_some() {
            return Ok(HoldAnswer::Held);
        }
        if held_bytes + request.bytes() > *bytes_max {
            return Ok(HoldAnswer::Full);
        }
        let device = request.device.as_ref().map(BareJid::as_str);
        let body: &[u8] = &request.body;
        self.run(
            "INSERT INTO held (id, cell, series, device, path, body, expires, bytes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            &[
                &id,
                &cell.name,
                &request.series,
                &device,
                &request.path,
                &body,
                &int(request.expires.0),
                &int(request.bytes()),
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
        let expired = self.db.query(
            "SELECT seq FROM held WHERE expires <= $1 ORDER BY expires, seq LIMIT $2",
            &[&int(asked.now.0), &i64::from(asked.max)],
        )?;
        expired.iter().try_for_each(|row| self.forget_held(uint(row, 0)?, None))
    }
}

impl Transaction<'_> {
    fn put_cell(&self, cell: &CellRecord) -> Result<()> {
        let CellRecord { name, weight, url, key, endpoints, drain, rate } = cell;
        let CellEndpoints { host, c2s_port, c2s_tls_port, websocket_url } = endpoints;
        self.run(
            "INSERT INTO cell (name, weight, url, secret, host, c2s_port, c2s_tls_port, websocket_url, drain, rate)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
             ON CONFLICT (name) DO UPDATE SET weight = $2, url = $3, secret = $4, host = $5, c2s_port = $6, c2s_tls_port = $7,
                 websocket_url = $8, drain = $9, rate = $10",
            &[
                name,
                &i64::from(*weight),
                url,
                &key.0,
                host,
                &c2s_port.map(i64::from),
                &c2s_tls_port.map(i64::from),
                websocket_url,
                &short(*drain),
                &i64::from(*rate),
            ],
        )
        .map(drop)
    }

    fn count_devices(&self, cell: &str, more: i64) -> Result<()> {
        self.run("UPDATE cell SET devices = devices + $2 WHERE name = $1", &[&cell, &more]).map(drop)
    }

    fn count_held(&self, cell: &str, more: i64, bytes: i64) -> Result<()> {
        if more == 0 {
            return Ok(());
        }
        self.run(
            "UPDATE cell SET held = held + $2, held_bytes = held_bytes + $3 WHERE name = $1",
            &[&cell, &more, &bytes],
        )
        .map(drop)
    }

    /// How much is held for a device.
    fn held_of(&self, device: &BareJid) -> Result<(i64, i64)> {
        let row = self.db.one(
            "SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM held WHERE device = $1",
            &[&device.as_str()],
        )?;
        Ok((row.try_get(0)?, row.try_get(1)?))
    }

    fn forget_held(&self, seq: u64, of: Option<&str>) -> Result<()> {
        let forgotten = self.returning_opt(
            "DELETE FROM held WHERE seq = $1 AND ($2::text IS NULL OR cell = $2) RETURNING cell, bytes",
            &[&int(seq), &of],
        )?;
        match forgotten {
            Some(row) => self.count_held(&text(&row, 0)?, -1, -row.try_get::<_, i64>(1)?),
            None => Ok(()),
        }
    }
}

fn cell(db: &Connection, name: &str) -> Result<Option<CellReport>> {
    db.opt(cells!("WHERE name = $1"), &[&name])?.as_ref().map(report).transpose()
}

fn find(db: &Connection, device: &BareJid) -> Result<Option<Placement>> {
    db.opt(placements!("WHERE device = $1"), &[&device.as_str()])?.as_ref().map(placement).transpose()
}

fn report(row: &Row) -> Result<CellReport> {
    let endpoints = CellEndpoints {
        host: opt_text(row, 4)?,
        c2s_port: port(row, 5)?,
        c2s_tls_port: port(row, 6)?,
        websocket_url: opt_text(row, 7)?,
    };
    let cell = CellRecord {
        name: text(row, 0)?,
        weight: number(row, 1)?,
        url: text(row, 2)?,
        key: CellKey(text(row, 3)?),
        endpoints,
        drain: code(row, 8)?,
        rate: number(row, 9)?,
    };
    Ok(CellReport { cell, devices: uint(row, 10)?, held: uint(row, 11)?, held_bytes: uint(row, 12)? })
}

fn port(row: &Row, column: usize) -> Result<Option<u16>> {
    let port = opt_number(row, column)?.map(u16::try_from).transpose();
    port.map_err(|_| Error::Corrupt("a number that is no port"))
}

fn placement(row: &Row) -> Result<Placement> {
    Ok(Placement {
        device: device(&text(row, 0)?)?,
        cell: text(row, 1)?,
        generation: uint(row, 2)?,
        moving: match (opt_text(row, 3)?, opt_text(row, 4)?) {
            (Some(to), _) => Moving::To(to),
            (None, Some(from)) => Moving::From(from),
            (None, None) => Moving::No,
        },
        enables: row.try_get(5)?,
    })
}

fn request(row: &Row) -> Result<HeldRequest> {
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
    BareJid::new(text).map_err(|_| Error::Corrupt("no address"))
}

/// The columns of a move.
fn cells_of(moving: &Moving) -> (Option<&str>, Option<&str>) {
    match moving {
        Moving::No => (None, None),
        Moving::To(to) => (Some(to), None),
        Moving::From(from) => (None, Some(from)),
    }
}
