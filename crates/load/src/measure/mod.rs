//! What a run is judged by: latencies, and what the server's processes and the kernel spent.

mod process;
mod server;
mod tdigest;

pub use process::{KernelMemory, ProcessError, Processes, Usage};
pub use server::{Server, ServerError};
pub(crate) use server::{agent, why};
pub use tdigest::TDigest;
