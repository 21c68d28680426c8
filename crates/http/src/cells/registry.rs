//! What the store of a front says: which cells there are, and where devices are.

use super::Cells;
use crate::app::App;
use crate::problem::{Code, Problem};
use carillon_core::model::{CellRecord, HeldRequest, NotificationId, Placement, UnixMs, choose};
use carillon_core::ports::Missing;
use carillon_core::ports::store::cells::{
    CellReport, Hold, HoldAnswer, ListCells, Place, Placed, Placements,
};
use carillon_wire::jid::BareJid;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The cells, as they were read last.
#[derive(Default)]
pub(super) struct CachedCells(pub(super) Mutex<Option<(Instant, Arc<[CellReport]>)>>);

/// For how long the list of cells is believed. Where a device is is asked each time.
const KEPT: Duration = Duration::from_millis(500);

impl App {
    /// What a front has in memory; none of a node that is no front.
    pub(crate) fn as_front(&self) -> Option<&Cells> {
        self.part::<Option<Cells>>().as_ref()
    }

    /// What a front has in memory; a node that is none refuses.
    pub(crate) fn front(&self) -> Result<&Cells, Problem> {
        let refusal =
            || Problem::new(Code::NoFront, "this node is no front: its setting `cells.front` is off");
        self.as_front().ok_or_else(refusal)
    }

    /// The cells of a front, as they were a moment ago.
    pub(super) async fn cells(&self) -> Result<Arc<[CellReport]>, Problem> {
        let known = &self.front()?.known.0;
        if let Some((at, cells)) = &*known.lock().unwrap_or_else(PoisonError::into_inner)
            && at.elapsed() < KEPT
        {
            return Ok(cells.clone());
        }
        self.read_cells().await
    }

    /// The same as they are now.
    pub(super) async fn read_cells(&self) -> Result<Arc<[CellReport]>, Problem> {
        let at = Instant::now();
        let cells: Arc<[CellReport]> = self.ask(ListCells).await?.into();
        *self.front()?.known.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, cells.clone()));
        Ok(cells)
    }

    /// A cell by its name.
    pub(super) async fn cell(&self, name: &str) -> Result<CellRecord, Problem> {
        let find = |cells: &[CellReport]| {
            cells.iter().find(|found| *found.cell.name == *name).map(|found| found.cell.clone())
        };
        if let Some(cell) = find(&self.cells().await?) {
            return Ok(cell);
        }
        find(&self.read_cells().await?).ok_or_else(|| unknown_cell(name))
    }

    /// Where a device is.
    pub(super) async fn placed(&self, device: &BareJid) -> Result<Placed, Problem> {
        let found = self.ask(Placements { devices: vec![device.clone()] }).await?;
        found.into_iter().next().ok_or_else(|| Problem::unexpected(&"no answer about a device"))
    }

    /// Where a device is that must be somewhere.
    pub(super) async fn placement(&self, device: &BareJid) -> Result<Placement, Problem> {
        self.placed(device).await?.placement.ok_or_else(|| unknown_device(device))
    }

    /// Places a device that is new: in a cell that answers, unless none does.
    pub(super) async fn place(&self, device: &BareJid) -> Result<Placement, Problem> {
        let cells = self.cells().await?;
        let client = &self.front()?.client;
        let answers = |found: &&CellReport| client.cell(&found.cell.name).away().is_none();
        let chosen = choose(cells.iter().filter(answers).map(|found| &found.cell), device)
            .or_else(|| choose(cells.iter().map(|found| &found.cell), device));
        let Some(cell) = chosen else {
            return Err(Problem::new(Code::NoCell, "no cell takes devices: see `carillon cells list`"));
        };
        match self.ask(Place { device: device.clone(), cell: cell.name.clone() }).await? {
            Ok(placement) => Ok(placement),
            Err(Missing) => Err(unknown_cell(&cell.name)),
        }
    }

    /// Holds a request until its cell takes it.
    pub(super) async fn hold(&self, request: Held) -> Result<(), Problem> {
        let Held { id, cell, series, device, path, body, expires } = request;
        let request = HeldRequest { seq: 0, id, cell: cell.clone(), series, device, path, body, expires };
        let bytes_max = self.options.settings.cells.held_bytes_max;
        match self.ask(Hold { request: request.clone(), bytes_max }).await? {
            HoldAnswer::Held => {
                self.front()?.client.cell(&cell).count(|counts| counts.held += 1);
                Ok(())
            }
            HoldAnswer::Full => {
                Err(cell_away(&cell, "as much is held for it as `cells.held_bytes_max` allows"))
            }
            HoldAnswer::Missing => match &request.device {
                Some(device) => Err(unknown_device(device)),
                None => Err(unknown_cell(&cell)),
            },
        }
    }
}

/// A request that is to be held.
pub(super) struct Held {
    pub(super) id: NotificationId,
    /// The cell; of a request for a device, the one that it seems to be in.
    pub(super) cell: Box<str>,
    pub(super) series: Box<str>,
    pub(super) device: Option<BareJid>,
    pub(super) path: Box<str>,
    pub(super) body: bytes::Bytes,
    pub(super) expires: UnixMs,
}

pub(super) fn unknown_cell(name: &str) -> Problem {
    Problem::new(Code::UnknownCell, format!("the front has no cell `{name}`"))
}

pub(super) fn unknown_device(device: &BareJid) -> Problem {
    Problem::new(Code::UnknownDevice, format!("there is no device `{device}`"))
}

/// A cell does not answer, and the request is not held.
pub(super) fn cell_away(name: &str, why: &str) -> Problem {
    Problem::new(Code::CellAway, format!("the cell `{name}` does not answer: {why}")).retry_after(AWAY_S)
}

/// When to try again at a cell that is away, in seconds.
const AWAY_S: u32 = 5;
