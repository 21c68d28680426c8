//! Webhooks, and the events that their receivers did not take.

use super::column::{blob, code, int, ms, number, opt_ms, opt_number, opt_text, short, text, uint};
use super::connection::Connection;
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use super::{event as events, lookup};
use crate::rows::event;
use crate::rows::page::Room;
use crate::rows::webhook::{bits, created, states};
use bytes::Bytes;
use carillon_core::model::{
    self, DeadLetter, DomainId, EventFilter, WebhookFailure, WebhookId, WebhookProgress, WebhookSecret,
    WebhookStatus,
};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::webhooks::{
    ClaimWebhooks, CommitWebhook, CreateWebhook, CreateWebhookAnswer, DEAD_LETTER_BYTES_MAX,
    DEAD_LETTERS_MAX, DeadLetters, DeleteDeadLetters, DeleteWebhook, Lost, UpdateWebhook, WEBHOOKS_MAX,
    WEBHOOKS_PER_DOMAIN_MAX, Webhook, Webhooks,
};
use carillon_core::ports::{Missing, Part};
use tokio_postgres::Row;

/// What [`webhook`] reads.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, domain, url, states, secret, status, created, cursor, failures, refusals, is_alone,
                 next_attempt, failed, error, letters, letter_bytes, dropped, types, contents FROM webhook ",
            $rest
        )
    };
}

impl Answers<Webhook, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Webhook) -> Result<Option<Box<model::Webhook>>> {
        find(self.db, asked.id)
    }
}

impl Answers<Webhooks, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Webhooks) -> Result<Vec<model::Webhook>> {
        let domain = asked.domain.map(|domain| i64::from(domain.0));
        let rows =
            self.db.query(select!("WHERE $1::bigint IS NULL OR domain = $1 ORDER BY id"), &[&domain])?;
        rows.iter().map(webhook).collect()
    }
}

impl Answers<DeadLetters, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &DeadLetters) -> Result<Part<DeadLetter>> {
        let rows = self.db.query(
            "SELECT event, failed, error, body FROM dead_letter WHERE webhook = $1 AND event > $2 ORDER BY event LIMIT $3",
            &[&i64::from(asked.webhook.0), &int(asked.after), &(i64::from(asked.page.entries) + 1)],
        )?;
        let (mut entries, mut room) = (Vec::new(), Room::new(asked.page));
        for row in &rows {
            let failure = WebhookFailure { at: ms(row, 1)?, error: text(row, 2)? };
            let letter =
                DeadLetter { event: uint(row, 0)?, body: Bytes::copy_from_slice(blob(row, 3)?), failure };
            if !room.takes(letter.bytes()) {
                return Ok(Part { entries, more: true });
            }
            entries.push(letter);
        }
        Ok(Part { entries, more: false })
    }
}

impl Answers<CreateWebhook, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CreateWebhook) -> Result<CreateWebhookAnswer> {
        let CreateWebhook { domain, url, wanted, contents, secret, now } = asked;
        if let Some(domain) = domain
            && lookup::domain_name(self.db, *domain)?.is_none()
        {
            return Ok(CreateWebhookAnswer::NoDomain);
        }
        let domain = domain.map(|domain| i64::from(domain.0));
        let counts =
            self.db.one("SELECT count(*), count(*) FILTER (WHERE domain = $1) FROM webhook", &[&domain])?;
        if number(&counts, 0)? >= WEBHOOKS_MAX || number(&counts, 1)? >= WEBHOOKS_PER_DOMAIN_MAX {
            return Ok(CreateWebhookAnswer::TooMany);
        }
        // What ended before it in this group is no event for it.
        self.number_events()?;
        let cursor = events::newest(self.db)?;
        let row = self.returning_one(
            "INSERT INTO webhook (domain, url, states, secret, created, cursor, types, contents)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id",
            &[
                &domain,
                url,
                &bits(wanted.states),
                &&secret.0[..],
                &int(now.0),
                &int(cursor),
                &event::bits(wanted.types),
                contents,
            ],
        )?;
        let id = WebhookId(number(&row, 0)?);
        Ok(CreateWebhookAnswer::Created(Box::new(created(asked, id, cursor))))
    }
}

