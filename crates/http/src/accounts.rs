//! What the consumer and the admin API do to accounts in the same way.

use crate::app::App;
use crate::auth::Granted;
use crate::extract::cut;
use crate::problem::{Code, Problem};
use crate::values::jids;
use crate::values::time::now;
use carillon_core::command::{Command, KickReason, Outcome};
use carillon_core::model::{AccountState, Credentials, Domain};
use carillon_core::ports::store::accounts::{
    self, CreateAccount, CreateAccountAnswer, Enrolment, SetAccountState, SetCredentials,
};
use carillon_core::ports::{Missing, Question};
use carillon_wire::jid::{BareJid, Jid};
use std::sync::Arc;

/// An account by the domain it is in. `missing` is what a client is told when it is not there.
#[derive(Clone, Copy)]
pub(crate) struct Account<'a> {
    /// The app.
    pub(crate) app: &'a App,
    /// Its domain.
    pub(crate) domain: &'a Domain,
    /// Its bare JID.
    pub(crate) jid: &'a BareJid,
    /// [`Code::UnknownDevice`] or [`Code::UnknownAccount`].
    pub(crate) missing: Code,
}

/// The account that `text` names, and its domain, if the key reaches it.
pub(crate) fn find<S>(
    key: &Granted<S>,
    app: &App,
    text: &str,
    domain: Option<&str>,
) -> Result<(Arc<Domain>, BareJid), Problem> {
    let jid = jids::account(text, &key.domain(app, domain)?.name)?;
    Ok((key.reach(app, jid.domain())?, jid))
}

/// One of several accounts is being removed.
pub(crate) fn is_being_removed() -> Problem {
    let detail = "an account of this name is being removed; try again in a minute";
    Problem::new(Code::AlreadyExists, detail)
}

/// The domain has as many accounts as it may.
pub(crate) fn full() -> Problem {
    let detail = "the domain has as many accounts as its policy's `accounts_max` allows";
    Problem::new(Code::TooManyAccounts, detail)
}

