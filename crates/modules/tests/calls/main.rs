//! Calls of real modules through the port.

mod accounts;
mod guests;
mod harmful;
mod hooks;
mod matches;
mod pushed;
