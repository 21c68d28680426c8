//! Invitations.

use super::column::{int, ms, opt_text, uint};
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
use rusqlite::{Connection, Error, OptionalExtension, Result, Row, params};

impl Answers<Invitation, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Invitation) -> Result<Option<Box<model::Invitation>>> {
        Ok(find(self.db, asked.domain, &asked.hash)?.map(Box::new))
    }
}

impl Answers<Invitations, Error> for Snapshot<'_> {
    fn answer(&mut self, asked: &Invitations) -> Result<Vec<model::Invitation>> {
        let sql = format!("{INVITATION} WHERE i.domain = ?1 AND i.id < ?2 ORDER BY i.id DESC LIMIT ?3");
        let mut query = self.db.prepare_cached(&sql)?;
        query.query_map(params![asked.domain.0, int(asked.before.0), asked.limit], invitation)?.collect()
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
        let account = account.map(|account| int(account.0));
        self.run(
            "DELETE FROM invitation WHERE id IN
                 (SELECT id FROM invitation WHERE domain = ?1 AND expires <= ?2 ORDER BY expires, id LIMIT ?3)",
            params![asked.domain.0, int(asked.now.0), FORGOTTEN_MAX],
        )?;
        let known = self
            .db
            .prepare_cached("SELECT 1 FROM invitation WHERE hash = ?1")?
            .exists([&asked.hash.0[..]])?;
        if known {
            return Ok(CreateInvitationAnswer::Exists);
        }
        let is_full: bool = self
            .db
            .prepare_cached(
                "SELECT (SELECT count(*) FROM invitation WHERE domain = ?1) >= ?2
                     OR (?3 IS NOT NULL AND (SELECT count(*) FROM invitation WHERE account = ?3) >= ?4)",
            )?
            .query_row(params![asked.domain.0, asked.max, account, asked.inviter_max], |row| row.get(0))?;
        if is_full {
            return Ok(CreateInvitationAnswer::Full);
        }
        self.run(
            "INSERT INTO invitation (domain, account, hash, local, registers, uses_max, created, expires)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                asked.domain.0,
                account,
                &asked.hash.0[..],
                asked.local,
                asked.registers,
                asked.uses_max,
                int(asked.now.0),
                int(asked.expires.0),
            ],
        )?;
        let id = InvitationId(self.db.last_insert_rowid() as u64);
        Ok(CreateInvitationAnswer::Created(Box::new(asked.created(id))))
    }
}

impl Answers<RevokeInvitation, Error> for Transaction<'_> {
    fn answer(&mut self, asked: &RevokeInvitation) -> Result<std::result::Result<(), Missing>> {
        self.change(
            "DELETE FROM invitation WHERE domain = ?1 AND id = ?2",
            params![asked.domain.0, int(asked.id.0)],
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
        self.run("UPDATE invitation SET uses = uses + 1 WHERE id = ?1", [int(id.0)]).map(drop)
    }

    fn name_of(&mut self, domain: DomainId) -> Result<Option<Box<str>>> {
        lookup::domain_name(self.db, domain)
    }
}

const INVITATION: &str =
    "SELECT i.id, i.domain, a.local, i.local, i.registers, i.uses_max, i.uses, i.created, i.expires
    FROM invitation i LEFT JOIN account a ON a.id = i.account";

fn find(db: &Connection, domain: DomainId, hash: &TokenHash) -> Result<Option<model::Invitation>> {
    let sql = format!("{INVITATION} WHERE i.hash = ?1 AND i.domain = ?2");
    db.prepare_cached(&sql)?.query_row(params![&hash.0[..], domain.0], invitation).optional()
}

fn invitation(row: &Row<'_>) -> Result<model::Invitation> {
    Ok(model::Invitation {
        id: InvitationId(uint(row, 0)?),
        domain: DomainId(row.get(1)?),
        inviter: opt_text(row, 2)?,
        local: opt_text(row, 3)?,
        registers: row.get(4)?,
        uses_max: row.get(5)?,
        uses: row.get(6)?,
        created: ms(row, 7)?,
        expires: ms(row, 8)?,
    })
}
