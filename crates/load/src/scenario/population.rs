//! Who takes part in a run: accounts of one domain with numbered names, and how they connect.

use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use carillon_wire::jid::{BareJid, JidError};

use super::RunError;
use super::ramp::Ramp;
use crate::client::{Options, Profile};

/// The resource of every client, and its tag with Bind 2.
const RESOURCE: &str = "load";
/// Descriptors a process needs besides its clients'.
const SPARE_DESCRIPTORS: u64 = 32;

/// The clients of a run, and the limits it keeps.
#[derive(Clone, Debug)]
pub struct Population {
    /// Where they connect to.
    pub target: SocketAddr,
    /// The domain of their accounts.
    pub domain: String,
    /// Their localparts are this and a number.
    pub user_prefix: String,
    /// Their numbers.
    pub numbers: Range<usize>,
    /// The password of all.
    pub password: String,
    /// How they connect and behave.
    pub profile: Arc<Profile>,
    /// How fast they log in.
    pub ramp: Ramp,
    /// Over how many threads they are spread.
    pub threads: usize,
    /// When the run is given up.
    pub deadline: Instant,
}

impl Population {
    /// Checks what can be known before the first connection.
    pub fn check(&self) -> Result<(), RunError> {
        self.jid(self.numbers.end).map_err(RunError::Account)?;
        let needed = self.numbers.len() as u64 + SPARE_DESCRIPTORS;
        match descriptors_max() {
            Some(limit) if limit < needed => Err(RunError::Descriptors { needed, limit }),
            _ => Ok(()),
        }
    }

    /// The client with a number.
    pub(super) fn options(&self, number: usize) -> Options {
        let jid = self.jid(number).expect("checked for the longest name by `check`");
        Options::new(jid, self.password.clone(), &self.profile).with_resource(RESOURCE)
    }

    /// The numbers of each thread's clients, in groups that are not torn apart.
    pub(super) fn shares(&self, group: usize) -> Vec<Range<usize>> {
        let groups = self.numbers.len() / group;
        let threads = self.threads.clamp(1, groups.max(1));
        let bound = |thread: usize| self.numbers.start + groups * thread / threads * group;
        (0..threads).map(|thread| bound(thread)..bound(thread + 1)).collect()
    }

    /// The ramp of one of so many threads.
    pub(super) fn share_of_ramp(&self, threads: usize) -> Ramp {
        Ramp {
            rate: self.ramp.rate.map(|rate| rate / threads as f64),
            in_flight_max: (self.ramp.in_flight_max / threads).max(1),
        }
    }

    fn jid(&self, number: usize) -> Result<BareJid, JidError> {
        BareJid::from_parts(Some(&format!("{}{number}", self.user_prefix)), &self.domain)
    }
}

/// Resolves `HOST:PORT`.
pub fn resolve(target: &str) -> Result<SocketAddr, RunError> {
    let addresses = target.to_socket_addrs();
    let first = addresses.map(|mut addresses| addresses.next());
    match first {
        Ok(Some(address)) => Ok(address),
        Ok(None) => Err(RunError::Target { target: target.to_owned(), error: None }),
        Err(error) => Err(RunError::Target { target: target.to_owned(), error: Some(error) }),
    }
}

fn descriptors_max() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Settings;

    fn population(count: usize, threads: usize) -> Population {
        Population {
            target: ([127, 0, 0, 1], 5222).into(),
            domain: "example.org".to_owned(),
            user_prefix: "u".to_owned(),
            numbers: 10..10 + count,
            password: "p".to_owned(),
            profile: Profile::new(Settings::default()).expect("defaults are valid"),
            ramp: Ramp { rate: Some(100.0), in_flight_max: 5 },
            threads,
            deadline: Instant::now(),
        }
    }

    #[test]
    fn clients_are_shared_out_in_whole_groups() {
        assert_eq!(population(10, 3).shares(1), [10..13, 13..16, 16..20]);
        assert_eq!(population(10, 3).shares(2), [10..12, 12..16, 16..20]);
        assert_eq!(population(2, 8).shares(1), [10..11, 11..12]);
        assert_eq!(population(10, 2).share_of_ramp(2), Ramp { rate: Some(50.0), in_flight_max: 2 });
    }

    #[test]
    fn impossible_accounts_are_refused_before_the_run() {
        let mut population = population(1, 1);
        assert!(population.check().is_ok());
        population.user_prefix = "a@b".to_owned();
        assert!(matches!(population.check(), Err(RunError::Account(_))));
    }
}
