//! What logins have in common before it is known whose they are.

use super::{Offers, Throttle};

/// What logins have in common before it is known whose they are.
#[derive(Default)]
pub struct Logins {
    /// Those that failed.
    pub(crate) throttle: Throttle,
    /// Stream features that were sent before.
    pub(crate) offers: Offers,
}
