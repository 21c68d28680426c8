//! The process, by the names that every Prometheus client library gives these figures, so that its tools find them.

use crate::exposition::Page;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Writes what the system tells of this process; nothing of what it does not tell.
pub(super) fn process(page: &mut Page, resident_bytes: u64) {
    page.gauge("process_resident_memory_bytes", "Resident memory of the process in bytes.", resident_bytes);
    if let Some(stat) = Stat::read() {
        let help = "User and system CPU time that the process has used, in seconds.";
        page.counter("process_cpu_seconds_total", help, stat.cpu_seconds);
        page.gauge(
            "process_virtual_memory_bytes",
            "Virtual memory of the process in bytes.",
            stat.virtual_bytes,
        );
        if let Some(boot) = boot_seconds() {
            let help = "Start time of the process, in seconds since the Unix epoch.";
            page.gauge("process_start_time_seconds", help, boot + stat.start_seconds);
        }
    }
    if let Some(open) = open_descriptors() {
        page.gauge("process_open_fds", "File descriptors that the process has open.", open);
    }
    if let Some(max) = max_descriptors() {
        let help = "File descriptors that the process may have open (the soft limit RLIMIT_NOFILE).";
        page.gauge("process_max_fds", help, max);
    }
}

/// What proc_pid_stat(5) tells.
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_seconds: f64,
    /// Between the boot of the system and the start of the process.
    start_seconds: f64,
    virtual_bytes: u64,
}

impl Stat {
    fn read() -> Option<Stat> {
        Stat::parse(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    fn parse(stat: &str) -> Option<Stat> {
        // The command in parentheses may hold anything; utime is the 12th field behind it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Stat {
            cpu_seconds: (number(11)? + number(12)?) as f64 / TICKS_PER_SECOND,
            start_seconds: number(19)? as f64 / TICKS_PER_SECOND,
            virtual_bytes: number(20)?,
        })
    }
}

/// When the system was started, in seconds since the Unix epoch.
fn boot_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// Linux 6.2 and later tell the number as the size of the folder; before, its entries are counted, which takes about half a
/// second for a million connections.
fn open_descriptors() -> Option<u64> {
    match fs::metadata("/proc/self/fd").ok()?.size() {
        0 => Some(fs::read_dir("/proc/self/fd").ok()?.count() as u64),
        size => Some(size),
    }
}

/// The soft limit; none where there is no limit.
fn max_descriptors() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// `USER_HZ`: 100 on every Linux architecture that Rust runs on.
const TICKS_PER_SECOND: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_parentheses_is_passed_over() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 10 0 0 0 250 50 0 0 20 0 9 0 1234 987654 300 18446744073709551615";
        let stat = Stat::parse(stat);
        assert_eq!(stat, Some(Stat { cpu_seconds: 3.0, start_seconds: 12.34, virtual_bytes: 987_654 }));
    }

    #[test]
    fn descriptors_are_counted_and_bounded() {
        let before = open_descriptors().expect("Linux tells");
        let held: Vec<_> = (0..10).map(|_| fs::File::open("/dev/null").expect("there is one")).collect();
        // Other tests open and close some, too.
        assert!(open_descriptors().expect("Linux tells") + 5 > before + held.len() as u64);
        assert!(max_descriptors().is_none_or(|max| max > before));
    }
}
