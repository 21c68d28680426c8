//! Webhooks, and the events that their receivers did not take.

use super::column::{blob, code, int, ms, number, opt_ms, opt_text, text, uint};
use super::event as events;
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::code::Code;
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
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

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
        let mut query = self.db.prepare_cached(select!("WHERE ?1 IS NULL OR domain = ?1 ORDER BY id"))?;
        query.query_map([asked.domain.map(|domain| domain.0)], webhook)?.collect()
    }
}

impl Answers<DeadLetters, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &DeadLetters) -> Result<Part<DeadLetter>> {
        let mut query = self.db.prepare_cached(
            "SELECT event, failed, error, body FROM dead_letter WHERE webhook = ?1 AND event > ?2 ORDER BY event",
        )?;
        let mut rows = query.query(params![asked.webhook.0, int(asked.after)])?;
        let (mut entries, mut room) = (Vec::new(), Room::new(asked.page));
        while let Some(row) = rows.next()? {
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
        let number_of = domain.map(|domain| domain.0);
        let (all, of_domain): (u32, u32) = self
            .db
            .prepare_cached("SELECT count(*), count(*) FILTER (WHERE domain = ?1) FROM webhook")?
            .query_row([number_of], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if all >= WEBHOOKS_MAX || of_domain >= WEBHOOKS_PER_DOMAIN_MAX {
            return Ok(CreateWebhookAnswer::TooMany);
        }
        let cursor = events::newest(self.db)?;
        self.run(
            "INSERT INTO webhook (domain, url, states, secret, created, cursor, types, contents)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                number_of,
                url,
                bits(wanted.states),
                secret.0,
                int(now.0),
                int(cursor),
                event::bits(wanted.types),
                contents
            ],
        )?;
        let id = WebhookId(number(self.db.last_insert_rowid())?);
        Ok(CreateWebhookAnswer::Created(Box::new(created(asked, id, cursor))))
    }
}

impl Answers<UpdateWebhook, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &UpdateWebhook) -> Result<Option<Box<model::Webhook>>> {
        let UpdateWebhook { id, url, types, states, contents, secret, status } = asked;
        self.run(
            "UPDATE webhook SET url = coalesce(?2, url), states = coalesce(?3, states),
                 secret = coalesce(?4, secret), status = coalesce(?5, status), types = coalesce(?6, types),
                 contents = coalesce(?7, contents) WHERE id = ?1",
            params![
                id.0,
                url,
                states.map(bits),
                secret.as_ref().map(|secret| &secret.0),
                status.map(Code::code),
                types.map(event::bits),
                contents
            ],
        )?;
        if url.is_some() || *status == Some(WebhookStatus::Enabled) {
            self.run(
                "UPDATE webhook SET failures = 0, refusals = 0, is_alone = 0, next_attempt = NULL, failed = NULL,
                     error = NULL WHERE id = ?1",
                [id.0],
            )?;
        }
        find(self.db, *id)
    }
}

impl Answers<DeleteWebhook, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteWebhook) -> Result<Result<(), Missing>> {
        self.run("DELETE FROM dead_letter WHERE webhook = ?1", [asked.id.0])?;
        self.change("DELETE FROM webhook WHERE id = ?1", [asked.id.0])
    }
}

impl Answers<ClaimWebhooks, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ClaimWebhooks) -> Result<Vec<model::Webhook>> {
        let ClaimWebhooks { owner, now, until, passed } = asked;
        let owner = owner.cast_signed();
        for (id, cursor) in passed {
            self.run(
                "UPDATE webhook SET cursor = ?3 WHERE id = ?1 AND owner = ?2 AND cursor < ?3",
                params![id.0, owner, int(*cursor)],
            )?;
        }
        self.run(
            "UPDATE webhook SET owner = ?1, claimed = ?3
             WHERE status = ?4 AND (owner IS NULL OR owner = ?1 OR claimed <= ?2)",
            params![owner, int(now.0), int(until.0), WebhookStatus::Enabled.code()],
        )?;
        let mut query = self.db.prepare_cached(select!("WHERE owner = ?1 AND status = ?2 ORDER BY id"))?;
        query.query_map(params![owner, WebhookStatus::Enabled.code()], webhook)?.collect()
    }
}

/// Ends all claims, when the database is opened: whoever held them is gone, since the file has one owner at a time.
pub(super) fn end_claims(db: &Connection) -> Result<()> {
    db.execute("UPDATE webhook SET owner = NULL, claimed = NULL WHERE owner IS NOT NULL", [])?;
    Ok(())
}

