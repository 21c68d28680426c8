//! XMPP clients: one, a few, or very many.
//!
//! - [`client`]: a client's side of a stream, without I/O.
//! - [`blocking`]: one client driven by the calling thread, for tests and demonstrations.
//! - [`swarm`]: many clients in one thread.
//! - [`scenario`]: what many clients do to measure a server, and [`report`] what came of it.
//! - [`measure`]: latencies, and what the server's processes spent.
//! - [`cli`]: the command line of the program `carillon-load`.
//!
//! The crate shares the wire format with the server, and nothing else: a mistake of the server's logic is not
//! repeated by its tester.

pub mod blocking;
pub mod cli;
pub mod client;
pub mod control;
pub mod measure;
pub mod plan;
pub mod report;
pub mod scenario;
pub mod swarm;
pub mod worker;
