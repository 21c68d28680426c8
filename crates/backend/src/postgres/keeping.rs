//! Notifications kept. Those in which nothing stands out share two statements: one that looks, one that keeps.

use super::column::{Id, int, opt_int, short, uint};
use super::ending;
use super::error::{Error, Result};
use super::push;
use super::transaction::Transaction;
use crate::rows::payload::PayloadColumns;
use crate::rows::push::Tells;
use carillon_core::model::*;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::notifications::{StoreNotification, StoreNotificationAnswer};
use std::collections::{HashMap, HashSet};

impl Answers<StoreNotification, Error> for Transaction<'_> {
    fn answer(&mut self, question: &StoreNotification) -> Result<StoreNotificationAnswer> {
        keep(self, question)
    }
}

/// What there is before a notification is kept.
#[derive(Clone, Copy)]
struct Found {
    account: AccountId,
    /// How many the account has that have not ended, scheduled ones included: nothing bounds those later.
    waiting: u64,
    /// Whether there is, or was, a notification of this id.
    known: bool,
    /// Where pushes for the account go.
    registrations: u64,
}

/// Keeps all of them, in their order; an answer for each.
pub(super) fn keep_all(
    write: &mut Transaction<'_>,
    keeps: &[&StoreNotification],
) -> Result<Vec<StoreNotificationAnswer>> {
    if let [keep] = keeps {
        return Ok(vec![self::keep(write, keep)?]);
    }
    let found = look(write, keeps)?;
    let mut answers = Vec::with_capacity(keeps.len());
    let (mut plain, mut ids) = (Vec::new(), HashSet::new());
    // How many were kept for each account since it was looked up; none once these figures do not hold any more.
    let mut added: HashMap<AccountId, Option<u64>> = HashMap::new();
    for (keep, found) in keeps.iter().zip(found) {
        let is_new_id = ids.insert(keep.notification.id);
        let Some(found) = found else {
            answers.push(StoreNotificationAnswer::NoAccount);
            continue;
        };
        let added = added.entry(found.account).or_insert(Some(0));
        let is_plain = is_new_id
            && !found.known
            && keep.notification.collapse_key.is_none()
            && added.is_some_and(|added| found.waiting + added < u64::from(keep.queue_max));
        if is_plain {
            *added = added.map(|added| added + 1);
            plain.push((*keep, found));
            answers.push(StoreNotificationAnswer::Stored { ended: Vec::new() });
        } else {
            *added = None;
            insert(write, &std::mem::take(&mut plain))?;
            answers.push(self::keep(write, keep)?);
        }
    }
    insert(write, &plain)?;
    Ok(answers)
}

/// Keeps one.
fn keep(write: &mut Transaction<'_>, keep: &StoreNotification) -> Result<StoreNotificationAnswer> {
    let StoreNotification { notification, queue_max, now, .. } = keep;
    let Some(found) = look(write, &[keep])?.pop().flatten() else {
        return Ok(StoreNotificationAnswer::NoAccount);
    };
    if found.known {
        if notification.is_due(*now) {
            // It waits for the device from now on, behind what does already.
            write.run(
                "UPDATE notification SET due = NULL, stored = $2, seq = nextval('notification_seq_seq')
                 WHERE id = $1 AND due IS NOT NULL",
                &[&Id::from(notification.id), &int(now.0)],
            )?;
        }
        return Ok(StoreNotificationAnswer::Known);
    }
    let mut ended = match &notification.collapse_key {
        Some(key) => ending::replaced(write, found.account, key, *now)?,
        None => Vec::new(),
    };
    insert(write, &[(keep, found)])?;
    let excess = (found.waiting + 1).saturating_sub(u64::from(*queue_max)).saturating_sub(ended.len() as u64);
    if excess > 0 {
        ended.extend(ending::over_bound(write, found.account, excess, *now)?);
    }
    Ok(StoreNotificationAnswer::Stored { ended })
}

/// What there is before each of them; none without an account.
fn look(write: &Transaction<'_>, keeps: &[&StoreNotification]) -> Result<Vec<Option<Found>>> {
    let of = |keep: &&StoreNotification| keep.notification.clone();
    let notifications: Vec<_> = keeps.iter().map(of).collect();
    let domains: Vec<i64> = notifications.iter().map(|one| one.domain.0.into()).collect();
    let locals: Vec<&str> = notifications.iter().map(|one| one.to.local().unwrap_or_default()).collect();
    let ids: Vec<Id> = notifications.iter().map(|one| one.id.into()).collect();
    let mut all = vec![None; keeps.len()];
    for row in write.db.query(LOOK, &[&domains, &locals, &ids])? {
        let place: i64 = row.try_get(0)?;
        let found = Found {
            account: AccountId(uint(&row, 1)?),
            waiting: uint(&row, 2)?,
            known: row.try_get(3)?,
            registrations: uint(&row, 4)?,
        };
        if let Some(place) = usize::try_from(place - 1).ok().and_then(|place| all.get_mut(place)) {
            *place = Some(found);
        }
    }
    Ok(all)
}

