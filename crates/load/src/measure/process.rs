//! CPU time and memory of processes, from `/proc` of Linux.

use std::fs;
use std::io;
use std::time::Duration;

/// The unit of CPU times in `/proc/PID/stat`: `USER_HZ`, 100 on every Linux architecture Rust runs on.
const TICK: Duration = Duration::from_millis(10);
/// The unit of `mem` in `/proc/net/sockstat`, and of slabs.
const PAGE_BYTES: u64 = 4096;

/// The processes of a server; empty if the server runs elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Processes {
    pids: Vec<u32>,
}

/// CPU time and memory of processes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Proportional set size: memory in RAM, shared pages divided by their users.
    pub pss_bytes: u64,
    /// User and system time since the processes started, in steps of 10 ms.
    pub cpu: Duration,
}

/// Kernel memory of the whole machine that grows with connections; over loopback both ends count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelMemory {
    /// Bytes queued in TCP sockets.
    pub tcp_queued_bytes: u64,
    /// Bytes of kernel objects: sockets, file descriptors, poll registrations and others. As root, without objects that
    /// remain of files and connections of the past.
    pub slab_bytes: u64,
}

/// A process cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The file does not exist or is not readable: no such process, or a process of another user.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file under `/proc`.
        path: String,
        /// The system's error.
        error: io::Error,
    },
    /// The file does not have the format of Linux.
    #[error("{path} is not in the expected format")]
    Format {
        /// The file under `/proc`.
        path: String,
    },
}

impl Processes {
    /// The processes with these ids; an error if one cannot be measured.
    pub fn new(pids: Vec<u32>) -> Result<Self, ProcessError> {
        let processes = Self { pids };
        processes.usage()?;
        Ok(processes)
    }

    /// Their total so far; `None` without processes.
    pub fn usage(&self) -> Result<Option<Usage>, ProcessError> {
        let mut total = Usage::default();
        for pid in &self.pids {
            total.pss_bytes += read(format!("/proc/{pid}/smaps_rollup"), pss_bytes)?;
            total.cpu += read(format!("/proc/{pid}/stat"), cpu)?;
        }
        Ok((!self.pids.is_empty()).then_some(total))
    }

    /// The CPU time alone: unlike memory, reading it does not slow the process down.
    pub fn cpu(&self) -> Result<Option<Duration>, ProcessError> {
        let mut total = Duration::ZERO;
        for pid in &self.pids {
            total += read(format!("/proc/{pid}/stat"), cpu)?;
        }
        Ok((!self.pids.is_empty()).then_some(total))
    }
}

impl Usage {
    /// CPU time and memory of this process.
    pub fn of_self() -> Result<Self, ProcessError> {
        Ok(Self {
            pss_bytes: read("/proc/self/smaps_rollup".to_owned(), pss_bytes)?,
            cpu: Self::cpu_of_self()?,
        })
    }

    /// CPU time of this process, which is cheap to read.
    pub fn cpu_of_self() -> Result<Duration, ProcessError> {
        read("/proc/self/stat".to_owned(), cpu)
    }
}

impl KernelMemory {
    /// The kernel's memory now.
    pub fn now() -> Result<Self, ProcessError> {
        Ok(Self {
            tcp_queued_bytes: read("/proc/net/sockstat".to_owned(), tcp_queued_bytes)?,
            slab_bytes: read("/proc/slabinfo".to_owned(), slab_bytes)
                .or_else(|_| read("/proc/meminfo".to_owned(), |text| kilobytes(text, "Slab:")))?,
        })
    }
}

/// Slabs that depend on files read by other processes, and on connections that have ended (`TIME_WAIT`).
const NOT_OF_CONNECTIONS: [&str; 10] = [
    "ext4_",
    "xfs_",
    "btrfs_",
    "fuse_",
    "ovl_",
    "jbd2_",
    "proc_inode_cache",
    "buffer_head",
    "radix_tree_node",
    "tw_sock_TCP",
];

/// slabinfo(5): `name active objects size objects-a-slab pages-a-slab : tunables … : slabdata active slabs shared`.
fn slab_bytes(slabinfo: &str) -> Option<u64> {
    let caches = slabinfo.lines().skip_while(|line| line.starts_with("slabinfo") || line.starts_with('#'));
    caches.filter(|cache| !NOT_OF_CONNECTIONS.iter().any(|name| cache.starts_with(name))).try_fold(
        0,
        |sum, cache| {
            let mut words = cache.split_ascii_whitespace();
            let pages: u64 = words.by_ref().nth(5)?.parse().ok()?;
            let slabs: u64 = words.skip_while(|word| *word != "slabdata").nth(2)?.parse().ok()?;
            Some(sum + pages * slabs * PAGE_BYTES)
        },
    )
}

fn read<T>(path: String, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, ProcessError> {
    match fs::read_to_string(&path) {
        Ok(text) => parse(&text).ok_or(ProcessError::Format { path }),
        Err(error) => Err(ProcessError::Read { path, error }),
    }
}

fn pss_bytes(smaps_rollup: &str) -> Option<u64> {
    kilobytes(smaps_rollup, "Pss:")
}

/// The value of a line like `Pss:  1000 kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn cpu(stat: &str) -> Option<Duration> {
    // proc_pid_stat(5): the second field is the command in parentheses and may hold anything, so count from its
    // end; utime and stime are fields 14 and 15.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(TICK * (user + system))
}

fn tcp_queued_bytes(sockstat: &str) -> Option<u64> {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_ascii_whitespace().skip_while(|word| *word != "mem");
    Some(words.nth(1)?.parse::<u64>().ok()? * PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_proc_are_read() {
        let stat = "7 (odd) name) S 1 7 7 0 -1 4194560 2 0 0 0 150 25 0 0 20 0 4 0 11 1 1 1";
        assert_eq!(cpu(stat), Some(Duration::from_millis(1750)));
        assert_eq!(cpu("7"), None);
        let rollup = "55e0 [rollup]\nRss:     2048 kB\nPss:     1000 kB\nPss_Dirty: 4 kB\n";
        assert_eq!(pss_bytes(rollup), Some(1_024_000));
        let sockstat = "sockets: used 30\nTCP: inuse 5 orphan 0 tw 0 alloc 7 mem 2\nUDP: inuse 1 mem 0\n";
        assert_eq!(tcp_queued_bytes(sockstat), Some(8192));
        let slabinfo = "slabinfo - version: 2.1\n\
            # name <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit>\n\
            ext4_inode_cache 90 90 1128 29 8 : tunables 0 0 0 : slabdata 9 9 0\n\
            tw_sock_TCP 32 32 256 16 1 : tunables 0 0 0 : slabdata 2 2 0\n\
            TCP 5 26 2368 13 8 : tunables 0 0 0 : slabdata 2 2 0\n\
            filp 60 63 192 21 1 : tunables 0 0 0 : slabdata 3 3 0\n";
        assert_eq!(slab_bytes(slabinfo), Some((2 * 8 + 3) * 4096));
        assert_eq!(slab_bytes("slabinfo - version: 2.1\nTCP 5\n"), None);
    }

    #[test]
    fn this_process_can_be_looked_at() {
        let usage = Usage::of_self().expect("/proc is mounted");
        assert!(usage.pss_bytes > 0);
        assert_eq!(Processes::default().usage().expect("nothing to read"), None);
        assert!(matches!(Processes::new(vec![u32::MAX]), Err(ProcessError::Read { .. })));
    }
}
