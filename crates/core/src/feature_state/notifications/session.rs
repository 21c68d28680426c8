//! What is known of a session: its notifications on their way.

use crate::model::{Audience, Mono, NotificationId, UnixMs};
use crate::shard::Pager;

/// A session's notifications on their way.
#[derive(Debug, Default)]
pub struct NotificationsInFlight(pub(crate) Option<Box<Pager<InFlight>>>);

crate::form! { struct NotificationsInFlight(pager) }

/// A notification given to the connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) id: NotificationId,
    pub(crate) audience: Audience,
    pub(crate) expires: Option<UnixMs>,
    /// Whether the store has it, and ends it.
    pub(crate) is_kept: bool,
    pub(crate) sent: UnixMs,
    /// When it was given, on the clock of timers.
    pub(crate) at: Mono,
    /// Whether stream management counts it.
    pub(crate) managed: bool,
}

crate::form! { struct InFlight { id, audience, expires, is_kept, sent, at, managed } }

impl InFlight {
    /// Whether it is a broadcast: it is for its account however long that is away, and nothing is stored of it that is the account's.
    pub(crate) fn is_broadcast(&self) -> bool {
        self.audience == Audience::Always && !self.is_kept
    }
}

impl NotificationsInFlight {
    /// Takes note of what a login read: whether any wait.
    pub(crate) fn take_login(&mut self, wait: bool) {
        if wait {
            self.look_again();
        }
    }

    /// Takes note that the store may hold one that the session was not given.
    pub(crate) fn look_again(&mut self) {
        self.pager().look_again();
    }

    /// Given and not acknowledged, oldest first.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &InFlight> {
        self.0.iter().flat_map(|pager| pager.in_flight())
    }

    /// The oldest that only a receipt or the peer's TCP can acknowledge.
    pub(crate) fn unmanaged(&self) -> Option<&InFlight> {
        self.in_flight().find(|entry| !entry.managed)
    }

    /// Whether older ones are still to come from the store, so that newer ones must wait behind them there.
    pub(crate) fn is_behind(&self) -> bool {
        self.0.as_ref().is_some_and(|pager| pager.is_behind())
    }

    /// One is not to be acknowledged any more.
    pub(crate) fn forget(&mut self, id: NotificationId) {
        if let Some(pager) = &mut self.0 {
            pager.acknowledged(|entry| entry.id == id);
            self.tidy();
        }
    }

    /// Whether as many are on their way as may be to a client without stream management.
    pub(crate) fn is_full(&self) -> bool {
        self.0.as_ref().is_some_and(|pager| pager.is_full())
    }

    pub(crate) fn pager(&mut self) -> &mut Pager<InFlight> {
        self.0.get_or_insert_default()
    }

    /// Drops the box when it holds nothing: an idle session keeps none.
    pub(crate) fn tidy(&mut self) {
        if self.0.as_ref().is_some_and(|pager| pager.is_idle()) {
            self.0 = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::testing::proves;

    #[test]
    fn its_form() {
        let given = |id, audience, expires, managed| {
            let (sent, at) = (UnixMs(1_795_167_000_125), Mono(990_000));
            InFlight { id: NotificationId(id), audience, expires, is_kept: managed, sent, at, managed }
        };
        let mut state = NotificationsInFlight::default();
        proves("notifications, none", &state);
        state.pager().gave(given(1 << 90, Audience::Always, Some(UnixMs(1_795_170_000_000)), true), 300);
        state.pager().gave(given(7, Audience::Active, None, false), 500);
        state.pager().elsewhere();
        state.look_again();
        proves("notifications", &state);
    }
}
