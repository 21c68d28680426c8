//! The store on PostgreSQL against the suite that every store must pass, and against what only it can do wrong.

#![cfg(feature = "postgres")]

mod archived;
mod commits;
mod conforms;
mod links;
mod moving;
mod nothing_left;
mod plans;
mod proxy;
mod secured;
mod server;