impl Answers<UpdateWebhook, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &UpdateWebhook) -> Result<Option<Box<model::Webhook>>> {
        let UpdateWebhook { id, url, types, states, contents, secret, status } = asked;
        let number = i64::from(id.0);
        self.run(
            "UPDATE webhook SET url = coalesce($2, url), states = coalesce($3, states),
                 secret = coalesce($4, secret), status = coalesce($5, status), types = coalesce($6, types),
                 contents = coalesce($7, contents) WHERE id = $1",
            &[
                &number,
                url,
                &states.map(bits),
                &secret.as_ref().map(|secret| &secret.0[..]),
                &status.map(short),
                &types.map(event::bits),
                contents,
            ],
        )?;
        if url.is_some() || *status == Some(WebhookStatus::Enabled) {
            self.run(
                "UPDATE webhook SET failures = 0, refusals = 0, is_alone = false, next_attempt = NULL, failed = NULL,
                     error = NULL WHERE id = $1",
                &[&number],
            )?;
        }
        find(self.db, *id)
    }
}

impl Answers<DeleteWebhook, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteWebhook) -> Result<std::result::Result<(), Missing>> {
        let id = i64::from(asked.id.0);
        self.run("DELETE FROM dead_letter WHERE webhook = $1", &[&id])?;
        self.change("DELETE FROM webhook WHERE id = $1", &[&id])
    }
}

impl Answers<ClaimWebhooks, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ClaimWebhooks) -> Result<Vec<model::Webhook>> {
        let ClaimWebhooks { owner, now, until, passed } = asked;
        let (owner, enabled) = (owner.cast_signed(), short(WebhookStatus::Enabled));
        let ids: Vec<i64> = passed.iter().map(|(id, _)| id.0.into()).collect();
        let cursors: Vec<i64> = passed.iter().map(|(_, cursor)| int(*cursor)).collect();
        self.run(
            "UPDATE webhook w SET cursor = p.cursor FROM unnest($1::bigint[], $2::bigint[]) AS p (id, cursor)
             WHERE w.id = p.id AND w.owner = $3 AND w.cursor < p.cursor",
            &[&ids, &cursors, &owner],
        )?;
        self.run(
            "UPDATE webhook SET owner = $1, claimed = $3, node = $5
             WHERE status = $4 AND (owner IS NULL OR owner = $1 OR claimed <= $2)",
            &[&owner, &int(now.0), &int(until.0), &enabled, &self.node.name],
        )?;
        let rows =
            self.db.query(select!("WHERE owner = $1 AND status = $2 ORDER BY id"), &[&owner, &enabled])?;
        rows.iter().map(webhook).collect()
    }
}

impl Answers<CommitWebhook, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CommitWebhook) -> Result<std::result::Result<(), Lost>> {
        let CommitWebhook { id, owner, progress, is_gone, letters } = asked;
        let WebhookProgress { cursor, failures, refusals, is_alone, next_attempt, last_failure } = progress;
        let is_held = self.run(
            "UPDATE webhook SET cursor = $3, failures = $4, refusals = $5, is_alone = $6, next_attempt = $7,
                 failed = $8, error = $9, status = CASE WHEN $10 THEN $11 ELSE status END
             WHERE id = $1 AND owner = $2",
            &[
                &i64::from(id.0),
                &owner.cast_signed(),
                &int(*cursor),
                &i64::from(*failures),
                &i64::from(*refusals),
                is_alone,
                &next_attempt.map(|at| int(at.0)),
                &last_failure.as_ref().map(|failure| int(failure.at.0)),
                &last_failure.as_ref().map(|failure| &*failure.error),
                is_gone,
                &short(WebhookStatus::Gone),
            ],
        )?;
        if is_held == 0 {
            return Ok(Err(Lost));
        }
        if !letters.is_empty() {
            keep(self, *id, letters)?;
            drop_oldest(self, *id)?;
        }
        Ok(Ok(()))
    }
}

