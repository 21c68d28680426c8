//! The hook that tells a connection its traffic secrets, without which it could not update its keys.
//!
//! rustls hands out keys, but secrets only by [`KeyLog`], which belongs to the configuration that all connections of the
//! process share. A connection is processed on one thread, so what is logged on this thread while it is processed is its own.

use std::cell::RefCell;

use rustls::KeyLog;
use zeroize::Zeroizing;

/// The traffic secrets of one connection, as far as they are known.
#[derive(Default)]
pub(super) struct Captured {
    pub(super) client: Option<Secret>,
    pub(super) server: Option<Secret>,
}

/// A traffic secret: 32 or 48 bytes.
pub(super) type Secret = Zeroizing<Vec<u8>>;

impl Captured {
    /// Runs `work` on a connection and keeps the secrets that it logs.
    pub(super) fn during<T>(&mut self, work: impl FnOnce() -> T) -> T {
        CAPTURED.set(Some(Captured::default()));
        let done = work();
        if let Some(new) = CAPTURED.take() {
            self.client = new.client.or_else(|| self.client.take());
            self.server = new.server.or_else(|| self.server.take());
        }
        done
    }
}

/// The [`KeyLog`] of every configuration here: writes nothing anywhere but to the connection being processed.
#[derive(Debug)]
pub(super) struct SecretHook;

impl KeyLog for SecretHook {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        let secret = Zeroizing::new(secret.to_vec());
        CAPTURED.with_borrow_mut(|captured| match (captured, label) {
            (Some(captured), CLIENT) => captured.client = Some(secret),
            (Some(captured), SERVER) => captured.server = Some(secret),
            _ => {}
        });
    }

    fn will_log(&self, label: &str) -> bool {
        matches!(label, CLIENT | SERVER)
    }
}

const CLIENT: &str = "CLIENT_TRAFFIC_SECRET_0";
const SERVER: &str = "SERVER_TRAFFIC_SECRET_0";

thread_local! {
    static CAPTURED: RefCell<Option<Captured>> = const { RefCell::new(None) };
}
