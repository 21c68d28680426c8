//! Files that clients upload (XEP-0363): their ids, and the tokens by which the HTTP side knows what the XMPP side has allowed, without asking
//! it.

use super::{DomainId, UnixMs};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The id of an uploaded file: 128 random bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UploadId(pub u128);

impl std::fmt::Debug for UploadId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl std::fmt::Display for UploadId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// An attempt to upload a file: what it wrote is kept under this number beside the file's id, so that two attempts write two files, of which
/// one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UploadAttempt(pub u64);

/// How much may be uploaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadBounds {
    /// Bytes of an account's files and slots.
    pub account_bytes: u64,
    /// Bytes of those of a domain.
    pub domain_bytes: u64,
}

/// A file, or the slot for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadedFile {
    /// Its name.
    pub name: Box<str>,
    /// Its media type; empty if its uploader did not say one.
    pub media_type: Box<str>,
    /// Its size.
    pub bytes: u64,
    /// When the slot or the file expires.
    pub expires: UnixMs,
    /// The attempt that uploaded it; none of a slot.
    pub attempt: Option<UploadAttempt>,
}

/// What a client may put into a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The domain of its account.
    pub domain: DomainId,
    /// The file's id.
    pub id: UploadId,
    /// The file's size.
    pub bytes: u64,
    /// The file's media type; empty for any.
    pub media_type: Box<str>,
    /// Until when it may be put there.
    pub expires: UnixMs,
}

/// What the tokens of a node are signed with.
#[derive(Clone)]
pub struct UploadKey([u8; 32]);

impl std::fmt::Debug for UploadKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UploadKey")
    }
}

/// Bytes of a signature in a token.
const SIGNATURE: usize = 16;

impl UploadKey {
    /// The key of a node with this secret.
    pub fn of(secret: &[u8; 32]) -> UploadKey {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
        mac.update(b"carillon upload");
        UploadKey(mac.finalize().into_bytes().into())
    }

    /// What stands for a file in its URL: who has it may read the file.
    pub fn file(&self, domain: DomainId, id: UploadId) -> String {
        self.sign(b"file", [&domain.0.to_be_bytes()[..], &id.0.to_be_bytes()].concat())
    }

    /// The file that a text of [`UploadKey::file`] stands for.
    pub fn read_file(&self, text: &str) -> Option<(DomainId, UploadId)> {
        let signed = self.check(b"file", text)?;
        let (domain, id) = signed.split_first_chunk()?;
        let id = u128::from_be_bytes(id.try_into().ok()?);
        Some((DomainId(u32::from_be_bytes(*domain)), UploadId(id)))
    }

    /// The right to put a file into a slot.
    pub fn slot(&self, slot: &Slot) -> String {
        let Slot { domain, id, bytes, media_type, expires } = slot;
        let fixed = [
            &domain.0.to_be_bytes()[..],
            &id.0.to_be_bytes(),
            &bytes.to_be_bytes(),
            &expires.0.to_be_bytes(),
            media_type.as_bytes(),
        ];
        self.sign(b"slot", fixed.concat())
    }

    /// The slot that a text of [`UploadKey::slot`] gives a right to.
    pub fn read_slot(&self, text: &str) -> Option<Slot> {
        let signed = self.check(b"slot", text)?;
        let (domain, rest) = signed.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (bytes, rest) = rest.split_first_chunk()?;
        let (expires, media_type) = rest.split_first_chunk()?;
        Some(Slot {
            domain: DomainId(u32::from_be_bytes(*domain)),
            id: UploadId(u128::from_be_bytes(*id)),
            bytes: u64::from_be_bytes(*bytes),
            media_type: std::str::from_utf8(media_type).ok()?.into(),
            expires: UnixMs(u64::from_be_bytes(*expires)),
        })
    }

    fn mac(&self, purpose: &[u8], signed: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(purpose);
        mac.update(signed);
        mac
    }

    fn sign(&self, purpose: &[u8], mut signed: Vec<u8>) -> String {
        let signature = self.mac(purpose, &signed).finalize().into_bytes();
        signed.extend(signature.into_iter().take(SIGNATURE));
        URL_SAFE_NO_PAD.encode(signed)
    }

    /// What was signed for this purpose.
    fn check(&self, purpose: &[u8], text: &str) -> Option<Vec<u8>> {
        let mut signed = URL_SAFE_NO_PAD.decode(text).ok()?;
        let signature = signed.split_off(signed.len().checked_sub(SIGNATURE)?);
        self.mac(purpose, &signed).verify_truncated_left(&signature).ok()?;
        Some(signed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot() -> Slot {
        Slot {
            domain: DomainId(7),
            id: UploadId(1 << 100 | 9),
            bytes: 12,
            media_type: "image/png".into(),
            expires: UnixMs(1_795_167_000_000),
        }
    }

    #[test]
    fn what_was_signed_is_read() {
        let key = UploadKey::of(&[1; 32]);
        let any = Slot { media_type: "".into(), ..slot() };
        for slot in [slot(), any] {
            assert_eq!(key.read_slot(&key.slot(&slot)), Some(slot));
        }
        let id = UploadId(u128::MAX);
        assert_eq!(key.read_file(&key.file(DomainId(7), id)), Some((DomainId(7), id)));
    }

    #[test]
    fn nothing_else_is_believed() {
        let (key, other) = (UploadKey::of(&[1; 32]), UploadKey::of(&[2; 32]));
        let (file, token) = (key.file(DomainId(7), slot().id), key.slot(&slot()));
        assert_eq!((other.read_file(&file), other.read_slot(&token)), (None, None));
        assert_eq!((key.read_slot(&file), key.read_file(&token)), (None, None));
        for text in ["", "A", "AAAA", "%", &format!("{file}A"), &format!("A{token}")] {
            assert_eq!((key.read_file(text), key.read_slot(text)), (None, None), "{text}");
        }
        // Any bit that differs is found.
        let bytes = URL_SAFE_NO_PAD.decode(&token).expect("it is base 64");
        for at in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            *bytes.get_mut(at / 8).expect("it is there") ^= 1 << (at % 8);
            assert_eq!(key.read_slot(&URL_SAFE_NO_PAD.encode(bytes)), None, "bit {at}");
        }
    }
}
