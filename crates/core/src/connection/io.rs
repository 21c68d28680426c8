//! What every state of a connection has.

use super::Reader;
use crate::model::ConnId;
use carillon_wire::Framing;
use std::net::IpAddr;

/// What every state of a connection has.
#[derive(Debug)]
pub struct Io {
    /// The connection.
    pub conn: ConnId,
    /// The client's address.
    pub address: IpAddr,
    /// How stanzas are framed.
    pub framing: Framing,
    /// What was read and not yet handled.
    pub reader: Reader,
    /// What the event log was told of the connection.
    pub noted: Noted,
}

/// What the event log was told of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// That it began.
    Begun,
    /// That it ended, with its session.
    Ended,
}
