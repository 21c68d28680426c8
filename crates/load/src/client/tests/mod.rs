//! Conversations: what the server says is given, what the client says and tells is compared whole.

mod exactly_once;
mod framed;
mod login;
mod registration;
mod resumption;
mod session;
mod talk;
