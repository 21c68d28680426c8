//! The binary: everything is in the library, so that tests reach it.

use std::process::ExitCode;

/// glibc's allocator kept 2.5 times the memory of the start after 15,000 sessions had left; this one gives it back
/// (bench/README.md).
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    carillon::cli::main()
}
