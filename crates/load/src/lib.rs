//! XMPP clients: one, a few, or very many.
//!
//! - [`client`]: a client's side of a stream, without I/O.
//! - [`blocking`]: one client driven by the calling thread, for tests and demonstrations.
//! - [`swarm`]: many clients in one thread.
//! - [`plan`]: what a load test is, as data; [`control`] what its parties tell each other.
//! - [`worker`]: carries players; [`orchestrate`]: leads workers through a test.
//! - [`measure`]: latencies, and what the server's processes spent; [`report`]: the results of a test.
//! - [`cli`]: the command line of the program `carillon-load`.
//!
//! The crate shares the wire format with the server, and nothing else: a mistake of the server's logic is not
//! repeated by its tester.

pub mod blocking;
pub mod cli;
pub mod client;
pub mod control;
pub mod game;
pub mod light;
pub mod measure;
pub mod orchestrate;
pub mod plan;
pub mod report;
pub mod swarm;
pub mod worker;
