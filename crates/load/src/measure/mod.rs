//! What a run is judged by: latencies, and what the server's processes and the kernel spent.

mod digest;
mod process;
mod server;

pub use digest::Digest;
pub use process::{KernelMemory, ProcessError, Processes, Usage};
pub use server::{Server, ServerError};
pub(crate) use server::{agent, why};
