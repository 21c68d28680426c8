//! Endpoints of this server as a push service.

#![expect(missing_docs, reason = "the sentence of a question says what its fields are")]

use super::question::questions;
use super::{Load, Loads, Part};
use crate::model::{DomainId, Endpoint, EndpointId, PushName, SenderKey, UnixMs};

questions! {
    Endpoints,
    reads {
        FindEndpoint => Option<Box<Endpoint>>,
        ListEndpoints => Part<Endpoint>,
    }
    writes {
        RegisterEndpoint => RegisterEndpointAnswer,
        RevokeEndpoints => (),
    }
    once {
    }
    loads {
        RegisterEndpoint,
    }
}

/// The endpoint of this id in a domain; also one that has expired, while it is kept.
#[derive(Clone, Debug)]
pub struct FindEndpoint {
    pub domain: DomainId,
    pub id: EndpointId,
}

/// Endpoints with higher ids than `after`, by their ids: those of `account` of the domain, or all of the domain; at most `max`. Also those that have
/// expired, while they are kept.
#[derive(Clone, Debug)]
pub struct ListEndpoints {
    pub domain: DomainId,
    /// Its local part.
    pub account: Option<Box<str>>,
    pub after: EndpointId,
    pub max: u16,
}

/// Makes an endpoint with the id `id`, unless there is one of the same account, resource, application and instance, for the same sender: that keeps its id, and
/// expires at `expires`. One for another sender gets the new id. Endpoints that expired before `now` are forgotten: those of the account,
/// and some of others. An account has `per_account_max` of them.
#[derive(Clone, Debug)]
pub struct RegisterEndpoint {
    pub domain: DomainId,
    pub local: Box<str>,
    pub id: EndpointId,
    pub resource: Box<str>,
    pub application: PushName,
    pub instance: PushName,
    pub sender: Option<SenderKey>,
    pub now: UnixMs,
    pub expires: UnixMs,
    pub per_account_max: u32,
}

impl Loads for RegisterEndpoint {
    fn load(&self) -> Load<'_> {
        Load { bytes: self.resource.len() + 256, account: Some((self.domain, &self.local)) }
    }
}

/// What became of [`RegisterEndpoint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterEndpointAnswer {
    /// It is there, with this id.
    Registered(EndpointId),
    /// The account has as many as it may have.
    TooMany,
    /// There is no such account.
    NoAccount,
}

/// Revokes endpoints of an account, all of them or the one of this id: nothing can be pushed to them any more. What was pushed before stays.
#[derive(Clone, Debug)]
pub struct RevokeEndpoints {
    pub domain: DomainId,
    pub local: Box<str>,
    pub id: Option<EndpointId>,
}

/// So many endpoints of other accounts that have expired are forgotten with each that is registered.
pub const FORGOTTEN_WITH_EACH: u16 = 8;
