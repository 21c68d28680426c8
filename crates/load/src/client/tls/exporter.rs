//! The channel binding `tls-exporter` (RFC 9266), derived by ourselves: rustls' connections that keep no buffers have
//! no exporter, but tell the secret it is derived from to whoever logs keys.

use std::cell::RefCell;

use hmac::digest::common::KeyInit;
use hmac::{Hmac, Mac};
use rustls::KeyLog;
use sha2::{Digest, Sha256, Sha384};

/// RFC 9266 §2.
const LABEL: &str = "EXPORTER-Channel-Binding";

thread_local! {
    /// Keying material of the handshake that ended last on this thread, until it is taken.
    static KEYING_MATERIAL: RefCell<Option<[u8; 32]>> = const { RefCell::new(None) };
}

/// Catches the exporter's secret while a handshake ends.
#[derive(Debug)]
pub(super) struct ExporterLog;

impl KeyLog for ExporterLog {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        // TLS 1.2 logs its master secret without asking.
        if self.will_log(label) {
            KEYING_MATERIAL.set(keying_material(secret));
        }
    }

    fn will_log(&self, label: &str) -> bool {
        label == "EXPORTER_SECRET"
    }
}

/// The channel binding of the handshake that has just ended on this thread.
///
/// The secret is told on the thread, and within the call, that ends the handshake; taken right after that call it
/// belongs to no other.
pub(super) fn take_keying_material() -> Option<[u8; 32]> {
    KEYING_MATERIAL.take()
}

/// The exporter of TLS 1.3 (RFC 8446 §7.5), without context. The secret's length tells the hash function.
fn keying_material(secret: &[u8]) -> Option<[u8; 32]> {
    match secret.len() {
        32 => {
            let derived = expand_label::<Hmac<Sha256>>(secret, LABEL, &Sha256::digest(b""), 32);
            expand_label::<Hmac<Sha256>>(&derived, "exporter", &Sha256::digest(b""), 32)
        }
        48 => {
            let derived = expand_label::<Hmac<Sha384>>(secret, LABEL, &Sha384::digest(b""), 48);
            expand_label::<Hmac<Sha384>>(&derived, "exporter", &Sha384::digest(b""), 32)
        }
        _ => return None,
    }
    .first_chunk()
    .copied()
}

/// `HKDF-Expand-Label` (RFC 8446 §7.1) of at most one block.
fn expand_label<M: Mac + KeyInit>(secret: &[u8], label: &str, context: &[u8], length: u8) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(secret).expect("HMAC takes a key of any length");
    mac.update(&[0, length, 6 + label.len() as u8]);
    mac.update(b"tls13 ");
    mac.update(label.as_bytes());
    mac.update(&[context.len() as u8]);
    mac.update(context);
    // RFC 5869 §2.3: the first block's counter.
    mac.update(&[1]);
    let mut block = mac.finalize().into_bytes().to_vec();
    block.truncate(usize::from(length));
    block
}
