//! Measurements: latencies, and the CPU time and memory of the server's processes and the kernel.

mod process;
mod server;
mod tdigest;

pub use process::{KernelMemory, ProcessError, Processes, Usage};
pub use server::{Reading, Server, ServerError};
pub(crate) use server::{agent, why};
pub use tdigest::TDigest;
