//! The three TLS 1.3 cipher suites an extracted connection can have.

use aws_lc_rs::aead;
use rustls::CipherSuite;
use rustls::crypto::tls13::HkdfUsingHmac;

use super::hkdf;

/// A TLS 1.3 cipher suite; the value is the low byte of its IANA number (RFC 8446 §B.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Suite {
    /// `TLS_AES_128_GCM_SHA256`
    Aes128Gcm = 1,
    /// `TLS_AES_256_GCM_SHA384`
    Aes256Gcm = 2,
    /// `TLS_CHACHA20_POLY1305_SHA256`
    Chacha20Poly1305 = 3,
}

impl Suite {
    pub(super) fn from_byte(byte: u8) -> Option<Suite> {
        [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::Chacha20Poly1305]
            .into_iter()
            .find(|suite| *suite as u8 == byte)
    }

    pub(super) fn from_iana(suite: CipherSuite) -> Option<Suite> {
        match suite {
            CipherSuite::TLS13_AES_128_GCM_SHA256 => Some(Suite::Aes128Gcm),
            CipherSuite::TLS13_AES_256_GCM_SHA384 => Some(Suite::Aes256Gcm),
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => Some(Suite::Chacha20Poly1305),
            _ => None,
        }
    }

    pub(super) fn aead(self) -> &'static aead::Algorithm {
        match self {
            Suite::Aes128Gcm => &aead::AES_128_GCM,
            Suite::Aes256Gcm => &aead::AES_256_GCM,
            Suite::Chacha20Poly1305 => &aead::CHACHA20_POLY1305,
        }
    }

    pub(super) fn hkdf(self) -> &'static HkdfUsingHmac<'static> {
        match self {
            Suite::Aes128Gcm | Suite::Chacha20Poly1305 => &hkdf::WITH_SHA256,
            Suite::Aes256Gcm => &hkdf::WITH_SHA384,
        }
    }

    /// Bytes of a traffic key.
    pub(super) fn key_len(self) -> usize {
        match self {
            Suite::Aes128Gcm => 16,
            Suite::Aes256Gcm | Suite::Chacha20Poly1305 => 32,
        }
    }

    /// Bytes of a traffic secret: the output of the suite's hash.
    pub(super) fn secret_len(self) -> usize {
        match self {
            Suite::Aes128Gcm | Suite::Chacha20Poly1305 => 32,
            Suite::Aes256Gcm => 48,
        }
    }
}
