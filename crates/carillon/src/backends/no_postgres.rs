//! A binary without PostgreSQL: what needs it is refused.

use super::Opened;
use crate::config::Settings;
use carillon_backend::check::Checked;
use carillon_core::model::Epoch;

/// Nobody is shown that the node is there: without PostgreSQL there are no others.
#[derive(Debug)]
pub(crate) struct Presence;

/// There is none.
pub(crate) enum Finding {}

/// There are none.
pub(crate) enum Options {}

/// Refuses.
pub(super) fn open(_: &Settings, _: Option<Epoch>) -> Result<Opened, String> {
    Err(missing())
}

/// Does nothing.
///
/// # Errors
/// None.
pub(crate) fn show_node(_: &Settings, _: Epoch) -> Result<Presence, String> {
    Ok(Presence)
}

/// Refuses.
pub(crate) fn inspect(_: &Settings) -> Result<Vec<Finding>, String> {
    Err(missing())
}

/// Never called.
pub(crate) fn check(options: Options) -> Result<Checked, String> {
    match options {}
}

/// Refuses.
pub(crate) fn options(_: &Settings) -> Result<Options, String> {
    Err(missing())
}

impl Finding {
    /// Never called.
    pub(crate) fn stops(&self) -> bool {
        match *self {}
    }

    /// Never called.
    pub(crate) fn what(&self) -> String {
        match *self {}
    }

    /// Never called.
    pub(crate) fn remedy(&self) -> String {
        match *self {}
    }
}

fn missing() -> String {
    "this binary was built without PostgreSQL: build it with `--features postgres`".to_owned()
}
