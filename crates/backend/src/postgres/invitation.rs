//! Invitations.

use super::column::{int, ms, number, opt_text, uint};
use super::connection::Connection;
use super::error::{Error, Result};
use super::lookup;
use super::snapshot::Snapshot;
use super::transaction::Transaction;
use carillon_core::model::{self, DomainId, InvitationId, RosterChange, TokenHash};
use carillon_core::ports::Missing;
use carillon_core::ports::store::Answers;
use carillon_core::ports::store::invitations::{
    self, AcceptInvitation, CreateInvitation, CreateInvitationAnswer, FORGOTTEN_MAX, Invitation, Invitations,
    Invites, RegisterInvited, RegisterInvitedAnswer, RevokeInvitation,
};
use tokio_postgres::Row;

/// What [`invitation`] reads.
macro_rules! invitations {
    () => {
        "SELECT i.id, i.domain, a.local, i.local, i.registers, i.uses_max, i.uses, i.created, i.expires
             FROM invitation i LEFT JOIN account a ON a.id = i.account"
    };
}

impl Answers<Invitation, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Invitation) -> Result<Option<Box<model::Invitation>>> {
        Ok(find(self.db, asked.domain, &asked.hash)?.map(Box::new))
    }
}

impl Answers<Invitations, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Invitations) -> Result<Vec<model::Invitation>> {
        let found = self.db.query(
            concat!(invitations!(), " WHERE i.domain = $1 AND i.id < $2 ORDER BY i.id DESC LIMIT $3"),
            &[&i64::from(asked.domain.0), &int(asked.before.0), &i64::from(asked.limit)],
        )?;
        found.iter().map(invitation).collect()
    }
}

impl Answers<CreateInvitation, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &CreateInvitation) -> Result<CreateInvitationAnswer> {
        if lookup::domain_name(self.db, asked.domain)?.is_none() {
            return Ok(CreateInvitationAnswer::Missing);
        }
        let account = match &asked.inviter {
            Some(local) => lookup::account(self.db, asked.domain, local)?,
            None => None,
        };
        if account.is_none() && asked.inviter.is_some() {
            return Ok(CreateInvitationAnswer::Missing);
        }
        let (domain, account) = (i64::from(asked.domain.0), account.map(|account| int(account.0)));
        self.run(
            "DELETE FROM invitation WHERE id IN
                 (SELECT id FROM invitation WHERE domain = $1 AND expires <= $2 ORDER BY expires, id LIMIT $3)",
            &[&domain, &int(asked.now.0), &i64::from(FORGOTTEN_MAX)],
        )?;
        let hash = &asked.hash.0[..];
        let row = self.db.one(
            "SELECT EXISTS (SELECT 1 FROM invitation WHERE hash = $1),
                 (SELECT count(*) FROM invitation WHERE domain = $2) >= $3
                     OR ($4::bigint IS NOT NULL AND (SELECT count(*) FROM invitation WHERE account = $4) >= $5)",
            &[&hash, &domain, &i64::from(asked.max), &account, &i64::from(asked.inviter_max)],
        )?;
        if row.try_get(0)? {
            return Ok(CreateInvitationAnswer::Exists);
        }
        if row.try_get(1)? {
            return Ok(CreateInvitationAnswer::Full);
        }
        let made = self.returning_one(
            "INSERT INTO invitation (domain, account, hash, local, registers, uses_max, created, expires)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id",
            &[
                &domain,
                &account,
                &hash,
                &asked.local,
                &asked.registers,
                &i64::from(asked.uses_max),
                &int(asked.now.0),
                &int(asked.expires.0),
            ],
        )?;
        let id = InvitationId(uint(&made, 0)?);
        Ok(CreateInvitationAnswer::Created(Box::new(asked.created(id))))
    }
}

impl Answers<RevokeInvitation, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &RevokeInvitation) -> Result<std::result::Result<(), Missing>> {
        self.change(
            "DELETE FROM invitation WHERE domain = $1 AND id = $2",
            &[&i64::from(asked.domain.0), &int(asked.id.0)],
        )
    }
}

impl Answers<RegisterInvited, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &RegisterInvited) -> Result<RegisterInvitedAnswer> {
        invitations::register(self, asked)
    }
}

impl Answers<AcceptInvitation, Error> for Transaction<'_> {
    fn answer(
        &mut self,
        asked: &AcceptInvitation,
    ) -> Result<std::result::Result<Vec<RosterChange>, Missing>> {
        invitations::accept(self, asked)
    }
}

impl Invites<Error> for Transaction<'_> {
    fn invitation(&mut self, domain: DomainId, hash: &TokenHash) -> Result<Option<model::Invitation>> {
        find(self.db, domain, hash)
    }

    fn count_use(&mut self, id: InvitationId) -> Result<()> {
        self.run("UPDATE invitation SET uses = uses + 1 WHERE id = $1", &[&int(id.0)]).map(drop)
    }

    fn name_of(&mut self, domain: DomainId) -> Result<Option<Box<str>>> {
        lookup::domain_name(self.db, domain)
    }
}

fn find(db: &Connection, domain: DomainId, hash: &TokenHash) -> Result<Option<model::Invitation>> {
    let row = db.opt(
        concat!(invitations!(), " WHERE i.hash = $1 AND i.domain = $2"),
        &[&&hash.0[..], &i64::from(domain.0)],
    )?;
    row.as_ref().map(invitation).transpose()
}

fn invitation(row: &Row) -> Result<model::Invitation> {
    Ok(model::Invitation {
        id: InvitationId(uint(row, 0)?),
        domain: DomainId(number(row, 1)?),
        inviter: opt_text(row, 2)?,
        local: opt_text(row, 3)?,
        registers: row.try_get(4)?,
        uses_max: number(row, 5)?,
        uses: number(row, 6)?,
        created: ms(row, 7)?,
        expires: ms(row, 8)?,
    })
}
