//! What the event log costs on this machine: `cargo run --release -p carillon-server --example event_log_cost [FOLDER]`.
//!
//! Half a million deliveries of one shard, noted as fast as they can be. Each figure is the median of several runs.

use carillon_server::events::measure::{Measured, measure};
use carillon_server::events::{Format, Kinds, Options};
use std::path::PathBuf;

const EVENTS: u64 = 500_000;
const RUNS: usize = 7;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let parent = std::env::args_os().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    for (format, memory_mib) in [(Format::Json, 256), (Format::Compact, 256), (Format::Json, 4)] {
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            let folder = parent.join(format!("carillon-event-log-cost-{}", std::process::id()));
            let options = Options {
                enabled: true,
                folder: folder.clone(),
                format,
                kinds: Kinds::all(),
                rotate_bytes: u64::MAX,
                rotate_ms: 0,
                compress: false,
                keep_files: 0,
                keep_ms: 0,
                memory_bytes: memory_mib << 20,
            };
            runs.push(measure(&options, EVENTS)?);
            std::fs::remove_dir_all(&folder)?;
        }
        runs.sort_by_key(|run| run.whole);
        report(format, memory_mib, &runs[RUNS / 2]);
    }
    Ok(())
}

fn report(format: Format, memory_mib: usize, run: &Measured) {
    let status = run.status;
    println!(
        "{format:?}, {memory_mib} MiB of memory: {} lines of {} bytes",
        status.lines,
        status.bytes / status.lines
    );
    println!("  all written and durable after {:.0} ms", run.whole.as_secs_f64() * 1e3);
    println!(
        "  the shard's part, with waiting for memory: {:.0} ns an event",
        run.shard.as_secs_f64() * 1e9 / EVENTS as f64
    );
    println!("  by way of the disk: {} MiB; lost: {}", status.spilled_bytes >> 20, status.dropped);
}