impl Account<'_> {
    /// Creates it.
    pub(crate) async fn create(&self, credentials: Credentials) -> Result<(), Problem> {
        let (domain, local) = (self.domain.id, self.local());
        let ask = CreateAccount { domain, local, credentials, is_in_band: false, now: now() };
        match self.app.ask(ask).await? {
            CreateAccountAnswer::Created(_) => Ok(()),
            CreateAccountAnswer::Exists | CreateAccountAnswer::Held => {
                Err(Problem::new(Code::AlreadyExists, format!("`{}` exists already", self.jid)))
            }
            CreateAccountAnswer::DomainFull => Err(full()),
            CreateAccountAnswer::NoDomain => {
                Err(Problem::new(Code::UnknownDomain, "the domain has just been deleted"))
            }
        }
    }

    /// Reads it.
    pub(crate) async fn read(&self) -> Result<Enrolment, Problem> {
        let found = self.app.ask(accounts::Account { domain: self.domain.id, local: self.local() }).await?;
        found.map(|enrolment| *enrolment).ok_or_else(|| self.missing())
    }

    /// Its keys, and whether it may log in.
    pub(crate) async fn credentials(&self) -> Result<(Credentials, AccountState), Problem> {
        let (domain, local) = (self.domain.id, self.local());
        let identity = self.app.ask(accounts::Identity { domain, local }).await?;
        identity.map(|i| (i.credentials, i.state)).ok_or_else(|| self.missing())
    }

    /// Replaces its keys and, unless `keep_sessions`, ends its sessions.
    pub(crate) async fn set_credentials(
        &self,
        credentials: Credentials,
        keep_sessions: bool,
    ) -> Result<u64, Problem> {
        self.write(SetCredentials { domain: self.domain.id, local: self.local(), credentials }).await?;
        if !keep_sessions {
            return self.kick(KickReason::Credentials).await;
        }
        changed(self.app, [self.jid.clone()].into()).await.map(|()| 0)
    }

    /// Lets it log in, or no longer: then its sessions end.
    pub(crate) async fn set_enabled(&self, enabled: bool) -> Result<(), Problem> {
        let state = if enabled { AccountState::Enabled } else { AccountState::Disabled(now()) };
        self.write(SetAccountState { domain: self.domain.id, local: self.local(), state }).await?;
        if !enabled {
            self.kick(KickReason::Disabled).await?;
        }
        Ok(())
    }

    /// Removes it with all that belongs to it, tells its contacts, and ends its sessions.
    pub(crate) async fn delete(&self) -> Result<(), Problem> {
        let command = Command::RemoveAccount { domain: self.domain.id, account: self.jid.clone() };
        match self.app.command(command).await? {
            Outcome::Count(_) => Ok(()),
            Outcome::Missing => Err(self.missing()),
            other => Err(Problem::unexpected(&other)),
        }
    }

    /// Takes its tokens back (XEP-0484): each of its clients needs the password again.
    pub(crate) async fn revoke_tokens(&self) -> Result<(), Problem> {
        let command = Command::RevokeTokens { domain: self.domain.id, account: self.jid.clone() };
        match self.app.command(command).await? {
            Outcome::Count(_) => Ok(()),
            Outcome::Missing => Err(self.missing()),
            other => Err(Problem::unexpected(&other)),
        }
    }

    /// How many sessions it has now.
    pub(crate) async fn sessions(&self) -> Result<usize, Problem> {
        let command = Command::Sessions {
            domain: Some(self.domain.id),
            account: Some(self.jid.clone()),
            limit: SESSIONS_MAX,
        };
        match self.app.command(command).await? {
            Outcome::Sessions(sessions) => Ok(sessions.len()),
            other => Err(Problem::unexpected(&other)),
        }
    }

    async fn kick(&self, reason: KickReason) -> Result<u64, Problem> {
        kick(self.app, self.jid.to_jid(), reason).await
    }

    async fn write<Q>(&self, question: Q) -> Result<(), Problem>
    where
        Q: Question<Answer = Result<(), Missing>>,
    {
        let answer = self.app.ask(question).await;
        if let Err(problem) = &answer
            && problem.leaves_open()
        {
            // It may have been done: what was known of the account may be wrong.
            changed(self.app, [self.jid.clone()].into()).await?;
        }
        answer?.map_err(|Missing| self.missing())
    }

    fn missing(&self) -> Problem {
        Problem::new(self.missing, format!("{}: `{}`", self.missing.title(), self.jid))
    }

    fn local(&self) -> Box<str> {
        jids::local(self.jid)
    }
}

/// Has the homes of accounts that were changed in the store forget what they knew of them.
pub(crate) async fn changed(app: &App, accounts: Arc<[BareJid]>) -> Result<(), Problem> {
    match app.command(Command::Changed { accounts }).await? {
        Outcome::Count(_) => Ok(()),
        other => Err(Problem::unexpected(&other)),
    }
}

/// Ends the sessions of an account, or one of them; how many ended.
pub(crate) async fn kick(app: &App, jid: Jid, reason: KickReason) -> Result<u64, Problem> {
    match app.command(Command::Kick { jid, reason }).await? {
        Outcome::Count(count) => Ok(count),
        Outcome::Missing => Ok(0),
        other => Err(Problem::unexpected(&other)),
    }
}

/// Accounts of a domain in the order of their local part, and what to give as `after` for the next page.
pub(crate) async fn list(
    app: &App,
    domain: &Domain,
    after: Option<String>,
    limit: u16,
) -> Result<(Vec<Enrolment>, Option<String>), Problem> {
    let ask = accounts::Accounts { domain: domain.id, after: after.map(Into::into), limit: limit + 1 };
    let mut enrolments = app.ask(ask).await?;
    let more = cut(&mut enrolments, limit);
    let next = enrolments.last().filter(|_| more).and_then(|last| last.jid.local().map(str::to_owned));
    Ok((enrolments, next))
}

/// A policy allows at most so many.
const SESSIONS_MAX: usize = 1000;
