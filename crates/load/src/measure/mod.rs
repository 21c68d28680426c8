//! What a run is judged by: latencies, and what the server's processes and the kernel spent.

mod digest;
mod latency;
mod process;

pub use digest::Digest;
pub use latency::{Latencies, Percentiles};
pub use process::{KernelMemory, ProcessError, Processes, Usage};
