//! Logins: who an account is, and once that is proved what belongs to it, each for many by few statements.

use super::column::{int, number, uint};
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::{account, item_row};
use carillon_core::model::*;
use carillon_core::ports::store::{Answers, accounts};
use std::collections::HashMap;
use std::sync::Arc;
use tokio_postgres::Row;

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

/// Says who many accounts are by one statement, in their order.
pub(super) fn identities(
    snapshot: &mut Snapshot<'_>,
    asks: &[&accounts::Identity],
) -> Result<Vec<Option<Box<Identity>>>> {
    let domains: Vec<i64> = asks.iter().map(|ask| ask.domain.0.into()).collect();
    let locals: Vec<&str> = asks.iter().map(|ask| &*ask.local).collect();
    let mut answers: Vec<_> = asks.iter().map(|_| None).collect();
    for row in snapshot.db.query(IDENTITIES, &[&domains, &locals])? {
        answers[place(&row)?] = Some(Box::new(Identity {
            account: AccountId(uint(&row, 1)?),
            credentials: Credentials { sha1: account::keys(&row, 3)?, sha256: account::keys(&row, 7)? },
            state: account::state(&row, 2)?,
            revocations: account::revocations(&row, 11)?,
        }));
    }
    Ok(answers)
}

const IDENTITIES: &str = "SELECT r.place, id, disabled,
        sha1_salt, sha1_iterations, sha1_stored_key, sha1_server_key,
        sha256_salt, sha256_iterations, sha256_stored_key, sha256_server_key, revocations
    FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS r (domain, local, place)
    JOIN account a ON a.domain = r.domain AND a.local = r.local";

/// Answers many logins by two statements, in their order.
pub(super) fn logins(
    snapshot: &mut Snapshot<'_>,
    asks: &[&accounts::Login],
) -> Result<Vec<Option<Box<Login>>>> {
    let ids: Vec<i64> = asks.iter().map(|ask| int(ask.account.0)).collect();
    let of = |part: fn(&LoginParts) -> bool| asks.iter().map(|ask| part(&ask.parts)).collect::<Vec<bool>>();
    let (follows, notifications, messages) =
        (of(|parts| parts.subscriptions), of(|parts| parts.notifications), of(|parts| parts.messages));
    let nows: Vec<i64> = asks.iter().map(|ask| int(ask.now.0)).collect();
    let mut found: Vec<Option<Box<Login>>> = asks.iter().map(|_| None).collect();
    for row in snapshot.db.query(STATES, &[&ids, &notifications, &messages, &nows])? {
        let waiting = LoginBacklog { notifications: row.try_get(4)?, messages: row.try_get(5)? };
        found[place(&row)?] = Some(Box::new(Login {
            state: account::state(&row, 1)?,
            subscriptions: Vec::new(),
            waiting,
            generation: Generation(uint(&row, 2)?),
            record: Generation(uint(&row, 3)?),
        }));
    }
    if follows.contains(&true) {
        subscriptions(snapshot, &ids, &follows, &mut found)?;
    }
    Ok(found)
}

const STATES: &str = "SELECT r.place, disabled,
        greatest(generation, (SELECT coalesce(max(s.generation), 0) FROM subscription s WHERE s.account = a.id)), record,
        r.notifications AND EXISTS (SELECT 1 FROM notification n WHERE n.account = a.id AND n.due IS NULL
            AND (n.expires IS NULL OR n.expires > r.now)),
        r.messages AND a.offline > 0
    FROM unnest($1::bigint[], $2::boolean[], $3::boolean[], $4::bigint[])
        WITH ORDINALITY AS r (account, notifications, messages, now, place)
    JOIN account a ON a.id = r.account";

/// The topics that each follows, by their numbers, with the last items of those that send them.
fn subscriptions(
    snapshot: &mut Snapshot<'_>,
    ids: &[i64],
    follows: &[bool],
    found: &mut [Option<Box<Login>>],
) -> Result<()> {
    let rows = snapshot
        .db
        .query(SUBSCRIPTIONS, &[&ids, &follows, &super::column::short(SendLast::OnSubAndPresence)])?;
    let mut items: HashMap<TopicId, Arc<Item>> = HashMap::new();
    for row in &rows {
        let Some(login) = &mut found[place(row)?] else { continue };
        let topic = TopicId(number(row, 1)?);
        let last = match row.try_get::<_, Option<i64>>(2)? {
            None => None,
            Some(revision) => {
                let item = match items.get(&topic) {
                    Some(item) => item.clone(),
                    None => {
                        let revision = Revision(revision.unsigned_abs());
                        let config =
                            TopicConfig { deliver_payloads: row.try_get(3)?, ..TopicConfig::default() };
                        let item = match snapshot.last.find(topic, revision) {
                            Some(item) => item,
                            None => snapshot.last.keep(item_row::read(snapshot.db, topic, revision)?),
                        };
                        let shown = item.shown(&config);
                        items.insert(topic, shown.clone());
                        shown
                    }
                };
                Some(item)
            }
        };
        let revision = row.try_get::<_, Option<i64>>(4)?.map(|revision| Revision(revision.unsigned_abs()));
        login.subscriptions.push(Subscription { topic, last, revision });
    }
    Ok(())
}

const SUBSCRIPTIONS: &str =
    "SELECT r.place, t.id, CASE WHEN t.send_last = $3 THEN t.last END, t.deliver_payloads, CASE WHEN t.persist_items THEN t.revision END
    FROM unnest($1::bigint[], $2::boolean[]) WITH ORDINALITY AS r (account, wanted, place)
    JOIN subscription s ON s.account = r.account AND r.wanted
    JOIN topic t ON t.id = s.topic ORDER BY r.place, t.id";

/// Where in the arrays a row comes from: PostgreSQL counts from 1.
fn place(row: &Row) -> Result<usize> {
    let place: i64 = row.try_get(0)?;
    usize::try_from(place - 1).map_err(|_| Error::Corrupt("no place"))
}
