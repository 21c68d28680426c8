//! What a bound session waits for of its connection.

use crate::form::{Form, Malformed, Reader, Writer};

/// What a bound session waits for of its connection.
#[derive(Debug)]
pub(super) enum Link {
    /// Stanzas may flow in both directions.
    Open {
        /// Whether the backlog goes on when the socket has taken what was written.
        backlog_waits: bool,
        /// Whether the input goes on when the socket has taken what the client was given.
        input_waits: bool,
    },
    /// The client closed its stream, and the session waits to learn how much has arrived.
    Leaving,
}

impl Link {
    /// Nothing is waited for.
    pub(super) const IDLE: Link = Link::Open { backlog_waits: false, input_waits: false };

    /// Whether the client closed its stream.
    pub(super) fn is_leaving(&self) -> bool {
        matches!(self, Link::Leaving)
    }

    /// Whether nothing more is read from the client now.
    pub(super) fn holds_input(&self) -> bool {
        matches!(self, Link::Leaving | Link::Open { input_waits: true, .. })
    }

    /// Whether the backlog waits for the socket.
    pub(super) fn holds_backlog(&self) -> bool {
        matches!(self, Link::Open { backlog_waits: true, .. })
    }

    /// The backlog goes on when the socket has taken what was written. Nothing more is given to a client that closed its stream.
    pub(super) fn hold_backlog(&mut self) {
        if let Link::Open { backlog_waits, .. } = self {
            *backlog_waits = true;
        }
    }

    /// The input goes on when the socket has taken what the client was given.
    pub(super) fn hold_input(&mut self) {
        if let Link::Open { input_waits, .. } = self {
            *input_waits = true;
        }
    }

    /// The backlog waits no longer. Returns whether it did.
    pub(super) fn release_backlog(&mut self) -> bool {
        match self {
            Link::Open { backlog_waits, .. } => std::mem::take(backlog_waits),
            Link::Leaving => false,
        }
    }

    /// The input waits no longer. Returns whether it did.
    pub(super) fn release_input(&mut self) -> bool {
        match self {
            Link::Open { input_waits, .. } => std::mem::take(input_waits),
            Link::Leaving => false,
        }
    }

    /// The connection is gone: no socket takes anything.
    pub(super) fn cut(&mut self) {
        if let Link::Open { .. } = self {
            *self = Link::IDLE;
        }
    }
}

/// Two flags, as every version of the form has them. Input is held for a moment only.
impl Form for Link {
    fn write(&self, out: &mut Writer) {
        self.holds_backlog().write(out);
        self.is_leaving().write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Link, Malformed> {
        let (backlog_waits, is_leaving) = (bool::read(input)?, bool::read(input)?);
        Ok(if is_leaving { Link::Leaving } else { Link::Open { backlog_waits, input_waits: false } })
    }
}
