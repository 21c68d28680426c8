//! Short links, the files of the apps that open them, and clicks.

mod clicks;
mod list;

use super::column::{blob, int, ms, opt_int, opt_ms, text, uint};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use crate::rows::code::Code;
use bytes::Bytes;
use carillon_core::model::{self, DomainId, KeyId, LinkId, UnixMs};
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::links::{
    ChangeLink, ChangeLinkAnswer, CreateLink, CreateLinkAnswer, Link, LinkSecret, PutLinkFile, ReadLinkFile,
};
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

/// What [`link`] reads.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT l.id, l.domain, l.code, l.url, l.may_change, l.created, l.expires, l.removed, l.key, c.clicks, c.last
             FROM link l LEFT JOIN link_click c ON c.link = l.id ",
            $rest
        )
    };
}
use select;

impl Answers<Link, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Link) -> Result<Option<Box<model::Link>>> {
        Ok(find(self.db, asked.domain, &asked.code)?.map(Box::new))
    }
}

impl Answers<ReadLinkFile, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadLinkFile) -> Result<Option<Bytes>> {
        self.db
            .prepare_cached("SELECT body FROM link_file WHERE domain = ?1 AND file = ?2")?
            .query_row(params![asked.domain.0, asked.file.code()], |row| {
                blob(row, 0).map(Bytes::copy_from_slice)
            })
            .optional()
    }
}

impl Answers<LinkSecret, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &LinkSecret) -> Result<Result<[u8; 32], Missing>> {
        if lookup::domain_name(self.db, asked.domain)?.is_none() {
            return Ok(Err(Missing));
        }
        self.run(
            "INSERT INTO link_domain (domain, secret) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
            params![asked.domain.0, asked.fresh],
        )?;
        self.db
            .prepare_cached("SELECT secret FROM link_domain WHERE domain = ?1")?
            .query_row([asked.domain.0], |row| row.get(0))
            .map(Ok)
    }
}

impl Answers<CreateLink, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CreateLink) -> Result<CreateLinkAnswer> {
        for code in &asked.codes {
            let Some(known) = find(self.db, asked.domain, code)? else { return add(self, asked, code) };
            if known.url == asked.url {
                let is_over = known.is_expired(asked.now) && known.removed.is_none();
                return Ok(match is_over {
                    true => CreateLinkAnswer::Created(Box::new(renew(self, asked, known)?)),
                    false => CreateLinkAnswer::Exists(Box::new(known)),
                });
            }
        }
        Ok(CreateLinkAnswer::Taken)
    }
}

impl Answers<ChangeLink, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &ChangeLink) -> Result<ChangeLinkAnswer> {
        let ChangeLink { domain, code, url, expires, removed, bounds } = asked;
        let Some(mut link) = find(self.db, *domain, code)? else { return Ok(ChangeLinkAnswer::Missing) };
        if let Some(url) = url {
            let (before, after) = (link.bytes(), model::Link::bytes_of(code, url));
            let used = used(self.db, *domain)?.map_or(0, |(_, bytes)| bytes);
            if after > before && used - before + after > bounds.bytes {
                return Ok(ChangeLinkAnswer::Full);
            }
            self.run(
                "UPDATE link_domain SET bytes = bytes + ?2 WHERE domain = ?1",
                params![domain.0, int(after) - int(before)],
            )?;
            link.url.clone_from(url);
        }
        link.expires = expires.unwrap_or(link.expires);
        link.removed = match removed {
            Some(Some(at)) => link.removed.or(Some(*at)),
            Some(None) => None,
            None => link.removed,
        };
        self.run(
            "UPDATE link SET url = ?2, expires = ?3, removed = ?4 WHERE id = ?1",
            params![int(link.id.0), link.url, opt_int(link.expires), opt_int(link.removed)],
        )?;
        Ok(ChangeLinkAnswer::Link(Box::new(link)))
    }
}

impl Answers<PutLinkFile, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &PutLinkFile) -> Result<Result<(), Missing>> {
        let PutLinkFile { domain, file, body } = asked;
        if lookup::domain_name(self.db, *domain)?.is_none() {
            return Ok(Err(Missing));
        }
        match body {
            Some(body) => self.run(
                "INSERT OR REPLACE INTO link_file (domain, file, body) VALUES (?1, ?2, ?3)",
                params![domain.0, file.code(), &body[..]],
            )?,
            None => self.run(
                "DELETE FROM link_file WHERE domain = ?1 AND file = ?2",
                params![domain.0, file.code()],
            )?,
        };
        Ok(Ok(()))
    }
}

