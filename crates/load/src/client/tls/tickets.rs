//! The tickets of all clients of a profile: with them a TLS session is resumed.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;

/// Tickets, of which any client may take any of its server. rustls' own store keeps eight a server, which thousands of
/// clients that come back at once would fight for: most of them would begin anew.
#[derive(Debug)]
pub(super) struct Tickets {
    kept: Mutex<HashMap<ServerName<'static>, VecDeque<Tls13ClientSessionValue>>>,
    /// TLS 1.2, where one session serves all, and what groups servers like.
    others: ClientSessionMemoryCache,
}

impl Tickets {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { kept: Mutex::default(), others: ClientSessionMemoryCache::new(SERVERS * 8) }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<ServerName<'static>, VecDeque<Tls13ClientSessionValue>>> {
        // Nothing that can panic is done under the lock.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, server_name: ServerName<'static>, group: NamedGroup) {
        self.others.set_kx_hint(server_name, group);
    }

    fn kx_hint(&self, server_name: &ServerName<'_>) -> Option<NamedGroup> {
        self.others.kx_hint(server_name)
    }

    fn set_tls12_session(&self, server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.others.set_tls12_session(server_name, value);
    }

    fn tls12_session(&self, server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.others.tls12_session(server_name)
    }

    fn remove_tls12_session(&self, server_name: &ServerName<'static>) {
        self.others.remove_tls12_session(server_name);
    }

    fn insert_tls13_ticket(&self, server_name: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut kept = self.kept();
        if kept.len() >= SERVERS && !kept.contains_key(&server_name) {
            return;
        }
        let tickets = kept.entry(server_name).or_default();
        if tickets.len() >= TICKETS_MAX {
            tickets.pop_front();
        }
        tickets.push_back(value);
    }

    fn take_tls13_ticket(&self, server_name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        // The newest: those of a server that was started anew since are worth nothing.
        self.kept().get_mut(server_name)?.pop_back()
    }
}

/// Tickets of a server that are kept: one and more for each client that a worker can have.
const TICKETS_MAX: usize = 1 << 16;
/// Server names whose tickets are kept.
const SERVERS: usize = 64;
