//! The part of the TLS 1.3 key schedule a running connection needs: `HKDF-Expand-Label` (RFC 8446 §7.1).

use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock};

use super::fault::Fault;
use super::suite::Suite;

/// A secret that others are derived from.
pub(super) struct Secret(Box<dyn HkdfExpander>);

impl Secret {
    pub(super) fn new(suite: Suite, secret: &[u8]) -> Secret {
        Secret(suite.hkdf().expander_for_okm(&OkmBlock::new(secret)))
    }

    /// Fills `out` with `HKDF-Expand-Label(secret, label, "", out.len())`.
    pub(super) fn expand_label(&self, label: &[u8], out: &mut [u8]) -> Result<(), Fault> {
        const PREFIX: &[u8] = b"tls13 ";
        // Every label and length used here is a few bytes, so that neither cast can truncate.
        let len = (out.len() as u16).to_be_bytes();
        let label_len = [(PREFIX.len() + label.len()) as u8];
        let no_context = [0];
        let info = [&len[..], &label_len, PREFIX, label, &no_context];
        self.0.expand_slice(&info, out).map_err(|_| Fault::Cipher)
    }
}
