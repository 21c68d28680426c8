//! The binary `carillon`: command line, configuration, telemetry and wiring. The only crate that knows every other.
//!
//! | module | owns |
//! |---|---|
//! | [`cli`] | the commands, and their requests to a running node over HTTP |
//! | [`config`] | the list of all settings, and how they are read |
//! | [`options`] | the settings of the binary itself |
//! | [`assemble`] | from settings to what each crate is started with |
//! | [`serve`] | `carillon serve` |
//! | [`cell`] | the node among others: who lives, and where homes are |
//! | `aws`, `sqs`, `web` | requests to AWS and other services; durable queues of SQS |
//! | [`demo`] | `carillon demo` |
//! | [`files`] | the small files that tell others about a running node |
//! | [`supervisor`] | notifications to the service manager |
//! | [`preflight`] | checks of the machine before a start: ports, folders, certificate, descriptors |
//! | [`upgrade`] | the live upgrade: the node goes on in the process of another binary |
//! | [`welcome`] | what is printed once a node runs |
//! | [`telemetry`] | the log |
//! | [`signal`] | what SIGHUP, SIGTERM and SIGINT ask for |

pub mod assemble;
#[cfg(feature = "aws")]
mod aws;
pub mod cell;
pub mod cli;
pub mod config;
pub mod control;
pub mod demo;
pub mod files;
pub mod memory;
pub mod options;
pub mod preflight;
#[cfg(feature = "aws")]
mod s3;
pub mod serve;
pub mod signal;
#[cfg(feature = "aws")]
mod sqs;
pub mod successor;
pub mod supervisor;
pub mod telemetry;
pub mod upgrade;
mod web;
pub mod welcome;
