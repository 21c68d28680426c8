//! The XML of rooms (XEP-0045).

pub(super) mod avatar;
pub(super) mod disco;
pub(super) mod form;
pub(super) mod request;
pub(super) mod user;

pub(crate) use disco::rooms;
pub(crate) use user::shut_down;
