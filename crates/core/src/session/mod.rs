//! The states of a connection. A state is a type; a transition consumes it and gives the next.
//!
//! ```text
//! Opening ─header─► Offered ─starttls─► Securing ─TLS─► Opening(secured)
//!    └─header (secured)─► Authenticating ─► (auth) ─► classic SASL: Restarting ─► Binding ─┐
//!                                              └────► SASL2 + Bind 2: ─► Loading ◄─────────┘
//!                                                                          └► Loaded ─► Bound ─► Closing
//! ```
//!
//! Only [`auth`] can make an [`auth::Authenticated`], and everything after it demands one.

pub(crate) mod account_reads;
pub mod auth;
pub mod backlog;
mod bound;
mod closing;
mod context;
mod header;
pub mod home;
pub mod homes;
pub mod hook;
pub(crate) mod introduction;
mod io;
mod link;
mod loading;
pub(crate) mod mam;
mod moved;
mod open;
pub mod pipeline;
mod presence;
pub(crate) mod removal;
mod resumption;
pub(crate) mod rsm;
mod secure;
mod sessions;
mod submit;
pub(crate) mod tapping;
mod wait;

pub use bound::BoundSession;
pub use closing::Closing;
pub(crate) use closing::farewell;
pub(crate) use context::{AfterBarrier, Continuation, KeyContinuation, Work};
pub use context::{Agenda, Cx, LaterWork};
pub use loading::{Loaded, Loading};
pub(crate) use moved::Moved;
pub use open::Opening;
pub use presence::Presence;
pub use resumption::{Parked, Progress, Resume, Resuming, Resumption};
pub use secure::{Offered, Securing};
pub use sessions::Sessions;
pub use submit::Next;
pub use wait::{ANSWER_WAIT_MS, Decision, Place, Wait};

use crate::connection::{Claimed, Io};
use crate::error::StreamError;
use crate::shard::Deadline;
use auth::{Asking, Authenticating, Binding, Deriving, Restarting};
use carillon_wire::stanza::Unit;
use carillon_wire::stream::{Condition, Header};

/// A connection in one of its states.
#[derive(Debug)]
pub enum Session {
    /// Awaits a stream header, before authentication.
    Opening(Box<Opening>),
    /// STARTTLS was offered.
    Offered(Box<Offered>),
    /// The TLS handshake is under way.
    Securing(Box<Securing>),
    /// SASL mechanisms were offered.
    Authenticating(Box<Authenticating>),
    /// The client named its account: on the way to the account's home.
    Claimed(Box<Claimed>),
    /// The store is asked for a client that is not authenticated.
    Asking(Box<Asking>),
    /// Keys are derived for one.
    Deriving(Box<Deriving>),
    /// Authenticated by classic SASL; awaits the header of the new stream.
    Restarting(Box<Restarting>),
    /// Resource binding was offered.
    Binding(Box<Binding>),
    /// A client wants to resume a session; the shard looks whether there is one.
    Resuming(Box<Resuming>),
    /// A resource is chosen; the store is asked for what belongs to the account.
    Loading(Box<Loading>),
    /// The store has answered; the shard admits the session to its account.
    Loaded(Box<Loaded>),
    /// Bound: stanzas flow.
    Bound(Box<BoundSession>),
    /// Our end of the stream is closed.
    Closing(Box<Closing>),
}

impl Session {
    /// The connection, which every state has but a bound session that outlives it.
    pub fn io(&self) -> Option<&Io> {
        Some(match self {
            Session::Bound(s) => return s.io.as_ref(),
            Session::Opening(s) => &s.io,
            Session::Offered(s) => &s.io,
            Session::Securing(s) => &s.io,
            Session::Authenticating(s) => &s.client.io,
            Session::Claimed(s) => &s.client.io,
            Session::Asking(s) => &s.client.io,
            Session::Deriving(s) => &s.client.io,
            Session::Restarting(s) => &s.io,
            Session::Binding(s) => &s.io,
            Session::Resuming(s) => &s.io,
            Session::Loading(s) => &s.io,
            Session::Loaded(s) => &s.io,
            Session::Closing(s) => &s.io,
        })
    }

    /// The connection, mutably.
    pub fn io_mut(&mut self) -> Option<&mut Io> {
        Some(match self {
            Session::Bound(s) => return s.io.as_mut(),
            Session::Opening(s) => &mut s.io,
            Session::Offered(s) => &mut s.io,
            Session::Securing(s) => &mut s.io,
            Session::Authenticating(s) => &mut s.client.io,
            Session::Claimed(s) => &mut s.client.io,
            Session::Asking(s) => &mut s.client.io,
            Session::Deriving(s) => &mut s.client.io,
            Session::Restarting(s) => &mut s.io,
            Session::Binding(s) => &mut s.io,
            Session::Resuming(s) => &mut s.io,
            Session::Loading(s) => &mut s.io,
            Session::Loaded(s) => &mut s.io,
            Session::Closing(s) => &mut s.io,
        })
    }

