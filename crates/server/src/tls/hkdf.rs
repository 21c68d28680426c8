//! HKDF (RFC 5869) as TLS 1.3 uses it: two dozen secrets a handshake, each an HMAC or two over some bytes. The work is so
//! little that in aws-lc most of the time goes into contexts, so the hash functions are used without any.

use std::marker::PhantomData;

use hmac::digest::OutputSizeUser;
use hmac::{Hmac, KeyInit, Mac};
use rustls::crypto::hmac as port;
use rustls::crypto::tls13::HkdfUsingHmac;
use sha2::{Sha256, Sha384};

/// HKDF with SHA-256.
pub(super) static WITH_SHA256: HkdfUsingHmac<'static> = HkdfUsingHmac(&Keying::<Hmac<Sha256>>(PhantomData));
/// HKDF with SHA-384.
pub(super) static WITH_SHA384: HkdfUsingHmac<'static> = HkdfUsingHmac(&Keying::<Hmac<Sha384>>(PhantomData));

/// An HMAC without a key.
struct Keying<M>(PhantomData<fn() -> M>);

/// An HMAC with its key taken in.
struct Keyed<M>(M);

impl<M: Mac + KeyInit + Clone + Send + Sync + 'static> port::Hmac for Keying<M> {
    fn with_key(&self, key: &[u8]) -> Box<dyn port::Key> {
        let keyed = <M as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
        Box::new(Keyed(keyed))
    }

    fn hash_output_len(&self) -> usize {
        <M as OutputSizeUser>::output_size()
    }
}

impl<M: Mac + Clone + Send + Sync> port::Key for Keyed<M> {
    fn sign_concat(&self, first: &[u8], middle: &[&[u8]], last: &[u8]) -> port::Tag {
        let mut mac = self.0.clone();
        mac.update(first);
        middle.iter().for_each(|part| mac.update(part));
        mac.update(last);
        port::Tag::new(&mac.finalize().into_bytes())
    }

    fn tag_len(&self) -> usize {
        <M as OutputSizeUser>::output_size()
    }
}
