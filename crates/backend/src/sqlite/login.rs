//! Logins: who an account is, and once that is proved what belongs to it, each for many in one snapshot.

use super::column::{int, uint};
use super::snapshot::Snapshot;
use super::{account, item_row};
use carillon_core::model::*;
use carillon_core::ports::store::{Answers, accounts};
use rusqlite::types::Value;
use rusqlite::vtab::array::Array;
use rusqlite::{Connection, Error, Params, Result, Row, params};
use std::rc::Rc;

impl Answers<accounts::Identity, Error> for Snapshot<'_> {
    fn answer(&mut self, question: &accounts::Identity) -> Result<Option<Box<Identity>>> {
        Ok(identities(self, &[question])?.pop().flatten())
    }
}

impl Answers<accounts::Login, Error> for Snapshot<'_> {
    fn answer(&mut self, question: &accounts::Login) -> Result<Option<Box<Login>>> {
        Ok(logins(self, &[question])?.pop().flatten())
    }
}

/// Says who many accounts are by one query per domain, in their order.
pub(super) fn identities(
    snapshot: &mut Snapshot<'_>,
    asks: &[&accounts::Identity],
) -> Result<Vec<Option<Box<Identity>>>> {
    let mut answers: Vec<_> = asks.iter().map(|_| None).collect();
    if asks.is_empty() {
        return Ok(answers);
    }
    let mut query = snapshot.db.prepare_cached(IDENTITIES)?;
    let mut rest: Vec<usize> = (0..asks.len()).collect();
    while let Some(first) = rest.first() {
        let domain = asks[*first].domain;
        let (here, elsewhere): (Vec<usize>, Vec<usize>) =
            rest.into_iter().partition(|place| asks[*place].domain == domain);
        let names: Vec<Value> =
            here.iter().map(|place| Value::from(String::from(&*asks[*place].local))).collect();
        let mut rows = query.query(params![domain.0, Rc::new(names)])?;
        while let Some(row) = rows.next()? {
            answers[here[position(row)?]] = Some(Box::new(identity(row)?));
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
pub(super) fn logins(
    snapshot: &mut Snapshot<'_>,
    asks: &[&accounts::Login],
) -> Result<Vec<Option<Box<Login>>>> {
    if asks.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Array = Rc::new(asks.iter().map(|ask| Value::from(int(ask.account.0))).collect());
    // What some of them want is read for all, and given to those: the shards of a node all want the same.
    let parts = asks.iter().fold(LoginParts::NONE, |parts, ask| parts.and(ask.parts));
    let mut found: Vec<Option<Box<Login>>> = asks.iter().map(|_| None).collect();
    for (position, state, generation, record) in states(snapshot.db, &ids, parts)? {
        found[position] = Some(Box::new(empty(state, generation, record)));
    }
    let followed = if parts.subscriptions { subscriptions(snapshot.db, &ids)? } else { Vec::new() };
    for (position, topic, generation) in followed {
        let Some(login) = &mut found[position] else { continue };
        login.generation = login.generation.max(generation);
        if !asks[position].parts.subscriptions {
            continue;
        }
        let standing = snapshot.revisions.of(snapshot.db, topic)?;
        let last = match standing.last {
            Some((revision, with_payload)) => {
                let item = item_row::shared(snapshot.db, snapshot.last, topic, revision)?;
                let config = TopicConfig { deliver_payloads: with_payload, ..TopicConfig::default() };
                Some(item.shown(&config))
            }
            None => None,
        };
        login.subscriptions.push(Subscription { topic, last, revision: standing.revision });
    }
    // They are asked together: what expired between the first and the last is not worth a query of its own.
    let now = asks.iter().map(|ask| ask.now).min().unwrap_or(UnixMs(0));
    if parts.notifications {
        for position in holders(snapshot.db, WITH_NOTIFICATIONS, params![ids, int(now.0)])? {
            if let Some(login) = &mut found[position] {
                login.waiting.notifications = asks[position].parts.notifications;
            }
        }
    }
    if parts.messages {
        for position in holders(snapshot.db, WITH_OFFLINE, params![ids])? {
            if let Some(login) = &mut found[position] {
                login.waiting.messages = asks[position].parts.messages;
            }
        }
    }
    Ok(found)
}

fn empty(state: AccountState, generation: Generation, record: Generation) -> Login {
    Login { state, subscriptions: Vec::new(), waiting: LoginBacklog::default(), generation, record }
}

/// A row per account that is found: its index in `ids`, its state, its generation and that of its record. The state is without the generation of its
/// subscriptions where these are read anyway.
fn states(
    db: &Connection,
    ids: &Array,
    parts: LoginParts,
) -> Result<Vec<(usize, AccountState, Generation, Generation)>> {
    db.prepare_cached(STATES)?
        .query_map(params![ids, !parts.subscriptions], |row| {
            let (generation, record) = (Generation(uint(row, 2)?), Generation(uint(row, 3)?));
            Ok((position(row)?, account::state(row, 1)?, generation, record))
        })?
        .collect()
}

const STATES: &str = "SELECT r.rowid, disabled,
        max(generation, coalesce((SELECT max(s.generation) FROM subscription s WHERE ?2 AND s.account = r.value), 0)), record
    FROM rarray(?1) r CROSS JOIN account ON id = r.value";

/// Positions in `ids` with the topics each follows, by topic, and the generation that each made.
fn subscriptions(db: &Connection, ids: &Array) -> Result<Vec<(usize, TopicId, Generation)>> {
    db.prepare_cached(SUBSCRIPTIONS)?
        .query_map([ids], |row| Ok((position(row)?, TopicId(row.get(1)?), Generation(uint(row, 2)?))))?
        .collect()
}

const SUBSCRIPTIONS: &str = "SELECT r.rowid, topic, generation FROM rarray(?1) r
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
    use super::super::archive_tail::Tail;
    use super::super::snapshot::LastRevisions;
    use super::super::{Options, file, schema};
    use super::*;
    use crate::rows::last::LastItems;
    use rusqlite::StatementStatus;

    fn login_of(parts: LoginParts) -> impl Fn(u64) -> accounts::Login {
        move |account| accounts::Login { account: AccountId(account), parts, now: UnixMs(0) }
    }

    #[test]
    fn only_what_is_wanted_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new(folder.path().join("store.db"));
        let _lock = file::claim(&options.path).expect("it is made");
        let mut db = file::connect_writer(&options).expect("it opens");
        schema::migrate(&mut db, &options.path).expect("it is new");
        let (last, mut revisions) = (LastItems::new(0), LastRevisions::default());
        let one =
            |subscriptions, notifications, messages| LoginParts { subscriptions, notifications, messages };
        let wanted =
            [LoginParts::NONE, one(true, false, false), one(false, true, false), one(false, false, true)];
        for parts in wanted {
            let mut snapshot =
                Snapshot { db: &db, last: &last, tail: &Tail::default(), revisions: &mut revisions };
            logins(&mut snapshot, &[&login_of(parts)(1)]).expect("it answers");
        }
        let runs = |sql| db.prepare_cached(sql).expect("it is kept").get_status(StatementStatus::Run);
        assert_eq!([STATES, SUBSCRIPTIONS, WITH_NOTIFICATIONS, WITH_OFFLINE].map(runs), [4, 1, 1, 1]);
    }

    #[test]
    fn no_question_is_prepared_anew_for_other_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options::new(folder.path().join("store.db"));
        let _lock = file::claim(&options.path).expect("it is made");
        let mut db = file::connect_writer(&options).expect("it opens");
        schema::migrate(&mut db, &options.path).expect("it is new");
        let (last, mut revisions) = (LastItems::new(0), LastRevisions::default());
        for names in [&["alice"][..], &["bob", "carol"], &["dave"]] {
            let mut snapshot =
                Snapshot { db: &db, last: &last, tail: &Tail::default(), revisions: &mut revisions };
            let ask = |name: &&str| accounts::Identity { domain: DomainId(1), local: (*name).into() };
            let asks: Vec<_> = names.iter().map(ask).collect();
            let asks: Vec<_> = asks.iter().collect();
            assert_eq!(identities(&mut snapshot, &asks).expect("it answers").len(), names.len());
            let ask = login_of(LoginParts::ALL);
            let asks: Vec<_> = (0..names.len() as u64).map(ask).collect();
            let asks: Vec<_> = asks.iter().collect();
            assert_eq!(logins(&mut snapshot, &asks).expect("it answers").len(), names.len());
        }
        for sql in [IDENTITIES, STATES, SUBSCRIPTIONS, WITH_NOTIFICATIONS, WITH_OFFLINE] {
            let statement = db.prepare_cached(sql).expect("it is kept");
            let count = |status| statement.get_status(status);
            assert_eq!((count(StatementStatus::Run), count(StatementStatus::RePrepare)), (3, 0), "{sql}");
        }
    }
}
