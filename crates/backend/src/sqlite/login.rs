//! Logins: all that one needs, read in one snapshot.

use super::column::{int, uint};
use super::last::LastItems;
use super::{account, item, notification, offline};
use carillon_core::model::*;
use carillon_core::ports::Answer;
use rusqlite::{Connection, OptionalExtension, Result, params};
use std::collections::HashMap;

/// Topics whose last revision is remembered; a few bytes each.
const TOPICS_MAX: usize = 1 << 17;

/// Which revision made the last item of a topic that sends it at login, as of one revision of the node: while that has
/// not moved, no topic has changed.
#[derive(Default)]
pub(super) struct LastRevisions {
    at: Revision,
    topics: HashMap<TopicId, Option<Revision>>,
}

impl LastRevisions {
    /// The node is at `revision` now.
    pub(super) fn move_to(&mut self, revision: Revision) {
        if self.at != revision || self.topics.len() > TOPICS_MAX {
            self.topics.clear();
            self.at = revision;
        }
    }

    /// Gives the memory back.
    pub(super) fn forget(&mut self) {
        self.topics = HashMap::new();
    }

    fn of(&mut self, db: &Connection, topic: TopicId) -> Result<Option<Revision>> {
        if let Some(last) = self.topics.get(&topic) {
            return Ok(*last);
        }
        let last = db
            .prepare_cached("SELECT last FROM topic WHERE id = ?1 AND send_last = 2 AND last IS NOT NULL")?
            .query_row([topic.0], |row| uint(row, 0).map(Revision))
            .optional()?;
        self.topics.insert(topic, last);
        Ok(last)
    }
}

/// A login's question.
#[derive(Clone, Copy)]
pub(super) struct LoginAsk<'a> {
    pub(super) domain: DomainId,
    pub(super) local: &'a str,
    pub(super) now: UnixMs,
    pub(super) pending_max: u16,
    pub(super) offline_max: u16,
}

/// Answers one login.
pub(super) fn login(
    db: &Connection,
    last: &LastItems,
    revisions: &mut LastRevisions,
    ask: LoginAsk<'_>,
) -> Result<Answer> {
    let found = db
        .prepare_cached(
            "SELECT id, disabled, sha1_salt, sha1_iterations, sha1_stored_key, sha1_server_key, sha256_salt,
                 sha256_iterations, sha256_stored_key, sha256_server_key
             FROM account WHERE domain = ?1 AND local = ?2",
        )?
        .query_row(params![ask.domain.0, ask.local], |row| {
            let credentials = Credentials { sha1: account::keys(row, 2)?, sha256: account::keys(row, 6)? };
            Ok((AccountId(uint(row, 0)?), account::state(row, 1)?, credentials))
        })
        .optional()?;
    let Some((account, state, credentials)) = found else { return Ok(Answer::Missing) };
    let (pending, pending_more) = notification::waiting(db, account, &[], ask.pending_max, ask.now)?;
    let (offline, offline_more) = offline::waiting(db, account, 0, ask.offline_max)?;
    Ok(Answer::Login(Box::new(Login {
        account,
        credentials,
        state,
        subscriptions: subscriptions(db, last, revisions, account)?,
        pending,
        pending_more,
        offline,
        offline_more,
        revision: revisions.at,
    })))
}

fn subscriptions(
    db: &Connection,
    items: &LastItems,
    revisions: &mut LastRevisions,
    account: AccountId,
) -> Result<Vec<Subscription>> {
    let mut query = db.prepare_cached("SELECT topic FROM subscription WHERE account = ?1 ORDER BY topic")?;
    let mut rows = query.query([int(account.0)])?;
    let mut subscriptions = Vec::new();
    while let Some(row) = rows.next()? {
        let topic = TopicId(row.get(0)?);
        let last = match revisions.of(db, topic)? {
            Some(revision) => Some(item::shared(db, items, topic, revision)?),
            None => None,
        };
        subscriptions.push(Subscription { topic, last });
    }
    Ok(subscriptions)
}
