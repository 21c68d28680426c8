//! What a module may use.

use std::time::Duration;

/// The bounds of a module. Fuel is given with each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Size of its code, in bytes.
    pub code_bytes: usize,
    /// Size of one of its functions, in bytes: the compiler's work grows faster than this.
    pub function_bytes: usize,
    /// How long whoever pushes it waits for the compiler.
    pub compile_time: Duration,
    /// Its memory, in bytes.
    pub memory_bytes: usize,
    /// Entries of its tables.
    pub table_entries: usize,
    /// Its stack, in bytes.
    pub stack_bytes: usize,
    /// Its output of one call, in bytes.
    pub output_bytes: usize,
    /// Lines of its log in one call.
    pub lines: usize,
    /// Bytes of such a line.
    pub line_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            code_bytes: 4 << 20,
            function_bytes: 256 << 10,
            compile_time: Duration::from_secs(20),
            memory_bytes: 16 << 20,
            table_entries: 20_000,
            stack_bytes: 256 << 10,
            output_bytes: 64 << 10,
            lines: 8,
            line_bytes: 256,
        }
    }
}
