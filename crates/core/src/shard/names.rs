//! The names of sessions that came from another process.

use super::Recipients;
use crate::model::{Map, SessionId};
use std::sync::Arc;

/// The names that sessions had in the process that wrote them, and those that they have here.
#[derive(Debug, Default)]
pub struct Names {
    names: Map<SessionId, SessionId>,
    /// By the address of what was read, which is kept so that nothing else gets it.
    recipients: Map<usize, [Arc<Recipients>; 2]>,
}

impl Names {
    /// A session was called `old`, and is called `new` here.
    pub fn add(&mut self, old: SessionId, new: SessionId) {
        self.names.insert(old, new);
    }

    /// The same sessions by their names here, without those that did not come along. What was shared stays shared.
    pub fn renamed(&mut self, read: &Arc<Recipients>) -> Arc<Recipients> {
        let names = &self.names;
        let rename = || [read.clone(), Arc::new(read.renamed(|old| names.get(&old).copied()))];
        let [_, renamed] = self.recipients.entry(Arc::as_ptr(read).addr()).or_insert_with(rename);
        renamed.clone()
    }
}
