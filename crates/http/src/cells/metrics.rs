//! The figures of a front.

use super::client::Counts;
use crate::app::App;
use crate::exposition::{Labels, Page, labels};
use carillon_core::ports::store::cells::CellReport;
use std::fmt::Display;
use std::sync::PoisonError;

/// The page, where the node is a front.
pub(crate) fn text(app: &App) -> String {
    let mut page = Page::default();
    let Some(front) = app.as_front() else { return page.into_text() };
    let known =
        front.known.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(_, cells)| cells.clone());
    let cells = known.unwrap_or_default();
    let mut gauge = |name, help, value: &dyn Fn(&CellReport) -> u64| {
        page.family(name, "gauge", help, each(&cells, value));
    };
    gauge("carillon_front_cell_devices", "Devices that are in a cell.", &|found| found.devices);
    let help =
        "How much of the new devices a cell is given, compared with the others; 0 while it is drained.";
    gauge("carillon_front_cell_weight", help, &|found| found.cell.weight_now().into());
    let help = "1 while a cell does not answer this front.";
    gauge("carillon_front_cell_away", help, &|found| {
        front.client.cell(&found.cell.name).away().is_some().into()
    });
    gauge("carillon_front_cell_held", "Requests that are held for a cell.", &|found| found.held);
    let help = "What the requests that are held for a cell count for, in bytes.";
    gauge("carillon_front_cell_held_bytes", help, &|found| found.held_bytes);
    let mut counter = |name, help, value: fn(&Counts) -> u64| {
        let count = |found: &CellReport| value(&front.client.cell(&found.cell.name).counts());
        page.family(name, "counter", help, each(&cells, &count));
    };
    counter("carillon_front_answered_total", "Requests that a cell answered.", |counts| counts.answered);
    counter("carillon_front_failed_total", "Requests that a cell did not answer.", |counts| counts.failed);
    counter("carillon_front_held_total", "Requests that were held for a cell.", |counts| counts.held);
    let help = "Requests that a cell took after they had been held for it.";
    counter("carillon_front_given_total", help, |counts| counts.given);
    let help = "Requests that a cell refused after they had been held for it.";
    counter("carillon_front_refused_total", help, |counts| counts.refused);
    counter("carillon_front_moved_total", "Devices that moved away from a cell.", |counts| counts.moved);
    page.into_text()
}

fn each<V: Display>(cells: &[CellReport], value: &dyn Fn(&CellReport) -> V) -> Vec<(Labels, V)> {
    cells.iter().map(|found| (labels(&[("cell", &found.cell.name)]), value(found))).collect()
}
