//! The registry of a front.

use super::{Committed, answers, page};
use crate::model::{CellRecord, HeldRequest, MoveStep, Moving, Placement};
use crate::ports::store::cells::{
    CELLS_MAX, CellInUse, CellReport, ChangeCell, CreateCell, CreateCellRefused, ExpireHeld, Held, HeldById,
    Hold, HoldAnswer, IsHeld, ListCells, MoveDevice, MovingDevices, Place, Placed, PlacedIn, Placements,
    Release, RemoveCell, Unplace,
};
use crate::ports::{Missing, Part};
use carillon_wire::jid::BareJid;
use std::collections::BTreeMap;

answers! {
    ListCells => list;
    Placements => placements;
    PlacedIn => placed_in;
    MovingDevices => moving;
    Held => held;
    HeldById => held_by_id;
    IsHeld => is_held;
    CreateCell => create;
    ChangeCell => change;
    RemoveCell => remove;
    Place => place;
    Unplace => unplace;
    MoveDevice => move_device;
    Hold => hold;
    Release => release;
    ExpireHeld => expire;
}

/// What a front knows.
#[derive(Clone, Debug, Default)]
pub(in crate::sim) struct Table {
    cells: BTreeMap<Box<str>, CellRecord>,
    placements: BTreeMap<Box<str>, Placement>,
    held: BTreeMap<u64, HeldRequest>,
    last: u64,
}

impl Table {
    fn report(&self, cell: &CellRecord) -> CellReport {
        let held = || self.held.values().filter(|held| held.cell == cell.name);
        CellReport {
            cell: cell.clone(),
            devices: self.placements.values().filter(|placement| placement.cell == cell.name).count() as u64,
            held: held().count() as u64,
            held_bytes: held().map(HeldRequest::bytes).sum(),
        }
    }

    fn is_copied(&self, held: &HeldRequest) -> bool {
        let placement = held.device.as_ref().and_then(|device| self.placements.get(device.as_str()));
        placement.is_some_and(|placement| matches!(placement.moving, Moving::To(_)))
    }
}

fn list(store: &Committed, _: &ListCells) -> Vec<CellReport> {
    let table = &store.own.cells;
    table.cells.values().map(|cell| table.report(cell)).collect()
}

fn placements(store: &Committed, asked: &Placements) -> Vec<Placed> {
    let table = &store.own.cells;
    let placed = |device: &BareJid| Placed {
        placement: table.placements.get(device.as_str()).cloned(),
        is_held: table.held.values().any(|held| held.device.as_ref() == Some(device)),
    };
    asked.devices.iter().map(placed).collect()
}

fn after<'a>(store: &'a Committed, after: Option<&'a BareJid>) -> impl Iterator<Item = &'a Placement> {
    let placements = store.own.cells.placements.values();
    placements.filter(move |placement| after.is_none_or(|after| placement.device.as_str() > after.as_str()))
}

fn placed_in(store: &Committed, asked: &PlacedIn) -> Vec<Placement> {
    let stays = |placement: &&Placement| placement.cell == asked.cell && placement.moving == Moving::No;
    after(store, asked.after.as_ref()).filter(stays).take(asked.limit.into()).cloned().collect()
}

fn moving(store: &Committed, asked: &MovingDevices) -> Vec<Placement> {
    let moves = |placement: &&Placement| placement.moving != Moving::No;
    after(store, asked.after.as_ref()).filter(moves).take(asked.limit.into()).cloned().collect()
}

fn held(store: &Committed, asked: &Held) -> Part<HeldRequest> {
    let table = &store.own.cells;
    let its =
        table.held.range(asked.after + 1..).map(|(_, held)| held).filter(|held| held.cell == asked.cell);
    let ready = its.filter(|held| !table.is_copied(held));
    page::first(ready.map(|held| (held.body.len(), held.clone())), asked.page)
}

fn held_by_id(store: &Committed, asked: &HeldById) -> Option<Box<HeldRequest>> {
    store.own.cells.held.values().find(|held| held.id == asked.id).cloned().map(Box::new)
}

fn is_held(store: &Committed, asked: &IsHeld) -> bool {
    store.own.cells.held.values().any(|held| held.cell == asked.cell && held.series == asked.series)
}

