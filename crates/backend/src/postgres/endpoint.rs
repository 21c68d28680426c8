//! Endpoints of this server as a push service.

use super::column::{Id, blob, int, jid, ms, number, text};
use super::error::{Error, Result};
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
use tokio_postgres::Row;

/// What [`endpoint`] reads.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT e.id, a.domain, a.local, d.name, e.resource, e.application, e.instance, e.sender, e.created, e.expires
             FROM endpoint e JOIN account a ON a.id = e.account JOIN domain d ON d.id = a.domain ",
            $rest
        )
    };
}

impl Answers<FindEndpoint, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &FindEndpoint) -> Result<Option<Box<Endpoint>>> {
        let row = self.db.opt(
            select!("WHERE e.id = $1 AND a.domain = $2"),
            &[&Id(asked.id.0), &i64::from(asked.domain.0)],
        )?;
        row.map(|row| endpoint(&row).map(Box::new)).transpose()
    }
}

impl Answers<ListEndpoints, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &ListEndpoints) -> Result<Part<Endpoint>> {
        let rows = self.db.query(
            select!(
                "WHERE a.domain = $1 AND ($2::text IS NULL OR a.local = $2) AND e.id > $3 ORDER BY e.id LIMIT $4"
            ),
            &[
                &i64::from(asked.domain.0),
                &asked.account,
                &Id(asked.after.0),
                &(i64::from(asked.max) + 1),
            ],
        )?;
        let mut entries: Vec<_> = rows.iter().map(endpoint).collect::<Result<_>>()?;
        let more = entries.len() > asked.max.into();
        entries.truncate(asked.max.into());
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
        let sender = sender.as_ref().map(|key| &key[..]);
        let (application, instance) = (&application[..], &instance[..]);
        let same = self.db.opt(
            "SELECT id, sender IS NOT DISTINCT FROM $5 FROM endpoint
             WHERE account = $1 AND resource = $2 AND application = $3 AND instance = $4",
            &[&account, resource, &application, &instance, &sender],
        )?;
        let id = match same {
            Some(row) if row.try_get(1)? => EndpointId(row.try_get::<_, Id>(0)?.0),
            Some(_) => *id,
            None => {
                let own = self.db.one("SELECT count(*) FROM endpoint WHERE account = $1", &[&account])?;
                if own.try_get::<_, i64>(0)? >= i64::from(asked.per_account_max) {
                    return Ok(RegisterEndpointAnswer::TooMany);
                }
                *id
            }
        };
        self.run(
            "INSERT INTO endpoint (id, account, resource, application, instance, sender, created, expires)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
             ON CONFLICT (account, resource, application, instance)
                 DO UPDATE SET id = excluded.id, sender = excluded.sender, expires = excluded.expires",
            &[
                &Id(id.0),
                &account,
                resource,
                &application,
                &instance,
                &sender,
                &int(asked.now.0),
                &int(asked.expires.0),
            ],
        )?;
        Ok(RegisterEndpointAnswer::Registered(id))
    }
}

impl Transaction<'_> {
    /// Forgets endpoints that have expired: those of the account, and some of others, but for those that another group is changing.
    fn forget_endpoints(&self, account: i64, asked: &RegisterEndpoint) -> Result<()> {
        let now = int(asked.now.0);
        self.run("DELETE FROM endpoint WHERE account = $1 AND expires < $2", &[&account, &now])?;
        self.run(
            "DELETE FROM endpoint WHERE id IN
                 (SELECT id FROM endpoint WHERE expires < $1 ORDER BY expires, id LIMIT $2 FOR UPDATE SKIP LOCKED)",
            &[&now, &i64::from(FORGOTTEN_WITH_EACH)],
        )?;
        Ok(())
    }
}

impl Answers<RevokeEndpoints, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &RevokeEndpoints) -> Result<()> {
        let RevokeEndpoints { domain, local, id } = asked;
        let Some(account) = lookup::account(self.db, *domain, local)? else { return Ok(()) };
        let account = int(account.0);
        match id {
            Some(id) => {
                self.run("DELETE FROM endpoint WHERE id = $2 AND account = $1", &[&account, &Id(id.0)])?
            }
            None => self.run("DELETE FROM endpoint WHERE account = $1", &[&account])?,
        };
        Ok(())
    }
}

fn endpoint(row: &Row) -> Result<Endpoint> {
    Ok(Endpoint {
        id: EndpointId(row.try_get::<_, Id>(0)?.0),
        domain: DomainId(number(row, 1)?),
        account: jid(row, 2, 3)?,
        resource: text(row, 4)?,
        application: bytes(blob(row, 5)?)?,
        instance: bytes(blob(row, 6)?)?,
        sender: row.try_get::<_, Option<&[u8]>>(7)?.map(bytes).transpose()?,
        created: ms(row, 8)?,
        expires: ms(row, 9)?,
    })
}

fn bytes<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| Error::Corrupt("bytes of another number"))
}