const LOOK: &str = "SELECT k.place, a.id, (SELECT count(*) FROM notification n WHERE n.account = a.id),
        EXISTS (SELECT 1 FROM notification n WHERE n.id = k.id) OR EXISTS (SELECT 1 FROM trace t WHERE t.id = k.id),
        a.registrations
    FROM unnest($1::bigint[], $2::text[], $3::uuid[]) WITH ORDINALITY AS k (domain, local, id, place)
    JOIN account a ON a.domain = k.domain AND a.local = k.local";

/// Writes the rows, in their order.
fn insert(write: &Transaction<'_>, keeps: &[(&StoreNotification, Found)]) -> Result<()> {
    if keeps.is_empty() {
        return Ok(());
    }
    let all = || keeps.iter().map(|(keep, _)| (&*keep.notification, keep.now));
    let ids: Vec<Id> = all().map(|(one, _)| one.id.into()).collect();
    let accounts: Vec<i64> = keeps.iter().map(|(_, found)| int(found.account.0)).collect();
    let domains: Vec<i64> = all().map(|(one, _)| one.domain.0.into()).collect();
    let locals: Vec<&str> = all().map(|(one, _)| one.to.local().unwrap_or_default()).collect();
    let audiences: Vec<i16> = all().map(|(one, _)| short(one.audience)).collect();
    let ranks: Vec<i16> = all().map(|(one, _)| short(one.priority)).collect();
    let accepted: Vec<i64> = all().map(|(one, _)| int(one.accepted.0)).collect();
    let expires: Vec<Option<i64>> = all().map(|(one, _)| opt_int(one.expires)).collect();
    let collapse_keys: Vec<Option<&str>> = all().map(|(one, _)| one.collapse_key.as_deref()).collect();
    let send_at: Vec<Option<i64>> = all().map(|(one, _)| opt_int(one.send_at)).collect();
    let due: Vec<Option<i64>> = all().map(|(one, now)| opt_int(one.send_at.filter(|at| *at > now))).collect();
    // A scheduled one counts as stored from when it waits for the device.
    let stored: Vec<Option<i64>> =
        all().zip(&due).map(|((_, now), due)| due.is_none().then(|| int(now.0))).collect();
    let payloads: Vec<PayloadColumns<'_>> = all().map(|(one, _)| PayloadColumns::of(&one.payload)).collect();
    let xml: Vec<bool> = payloads.iter().map(|columns| columns.xml).collect();
    let resources: Vec<Option<&str>> = payloads.iter().map(|columns| columns.resource).collect();
    let payloads: Vec<&[u8]> = payloads.iter().map(|columns| &*columns.payload).collect();
    let keys: Vec<Option<i64>> = all().map(|(one, _)| one.key.map(|key| key.0.into())).collect();
    write.run(
        INSERT,
        &[
            &ids,
            &accounts,
            &domains,
            &locals,
            &audiences,
            &ranks,
            &accepted,
            &expires,
            &collapse_keys,
            &send_at,
            &due,
            &stored,
            &xml,
            &payloads,
            &keys,
            &resources,
        ],
    )?;
    for (keep, found) in keeps {
        if let Some(wake) = &keep.wake
            && found.registrations > 0
        {
            push::wake(write, found.account, wake, Tells::Notification(keep.notification.id))?;
        }
    }
    Ok(())
}

const INSERT: &str = "INSERT INTO notification (id, account, domain, local, audience, rank, accepted, expires, collapse_key, send_at, due,
        stored, xml, payload, key, resource)
    SELECT id, account, domain, local, audience, rank, accepted, expires, collapse_key, send_at, due, stored, xml, payload, key,
        resource
    FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::smallint[], $6::smallint[], $7::bigint[], $8::bigint[],
        $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::boolean[], $14::bytea[], $15::bigint[], $16::text[])
        WITH ORDINALITY AS k (id, account, domain, local, audience, rank, accepted, expires, collapse_key, send_at, due, stored, xml,
        payload, key, resource, place)
    ORDER BY place";
