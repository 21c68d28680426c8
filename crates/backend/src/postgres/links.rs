//! Short links, the files of the apps that open them, and clicks.

use super::column::{Id, blob, int, ms, number, opt_int, opt_ms, opt_number, short, text, uint};
use super::connection::Connection;
use super::error::{Error, Result};
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use super::{ending, lookup};
use bytes::Bytes;
use carillon_core::model::{self, AcknowledgedBy, Click, DomainId, KeyId, LinkId, NotificationId, UnixMs};
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::links::{
    ChangeLink, ChangeLinkAnswer, CountClicks, CreateLink, CreateLinkAnswer, Link, LinkSecret, Links,
    LinksAnswer, OpenNotifications, PutLinkFile, ReadLinkFile,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

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

/// Rows that are looked at for one answer: other reads wait meanwhile.
const ROWS_MAX: usize = 10_000;
/// Of those, how many are read at a time.
const STEP: usize = 1_000;

impl Answers<Link, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Link) -> Result<Option<Box<model::Link>>> {
        Ok(find(self.db, asked.domain, &asked.code)?.map(Box::new))
    }
}

impl Answers<Links, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Links) -> Result<LinksAnswer> {
        let (mut links, mut seen, mut looked_at) = (Vec::new(), asked.before, 0);
        loop {
            let rows = self.db.query(
                select!("WHERE l.domain = $1 AND l.id < $2 ORDER BY l.id DESC LIMIT $3"),
                &[&i64::from(asked.domain.0), &int(seen.0), &(STEP as i64)],
            )?;
            for row in &rows {
                if links.len() == usize::from(asked.limit) || looked_at == ROWS_MAX {
                    return Ok(LinksAnswer { links, next: Some(seen) });
                }
                (seen, looked_at) = (LinkId(uint(row, 0)?), looked_at + 1);
                let found = link(row)?;
                if found.code.contains(&*asked.search) || found.url.contains(&*asked.search) {
                    links.push(found);
                }
            }
            if rows.len() < STEP {
                return Ok(LinksAnswer { links, next: None });
            }
        }
    }
}

impl Answers<ReadLinkFile, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ReadLinkFile) -> Result<Option<Bytes>> {
        let row = self.db.opt(
            "SELECT body FROM link_file WHERE domain = $1 AND file = $2",
            &[&i64::from(asked.domain.0), &short(asked.file)],
        )?;
        row.map(|row| Ok(Bytes::copy_from_slice(blob(&row, 0)?))).transpose()
    }
}

impl Answers<LinkSecret, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &LinkSecret) -> Result<std::result::Result<[u8; 32], Missing>> {
        if lookup::domain_name(self.db, asked.domain)?.is_none() {
            return Ok(Err(Missing));
        }
        let domain = i64::from(asked.domain.0);
        self.run(
            "INSERT INTO link_domain (domain, secret) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            &[&domain, &&asked.fresh[..]],
        )?;
        let row = self.db.one("SELECT secret FROM link_domain WHERE domain = $1", &[&domain])?;
        blob(&row, 0)?.try_into().map(Ok).map_err(|_| Error::Corrupt("no secret"))
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
                "UPDATE link_domain SET bytes = bytes + $2 WHERE domain = $1",
                &[&i64::from(domain.0), &(int(after) - int(before))],
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
            "UPDATE link SET url = $2, expires = $3, removed = $4 WHERE id = $1",
            &[&int(link.id.0), &link.url, &opt_int(link.expires), &opt_int(link.removed)],
        )?;
        Ok(ChangeLinkAnswer::Link(Box::new(link)))
    }
}

impl Answers<PutLinkFile, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &PutLinkFile) -> Result<std::result::Result<(), Missing>> {
        let PutLinkFile { domain, file, body } = asked;
        if lookup::domain_name(self.db, *domain)?.is_none() {
            return Ok(Err(Missing));
        }
        let (domain, file) = (i64::from(domain.0), short(*file));
        match body {
            Some(body) => self.run(
                "INSERT INTO link_file (domain, file, body) VALUES ($1, $2, $3)
                 ON CONFLICT (domain, file) DO UPDATE SET body = $3",
                &[&domain, &file, &&body[..]],
            )?,
            None => self.run("DELETE FROM link_file WHERE domain = $1 AND file = $2", &[&domain, &file])?,
        };
        Ok(Ok(()))
    }
}

impl Answers<CountClicks, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CountClicks) -> Result<()> {
        for clicks in &asked.clicks {
            self.run(
                "INSERT INTO link_click (link, clicks, last) SELECT id, $2, $3 FROM link WHERE id = $1
                 ON CONFLICT (link) DO UPDATE SET clicks = link_click.clicks + $2, last = greatest(link_click.last, $3)",
                &[&int(clicks.link.0), &int(clicks.clicks), &int(clicks.last.0)],
            )?;
        }
        Ok(())
    }
}

impl Answers<OpenNotifications, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &OpenNotifications) -> Result<Vec<NotificationId>> {
        let mut noted = Vec::with_capacity(asked.clicks.len());
        for click in &asked.clicks {
            if open(self, click)? {
                noted.push(click.id);
            }
        }
        Ok(noted)
    }
}

