//! Endpoints of this server as a push service.

use super::column::{blob, corrupt, int, jid, ms, text};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::model::{DomainId, Endpoint, EndpointId};
use carillon_core::ports::Part;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::endpoints::{
    FORGOTTEN_WITH_EACH, FindEndpoint, ListEndpoints, RegisterEndpoint, RegisterEndpointAnswer,
    RevokeEndpoints,
};
use rusqlite::{Error, OptionalExtension, Result, Row, params};

/// What [`endpoint`] reads. CROSS JOIN: an endpoint is found first, or the account whose endpoints they are.
macro_rules! select {
    ($from:literal, $rest:literal) => {
        concat!(
            "SELECT e.id, a.domain, a.local, d.name, e.resource, e.application, e.instance, e.sender, e.created, e.expires FROM ",
            $from,
            " CROSS JOIN domain d ON d.id = a.domain ",
            $rest
        )
    };
}

impl Answers<FindEndpoint, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &FindEndpoint) -> Result<Option<Box<Endpoint>>> {
        self.db
            .prepare_cached(select!(
                "endpoint e CROSS JOIN account a ON a.id = e.account",
                "WHERE e.id = ?1 AND a.domain = ?2"
            ))?
            .query_row(params![key(asked.id), asked.domain.0], |row| endpoint(row).map(Box::new))
            .optional()
    }
}

impl Answers<ListEndpoints, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ListEndpoints) -> Result<Part<Endpoint>> {
        let ListEndpoints { domain, account, after, max } = asked;
        let sql = match account {
            Some(_) => select!(
                "account a CROSS JOIN endpoint e ON e.account = a.id",
                "WHERE a.domain = ?1 AND a.local = ?2 AND e.id > ?3 ORDER BY e.id LIMIT ?4"
            ),
            None => select!(
                "endpoint e CROSS JOIN account a ON a.id = e.account",
                "WHERE a.domain = ?1 AND ?2 IS NULL AND e.id > ?3 ORDER BY e.id LIMIT ?4"
            ),
        };
        let mut query = self.db.prepare_cached(sql)?;
        let wanted = params![domain.0, account, key(*after), u32::from(*max) + 1];
        let mut entries = query.query_map(wanted, endpoint)?.collect::<Result<Vec<_>>>()?;
        let more = entries.len() > usize::from(*max);
        entries.truncate(usize::from(*max));
        Ok(Part { entries, more })
    }
}

impl Answers<RegisterEndpoint, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &RegisterEndpoint) -> Result<RegisterEndpointAnswer> {
        let RegisterEndpoint { domain, local, id, resource, application, instance, sender, .. } = asked;
        let Some(account) = lookup::account(self.db, *domain, local)? else {
            return Ok(RegisterEndpointAnswer::NoAccount);
        };
        let account = int(account.0);
        self.forget_endpoints(account, asked)?;
        let same = self
            .db
            .prepare_cached(
                "SELECT id, sender IS ?5 FROM endpoint WHERE account = ?1 AND resource = ?2 AND application = ?3 AND instance = ?4",
            )?
            .query_row(params![account, resource, application, instance, sender], |row| {
                Ok((endpoint_id(row, 0)?, row.get::<_, bool>(1)?))
            })
            .optional()?;
        let id = match same {
            Some((same, true)) => same,
            Some((_, false)) => *id,
            None => {
                let own: u32 = self
                    .db
                    .prepare_cached("SELECT count(*) FROM endpoint WHERE account = ?1")?
                    .query_row([account], |row| row.get(0))?;
                if own >= asked.per_account_max {
                    return Ok(RegisterEndpointAnswer::TooMany);
                }
                *id
            }
        };
        self.run(
            "INSERT INTO endpoint (id, account, resource, application, instance, sender, created, expires)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (account, resource, application, instance) DO UPDATE SET id = ?1, sender = ?6, expires = ?8",
            params![
                key(id),
                account,
                resource,
                application,
                instance,
                sender,
                int(asked.now.0),
                int(asked.expires.0)
            ],
        )?;
        Ok(RegisterEndpointAnswer::Registered(id))
    }
}

impl Transaction<'_> {
    /// Forgets endpoints that have expired: those of the account, and some of others.
    fn forget_endpoints(&self, account: i64, asked: &RegisterEndpoint) -> Result<()> {
        let now = int(asked.now.0);
        self.run("DELETE FROM endpoint WHERE account = ?1 AND expires < ?2", params![account, now])?;
        self.run(
            "DELETE FROM endpoint WHERE id IN (SELECT id FROM endpoint WHERE expires < ?1 ORDER BY expires, id LIMIT ?2)",
            params![now, FORGOTTEN_WITH_EACH],
        )?;
        Ok(())
    }
}

impl Answers<RevokeEndpoints, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &RevokeEndpoints) -> Result<()> {
        let RevokeEndpoints { domain, local, id } = asked;
        let Some(account) = lookup::account(self.db, *domain, local)? else { return Ok(()) };
        match id {
            Some(id) => self.run(
                "DELETE FROM endpoint WHERE id = ?2 AND account = ?1",
                params![int(account.0), key(*id)],
            )?,
            None => self.run("DELETE FROM endpoint WHERE account = ?1", [int(account.0)])?,
        };
        Ok(())
    }
}

fn endpoint(row: &Row<'_>) -> Result<Endpoint> {
    Ok(Endpoint {
        id: endpoint_id(row, 0)?,
        domain: DomainId(row.get(1)?),
        account: jid(row, 2, 3)?,
        resource: text(row, 4)?,
        application: bytes(row, 5)?,
        instance: bytes(row, 6)?,
        sender: match row.get_ref(7)?.as_blob_or_null()? {
            Some(key) => Some(key.try_into().map_err(|_| corrupt(7, "65 bytes"))?),
            None => None,
        },
        created: ms(row, 8)?,
        expires: ms(row, 9)?,
    })
}

fn endpoint_id(row: &Row<'_>, at: usize) -> Result<EndpointId> {
    bytes(row, at).map(|id| EndpointId(u128::from_be_bytes(id)))
}

fn bytes<const N: usize>(row: &Row<'_>, at: usize) -> Result<[u8; N]> {
    blob(row, at)?.try_into().map_err(|_| corrupt(at, "bytes of another number"))
}

/// An id as it is stored.
fn key(id: EndpointId) -> [u8; 16] {
    id.0.to_be_bytes()
}
