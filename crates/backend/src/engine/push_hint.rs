//! Whom a store tells that a push was made, so that nobody has to ask it again and again.

use carillon_core::ports::PushHint;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Whoever wants to be told, if somebody does.
#[derive(Default)]
pub(crate) struct Listener(Mutex<Option<PushHint>>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

impl Listener {
    /// Has this one told from now on.
    pub(crate) fn set(&self, hint: PushHint) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(hint);
    }

    /// A commit has made a push, or made one due.
    pub(crate) fn tell(&self) {
        let hint = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(hint) = hint {
            hint();
        }
    }
}
