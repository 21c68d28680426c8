//! How many connections the limit of open files allows. Without this bound connections would use up all descriptors, and
//! the store could not open its journal.

use super::admission::Bounds;

/// What the log says where the limit decides.
const BOUNDED: &str = "the limit of open files bounds connections; raise it by LimitNOFILE or ulimit -n";

/// The number of connections that the limit of open files allows; none if there is no limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescriptorLimit(Option<u64>);

impl DescriptorLimit {
    /// Reads the limit. `connections` are those that there are already: their descriptors are not those of others.
    pub(crate) fn find(connections: usize) -> DescriptorLimit {
        DescriptorLimit(connections_max(connections as u64))
    }

    /// The operator's bounds, with the one on connections lowered to what the system allows.
    pub(crate) fn clamp(self, bounds: Bounds) -> Bounds {
        let wanted = bounds.connections;
        let connections = match self.0 {
            Some(allowed) if wanted == 0 => {
                tracing::info!(connections_max = allowed, "{BOUNDED}");
                allowed
            }
            Some(allowed) if allowed < wanted => {
                tracing::info!(connections_max = allowed, wanted, "{BOUNDED}");
                allowed
            }
            _ => wanted,
        };
        Bounds { connections, ..bounds }
    }
}

/// The number of connections that this process may have, if the system tells.
fn connections_max(connections: u64) -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    room(soft_limit(&limits)?, open.saturating_sub(connections))
}

/// How many connections `limit` allows if `open` descriptors are in use and some are kept for everything else.
fn room(limit: u64, open: u64) -> Option<u64> {
    let others = (limit / 16).clamp(8, 256);
    Some(limit.saturating_sub(open + others).max(1))
}

/// The soft limit of open files; none if there is no limit.
fn soft_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_read_and_shared() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max processes             95940                95940                processes \n\
                      Max open files            1024                 1048576              files     \n";
        assert_eq!(soft_limit(limits), Some(1024));
        assert_eq!(soft_limit(&limits.replace("1024 ", "unlimited ")), None);
        assert_eq!((room(1024, 40), room(20_000, 100), room(16, 40)), (Some(920), Some(19_644), Some(1)));
        assert!(connections_max(0).is_some());
        // Whatever else this process opens meanwhile: a thousand is more.
        assert!(connections_max(1000) > connections_max(0));
    }
}
