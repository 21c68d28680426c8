//! Files that clients upload, and what is to be removed of them. What files take together is kept by triggers.

use super::column::{corrupt, int, ms, text, uint};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::model::{DomainId, UnixMs, UploadAttempt, UploadId, UploadedFile};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::uploads::{
    CreateSlot, CreateSlotAnswer, DeleteUpload, ExpireUploads, FILE_COST, FinishUpload, FinishUploadAnswer,
    ForgetUploads, RemovableUploads, StartUpload, StartUploadAnswer, Upload, UploadsOf,
};
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

impl Answers<Upload, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Upload) -> Result<Option<Box<UploadedFile>>> {
        let mut query = self.db.prepare_cached(
            "SELECT name, media_type, bytes, expires, attempt FROM upload WHERE id = ?1 AND domain = ?2",
        )?;
        query.query_row(params![key(asked.id), asked.domain.0], |row| file(row, 0).map(Box::new)).optional()
    }
}

/// The file or slot in the five columns from this one on.
fn file(row: &Row<'_>, at: usize) -> Result<UploadedFile> {
    Ok(UploadedFile {
        name: text(row, at)?,
        media_type: text(row, at + 1)?,
        bytes: uint(row, at + 2)?,
        expires: ms(row, at + 3)?,
        attempt: row.get::<_, Option<i64>>(at + 4)?.map(attempt),
    })
}

fn id(row: &Row<'_>, at: usize) -> Result<UploadId> {
    let id = row.get_ref(at)?.as_blob()?.try_into().map_err(|_| corrupt(at, "16 bytes"))?;
    Ok(UploadId(u128::from_be_bytes(id)))
}

impl Answers<UploadsOf, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &UploadsOf) -> Result<Vec<(UploadId, UploadedFile)>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(Vec::new());
        };
        let after = asked.after.map(|(expires, id)| (int(expires.0), key(id)));
        let (expires, last) = after.as_ref().map_or((-1, &[][..]), |(expires, id)| (*expires, &id[..]));
        self.db
            .prepare_cached(
                "SELECT id, name, media_type, bytes, expires, attempt FROM upload
                 WHERE account = ?1 AND (expires, id) > (?2, ?3) ORDER BY expires, id LIMIT ?4",
            )?
            .query_map(params![int(account.0), expires, last, asked.max], |row| {
                Ok((id(row, 0)?, file(row, 1)?))
            })?
            .collect()
    }
}

impl Answers<RemovableUploads, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &RemovableUploads) -> Result<Vec<(UploadId, UploadAttempt)>> {
        self.db
            .prepare_cached(
                "SELECT id, attempt FROM removable_upload WHERE remove_at <= ?1 ORDER BY remove_at LIMIT ?2",
            )?
            .query_map(params![int(asked.until.0), asked.max], |row| Ok((id(row, 0)?, attempt(row.get(1)?))))?
            .collect()
    }
}

impl Answers<CreateSlot, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CreateSlot) -> Result<CreateSlotAnswer> {
        let CreateSlot { domain, local, id, name, media_type, bytes, expires, bounds } = asked;
        if state(self.db, *domain, *id)?.is_some() {
            return Ok(CreateSlotAnswer::Created);
        }
        let used = self
            .db
            .prepare_cached(
                "SELECT a.id, coalesce(u.bytes, 0), coalesce(d.bytes, 0) FROM account a
                 LEFT JOIN upload_account u ON u.account = a.id LEFT JOIN upload_domain d ON d.domain = a.domain
                 WHERE a.domain = ?1 AND a.local = ?2",
            )?
            .query_row(params![domain.0, local], |row| Ok((row.get(0)?, uint(row, 1)?, uint(row, 2)?)));
        let Some((account, own, all)): Option<(i64, u64, u64)> = used.optional()? else {
            return Ok(CreateSlotAnswer::NoAccount);
        };
        let cost = bytes.saturating_add(FILE_COST);
        if own.saturating_add(cost) > bounds.account_bytes || all.saturating_add(cost) > bounds.domain_bytes {
            let mut first = self.db.prepare_cached("SELECT min(expires) FROM upload WHERE account = ?1")?;
            let first = first.query_row([account], |row| row.get::<_, Option<i64>>(0))?;
            return Ok(CreateSlotAnswer::Full(first.map(|at| UnixMs(at.unsigned_abs()))));
        }
        self.run(
            "INSERT INTO upload (id, domain, account, name, media_type, bytes, expires) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![key(*id), domain.0, account, name, media_type, int(*bytes), int(expires.0)],
        )?;
        Ok(CreateSlotAnswer::Created)
    }
}