    /// The connection alone; a bound session as it is, because the shard ends it.
    fn into_io(self) -> Result<Io, Session> {
        Ok(match self {
            Session::Bound(_) => return Err(self),
            Session::Opening(s) => s.io,
            Session::Offered(s) => s.io,
            Session::Securing(s) => s.io,
            Session::Authenticating(s) => s.client.io,
            Session::Claimed(s) => s.client.io,
            Session::Asking(s) => s.client.io,
            Session::Deriving(s) => s.client.io,
            Session::Restarting(s) => s.io,
            Session::Binding(s) => s.io,
            Session::Resuming(s) => s.io,
            Session::Loading(s) => s.io,
            Session::Loaded(s) => s.io,
            Session::Closing(s) => s.io,
        })
    }

    /// Whether the client is authenticated, so that its stanzas may be larger.
    pub fn is_trusted(&self) -> bool {
        matches!(
            self,
            Session::Restarting(_)
                | Session::Binding(_)
                | Session::Resuming(_)
                | Session::Loading(_)
                | Session::Loaded(_)
                | Session::Bound(_)
        )
    }

    /// Whether input must wait: for an answer of the store, for TLS, or for a shard.
    pub fn is_waiting(&self) -> bool {
        match self {
            Session::Securing(_)
            | Session::Claimed(_)
            | Session::Asking(_)
            | Session::Deriving(_)
            | Session::Resuming(_)
            | Session::Loading(_) => true,
            Session::Bound(s) => s.is_waiting(),
            _ => false,
        }
    }

    /// A stream header came. Only for states before the session is bound, and [`Closing`].
    pub fn header(self, header: &Header, cx: &mut Cx<'_>) -> Session {
        match self {
            Session::Opening(s) => s.header(header, cx),
            Session::Restarting(s) => s.header(header, cx),
            Session::Closing(s) => Session::Closing(s),
            other => {
                other.fail(&StreamError::new(Condition::NotWellFormed, "a stream header inside a stream"), cx)
            }
        }
    }

    /// A top-level element came. Only for states before the session is bound, and [`Closing`].
    pub fn unit(self, unit: Unit, cx: &mut Cx<'_>) -> Session {
        match self {
            Session::Offered(s) => s.unit(&unit, cx),
            Session::Authenticating(s) => s.unit(unit, cx),
            Session::Binding(s) => s.unit(unit, cx),
            Session::Closing(s) => Session::Closing(s),
            other => {
                other.fail(&StreamError::new(Condition::NotAuthorized, "not before the stream is open"), cx)
            }
        }
    }

    /// The client closed its stream. Only for states before the session is bound, and [`Closing`].
    pub fn close(self, cx: &mut Cx<'_>) -> Session {
        match self {
            closing @ Session::Closing(_) => closing,
            other => match other.into_io() {
                Ok(io) => Closing::politely(io, cx),
                Err(bound) => bound,
            },
        }
    }

    /// A timer fired. Only for states before the session is bound, and [`Closing`].
    pub fn wake(self, deadline: Deadline, cx: &mut Cx<'_>) -> Session {
        let late = match (&self, deadline) {
            (
                Session::Opening(_)
                | Session::Offered(_)
                | Session::Securing(_)
                | Session::Authenticating(_)
                | Session::Asking(_)
                | Session::Deriving(_),
                Deadline::Login,
            ) => "no login in time",
            (Session::Restarting(_) | Session::Binding(_) | Session::Loading(_), Deadline::Bind) => {
                "no resource bound in time"
            }
            _ => return self,
        };
        self.fail(&StreamError::new(Condition::ConnectionTimeout, late), cx)
    }

    /// Ends a stream with an error. Only for states before the session is bound: a bound one is ended by the shard.
    pub fn fail(self, error: &StreamError, cx: &mut Cx<'_>) -> Session {
        match self {
            Session::Closing(s) => Session::Closing(s),
            // There is no stream in which to say it: the handshake has not ended.
            Session::Securing(s) => Closing::at_once(s.io, cx),
            Session::Opening(s) => Closing::with_error_after_header(s.io, error, cx),
            Session::Restarting(s) => Closing::with_error_after_header(s.io, error, cx),
            other => match other.into_io() {
                Ok(io) => Closing::with_error(io, error, cx),
                Err(bound) => bound,
            },
        }
    }
}
