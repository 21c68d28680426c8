//! Which question is a read and which a write, and who answers it.

use super::keeping::Keep;
use super::last::LastItems;
use super::login::{self, IdentityAsk, LastRevisions, LoginAsk};
use super::write::Write;
use super::{account, domain, ending, item, key, listing, notification, offline, subscription, topic};
use carillon_core::ports::{Answer, Ask, Fault};
use rusqlite::{Connection, Result};

/// Whether a question is answered from a snapshot, without the writer.
pub(super) fn is_read(ask: &Ask) -> bool {
    matches!(
        ask,
        Ask::Domains
            | Ask::Identity { .. }
            | Ask::Login { .. }
            | Ask::Account { .. }
            | Ask::Accounts { .. }
            | Ask::Topic { .. }
            | Ask::Topics { .. }
            | Ask::SubscriptionsOf { .. }
            | Ask::IsSubscribed { .. }
            | Ask::Subscribers { .. }
            | Ask::SubscriberCount { .. }
            | Ask::AffiliationsOf { .. }
            | Ask::Items { .. }
            | Ask::ItemNames { .. }
            | Ask::Trace { .. }
            | Ask::Notifications { .. }
            | Ask::Pending { .. }
            | Ask::Offline { .. }
            | Ask::Key { .. }
            | Ask::Keys { .. }
    )
}

/// What a read works with: a snapshot and what is remembered of it.
pub(super) struct Read<'a> {
    pub(super) db: &'a Connection,
    pub(super) last: &'a LastItems,
    pub(super) revisions: &'a mut LastRevisions,
}

/// Answers many reads, in their order: those of logins together.
pub(super) fn reads(read: &mut Read<'_>, asks: &[Ask]) -> Vec<Answer> {
    let mut answers: Vec<Answer> = asks
        .iter()
        .map(|ask| match ask {
            // They get theirs below.
            Ask::Identity { .. } | Ask::Login { .. } => Answer::Missing,
            ask => or_broken(one(read, ask)),
        })
        .collect();
    together(asks, &mut answers, identity_ask, |asks| login::identities(read.db, asks));
    together(asks, &mut answers, login_ask, |asks| login::logins(read, asks));
    answers
}

/// Answers those that `pick` picks together; one by one should that fail.
fn together<'a, T>(
    asks: &'a [Ask],
    answers: &mut [Answer],
    pick: impl Fn(&'a Ask) -> Option<T>,
    mut answer: impl FnMut(&[T]) -> Result<Vec<Answer>>,
) {
    let picked = asks.iter().enumerate().filter_map(|(i, ask)| pick(ask).map(|picked| (i, picked)));
    let (places, picked): (Vec<usize>, Vec<T>) = picked.unzip();
    let found = answer(&picked).unwrap_or_else(|e| {
        tracing::error!(error = %e, "a batch of logins failed; each is tried alone");
        let alone = |ask: &[T]| answer(ask).unwrap_or_else(|e| vec![or_broken(Err(e))]);
        picked.chunks(1).flat_map(alone).collect()
    });
    for (place, answer) in places.into_iter().zip(found) {
        answers[place] = answer;
    }
}

fn identity_ask(ask: &Ask) -> Option<IdentityAsk<'_>> {
    let Ask::Identity { domain, local } = ask else { return None };
    Some(IdentityAsk { domain: *domain, local })
}

fn login_ask(ask: &Ask) -> Option<LoginAsk> {
    let Ask::Login { account, now } = ask else { return None };
    Some(LoginAsk { account: *account, now: *now })
}

fn or_broken(answer: Result<Answer>) -> Answer {
    answer.unwrap_or_else(|e| {
        tracing::error!(error = %e, "store read failed");
        Answer::Failed(Fault::Broken)
    })
}

/// Answers one read that is no login.
fn one(read: &Read<'_>, ask: &Ask) -> Result<Answer> {
    let db = read.db;
    match ask {
        Ask::Domains => domain::list(db),
        Ask::Account { domain, local } => account::describe(db, *domain, local),
        Ask::Accounts { domain, after, limit } => account::list(db, *domain, after.as_deref(), *limit),
        Ask::Topic { domain, name } => topic::describe(db, *domain, name),
        Ask::Topics { domain, after, limit } => topic::list(db, *domain, after.as_deref(), *limit),
        Ask::SubscriptionsOf { domain, local } => subscription::of_account(db, *domain, local),
        Ask::IsSubscribed { topic, domain, local } => subscription::exists(db, *topic, *domain, local),
        Ask::Subscribers { topic, after, limit } => {
            subscription::of_topic(db, *topic, after.as_ref(), *limit)
        }
        Ask::SubscriberCount { topic } => subscription::count(db, *topic),
        Ask::AffiliationsOf { domain, jid } => topic::standing_of(db, *domain, jid),
        Ask::Items { topic, ids, from, max, bytes_max } => {
            let page = item::Page { from, max: *max, bytes_max: *bytes_max };
            item::list(db, read.last, *topic, ids, &page)
        }
        Ask::ItemNames { topic, from, max } => item::names(db, *topic, from, *max),
        Ask::Trace { id } => ending::trace(db, *id),
        Ask::Notifications { query } => listing::list(db, query),
        Ask::Pending { domain, local, except, page, now } => {
            notification::pending(db, *domain, local, except, *page, *now)
        }
        Ask::Offline { domain, local, after, page } => offline::list(db, *domain, local, *after, *page),
        Ask::Key { hash } => key::find(db, hash),
        Ask::Keys { domain } => key::list(db, *domain),
        _ => Err(unknown(ask)),
    }
}

