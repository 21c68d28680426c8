//! What a read works with: one state of the store, and what is remembered of it.

use super::archive_tail::Tail;
use super::column::uint;
use crate::rows::code::Code;
use crate::rows::last::LastItems;
use carillon_core::model::{Revision, SendLast, TopicId};
use rusqlite::{Connection, OptionalExtension, Result, params};
use std::collections::HashMap;

/// One state of the store, which answers the questions that change nothing: a file per noun says how.
pub(super) struct Snapshot<'a> {
    pub(super) db: &'a Connection,
    pub(super) last: &'a LastItems,
    pub(super) tail: &'a Tail,
    pub(super) revisions: &'a mut LastRevisions,
}

/// Topics whose last revision is remembered; a few bytes each.
const TOPICS_MAX: usize = 1 << 17;

/// Which revision made the last item of a topic that sends it at login, while no topic changes.
#[derive(Default)]
pub(super) struct LastRevisions {
    /// [`lookup::topic_changes`](super::lookup::topic_changes) as of then.
    changes: u64,
    topics: HashMap<TopicId, Option<(Revision, bool)>>,
}

impl LastRevisions {
    /// So many commits have changed topics by now.
    pub(super) fn move_to(&mut self, changes: u64) {
        if self.changes != changes || self.topics.len() > TOPICS_MAX {
            self.topics.clear();
            self.changes = changes;
        }
    }

    /// Gives the memory back.
    pub(super) fn forget(&mut self) {
        self.topics = HashMap::new();
    }

    /// Which revision made a topic's last item, if it sends that at login; and whether with its payload.
    pub(super) fn of(&mut self, db: &Connection, topic: TopicId) -> Result<Option<(Revision, bool)>> {
        if let Some(last) = self.topics.get(&topic) {
            return Ok(*last);
        }
        let last = db
            .prepare_cached("SELECT last, deliver_payloads FROM topic WHERE id = ?1 AND send_last = ?2 AND last IS NOT NULL")?
            .query_row(params![topic.0, SendLast::OnSubAndPresence.code()], |row| {
                Ok((Revision(uint(row, 0)?), row.get(1)?))
            })
            .optional()?;
        self.topics.insert(topic, last);
        Ok(last)
    }
}
