//! Every decision of the server.

pub mod command;
pub mod model;
pub mod ports;
