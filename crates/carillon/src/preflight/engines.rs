//! The engines of a cell beside its store: whether they let the node in.

use super::{Finding, Purpose};
use crate::backends;
use crate::config::Settings;

/// Connects to each once. A node that starts does not wait for that: it goes on trying, and says in its log why it is not let in.
pub(super) fn inspect(settings: &Settings, purpose: Purpose) -> Vec<Finding> {
    match purpose {
        Purpose::Start | Purpose::TakeOver => Vec::new(),
        Purpose::Check | Purpose::Production => {
            let closed = backends::closed_engines(&settings.cell);
            closed.into_iter().map(|(setting, why)| Finding::refused(setting, why, REMEDY)).collect()
        }
    }
}

const REMEDY: &str = "see docs/book/cluster.md";
