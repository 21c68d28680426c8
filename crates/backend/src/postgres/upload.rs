//! Files that clients upload, and what is to be removed of them. What files take together is kept by triggers.

use super::column::{Id, int, ms, text, uint};
use super::connection::Connection;
use super::error::{Error, Result};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::model::{DomainId, UnixMs, UploadAttempt, UploadId, UploadedFile};
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::uploads::{
    CreateSlot, CreateSlotAnswer, DeleteUpload, ExpireUploads, FILE_COST, FinishUpload, FinishUploadAnswer,
    ForgetUploads, RemovableUploads, StartUpload, StartUploadAnswer, Upload, UploadsOf,
};
use tokio_postgres::Row;

impl Answers<Upload, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Upload) -> Result<Option<Box<UploadedFile>>> {
        let row = self.db.opt(
            "SELECT name, media_type, bytes, expires, attempt FROM upload WHERE id = $1 AND domain = $2",
            &[&Id(asked.id.0), &i64::from(asked.domain.0)],
        )?;
        row.map(|row| file(&row, 0).map(Box::new)).transpose()
    }
}

/// The file or slot in the five columns from this one on.
fn file(row: &Row, at: usize) -> Result<UploadedFile> {
    Ok(UploadedFile {
        name: text(row, at)?,
        media_type: text(row, at + 1)?,
        bytes: uint(row, at + 2)?,
        expires: ms(row, at + 3)?,
        attempt: row.try_get::<_, Option<i64>>(at + 4)?.map(attempt),
    })
}

impl Answers<UploadsOf, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &UploadsOf) -> Result<Vec<(UploadId, UploadedFile)>> {
        let Some(account) = lookup::account(self.db, asked.domain, &asked.local)? else {
            return Ok(Vec::new());
        };
        let (expires, last) = asked.after.map_or((-1, 0), |(expires, id)| (int(expires.0), id.0));
        let rows = self.db.query(
            "SELECT id, name, media_type, bytes, expires, attempt FROM upload
             WHERE account = $1 AND (expires, id) > ($2, $3) ORDER BY expires, id LIMIT $4",
            &[&int(account.0), &expires, &Id(last), &i64::from(asked.max)],
        )?;
        rows.iter().map(|row| Ok((UploadId(row.try_get::<_, Id>(0)?.0), file(row, 1)?))).collect()
    }
}

impl Answers<RemovableUploads, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &RemovableUploads) -> Result<Vec<(UploadId, UploadAttempt)>> {
        let rows = self.db.query(
            "SELECT id, attempt FROM removable_upload WHERE remove_at <= $1 ORDER BY remove_at LIMIT $2",
            &[&int(asked.until.0), &i64::from(asked.max)],
        )?;
        let read = |row: &Row| Ok((UploadId(row.try_get::<_, Id>(0)?.0), attempt(row.try_get(1)?)));
        rows.iter().map(read).collect()
    }
}

impl Answers<CreateSlot, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CreateSlot) -> Result<CreateSlotAnswer> {
        let CreateSlot { domain, local, id, name, media_type, bytes, expires, bounds } = asked;
        if state(self.db, *domain, *id)?.is_some() {
            return Ok(CreateSlotAnswer::Created);
        }
        let domain = i64::from(domain.0);
        let used = self.db.opt(
            "SELECT a.id, coalesce(u.bytes, 0), coalesce(d.bytes, 0) FROM account a
             LEFT JOIN upload_account u ON u.account = a.id LEFT JOIN upload_domain d ON d.domain = a.domain
             WHERE a.domain = $1 AND a.local = $2",
            &[&domain, local],
        )?;
        let Some(used) = used else { return Ok(CreateSlotAnswer::NoAccount) };
        let account: i64 = used.try_get(0)?;
        let (own, all) = (uint(&used, 1)?, uint(&used, 2)?);
        let cost = bytes.saturating_add(FILE_COST);
        if own.saturating_add(cost) > bounds.account_bytes || all.saturating_add(cost) > bounds.domain_bytes {
            let first = self.db.one("SELECT min(expires) FROM upload WHERE account = $1", &[&account])?;
            let first = first.try_get::<_, Option<i64>>(0)?;
            return Ok(CreateSlotAnswer::Full(first.map(|at| UnixMs(at.unsigned_abs()))));
        }
        self.run(
            "INSERT INTO upload (id, domain, account, name, media_type, bytes, expires) VALUES ($1, $2, $3, $4, $5, $6, $7)",
            &[&Id(id.0), &domain, &account, name, media_type, &int(*bytes), &int(expires.0)],
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
            "INSERT INTO removable_upload (id, attempt, remove_at) VALUES ($1, $2, $3)
             ON CONFLICT (id, attempt) DO UPDATE SET remove_at = excluded.remove_at",
            &[&Id(asked.id.0), &(asked.attempt.0 as i64), &int(asked.remove_at.0)],
        )?;
        self.run(
            "UPDATE upload SET expires = greatest(expires, $2) WHERE id = $1",
            &[&Id(asked.id.0), &int(asked.remove_at.0)],
        )?;
        Ok(StartUploadAnswer::Started)
    }
}

