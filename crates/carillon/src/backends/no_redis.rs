//! A binary without Redis: a cell that wants the log of its sessions there is refused.

use crate::options;
use carillon_core::model::Epoch;
use carillon_core::ports::{LogHears, SessionLog};
use std::sync::Arc;
use tokio::runtime::Handle;

/// There is none.
#[derive(Clone)]
pub(crate) enum LogOptions {}

/// Refuses the settings that name one.
pub(crate) fn log(settings: &options::Cell) -> Result<Option<LogOptions>, String> {
    match settings.redis.is_empty() {
        true => Ok(None),
        false => {
            Err("cell.redis: this binary was built without Redis: build it with `--features redis`".into())
        }
    }
}

/// Refuses the settings that name one.
pub(crate) fn inspect(settings: &options::Cell) -> Result<(), String> {
    log(settings).map(drop)
}

impl LogOptions {
    /// Never called.
    pub(crate) fn open(&self, _: Epoch, _: LogHears, _: &Handle) -> Result<Arc<dyn SessionLog>, String> {
        match *self {}
    }
}
