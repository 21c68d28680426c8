//! Accounts whose sessions are being told of a list: a list that has changed in many places is told once.

use crate::feature_state::Shared;
use crate::model::Map;
use carillon_wire::jid::BareJid;

/// Accounts whose list is being made, to be told.
#[derive(Debug, Default)]
pub struct Telling {
    /// Whether it has changed since it was read.
    accounts: Map<BareJid, bool>,
}

impl Shared for Telling {
    fn tidy(&mut self) {
        self.accounts.shrink_to_fit();
    }
}

impl Telling {
    /// The list of an account has changed; whether it is to be made now. Otherwise it is being made already, and is made once more.
    pub(crate) fn begin(&mut self, account: &BareJid) -> bool {
        match self.accounts.get_mut(account) {
            Some(has_changed) => {
                *has_changed = true;
                false
            }
            None => {
                self.accounts.insert(account.clone(), false);
                true
            }
        }
    }

    /// It was told; whether it has changed meanwhile.
    pub(crate) fn end(&mut self, account: &BareJid) -> bool {
        self.accounts.remove(account).unwrap_or_default()
    }
}
