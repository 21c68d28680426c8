//! Who claims to be an account.

use crate::model::Moment;
use carillon_wire::jid::AccountJid;
use std::net::IpAddr;

/// Who claims to be an account, at its home.
#[derive(Clone, Debug)]
pub(super) struct Claimant {
    pub(super) account: AccountJid,
    pub(super) address: IpAddr,
    /// When the account's home took it up: the login does not know of later changes.
    pub(super) since: Moment,
}
