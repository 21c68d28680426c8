//! The admin API: domains, accounts, keys, webhooks, sessions, figures.

pub(crate) mod accounts;
pub(crate) mod audit;
pub(crate) mod domains;
pub(crate) mod drain;
pub(crate) mod export;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod keys;
pub(crate) mod leases;
pub(crate) mod modules;
pub(crate) mod sessions;
pub(crate) mod status;
pub(crate) mod usage;
pub(crate) mod webhooks;