/// Keeps letters, of each event the first.
fn keep(write: &Transaction<'_>, id: WebhookId, letters: &[DeadLetter]) -> Result<()> {
    let events: Vec<i64> = letters.iter().map(|letter| int(letter.event)).collect();
    let failed: Vec<i64> = letters.iter().map(|letter| int(letter.failure.at.0)).collect();
    let errors: Vec<&str> = letters.iter().map(|letter| &*letter.failure.error).collect();
    let bodies: Vec<&[u8]> = letters.iter().map(|letter| &letter.body[..]).collect();
    write.run(
        "WITH kept AS (
             INSERT INTO dead_letter (webhook, event, failed, error, body)
             SELECT $1, event, failed, error, body
             FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::bytea[]) AS l (event, failed, error, body)
             ON CONFLICT DO NOTHING RETURNING length(body) + octet_length(error) AS bytes)
         UPDATE webhook SET letters = letters + (SELECT count(*) FROM kept),
             letter_bytes = letter_bytes + (SELECT coalesce(sum(bytes), 0) FROM kept)::bigint WHERE id = $1",
        &[&i64::from(id.0), &events, &failed, &errors, &bodies],
    )?;
    write.note_rows(letters.len());
    Ok(())
}

/// Drops the oldest letters beyond the bounds.
fn drop_oldest(write: &Transaction<'_>, id: WebhookId) -> Result<()> {
    loop {
        let row =
            write.db.one("SELECT letters, letter_bytes FROM webhook WHERE id = $1", &[&i64::from(id.0)])?;
        let (count, bytes) = (uint(&row, 0)?, uint(&row, 1)?);
        if count == 0 || (count <= DEAD_LETTERS_MAX && bytes <= DEAD_LETTER_BYTES_MAX) {
            return Ok(());
        }
        // Those beyond the number at once, and those beyond the bytes one after the other: they are few.
        let beyond = int(count.saturating_sub(DEAD_LETTERS_MAX).max(1));
        let oldest = write.db.query(
            "SELECT event FROM dead_letter WHERE webhook = $1 ORDER BY event LIMIT $2",
            &[&i64::from(id.0), &beyond],
        )?;
        let oldest: Vec<u64> = oldest.iter().map(|row| uint(row, 0)).collect::<Result<_>>()?;
        delete(write, id, &oldest)?;
        write.run(
            "UPDATE webhook SET dropped = dropped + $2 WHERE id = $1",
            &[&i64::from(id.0), &(oldest.len() as i64)],
        )?;
    }
}

impl Answers<DeleteDeadLetters, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteDeadLetters) -> Result<()> {
        delete(self, asked.webhook, &asked.events)
    }
}

/// Removes letters that are there.
fn delete(write: &Transaction<'_>, id: WebhookId, events: &[u64]) -> Result<()> {
    let events: Vec<i64> = events.iter().map(|event| int(*event)).collect();
    write.run(
        "WITH gone AS (
             DELETE FROM dead_letter WHERE webhook = $1 AND event = ANY ($2::bigint[])
             RETURNING length(body) + octet_length(error) AS bytes)
         UPDATE webhook SET letters = letters - (SELECT count(*) FROM gone),
             letter_bytes = letter_bytes - (SELECT coalesce(sum(bytes), 0) FROM gone)::bigint WHERE id = $1",
        &[&i64::from(id.0), &events],
    )?;
    write.note_rows(events.len());
    Ok(())
}

fn find(db: &Connection, id: WebhookId) -> Result<Option<Box<model::Webhook>>> {
    let row = db.opt(select!("WHERE id = $1"), &[&i64::from(id.0)])?;
    row.map(|row| webhook(&row).map(Box::new)).transpose()
}

fn webhook(row: &Row) -> Result<model::Webhook> {
    let failed = opt_ms(row, 12)?;
    let last_failure = failed.zip(opt_text(row, 13)?).map(|(at, error)| WebhookFailure { at, error });
    Ok(model::Webhook {
        id: WebhookId(number(row, 0)?),
        domain: opt_number(row, 1)?.map(DomainId),
        url: text(row, 2)?,
        wanted: EventFilter { types: event::types(row.try_get(17)?), states: states(row.try_get(3)?) },
        contents: row.try_get(18)?,
        secret: WebhookSecret(blob(row, 4)?.into()),
        status: code(row, 5)?,
        created: ms(row, 6)?,
        progress: WebhookProgress {
            cursor: uint(row, 7)?,
            failures: number(row, 8)?,
            refusals: number(row, 9)?,
            is_alone: row.try_get(10)?,
            next_attempt: opt_ms(row, 11)?,
            last_failure,
        },
        dead_letters: model::DeadLetters {
            count: uint(row, 14)?,
            bytes: uint(row, 15)?,
            dropped: uint(row, 16)?,
        },
    })
}