fn find(db: &Connection, domain: DomainId, code: &str) -> Result<Option<model::Link>> {
    db.prepare_cached(select!("WHERE l.domain = ?1 AND l.code = ?2"))?
        .query_row(params![domain.0, code], link)
        .optional()
}

/// How many links a domain has, and their bytes; none before it has a secret.
fn used(db: &Connection, domain: DomainId) -> Result<Option<(u64, u64)>> {
    db.prepare_cached("SELECT links, bytes FROM link_domain WHERE domain = ?1")?
        .query_row([domain.0], |row| Ok((uint(row, 0)?, uint(row, 1)?)))
        .optional()
}

/// Adds a link whose code is free.
fn add(write: &mut Transaction<'_>, asked: &CreateLink, code: &str) -> Result<CreateLinkAnswer> {
    let CreateLink { domain, url, may_change, expires, key, now, bounds, .. } = asked;
    let Some((links, bytes)) = used(write.db, *domain)? else { return Ok(CreateLinkAnswer::NoDomain) };
    let own = model::Link::bytes_of(code, url);
    if links >= bounds.links || bytes + own > bounds.bytes {
        return Ok(CreateLinkAnswer::Full);
    }
    write.run(
        "INSERT INTO link (domain, code, url, may_change, created, expires, key) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![domain.0, code, url, may_change, int(now.0), opt_int(*expires), key.map(|key| key.0)],
    )?;
    let id = LinkId(write.db.last_insert_rowid().unsigned_abs());
    write.run(
        "UPDATE link_domain SET links = links + 1, bytes = bytes + ?2 WHERE domain = ?1",
        params![domain.0, int(own)],
    )?;
    Ok(CreateLinkAnswer::Created(Box::new(model::Link {
        id,
        domain: *domain,
        code: code.into(),
        url: url.clone(),
        may_change: *may_change,
        created: *now,
        expires: *expires,
        removed: None,
        key: *key,
        clicks: 0,
        last_click: None,
    })))
}

/// A link whose time is over begins anew.
fn renew(write: &mut Transaction<'_>, asked: &CreateLink, known: model::Link) -> Result<model::Link> {
    let CreateLink { may_change, expires, key, now, .. } = asked;
    write.run(
        "UPDATE link SET may_change = ?2, created = ?3, expires = ?4, key = ?5 WHERE id = ?1",
        params![int(known.id.0), may_change, int(now.0), opt_int(*expires), key.map(|key| key.0)],
    )?;
    Ok(model::Link { may_change: *may_change, created: *now, expires: *expires, key: *key, ..known })
}

/// Forgets links whose time was over before `until`, `max` at most.
pub(super) fn forget(write: &Transaction<'_>, until: UnixMs, max: u32) -> Result<()> {
    if has_old(write.db, until)? {
        let ids = "SELECT id FROM link WHERE expires < ?1 ORDER BY expires, id LIMIT ?2";
        remove(write, ids, int(until.0), max)?;
    }
    Ok(())
}

/// Whether there are links to be forgotten.
pub(super) fn has_old(db: &Connection, until: UnixMs) -> Result<bool> {
    db.prepare_cached("SELECT EXISTS (SELECT 1 FROM link WHERE expires < ?1)")?
        .query_row([int(until.0)], |row| row.get(0))
}

/// Removes the links that a question with two parameters gives.
fn remove(write: &Transaction<'_>, ids: &str, first: i64, max: u32) -> Result<usize> {
    let ids: Vec<i64> = write
        .db
        .prepare_cached(ids)?
        .query_map(params![first, max], |row| row.get(0))?
        .collect::<Result<_>>()?;
    for id in &ids {
        write.run("DELETE FROM link_click WHERE link = ?1", [id])?;
        write.run(
            "UPDATE link_domain SET links = links - 1, bytes = bytes -
                 (SELECT length(CAST(code AS BLOB)) + length(CAST(url AS BLOB)) FROM link WHERE id = ?1)
             WHERE domain = (SELECT domain FROM link WHERE id = ?1)",
            [id],
        )?;
        write.run("DELETE FROM link WHERE id = ?1", [id])?;
    }
    Ok(ids.len())
}

fn link(row: &Row<'_>) -> Result<model::Link> {
    Ok(model::Link {
        id: LinkId(uint(row, 0)?),
        domain: DomainId(row.get(1)?),
        code: text(row, 2)?,
        url: text(row, 3)?,
        may_change: row.get(4)?,
        created: ms(row, 5)?,
        expires: opt_ms(row, 6)?,
        removed: opt_ms(row, 7)?,
        key: row.get::<_, Option<u32>>(8)?.map(KeyId),
        clicks: row.get::<_, Option<i64>>(9)?.map_or(0, i64::unsigned_abs),
        last_click: opt_ms(row, 10)?,
    })
}
