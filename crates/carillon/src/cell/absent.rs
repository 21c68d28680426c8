//! A binary without the drivers of a cell.

use super::GoesOn;
use crate::options;
use carillon_core::ports::Members;
use carillon_server::{Cell, Server};
use std::sync::Arc;
use tokio::runtime::Handle;

/// There is none.
pub enum Joining {}

/// There is none.
pub enum Joined {}

impl Joining {
    /// Refuses what cannot be done.
    pub(crate) fn begin(
        settings: &options::Cell,
        _: Option<Arc<dyn Members>>,
        _: &Handle,
        _: Option<GoesOn>,
    ) -> Result<Option<Joining>, String> {
        match settings.nats.is_empty() {
            true => Ok(None),
            false => Err("cell.nats: this binary was built without NATS and PostgreSQL: build it with `--features nats,postgres`".into()),
        }
    }

    /// Never called.
    pub fn cell(&self) -> Cell {
        match *self {}
    }

    /// Never called.
    pub fn joined(self, _: &Server) -> Result<Joined, String> {
        match self {}
    }
}

impl Joined {
    /// Never called.
    pub fn leave(&mut self) {
        match *self {}
    }

    /// Never called.
    pub fn hand_over(&mut self) {
        match *self {}
    }
}