/// Does a write.
pub(super) fn write(write: &mut Write<'_>, ask: &Ask) -> Result<Answer> {
    match ask {
        Ask::PutDomain { name, policy } => domain::put(write, name, *policy),
        Ask::DeleteDomain { domain } => domain::delete(write, *domain),
        Ask::CreateAccount { domain, local, credentials, now } => {
            account::create(write, *domain, local, credentials, *now)
        }
        Ask::ImportAccounts { domain, accounts, now } => account::import(write, *domain, accounts, *now),
        Ask::SetCredentials { domain, local, credentials } => {
            account::set_credentials(write, *domain, local, credentials)
        }
        Ask::SetAccountState { domain, local, state } => account::set_state(write, *domain, local, *state),
        Ask::RevokeTokens { domain, local, agent } => account::revoke_tokens(write, *domain, local, *agent),
        Ask::DeleteAccount { domain, local, now } => account::delete(write, *domain, local, *now),
        Ask::CreateTopic { .. }
        | Ask::ConfigureTopic { .. }
        | Ask::SetAffiliations { .. }
        | Ask::DeleteTopic { .. }
        | Ask::Subscribe { .. }
        | Ask::Unsubscribe { .. }
        | Ask::Publish { .. }
        | Ask::Retract { .. }
        | Ask::Purge { .. } => write_topic(write, ask),
        Ask::StoreNotification { notification, queue_max, now } => {
            notification::store(write, Keep { notification, queue_max: *queue_max, now: *now })
        }
        Ask::EndNotifications { changes } => ending::change(write, changes),
        Ask::CancelNotification { id, now } => ending::cancel(write, *id, *now),
        Ask::TakeDue { now, max } => notification::take_due(write, *now, *max),
        Ask::Sweep { now, forget, max } => ending::sweep(write, *now, *forget, *max),
        Ask::StoreOffline { domain, local, received, stanza, queue_max } => {
            offline::store(write, *domain, local, *received, stanza, *queue_max)
        }
        Ask::DeleteOffline { domain, local, seqs } => offline::delete(write, *domain, local, seqs),
        Ask::CreateKey { hash, name, domain, scopes, now } => {
            key::create(write, hash, name, *domain, *scopes, *now)
        }
        Ask::DeleteKey { id } => key::delete(write, *id),
        Ask::Reserve { key, idempotency_key, body_hash, now } => {
            key::reserve(write, *key, idempotency_key, body_hash, *now)
        }
        Ask::Remember { key, idempotency_key, status, response } => {
            key::remember(write, *key, idempotency_key, *status, response)
        }
        Ask::Release { key, idempotency_key } => key::release(write, *key, idempotency_key),
        _ => Err(unknown(ask)),
    }
}

fn write_topic(write: &mut Write<'_>, ask: &Ask) -> Result<Answer> {
    match ask {
        Ask::CreateTopic { domain, name, config, affiliations, owned_max, now } => {
            if topic::owns(write.db, affiliations, *owned_max)? {
                return Ok(Answer::Full);
            }
            topic::create(write, *domain, name, config, affiliations, *now)
        }
        Ask::ConfigureTopic { topic, config } => topic::configure(write, *topic, config),
        Ask::SetAffiliations { topic, changes } => topic::set_affiliations(write, *topic, changes),
        Ask::DeleteTopic { topic } => topic::delete(write, *topic),
        Ask::Subscribe { topic, domain, local, max, now } => {
            subscription::subscribe(write, *topic, (*domain, local), *max, *now)
        }
        Ask::Unsubscribe { topic, domain, local } => subscription::unsubscribe(write, *topic, *domain, local),
        Ask::Publish { item, keep } => item::publish(write, item, *keep),
        Ask::Retract { topic, item } => item::retract(write, *topic, item),
        Ask::Purge { topic } => item::purge(write, *topic),
        _ => Err(unknown(ask)),
    }
}

/// The port was given a question that this store was not taught.
fn unknown(ask: &Ask) -> rusqlite::Error {
    rusqlite::Error::InvalidParameterName(format!("no answer to {ask:?}"))
}
