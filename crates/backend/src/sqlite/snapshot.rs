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

/// How far topics are, while none changes that keeps items.
#[derive(Default)]
pub(super) struct LastRevisions {
    /// [`lookup::topic_changes`](super::lookup::topic_changes) as of then.
    changes: u64,
    topics: HashMap<TopicId, Standing>,
}

/// How far a topic is.
#[derive(Clone, Copy, Default)]
pub(super) struct Standing {
    /// Its revision, if it keeps items.
    pub(super) revision: Option<Revision>,
    /// Which revision made its last item, if it sends that at login; and whether with its payload.
    pub(super) last: Option<(Revision, bool)>,
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

    /// How far a topic is.
    pub(super) fn of(&mut self, db: &Connection, topic: TopicId) -> Result<Standing> {
        if let Some(standing) = self.topics.get(&topic) {
            return Ok(*standing);
        }
        let standing = db
            .prepare_cached(
                "SELECT revision, persist_items, deliver_payloads, CASE WHEN send_last = ?2 THEN last END FROM topic
                 WHERE id = ?1",
            )?
            .query_row(params![topic.0, SendLast::OnSubAndPresence.code()], |row| {
                let (revision, with_payload) = (Revision(uint(row, 0)?), row.get(2)?);
                let last = row.get::<_, Option<i64>>(3)?;
                Ok(Standing {
                    revision: row.get::<_, bool>(1)?.then_some(revision),
                    last: last.map(|last| (Revision(last.unsigned_abs()), with_payload)),
                })
            })
            .optional()?
            .unwrap_or_default();
        self.topics.insert(topic, standing);
        Ok(standing)
    }
}