impl Answers<FinishUpload, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &FinishUpload) -> Result<FinishUploadAnswer> {
        let (id, attempt) = (Id(asked.id.0), asked.attempt.0 as i64);
        match state(self.db, asked.domain, asked.id)? {
            None => return Ok(FinishUploadAnswer::Missing),
            Some((_, Some(by))) if by == asked.attempt => return Ok(FinishUploadAnswer::Finished),
            Some((_, Some(_))) => return Ok(FinishUploadAnswer::Taken),
            Some((_, None)) => {}
        }
        let started = self.run(
            "DELETE FROM removable_upload WHERE id = $1 AND attempt = $2 AND remove_at > $3",
            &[&id, &attempt, &int(asked.now.0)],
        )?;
        if started == 0 {
            return Ok(FinishUploadAnswer::Missing);
        }
        self.run(
            "UPDATE upload SET attempt = $2, expires = $3 WHERE id = $1",
            &[&id, &attempt, &int(asked.expires.0)],
        )?;
        Ok(FinishUploadAnswer::Finished)
    }
}

impl Answers<DeleteUpload, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &DeleteUpload) -> Result<()> {
        let (id, domain) = (Id(asked.id.0), i64::from(asked.domain.0));
        self.run("DELETE FROM upload WHERE id = $1 AND domain = $2", &[&id, &domain])?;
        Ok(())
    }
}

impl Answers<ExpireUploads, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ExpireUploads) -> Result<bool> {
        self.run(
            "DELETE FROM upload WHERE id IN (SELECT id FROM upload WHERE expires <= $1 ORDER BY expires LIMIT $2)",
            &[&int(asked.now.0), &i64::from(asked.max)],
        )?;
        let more = "SELECT EXISTS (SELECT 1 FROM upload WHERE expires <= $1)";
        Ok(self.db.one(more, &[&int(asked.now.0)])?.try_get(0)?)
    }
}

impl Answers<ForgetUploads, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ForgetUploads) -> Result<()> {
        let ids: Vec<Id> = asked.removed.iter().map(|(id, _)| Id(id.0)).collect();
        let attempts: Vec<i64> = asked.removed.iter().map(|(_, attempt)| attempt.0 as i64).collect();
        self.run(
            "DELETE FROM removable_upload WHERE (id, attempt) IN (SELECT * FROM unnest($1::uuid[], $2::bigint[]))",
            &[&ids, &attempts],
        )?;
        Ok(())
    }
}

/// When a file or slot expires, and the attempt that uploaded it.
fn state(db: &Connection, domain: DomainId, id: UploadId) -> Result<Option<(UnixMs, Option<UploadAttempt>)>> {
    let row = db.opt(
        "SELECT expires, attempt FROM upload WHERE id = $1 AND domain = $2",
        &[&Id(id.0), &i64::from(domain.0)],
    )?;
    row.map(|row| Ok((ms(&row, 0)?, row.try_get::<_, Option<i64>>(1)?.map(attempt)))).transpose()
}

/// Any 64 bits, as a column has them.
fn attempt(number: i64) -> UploadAttempt {
    UploadAttempt(number as u64)
}
