//! The consumer API: for the services that enrol devices.

pub(crate) mod credentials;
pub(crate) mod devices;
pub(crate) mod subscriptions;