/// Notes a click, of which the first counts; whether the notification is there.
fn open(write: &mut Transaction<'_>, click: &Click) -> Result<bool> {
    let Click { id, domain, opened } = click;
    let (key, domain) = (Id::from(*id), i64::from(domain.0));
    let waits = "SELECT 1 FROM notification WHERE id = $1 AND domain = $2";
    if write.db.opt(waits, &[&key, &domain])?.is_some() {
        ending::acknowledged(write, *id, opened.at, AcknowledgedBy::Link)?;
    }
    let found =
        write.db.opt("SELECT opened IS NULL FROM trace WHERE id = $1 AND domain = $2", &[&key, &domain])?;
    let Some(row) = found else { return Ok(false) };
    if row.try_get(0)? {
        write.run(
            "UPDATE trace SET opened = $2, agent = $3 WHERE id = $1",
            &[&key, &int(opened.at.0), &short(opened.agent)],
        )?;
        write.note_event(*id, opened.at, true);
    }
    Ok(true)
}

fn find(db: &Connection, domain: DomainId, code: &str) -> Result<Option<model::Link>> {
    let row = db.opt(select!("WHERE l.domain = $1 AND l.code = $2"), &[&i64::from(domain.0), &code])?;
    row.as_ref().map(link).transpose()
}

/// How many links a domain has, and their bytes; none before it has a secret.
fn used(db: &Connection, domain: DomainId) -> Result<Option<(u64, u64)>> {
    let row = db.opt("SELECT links, bytes FROM link_domain WHERE domain = $1", &[&i64::from(domain.0)])?;
    row.map(|row| Ok((uint(&row, 0)?, uint(&row, 1)?))).transpose()
}

/// Adds a link whose code is free.
fn add(write: &mut Transaction<'_>, asked: &CreateLink, code: &str) -> Result<CreateLinkAnswer> {
    let CreateLink { domain, url, may_change, expires, key, now, bounds, .. } = asked;
    let Some((links, bytes)) = used(write.db, *domain)? else { return Ok(CreateLinkAnswer::NoDomain) };
    let own = model::Link::bytes_of(code, url);
    if links >= bounds.links || bytes + own > bounds.bytes {
        return Ok(CreateLinkAnswer::Full);
    }
    let key_id: Option<i64> = key.map(|key| key.0.into());
    let row = write.returning_one(
        "WITH counted AS (UPDATE link_domain SET links = links + 1, bytes = bytes + $8 WHERE domain = $1)
         INSERT INTO link (domain, code, url, may_change, created, expires, key) VALUES ($1, $2, $3, $4, $5, $6, $7)
         RETURNING id",
        &[&i64::from(domain.0), &code, url, may_change, &int(now.0), &opt_int(*expires), &key_id, &int(own)],
    )?;
    Ok(CreateLinkAnswer::Created(Box::new(model::Link {
        id: LinkId(uint(&row, 0)?),
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
    let key_id: Option<i64> = key.map(|key| key.0.into());
    write.run(
        "UPDATE link SET may_change = $2, created = $3, expires = $4, key = $5 WHERE id = $1",
        &[&int(known.id.0), may_change, &int(now.0), &opt_int(*expires), &key_id],
    )?;
    Ok(model::Link { may_change: *may_change, created: *now, expires: *expires, key: *key, ..known })
}

/// Forgets links whose time was over before `until`, `max` at most.
pub(super) fn forget(write: &Transaction<'_>, until: UnixMs, max: u32) -> Result<()> {
    if has_old(write.db, until)? {
        let ids = "SELECT id FROM link WHERE expires < $1 ORDER BY expires, id LIMIT $2";
        remove(write, ids, &int(until.0), max)?;
    }
    Ok(())
}

/// Whether there are links to be forgotten.
pub(super) fn has_old(db: &Connection, until: UnixMs) -> Result<bool> {
    let row = db.one("SELECT EXISTS (SELECT 1 FROM link WHERE expires < $1)", &[&int(until.0)])?;
    Ok(row.try_get(0)?)
}

/// Removes the links that a question with two parameters gives.
fn remove(write: &Transaction<'_>, ids: &str, first: &(dyn ToSql + Sync), max: u32) -> Result<usize> {
    let rows = write.db.query(ids, &[first, &i64::from(max)])?;
    let ids: Vec<i64> = rows.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<_>>()?;
    write.run("DELETE FROM link_click WHERE link = ANY ($1::bigint[])", &[&ids])?;
    write.run(
        "WITH gone AS (DELETE FROM link WHERE id = ANY ($1::bigint[])
                 RETURNING domain, octet_length(code) + octet_length(url) AS bytes),
             sums AS (SELECT domain, count(*) AS links, sum(bytes)::bigint AS bytes FROM gone GROUP BY domain)
         UPDATE link_domain d SET links = d.links - sums.links, bytes = d.bytes - sums.bytes
         FROM sums WHERE d.domain = sums.domain",
        &[&ids],
    )?;
    write.note_rows(ids.len());
    Ok(ids.len())
}

fn link(row: &Row) -> Result<model::Link> {
    Ok(model::Link {
        id: LinkId(uint(row, 0)?),
        domain: DomainId(number(row, 1)?),
        code: text(row, 2)?,
        url: text(row, 3)?,
        may_change: row.try_get(4)?,
        created: ms(row, 5)?,
        expires: opt_ms(row, 6)?,
        removed: opt_ms(row, 7)?,
        key: opt_number(row, 8)?.map(KeyId),
        clicks: row.try_get::<_, Option<i64>>(9)?.map_or(0, i64::unsigned_abs),
        last_click: opt_ms(row, 10)?,
    })
}