impl Answers<CommitWebhook, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CommitWebhook) -> Result<Result<(), Lost>> {
        let CommitWebhook { id, owner, progress, is_gone, letters } = asked;
        let WebhookProgress { cursor, failures, refusals, is_alone, next_attempt, last_failure } = progress;
        let is_held = self.run(
            "UPDATE webhook SET cursor = ?3, failures = ?4, refusals = ?5, is_alone = ?6, next_attempt = ?7,
                 failed = ?8, error = ?9, status = CASE WHEN ?10 THEN ?11 ELSE status END
             WHERE id = ?1 AND owner = ?2",
            params![
                id.0,
                owner.cast_signed(),
                int(*cursor),
                failures,
                refusals,
                is_alone,
                next_attempt.map(|at| int(at.0)),
                last_failure.as_ref().map(|failure| int(failure.at.0)),
                last_failure.as_ref().map(|failure| &failure.error),
                is_gone,
                WebhookStatus::Gone.code()
            ],
        )?;
        if is_held == 0 {
            return Ok(Err(Lost));
        }
        letters.iter().try_for_each(|letter| keep(self, *id, letter))?;
        drop_oldest(self, *id)?;
        Ok(Ok(()))
    }
}

/// Keeps a letter, unless one of its event is there.
fn keep(write: &Transaction<'_>, id: WebhookId, letter: &DeadLetter) -> Result<()> {
    let kept = write.run(
        "INSERT INTO dead_letter (webhook, event, failed, error, body) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO NOTHING",
        params![id.0, int(letter.event), int(letter.failure.at.0), letter.failure.error, &letter.body[..]],
    )?;
    write.run(
        "UPDATE webhook SET letters = letters + ?2, letter_bytes = letter_bytes + ?2 * ?3 WHERE id = ?1",
        params![id.0, kept as i64, letter.bytes() as i64],
    )?;
    Ok(())
}

/// Drops the oldest letters beyond the bounds.
fn drop_oldest(write: &Transaction<'_>, id: WebhookId) -> Result<()> {
    loop {
        let (count, bytes) = write
            .db
            .prepare_cached("SELECT letters, letter_bytes FROM webhook WHERE id = ?1")?
            .query_row([id.0], |row| Ok((uint(row, 0)?, uint(row, 1)?)))?;
        if count == 0 || (count <= DEAD_LETTERS_MAX && bytes <= DEAD_LETTER_BYTES_MAX) {
            return Ok(());
        }
        let oldest = write
            .db
            .prepare_cached("SELECT event FROM dead_letter WHERE webhook = ?1 ORDER BY event LIMIT 1")?
            .query_row([id.0], |row| uint(row, 0))?;
        delete(write, id, oldest)?;
        write.run("UPDATE webhook SET dropped = dropped + 1 WHERE id = ?1", [id.0])?;
    }
}

impl Answers<DeleteDeadLetters, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteDeadLetters) -> Result<()> {
        asked.events.iter().try_for_each(|event| delete(self, asked.webhook, *event))
    }
}

/// Removes a letter if it is there.
fn delete(write: &Transaction<'_>, id: WebhookId, event: u64) -> Result<()> {
    let bytes: Option<i64> = write
        .db
        .prepare_cached(
            "DELETE FROM dead_letter WHERE webhook = ?1 AND event = ?2
             RETURNING length(body) + length(CAST(error AS BLOB))",
        )?
        .query_row(params![id.0, int(event)], |row| row.get(0))
        .optional()?;
    if let Some(bytes) = bytes {
        write.run(
            "UPDATE webhook SET letters = letters - 1, letter_bytes = letter_bytes - ?2 WHERE id = ?1",
            params![id.0, bytes],
        )?;
    }
    Ok(())
}

fn find(db: &Connection, id: WebhookId) -> Result<Option<Box<model::Webhook>>> {
    db.prepare_cached(select!("WHERE id = ?1"))?
        .query_row([id.0], webhook)
        .optional()
        .map(|found| found.map(Box::new))
}

fn webhook(row: &Row<'_>) -> Result<model::Webhook> {
    let failed = opt_ms(row, 12)?;
    let last_failure = failed.zip(opt_text(row, 13)?).map(|(at, error)| WebhookFailure { at, error });
    Ok(model::Webhook {
        id: WebhookId(row.get(0)?),
        domain: row.get::<_, Option<u32>>(1)?.map(DomainId),
        url: text(row, 2)?,
        wanted: EventFilter { types: event::types(row.get(17)?), states: states(row.get(3)?) },
        contents: row.get(18)?,
        secret: WebhookSecret(blob(row, 4)?.into()),
        status: code(row, 5)?,
        created: ms(row, 6)?,
        progress: WebhookProgress {
            cursor: uint(row, 7)?,
            failures: row.get(8)?,
            refusals: row.get(9)?,
            is_alone: row.get(10)?,
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
