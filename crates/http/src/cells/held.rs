//! Giving cells what was held for them, and finding out whether one that was away is back.

use super::client::{Away, Call};
use super::notify::{is_ours, problem};
use crate::app::App;
use axum::http::StatusCode;
use carillon_core::model::{CellRecord, HeldRequest};
use carillon_core::ports::Page;
use carillon_core::ports::store::cells::{CellReport, Held, Release};
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use std::collections::BTreeMap;

/// Gives each cell the next of what is held for it. None waits for another.
pub(super) async fn give(app: &App, cells: &[CellReport]) {
    join_all(cells.iter().map(|found| one(app, found))).await;
}

async fn one(app: &App, found: &CellReport) {
    let Ok(front) = app.front() else { return };
    let cell = &found.cell;
    if front.client.cell(&cell.name).away().is_some() {
        front.client.probe(cell);
        return;
    }
    let mut held = found.held;
    for _ in 0..PAGES {
        if held == 0 {
            return;
        }
        let page = Page { entries: PAGE_ENTRIES, bytes: PAGE_BYTES };
        let Ok(part) = app.ask(Held { cell: cell.name.clone(), after: 0, page }).await else { return };
        held = if part.more { held } else { 0 };
        let wanted = part.entries.len();
        let done = page_of(app, cell, part.entries).await;
        let is_whole = done.len() == wanted;
        if !done.is_empty() && app.ask(Release { cell: cell.name.clone(), seqs: done }).await.is_err() {
            // They are known when they are given again.
            return;
        }
        if !is_whole {
            return;
        }
    }
}

/// Gives a page to a cell, series side by side and each in its order. Those that are settled.
async fn page_of(app: &App, cell: &CellRecord, requests: Vec<HeldRequest>) -> Vec<u64> {
    let mut series: BTreeMap<Box<str>, Vec<HeldRequest>> = BTreeMap::new();
    for request in requests {
        series.entry(request.series.clone()).or_default().push(request);
    }
    let in_order = |requests: Vec<HeldRequest>| async move {
        let mut done = Vec::new();
        for request in requests {
            if !is_settled(app, cell, &request).await {
                break;
            }
            done.push(request.seq);
        }
        done
    };
    let done: Vec<Vec<u64>> =
        stream::iter(series.into_values()).map(in_order).buffer_unordered(SERIES_AT_ONCE).collect().await;
    done.concat()
}

/// Whether the cell has taken or refused a request.
async fn is_settled(app: &App, cell: &CellRecord, request: &HeldRequest) -> bool {
    let Ok(front) = app.front() else { return false };
    let call = Call::new("POST", &*request.path).with(request.body.clone()).known_as(request.id);
    let known = front.client.cell(&cell.name);
    match front.client.call(cell, call).await {
        Ok(reply) if reply.status.is_success() => {
            known.count(|counts| counts.given += 1);
            true
        }
        Ok(reply) if is_ours(reply.status) || reply.status == StatusCode::CONFLICT => false,
        Ok(reply) => {
            let refusal = problem(&reply);
            tracing::warn!(cell = &*cell.name, id = %request.id, ?refusal, "a cell refused what was held for it");
            known.count(|counts| counts.refused += 1);
            true
        }
        Err(Away(_)) => false,
    }
}

/// Pages in a turn.
const PAGES: usize = 16;
const PAGE_ENTRIES: u16 = 256;
const PAGE_BYTES: usize = 1 << 20;
const SERIES_AT_ONCE: usize = 32;
