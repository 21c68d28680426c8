//! The binary `carillon`: command line, configuration, telemetry and wiring. The only crate that knows every other.
//!
//! | module | owns |
//! |---|---|
//! | [`cli`] | the commands, and their requests to a running node over HTTP |
//! | [`config`] | the list of all settings, and how they are read |
//! | [`options`] | the settings of the binary itself |
//! | [`assemble`] | from settings to what each crate is started with |
//! | `backends` | the stores, buses and queues that a node uses: the only module that names their drivers |
//! | [`serve`] | `carillon serve` |
//! | [`cell`] | the node among others: who lives, and where homes are |
//! | `aws`, `web` | requests to AWS and other services; buckets of S3, durable queues of SQS |
//! | [`demo`] | `carillon demo` |
//! | [`files`] | the small files that tell others about a running node |
//! | [`preflight`] | checks of the machine before a start: ports, folders, certificate, descriptors |
//! | [`upgrade`] | the live upgrade: the node goes on in the process of another binary |
//! | [`successor`] | the process that takes over in a live upgrade |
//! | [`control`] | the socket where `carillon upgrade` asks a node to go on in another process |
//! | [`process`] | signals, the log, the service manager, and the memory that is kept to itself |

pub mod assemble;
#[cfg(feature = "aws")]
mod aws;
mod backends;
pub mod cell;
pub mod cli;
pub mod config;
pub mod control;
pub mod demo;
pub mod files;
pub mod options;
pub mod preflight;
pub mod process;
pub mod serve;
pub mod successor;
pub mod upgrade;
mod web;
