//! Hops: the steps of one notification that is followed, from its acceptance to its device.

use super::{AcknowledgedBy, ConnId, DropReason, NodeId, NotificationId, NotificationState};
use carillon_wire::jid::Jid;

/// The trace that a notification is part of, and the span that it follows from (W3C Trace Context).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: u128,
    /// The span of whoever sent it.
    pub span: u64,
}

crate::form! { struct TraceContext { trace, span } }

/// A followed notification reached a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The notification.
    pub id: NotificationId,
    /// The trace that it is part of.
    pub context: TraceContext,
    /// The step.
    pub step: HopStep,
}

/// A step of a followed notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HopStep {
    /// The home of its account has it.
    Home,
    /// The store has committed it. None of one that is not kept.
    Committed,
    /// No session is given it now; a kept one waits in the store.
    Withheld(DropReason),
    /// It is given to a session, which is about to send it.
    Given {
        /// The session.
        session: Jid,
    },
    /// The connection is on another node, which writes it. Told by the server in place of [`HopStep::Written`].
    Carried {
        /// The session.
        session: Jid,
        /// The node of the connection.
        node: NodeId,
    },
    /// The socket has taken all of its bytes, under TLS where there is any. The core says so when it has sent them, and the server tells it
    /// once it is so, and [`HopStep::Arrived`] after it.
    Written {
        /// The session.
        session: Jid,
        /// Its connection.
        conn: ConnId,
    },
    /// The peer's TCP has acknowledged its bytes.
    Arrived {
        /// The session.
        session: Jid,
    },
    /// The device has acknowledged it.
    Acknowledged {
        /// The session.
        session: Jid,
        /// By what.
        by: AcknowledgedBy,
    },
    /// It has ended, and nothing more becomes of it.
    Ended(NotificationState, Option<DropReason>),
}

impl HopStep {
    /// Its name in the API.
    pub fn word(&self) -> &'static str {
        match self {
            HopStep::Home => "home",
            HopStep::Committed => "committed",
            HopStep::Withheld(_) => "withheld",
            HopStep::Given { .. } => "given",
            HopStep::Carried { .. } => "carried",
            HopStep::Written { .. } => "written",
            HopStep::Arrived { .. } => "arrived",
            HopStep::Acknowledged { .. } => "acknowledged",
            HopStep::Ended(..) => "ended",
        }
    }

    /// The session that it is about.
    pub fn session(&self) -> Option<&Jid> {
        match self {
            HopStep::Given { session, .. }
            | HopStep::Carried { session, .. }
            | HopStep::Written { session, .. }
            | HopStep::Arrived { session }
            | HopStep::Acknowledged { session, .. } => Some(session),
            HopStep::Home | HopStep::Committed | HopStep::Withheld(_) | HopStep::Ended(..) => None,
        }
    }
}
