//! The accounts that cost the shard most, with their names.

use super::ShardMachine;
use crate::model::{AccountId, ConnId, Mono};
use carillon_wire::jid::BareJid;
use std::collections::BTreeMap;

/// An account that costs a shard much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeavyAccount {
    /// The account.
    pub account: BareJid,
    /// Elements that its clients sent.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time that was spent on them, in nanoseconds: an estimate.
    pub cpu_ns: u64,
    /// Bytes that wait for its clients now.
    pub queue_bytes: u64,
    /// For how long it was counted, in milliseconds.
    pub counted_ms: u64,
}

impl ShardMachine {
    /// So many nanoseconds were spent on what came from a connection.
    pub fn spent(&mut self, conn: ConnId, cpu_ns: u64) {
        if let Some(session) = self.sessions.bound_at(conn) {
            let account = session.account;
            self.shard.heavy.spent(account, cpu_ns);
        }
    }

    /// The accounts that cost most and have a session, in no order. `queues` is what waits for connections, in bytes.
    pub fn top(&mut self, now: Mono, queues: &[(ConnId, u64)]) -> Vec<HeavyAccount> {
        let (counts, counted_ms) = self.shard.heavy.accounts(now);
        let mut wanted: BTreeMap<AccountId, (u64, Option<BareJid>)> =
            counts.iter().map(|(account, _)| (*account, (0, None))).collect();
        for (conn, bytes) in queues {
            if let Some(session) = self.sessions.bound_at(*conn) {
                wanted.entry(session.account).or_default().0 += bytes;
            }
        }
        for session in self.sessions.all_bound() {
            if let Some((_, name)) = wanted.get_mut(&session.account) {
                name.get_or_insert_with(|| session.bare.to_bare());
            }
        }
        let with_name = |(account, (queue_bytes, name)): (AccountId, (u64, Option<BareJid>))| {
            let at = counts.binary_search_by_key(&account, |(of, _)| *of);
            let count = at.ok().and_then(|at| counts.get(at)).map(|(_, count)| *count).unwrap_or_default();
            let (messages, bytes, cpu_ns) = (count.messages, count.bytes, count.cpu_ns);
            Some(HeavyAccount { account: name?, messages, bytes, cpu_ns, queue_bytes, counted_ms })
        };
        wanted.into_iter().filter_map(with_name).collect()
    }
}
