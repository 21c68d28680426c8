//! Extensions in WebAssembly, behind the port [`carillon_core::ports::modules`].
//!
//! ```text
//!  code ─► check ─► compile (a thread of its own) ─► Compiled ─► instance per shard ─► call
//! ```
//!
//! `abi` is what a module sees: `carillon:hooks@1`. `bounds` is what it may use. `runtime` compiles, `instance` calls.

mod abi;
mod bounds;
mod check;
mod event;
mod guest;
mod instance;
mod runtime;
mod state;
mod wasi;

pub use bounds::Bounds;
pub use runtime::WasmRuntime;
