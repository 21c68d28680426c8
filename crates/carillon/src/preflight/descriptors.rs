//! Whether the system allows as many descriptors as there may be connections.

use super::Finding;
use crate::config::{Config, Origin, Setting};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors for everything that is no connection of a client: the store, the event log, HTTP.
const OTHERS: u64 = 512;

/// Raises this process's limit of open descriptors as far as the system lets it. Shells and service managers start programs
/// with a low one for the sake of old programs that cannot count beyond it.
pub fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum || limit.maximum.is_none() {
        // Where it is refused, the limit is as it was, and `inspect` says what that means.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
}

/// What is wrong with the limit. The default of `limits.max_connections` is nobody's wish, and no finding.
pub(super) fn inspect(config: &Config) -> Option<Finding> {
    let setting = Setting::named("limits.max_connections").expect("a setting of this program");
    match config.origin(setting) {
        Origin::Set(_) => {
            compare(config.settings.server.bounds.connections, getrlimit(Resource::Nofile).maximum)
        }
        Origin::Default | Origin::Profile => None,
    }
}

/// `maximum`: descriptors that the process may open after [`raise`]; none when there is no limit.
fn compare(connections: u64, maximum: Option<u64>) -> Option<Finding> {
    let (maximum, needed) = (maximum?, connections + OTHERS);
    (connections > 0 && needed > maximum).then(|| {
        Finding::warning(
            "limits.max_connections",
            format!(
                "{connections} connections are allowed, but the process may open only {maximum} files: the node refuses \
                 connections beyond about {}",
                maximum.saturating_sub(OTHERS).max(1)
            ),
            format!("raise the limit (`ulimit -Hn {needed}`; systemd: LimitNOFILE={needed}), or lower the setting"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_does_not_fit_is_found() {
        assert_eq!(compare(1000, None), None);
        assert_eq!(compare(0, Some(1024)), None);
        assert_eq!(compare(512, Some(1024)), None);
        assert_eq!(
            compare(1_000_000, Some(20_000)).expect("too many").to_string(),
            "warning: limits.max_connections: 1000000 connections are allowed, but the process may open only 20000 files: \
             the node refuses connections beyond about 19488; raise the limit (`ulimit -Hn 1000512`; systemd: \
             LimitNOFILE=1000512), or lower the setting"
        );
    }

    #[test]
    fn the_limit_is_raised_to_what_the_system_lets() {
        raise();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
