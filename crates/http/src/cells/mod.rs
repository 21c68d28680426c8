//! Several cells behind one API ([ADR 51](../../../../docs/adr/0051-a-front-is-a-node-whose-store-is-the-registry.md)).
//!
//! ```text
//!  sender ──► front: the routes of a node, its own keys ──► cell of the device   (one notification)
//!                │   registry: cells, placements, held     ├─► all cells          (topics, broadcasts)
//!                └── keeper: gives what is held, moves ────┘
//! ```
//!
//! - `registry` reads what the store says of cells and devices; `client` makes requests to cells, and knows which of them answer.
//! - `notify` sends a notification to the cell of its device; `device` passes requests about one device on; `everywhere` those about topics and
//!   broadcasts; `front` are the routes of these.
//! - `keeper` does what one front at a time does: `held` gives cells what was held for them, `moves` moves devices.
//! - `api` is for operators; `metrics` are the figures.
//! - `transfer` is the other side: what a cell tells its front of an account that moves, and takes; `document` is a notification on that way.

pub(crate) mod api;
mod client;
mod device;
mod document;
mod everywhere;
pub(crate) mod front;
mod held;
mod keeper;
pub(crate) mod metrics;
mod moves;
mod notify;
mod registry;
pub(crate) mod transfer;

pub(crate) use keeper::run;
pub(crate) use notify::elsewhere;

use crate::options::Options;
use client::Client;
use registry::CachedCells;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What a front has in memory.
pub(crate) struct Cells {
    client: Arc<Client>,
    known: CachedCells,
    /// Requests about devices that are under way, by the device.
    under_way: Mutex<HashMap<Box<str>, usize>>,
}

impl Cells {
    /// That of a node with these options; none where it is no front.
    pub(crate) fn new(options: &Options) -> Option<Cells> {
        let settings = &options.settings.cells;
        settings.front.then(|| Cells {
            client: Arc::new(Client::new(settings.clone(), options.webhook_roots.clone())),
            known: CachedCells::default(),
            under_way: Mutex::default(),
        })
    }

    /// Notes that a request about a device is under way until this is dropped. Taken before it is looked up where the device is: whoever has
    /// noted that the device moves, and then finds none under way, knows that none reaches the cell that it leaves.
    fn enter(&self, device: &str) -> UnderWay<'_> {
        *self.lock().entry(device.into()).or_default() += 1;
        UnderWay { cells: self, device: device.into() }
    }

    /// Whether requests about a device are under way.
    fn is_busy(&self, device: &str) -> bool {
        self.lock().contains_key(device)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Box<str>, usize>> {
        // Counts are whole after any panic.
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request about a device that is under way.
struct UnderWay<'a> {
    cells: &'a Cells,
    device: Box<str>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut under_way = self.cells.lock();
        if let Some(count) = under_way.get_mut(&self.device) {
            *count -= 1;
            if *count == 0 {
                under_way.remove(&self.device);
            }
        }
    }
}