fn create(store: &mut Committed, asked: &CreateCell) -> Result<(), CreateCellRefused> {
    let cells = &mut store.own.cells.cells;
    match cells.get(&asked.cell.name) {
        Some(cell) if *cell == asked.cell => return Ok(()),
        Some(_) => return Err(CreateCellRefused::Exists),
        None if cells.len() >= CELLS_MAX as usize => return Err(CreateCellRefused::TooMany),
        None => {}
    }
    cells.insert(asked.cell.name.clone(), asked.cell.clone());
    Ok(())
}

fn change(store: &mut Committed, asked: &ChangeCell) -> Result<(), Missing> {
    let cell = store.own.cells.cells.get_mut(&asked.name).ok_or(Missing)?;
    *cell = asked.change.of(cell);
    Ok(())
}

fn remove(store: &mut Committed, asked: &RemoveCell) -> Result<(), CellInUse> {
    let table = &mut store.own.cells;
    let is_target = |placement: &Placement| match &placement.moving {
        Moving::No => false,
        Moving::To(cell) | Moving::From(cell) => *cell == asked.name,
    };
    let has_devices = table.placements.values().any(|p| p.cell == asked.name || is_target(p));
    if has_devices || table.held.values().any(|held| held.cell == asked.name) {
        return Err(CellInUse);
    }
    table.cells.remove(&asked.name);
    Ok(())
}

fn place(store: &mut Committed, asked: &Place) -> Result<Placement, Missing> {
    let table = &mut store.own.cells;
    if let Some(placement) = table.placements.get(asked.device.as_str()) {
        return Ok(placement.clone());
    }
    if !table.cells.contains_key(&asked.cell) {
        return Err(Missing);
    }
    let (device, cell) = (asked.device.clone(), asked.cell.clone());
    let placement = Placement { device, cell, generation: 1, moving: Moving::No, enables: true };
    table.placements.insert(asked.device.as_str().into(), placement.clone());
    Ok(placement)
}

fn unplace(store: &mut Committed, asked: &Unplace) {
    let table = &mut store.own.cells;
    table.placements.remove(asked.device.as_str());
    table.held.retain(|_, held| held.device.as_ref() != Some(&asked.device));
}

fn move_device(store: &mut Committed, asked: &MoveDevice) -> Result<Placement, Option<Box<Placement>>> {
    let table = &mut store.own.cells;
    if let MoveStep::Begin { to, .. } = &asked.step
        && !table.cells.contains_key(to)
    {
        return Err(None);
    }
    let found = table.placements.get_mut(asked.device.as_str()).ok_or(None)?;
    if found.is_after(&asked.step, asked.generation) {
        return Ok(found.clone());
    }
    let next = Some(&*found).filter(|found| found.generation == asked.generation);
    let Some(next) = next.and_then(|found| found.after(&asked.step)) else {
        return Err(Some(Box::new(found.clone())));
    };
    *found = next.clone();
    for held in table.held.values_mut().filter(|held| held.device.as_ref() == Some(&asked.device)) {
        held.cell.clone_from(&next.cell);
    }
    Ok(next)
}

fn hold(store: &mut Committed, asked: &Hold) -> HoldAnswer {
    let table = &mut store.own.cells;
    let name = match &asked.request.device {
        Some(device) => table.placements.get(device.as_str()).map(|placement| placement.cell.clone()),
        None => Some(asked.request.cell.clone()),
    };
    let Some(cell) = name.and_then(|name| table.cells.get(&name)) else { return HoldAnswer::Missing };
    if table.held.values().any(|held| held.id == asked.request.id && held.cell == cell.name) {
        return HoldAnswer::Held;
    }
    if table.report(cell).held_bytes + asked.request.bytes() > asked.bytes_max {
        return HoldAnswer::Full;
    }
    let seq = table.last + 1;
    let request = HeldRequest { seq, cell: cell.name.clone(), ..asked.request.clone() };
    table.held.insert(seq, request);
    table.last = seq;
    HoldAnswer::Held
}

fn release(store: &mut Committed, asked: &Release) {
    store.own.cells.held.retain(|seq, held| held.cell != asked.cell || !asked.seqs.contains(seq));
}

fn expire(store: &mut Committed, asked: &ExpireHeld) {
    let held = &mut store.own.cells.held;
    let mut expired: Vec<_> =
        held.values().filter(|held| held.expires <= asked.now).map(|held| (held.expires, held.seq)).collect();
    expired.sort_unstable();
    expired.truncate(asked.max as usize);
    expired.iter().for_each(|(_, seq)| drop(held.remove(seq)));
}
