//! Errors of the light protocol. A [`Refused`] request is answered with an error and the connection stays; an [`Ended`]
//! connection is sent an error and closed.

use crate::command::Refusal;

/// Why a request is not done. The connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no topic of this name.
    NotFound,
    /// The topic is not open to all.
    Closed,
    /// The connection does not follow the topic.
    NotSubscribed,
    /// The connection follows as many topics as it may.
    TooMany,
    /// The server could not do it now.
    Unavailable,
}

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The first frame is not the opening.
    BadOpening,
    /// The opening did not come in time.
    OpeningTimeout,
    /// A frame is longer than 4 KiB.
    FrameTooLarge,
    /// A frame is not UTF-8.
    BadUtf8,
    /// A frame is neither `PING` nor JSON.
    BadJson,
    /// A frame is JSON, but not an object with the texts `action` and `data`.
    BadRequest,
    /// The action does not exist.
    UnknownAction,
    /// The client sent nothing for longer than it may.
    Idle,
    /// The client does not read what it is sent.
    SlowReader,
    /// The domain whose topics are offered is not served.
    NoDomain,
    /// The server shuts down.
    Shutdown,
}

impl Refused {
    /// The code in the error frame.
    pub fn code(self) -> &'static str {
        match self {
            Refused::NotFound => "topic-not-found",
            Refused::Closed => "topic-closed",
            Refused::NotSubscribed => "not-subscribed",
            Refused::TooMany => "too-many-subscriptions",
            Refused::Unavailable => "unavailable",
        }
    }

    /// Words for whoever debugs the client.
    pub fn message(self) -> &'static str {
        match self {
            Refused::NotFound => "there is no topic of this name",
            Refused::Closed => "this topic is for members only",
            Refused::NotSubscribed => "this connection does not follow this topic",
            Refused::TooMany => {
                "this connection follows as many topics as it may; unsubscribe from one first"
            }
            Refused::Unavailable => "the server cannot do this now; ask again later",
        }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        match refusal {
            Refusal::Closed | Refusal::Forbidden => Refused::Closed,
            Refusal::NotFound | Refusal::Unacceptable(_) => Refused::NotFound,
            Refusal::Fault(_) | Refusal::Crowded => Refused::Unavailable,
            // No answer to a question that changes nothing.
            Refusal::Exists
            | Refusal::NoRoom(_)
            | Refusal::NotItself
            | Refusal::NotSubscribed
            | Refusal::PreconditionNotMet(_)
            | Refusal::ItemRequired
            | Refusal::ItemForbidden
            | Refusal::PayloadRequired
            | Refusal::TooManyAffiliations
            | Refusal::TooManyTopics
            | Refusal::DomainFull
            | Refusal::GivenAll
            | Refusal::TooManySubscriptions
            | Refusal::TooFast => Refused::Unavailable,
        }
    }
}

impl Ended {
    /// The code in the error frame.
    pub fn code(self) -> &'static str {
        match self {
            Ended::BadOpening => "bad-opening",
            Ended::OpeningTimeout => "opening-timeout",
            Ended::FrameTooLarge => "frame-too-large",
            Ended::BadUtf8 => "bad-utf8",
            Ended::BadJson => "bad-json",
            Ended::BadRequest => "bad-request",
            Ended::UnknownAction => "unknown-action",
            Ended::Idle => "idle-timeout",
            Ended::SlowReader => "slow-reader",
            Ended::NoDomain => "no-domain",
            Ended::Shutdown => "shutdown",
        }
    }

    /// Words for whoever debugs the client.
    pub fn message(self) -> &'static str {
        match self {
            Ended::BadOpening => "the first frame must be <regular-socket/>",
            Ended::OpeningTimeout => "no <regular-socket/> in time",
            Ended::FrameTooLarge => "a frame is at most 4096 bytes, and ends in NUL",
            Ended::BadUtf8 => "the frame is not UTF-8",
            Ended::BadJson => "the frame is neither PING nor JSON",
            Ended::BadRequest => "a request is an object with the texts \"action\" and \"data\"",
            Ended::UnknownAction => "the action must be subscribe or unsubscribe",
            Ended::Idle => "you were silent too long; send PING now and then",
            Ended::SlowReader => "you read too slowly; your queue is full",
            Ended::NoDomain => "the domain of these topics is not served here",
            Ended::Shutdown => "the server is shutting down",
        }
    }
}