impl Answers<StartUpload, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &StartUpload) -> Result<StartUploadAnswer> {
        match state(self.db, asked.domain, asked.id)? {
            Some((_, Some(_))) => return Ok(StartUploadAnswer::Taken),
            Some((expires, None)) if expires > asked.now => {}
            Some(_) | None => return Ok(StartUploadAnswer::Missing),
        }
        self.run(
            "INSERT INTO removable_upload (id, attempt, remove_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (id, attempt) DO UPDATE SET remove_at = excluded.remove_at",
            params![key(asked.id), asked.attempt.0 as i64, int(asked.remove_at.0)],
        )?;
        self.run(
            "UPDATE upload SET expires = max(expires, ?2) WHERE id = ?1",
            params![key(asked.id), int(asked.remove_at.0)],
        )?;
        Ok(StartUploadAnswer::Started)
    }
}

impl Answers<FinishUpload, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &FinishUpload) -> Result<FinishUploadAnswer> {
        let attempt = asked.attempt.0 as i64;
        match state(self.db, asked.domain, asked.id)? {
            None => return Ok(FinishUploadAnswer::Missing),
            Some((_, Some(by))) if by == asked.attempt => return Ok(FinishUploadAnswer::Finished),
            Some((_, Some(_))) => return Ok(FinishUploadAnswer::Taken),
            Some((_, None)) => {}
        }
        let started = self.run(
            "DELETE FROM removable_upload WHERE id = ?1 AND attempt = ?2 AND remove_at > ?3",
            params![key(asked.id), attempt, int(asked.now.0)],
        )?;
        if started == 0 {
            return Ok(FinishUploadAnswer::Missing);
        }
        self.run(
            "UPDATE upload SET attempt = ?2, expires = ?3 WHERE id = ?1",
            params![key(asked.id), attempt, int(asked.expires.0)],
        )?;
        Ok(FinishUploadAnswer::Finished)
    }
}

impl Answers<DeleteUpload, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteUpload) -> Result<()> {
        self.run("DELETE FROM upload WHERE id = ?1 AND domain = ?2", params![key(asked.id), asked.domain.0])?;
        Ok(())
    }
}

impl Answers<ExpireUploads, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ExpireUploads) -> Result<bool> {
        self.run(
            "DELETE FROM upload WHERE id IN (SELECT id FROM upload WHERE expires <= ?1 ORDER BY expires LIMIT ?2)",
            params![int(asked.now.0), asked.max],
        )?;
        let mut more = self.db.prepare_cached("SELECT EXISTS (SELECT 1 FROM upload WHERE expires <= ?1)")?;
        more.query_row([int(asked.now.0)], |row| row.get(0))
    }
}

impl Answers<ForgetUploads, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ForgetUploads) -> Result<()> {
        for (id, attempt) in &asked.removed {
            self.run(
                "DELETE FROM removable_upload WHERE id = ?1 AND attempt = ?2",
                params![key(*id), attempt.0 as i64],
            )?;
        }
        Ok(())
    }
}

/// When a file or slot expires, and the attempt that uploaded it.
fn state(db: &Connection, domain: DomainId, id: UploadId) -> Result<Option<(UnixMs, Option<UploadAttempt>)>> {
    db.prepare_cached("SELECT expires, attempt FROM upload WHERE id = ?1 AND domain = ?2")?
        .query_row(params![key(id), domain.0], |row| {
            Ok((ms(row, 0)?, row.get::<_, Option<i64>>(1)?.map(attempt)))
        })
        .optional()
}

fn key(id: UploadId) -> [u8; 16] {
    id.0.to_be_bytes()
}

/// Any 64 bits, as a column has them.
fn attempt(number: i64) -> UploadAttempt {
    UploadAttempt(number as u64)
}
