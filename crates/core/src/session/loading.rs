//! A resource is chosen: what belongs to the account is read, and the session can be.

use super::auth::{Authenticated, Binding, Greeting};
use super::{Closing, Session};
use crate::Effect;
use crate::connection::Io;
use crate::error::StreamError;
use crate::model::{AccountState, Login, Subscription};
use crate::ports::store::accounts;
use crate::ports::{Answer, Question};
use crate::sasl::Failure;
use crate::session::Cx;
use carillon_wire::jid::Jid;
use carillon_wire::stanza::{Condition, IqType, Stanza, StanzaError};
use carillon_wire::stream;

/// A resource is chosen; the store is asked what belongs to the account.
#[derive(Debug)]
pub struct Loading {
    pub(super) io: Io,
    authenticated: Authenticated,
    jid: Jid,
    greeting: Greeting,
    /// How often the store was asked.
    asked: u8,
}

/// What belongs to the account is there; the shard admits the session to its account.
#[derive(Debug)]
pub struct Loaded {
    /// Its connection.
    pub io: Io,
    /// Whose session it will be.
    pub authenticated: Authenticated,
    /// The full JID that it will have.
    pub jid: Jid,
    /// What the client is sent once it is bound.
    pub greeting: Greeting,
    /// What the store holds of its account.
    pub login: Box<Login>,
}

impl Loading {
    /// Binds at once where the node remembers what belongs to the account; else the store is asked.
    pub(super) fn begin(
        io: Io,
        mut authenticated: Authenticated,
        jid: Jid,
        greeting: Greeting,
        cx: &mut Cx<'_>,
    ) -> Session {
        let known = authenticated.take_login().filter(|login| !is_out_of_date(login, cx));
        let loading = Loading { io, authenticated, jid, greeting, asked: 0 };
        if loading.authenticated.is_outdated(cx) {
            return loading.outdated(cx);
        }
        if let Some(login) = known {
            return loading.bound(login);
        }
        cx.out.push(Effect::Pause { conn: loading.io.conn });
        loading.ask(cx)
    }

    /// Asks the store what belongs to the account.
    fn ask(mut self, cx: &mut Cx<'_>) -> Session {
        self.asked += 1;
        let (account, parts) = (self.authenticated.account(), cx.pipeline.login_parts());
        cx.ask_unbound(self.io.conn, accounts::Login { account, parts, now: cx.now.unix });
        Session::Loading(Box::new(self))
    }

    /// The store answered.
    pub(crate) fn answered(self, answer: Answer, cx: &mut Cx<'_>) -> Session {
        let answer = accounts::Login::answer(answer);
        if let Ok(Some(login)) = &answer
            && self.asked < ASKED_MAX
            && is_out_of_date(login, cx)
        {
            return self.ask(cx);
        }
        cx.resume(self.io.conn);
        match answer {
            Ok(Some(_)) if self.authenticated.is_outdated(cx) => self.outdated(cx),
            Ok(Some(login)) if login.state == AccountState::Enabled => {
                self.authenticated.remember(&login, cx);
                self.bound(login)
            }
            // It was disabled, or removed, since the client proved whose it is.
            Ok(Some(_)) => {
                self.refuse(Failure::AccountDisabled, "account-disabled: this account is disabled", cx)
            }
            Ok(None) => self.refuse(Failure::NotAuthorized, "this account is gone", cx),
            Err(_) => self.unavailable(cx),
        }
    }

    fn bound(self, login: Box<Login>) -> Session {
        let Loading { io, authenticated, jid, greeting, .. } = self;
        Session::Loaded(Box::new(Loaded { io, authenticated, jid, greeting, login }))
    }

    /// The account's password or state was altered since the client proved itself.
    fn outdated(self, cx: &mut Cx<'_>) -> Session {
        self.refuse(Failure::TemporaryAuthFailure, "your account was changed while you logged in", cx)
    }

    /// The client may not log in any more.
    fn refuse(self, failure: Failure, why: &'static str, cx: &mut Cx<'_>) -> Session {
        match self.greeting {
            // It was not told of its success yet.
            Greeting::Success(success) => success.refuse(self.io, failure, cx),
            Greeting::Bind { .. } => {
                let error = StreamError::new(stream::Condition::NotAuthorized, why);
                Closing::with_error(self.io, &error, cx)
            }
        }
    }

    /// The store cannot answer: the client may try again.
    fn unavailable(self, cx: &mut Cx<'_>) -> Session {
        match self.greeting {
            Greeting::Success(success) => success.refuse(self.io, Failure::TemporaryAuthFailure, cx),
            Greeting::Bind { id } => {
                let error = StanzaError::new(Condition::ResourceConstraint)
                    .with_text("the store cannot answer; try again later");
                let reply = Stanza::iq(IqType::Error).with_id(id).with_payload(error.to_element());
                self.io.send_stanza(&reply, cx);
                Binding::again(self.io, self.authenticated)
            }
        }
    }
}

impl Loaded {
    /// The domain has as many sessions as it may: the client may try again.
    pub(crate) fn refuse_full(self, cx: &mut Cx<'_>) -> Session {
        let Loaded { io, authenticated, greeting, .. } = self;
        match greeting {
            Greeting::Success(success) => success.refuse(io, Failure::TemporaryAuthFailure, cx),
            // RFC 6120 §7.6.2.1
            Greeting::Bind { id } => {
                let error = StanzaError::new(Condition::ResourceConstraint)
                    .with_text("the domain has as many sessions as its policy's `sessions_total_max` allows");
                let reply = Stanza::iq(IqType::Error).with_id(id).with_payload(error.to_element());
                io.send_stanza(&reply, cx);
                Binding::again(io, authenticated)
            }
        }
    }
}

/// Whether an item was published since this was read that is not known here any more ([`Subscribers::lacks`](crate::shard::Subscribers::lacks)).
fn is_out_of_date(login: &Login, cx: &Cx<'_>) -> bool {
    let lacks = |subscription: &Subscription| {
        let revision = subscription.last.as_ref().map(|item| item.revision);
        cx.shard.topics.subscribers.lacks(subscription.topic, revision)
    };
    login.subscriptions.iter().any(lacks)
}

/// How often the store is asked: what it says meanwhile may be out of date again, and the login must come to an end. The session may
/// then miss the last item of a topic.
const ASKED_MAX: u8 = 3;
