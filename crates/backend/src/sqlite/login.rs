//! Logins: who an account is, and once that is proved what belongs to it, each for many in one snapshot.

use super::column::{Code, int, uint};
use super::dispatch::Read;
use super::{account, item};
use carillon_core::model::*;
use carillon_core::ports::Answer;
use rusqlite::types::Value;
use rusqlite::vtab::array::Array;
use rusqlite::{Connection, OptionalExtension, Params, Result, Row, params};
use std::collections::HashMap;
use std::rc::Rc;

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
            .prepare_cached("SELECT last FROM topic WHERE id = ?1 AND send_last = ?2 AND last IS NOT NULL")?
            .query_row(params![topic.0, SendLast::OnSubAndPresence.code()], |row| uint(row, 0).map(Revision))
            .optional()?;
        self.topics.insert(topic, last);
        Ok(last)
    }
}

/// A question for who an account is.
#[derive(Clone, Copy)]
pub(super) struct IdentityAsk<'a> {
    pub(super) domain: DomainId,
    pub(super) local: &'a str,
}

/// A question for what belongs to an account.
#[derive(Clone, Copy)]
pub(super) struct LoginAsk {
    pub(super) account: AccountId,
    pub(super) now: UnixMs,
}

/// Says who many accounts are by one query per domain, in their order.
pub(super) fn identities(db: &Connection, asks: &[IdentityAsk<'_>]) -> Result<Vec<Answer>> {
    let mut answers = vec![Answer::Missing; asks.len()];
    if asks.is_empty() {
        return Ok(answers);
    }
    let mut query = db.prepare_cached(IDENTITIES)?;
    let mut rest: Vec<usize> = (0..asks.len()).collect();
    while let Some(first) = rest.first() {
        let domain = asks[*first].domain;
        let (here, elsewhere): (Vec<usize>, Vec<usize>) =
            rest.into_iter().partition(|place| asks[*place].domain == domain);
        let names: Vec<Value> = here.iter().map(|place| Value::from(asks[*place].local.to_owned())).collect();
        let mut rows = query.query(params![domain.0, Rc::new(names)])?;
        while let Some(row) = rows.next()? {
            answers[here[position(row)?]] = Answer::Identity(Box::new(identity(row)?));
        }
        rest = elsewhere;
    }
    Ok(answers)
}

const IDENTITIES: &str = "SELECT r.rowid, id, disabled,
        sha1_salt, sha1_iterations, sha1_stored_key, sha1_server_key,
        sha256_salt, sha256_iterations, sha256_stored_key, sha256_server_key, revocations
    FROM rarray(?2) r CROSS JOIN account ON domain = ?1 AND local = r.value";

fn identity(row: &Row<'_>) -> Result<Identity> {
    Ok(Identity {
        account: AccountId(uint(row, 1)?),
        credentials: Credentials { sha1: account::keys(row, 3)?, sha256: account::keys(row, 7)? },
        state: account::state(row, 2)?,
        revocations: account::revocations(row, 11)?,
    })
}

/// Answers many logins by few queries, in their order.
///
/// Measured (`store_cost`, 20,000 accounts with 3 topics each): 4.5 µs of processor a login in batches of 64 and more,
/// 5.5 µs in batches of 16, against 21.5 µs by four prepared point queries. Of what waits for an account it is only
/// said whether there is any: it is read when there is a session that can be given it.
pub(super) fn logins(read: &mut Read<'_>, asks: &[LoginAsk]) -> Result<Vec<Answer>> {
    if asks.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Array = Rc::new(asks.iter().map(|ask| Value::from(int(ask.account.0))).collect());
    let mut found: Vec<Option<Box<Login>>> = asks.iter().map(|_| None).collect();
    for (position, state) in states(read.db, &ids)? {
        found[position] = Some(Box::new(empty(state, read.revisions.at)));
    }
    for (position, topic) in subscriptions(read.db, &ids)? {
        let last = match read.revisions.of(read.db, topic)? {
            Some(revision) => Some(item::shared(read.db, read.last, topic, revision)?),
            None => None,
        };
        if let Some(login) = &mut found[position] {
            login.subscriptions.push(Subscription { topic, last });
        }
    }
    // They are asked together: what expired between the first and the last is not worth a query of its own.
    let now = asks.iter().map(|ask| ask.now).min().unwrap_or(UnixMs(0));
    for position in holders(read.db, WITH_NOTIFICATIONS, params![ids, int(now.0)])? {
        if let Some(login) = &mut found[position] {
            login.waiting.notifications = true;
        }
    }
    for position in holders(read.db, WITH_OFFLINE, params![ids])? {
        if let Some(login) = &mut found[position] {
            login.waiting.messages = true;
        }
    }
    Ok(found.into_iter().map(|login| login.map_or(Answer::Missing, Answer::Login)).collect())
}

fn empty(state: AccountState, revision: Revision) -> Login {
    Login { state, subscriptions: Vec::new(), waiting: Waiting::default(), revision }
}

/// Positions in `ids` of the accounts that are there, with the state of each.
fn states(db: &Connection, ids: &Array) -> Result<Vec<(usize, AccountState)>> {
    db.prepare_cached(STATES)?
        .query_map([ids], |row| Ok((position(row)?, account::state(row, 1)?)))?
        .collect()
}

const STATES: &str = "SELECT r.rowid, disabled FROM rarray(?1) r CROSS JOIN account ON id = r.value";

/// Positions in `ids` with the topics each follows, by topic.
fn subscriptions(db: &Connection, ids: &Array) -> Result<Vec<(usize, TopicId)>> {
    db.prepare_cached(SUBSCRIPTIONS)?
        .query_map([ids], |row| Ok((position(row)?, TopicId(row.get(1)?))))?
        .collect()
}

const SUBSCRIPTIONS: &str = "SELECT r.rowid, topic FROM rarray(?1) r
    CROSS JOIN subscription ON account = r.value ORDER BY r.rowid, topic";

const WITH_NOTIFICATIONS: &str = "SELECT r.rowid FROM rarray(?1) r
    WHERE EXISTS (SELECT 1 FROM notification WHERE account = r.value AND due IS NULL
        AND (expires IS NULL OR expires > ?2))";
const WITH_OFFLINE: &str =
    "SELECT r.rowid FROM rarray(?1) r WHERE EXISTS (SELECT 1 FROM offline WHERE account = r.value)";

/// Positions in `ids` for which `sql` finds something.
fn holders(db: &Connection, sql: &str, params: impl Params) -> Result<Vec<usize>> {
    db.prepare_cached(sql)?.query_map(params, position)?.collect()
}

/// Where in the array a row comes from: SQLite counts from 1.
fn position(row: &Row<'_>) -> Result<usize> {
    row.get::<_, u32>(0).map(|rowid| rowid as usize - 1)
}

#[cfg(test)]
mod tests {
    use super::super::last::LastItems;
    use super::super::{Options, file, schema};
    use super::*;
    use rusqlite::StatementStatus;

    #[test]
    fn no_question_is_prepared_anew_for_other_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new(folder.path().join("store.db"));
        let _lock = file::claim(&options.path).expect("it is made");
        let mut db = file::connect_writer(&options).expect("it opens");
        schema::migrate(&mut db, &options.path).expect("it is new");
        let (last, mut revisions) = (LastItems::new(0), LastRevisions::default());
        for names in [&["alice"][..], &["bob", "carol"], &["dave"]] {
            let ask = |local| IdentityAsk { domain: DomainId(1), local };
            let asks: Vec<_> = names.iter().map(|name| ask(*name)).collect();
            assert_eq!(identities(&db, &asks).expect("it answers").len(), names.len());
            let ask = |account| LoginAsk { account, now: UnixMs(0) };
            let asks: Vec<_> = (0..names.len()).map(|n| ask(AccountId(n as u64))).collect();
            let mut read = Read { db: &db, last: &last, revisions: &mut revisions };
            assert_eq!(logins(&mut read, &asks).expect("it answers").len(), names.len());
        }
        for sql in [IDENTITIES, STATES, SUBSCRIPTIONS, WITH_NOTIFICATIONS, WITH_OFFLINE] {
            let statement = db.prepare_cached(sql).expect("it is kept");
            let count = |status| statement.get_status(status);
            assert_eq!((count(StatementStatus::Run), count(StatementStatus::RePrepare)), (3, 0), "{sql}");
        }
    }
}
