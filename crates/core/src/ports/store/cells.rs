//! The registry of a front: its cells, which of them each device is in, and what is held for a cell that is away.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Load, Loads, Missing, Page, Part};
use crate::model::{
    CellEndpoints, CellKey, CellRecord, Draining, HeldRequest, MoveStep, NotificationId, Placement, UnixMs,
};
use carillon_wire::jid::BareJid;

questions! {
    Cells,
    reads {
        ListCells => Vec<CellReport>,
        Placements => Vec<Placed>,
        PlacedIn => Vec<Placement>,
        MovingDevices => Vec<Placement>,
        Held => Part<HeldRequest>,
        HeldById => Option<Box<HeldRequest>>,
        IsHeld => bool,
    }
    writes {
        CreateCell => Result<(), CreateCellRefused>,
        ChangeCell => Result<(), Missing>,
        RemoveCell => Result<(), CellInUse>,
        Place => Result<Placement, Missing>,
        Unplace => (),
        MoveDevice => Result<Placement, Option<Box<Placement>>>,
        Hold => HoldAnswer,
        Release => (),
        ExpireHeld => (),
    }
    once {}
    loads {
        CreateCell,
        Hold,
    }
}

/// How many cells there are at most.
pub const CELLS_MAX: u32 = 1000;

/// All cells by name, each with what it has.
#[derive(Clone, Debug)]
pub struct ListCells;

/// A cell, and what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellReport {
    pub cell: CellRecord,
    /// Devices that are in it.
    pub devices: u64,
    /// Requests that are held for it.
    pub held: u64,
    /// What these count for, in bytes.
    pub held_bytes: u64,
}

/// Where devices are, in the order of the question.
#[derive(Clone, Debug)]
pub struct Placements {
    pub devices: Vec<BareJid>,
}

/// Where a device is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// None for a device that is in no cell.
    pub placement: Option<Placement>,
    /// Whether something is held for it, which goes before what comes now.
    pub is_held: bool,
}

/// Devices that are in a cell and do not move, in the order of their addresses, those after `after`: at most `limit`.
#[derive(Clone, Debug)]
pub struct PlacedIn {
    pub cell: Box<str>,
    pub after: Option<BareJid>,
    pub limit: u16,
}

/// Devices that move, in the order of their addresses, those after `after`: at most `limit`.
#[derive(Clone, Debug)]
pub struct MovingDevices {
    pub after: Option<BareJid>,
    pub limit: u16,
}

/// Requests that are held for a cell, oldest first, those above number `after`; without those for devices that are being copied.
#[derive(Clone, Debug)]
pub struct Held {
    pub cell: Box<str>,
    pub after: u64,
    pub page: Page,
}

/// One of the requests with this id that are held.
#[derive(Clone, Debug)]
pub struct HeldById {
    pub id: NotificationId,
}

/// Whether anything is held for a cell in this series.
#[derive(Clone, Debug)]
pub struct IsHeld {
    pub cell: Box<str>,
    pub series: Box<str>,
}

/// Adds a cell. One that is there already stays as it is, and is refused unless it is the same.
#[derive(Clone, Debug)]
pub struct CreateCell {
    pub cell: CellRecord,
}

/// A cell was not added; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateCellRefused {
    /// There is another of this name.
    Exists,
    /// There are [`CELLS_MAX`].
    TooMany,
}

/// Changes what is named of a cell.
#[derive(Clone, Debug)]
pub struct ChangeCell {
    pub name: Box<str>,
    pub change: CellChange,
}

/// What is changed of a cell: what is none stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellChange {
    pub weight: Option<u32>,
    pub url: Option<Box<str>>,
    pub key: Option<CellKey>,
    pub endpoints: Option<CellEndpoints>,
    pub drain: Option<Draining>,
    pub rate: Option<u32>,
}

impl CellChange {
    /// The cell after the change.
    pub fn of(&self, cell: &CellRecord) -> CellRecord {
        let CellChange { weight, url, key, endpoints, drain, rate } = self.clone();
        CellRecord {
            name: cell.name.clone(),
            weight: weight.unwrap_or(cell.weight),
            url: url.unwrap_or_else(|| cell.url.clone()),
            key: key.unwrap_or_else(|| cell.key.clone()),
            endpoints: endpoints.unwrap_or_else(|| cell.endpoints.clone()),
            drain: drain.unwrap_or(cell.drain),
            rate: rate.unwrap_or(cell.rate),
        }
    }
}

/// Forgets a cell that no device is in and for which nothing is held.
#[derive(Clone, Debug)]
pub struct RemoveCell {
    pub name: Box<str>,
}

/// Devices are in the cell, move to it, or something is held for it; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellInUse;

/// Places a device in a cell, unless it is in one: the answer is where it is. [`Missing`] is the cell.
#[derive(Clone, Debug)]
pub struct Place {
    pub device: BareJid,
    pub cell: Box<str>,
}

/// Forgets where a device is, and what is held for it.
#[derive(Clone, Debug)]
pub struct Unplace {
    pub device: BareJid,
}

/// Takes a step of a move from the placement of this generation. What is held for the device is held for the cell that it then is in. Where the
/// device has another placement the answer is that one, or none where it has none or the cell that it is to move to is not there; nothing was
/// changed then.
#[derive(Clone, Debug)]
pub struct MoveDevice {
    pub device: BareJid,
    pub generation: u64,
    pub step: MoveStep,
}

/// Holds a request. One for a device is held for the cell that the device is in, whatever it names. Where one of this id is held for this
/// cell already, nothing changes.
#[derive(Clone, Debug)]
pub struct Hold {
    /// The request; its number is given to it.
    pub request: HeldRequest,
    /// The most that may be held for the cell, in bytes.
    pub bytes_max: u64,
}

/// What became of [`Hold`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldAnswer {
    /// It is held.
    Held,
    /// As much is held for the cell as may be.
    Full,
    /// There is no such cell, or the device is in none.
    Missing,
}

/// Requests that are not held for a cell any more.
#[derive(Clone, Debug)]
pub struct Release {
    pub cell: Box<str>,
    pub seqs: Vec<u64>,
}

/// Forgets requests that expired by `now`, at most `max`.
#[derive(Clone, Debug)]
pub struct ExpireHeld {
    pub now: UnixMs,
    pub max: u32,
}

impl Loads for CreateCell {
    fn load(&self) -> Load<'_> {
        let CellRecord { name, url, key, .. } = &self.cell;
        Load { bytes: name.len() + url.len() + key.0.len(), account: None }
    }
}

impl Loads for Hold {
    fn load(&self) -> Load<'_> {
        Load { bytes: self.request.bytes() as usize, account: None }
    }
}
