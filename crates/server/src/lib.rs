//! Sockets, TLS and event loops: everything around the core that does I/O.
//!
//! A [`Server`] runs a few shards and one thread of periodic jobs. A shard is one thread with one poll; it owns its
//! listeners, its connections and a [`carillon_core::machine::ShardMachine`], which decides everything. What happens on the sockets
//! becomes an input of the core, and the core's effects are carried out here, in order:
//!
//! ```text
//!            ┌──────────────────────────── the event loop ──────────────────────────┐
//!  listen ──►│ conn (socket, tls, websocket) ──Input──► core ──Effect──► interpret  │──► conn, outboxes, store, replies
//!            └───────▲──────────────────────────────────────────────────────────────┘
//!                  inbox ◄── other shards · Node (HTTP, the command line) · answers of the store · jobs
//! ```
//!
//! | module | what is in it |
//! |---|---|
//! | [`node`] | the handle to a running node: its figures now, over the last ten minutes, their rates; draining it; what it leaves to the next process |
//! | [`metrics`] | the figures, and what each shard was given last, for when it hangs or dies |
//! | `server`, `options` | starting and ending |
//! | `event_loop` | the loop of a shard: what a turn is, how the socket is read, what comes by the inbox |
//! | `shard_io`, `interpret` | everything a shard owns besides its core, and the effects on it |
//! | `sends` | what goes to many connections by one system call |
//! | `conn` | a connection, in as few bytes as it can be |
//! | `derivers` | threads that derive keys from passwords |
//! | `listen` | binding, accepting, refusing; which proxies are believed |
//! | [`handover`] | a live upgrade: sessions and their sockets go to another process |
//! | `websocket` | the HTTP request before the frames, and where clients learn of the port |
//! | [`tls`], `listener_tls` | TLS, and what each listener offers |
//! | `channels` | between threads: inboxes of shards, answers, what watchers are told |
//! | `cell`, `far` | between nodes: records on the bus, and connections whose sessions are elsewhere |
//! | `jobs` | what is done by the clock |
//! | [`events`] | the event log: from the shards' journals to files |
//!
//! Three invariants. A shard waits for nothing but its poll: the few locks it takes (its inbox, its published figures,
//! the count of connections per address) are held for some instructions, and never during I/O. Whatever grows with load
//! has a bound, and its documentation says what happens at the bound. An idle connection costs [`tls::Keys`] and about a
//! hundred bytes: all buffers belong to the shard.

mod cell;
mod channels;
mod clock;
mod conn;
mod derivers;
mod event_loop;
pub mod events;
mod far;
pub mod handover;
mod interpret;
mod jobs;
mod listen;
mod listener_tls;
mod machine;
pub mod metrics;
pub mod node;
mod options;
mod quic;
mod sends;
mod server;
mod shard_io;
#[cfg(test)]
mod testing;
pub mod tls;
mod websocket;

pub use cell::{
    Cell, CellHands, CellView, DrainReport, MemberState, MemberView, NodeReport, NodeRequest, OpenBus,
    OpenLog, Said, Standing, Tells,
};
pub use channels::hops::{HopSeen, HopSink};
pub use channels::taps::{TapSink, Tapped};
pub use listen::proxies::TrustedProxies;
pub use listen::{BindError, Bounds, Ports};
pub use metrics::flight::{FLIGHT_ENTRIES, FlightEntry};
pub use node::{DrainProgress, HomeMoves, ModulesError, Node, Pushed, TapRequest, history};
pub use options::{ClientPort, Light, Options, OutQueues, Tcp, WebSocket};
pub use server::{Beginning, FreezeError, HandedOver, Server, StartError};
pub use websocket::host_meta;
