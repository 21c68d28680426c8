//! Sealing: plaintext to protected records (RFC 8446 §5.2).

use aws_lc_rs::aead::{Aad, LessSafeKey};
use rustls::AlertDescription;

use super::fault::Fault;
use super::key_update::{self, Request};
use super::keys::{DirectionState, Keys};
use super::record::{self, CONTENT_MAX, HEADER_LEN, OVERHEAD, TAG_LEN, kind};

/// Records after which a direction gets new keys. AES-GCM allows 2^24.5 full-size records per key (RFC 8446 §5.5); a
/// quarter of that leaves room for a peer that answers late, and costs 20 µs every four million records.
pub(super) const RECORDS_PER_KEY: u64 = 1 << 22;

/// A burst of records to one peer, with a cipher that is keyed once for all of them. It borrows the connection until it
/// ends.
pub struct Sealer<'a> {
    keys: &'a mut Keys,
    cipher: LessSafeKey,
}

impl Keys {
    /// Seals `plain` and appends it to `out`: one record for every 16 KiB, none if there is nothing.
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        self.sealer()?.seal(plain, out)
    }

    /// Starts a burst of records.
    pub fn sealer(&mut self) -> Result<Sealer<'_>, Fault> {
        if self.writing != DirectionState::Open {
            return Err(Fault::Closed);
        }
        let cipher = self.tx.cipher(self.suite)?;
        Ok(Sealer { keys: self, cipher })
    }

    /// Ends this side's data by a close_notify; later calls of [`Keys::seal`] fail. A second call does nothing.
    pub fn close_notify(&mut self, out: &mut Vec<u8>) {
        self.alert(AlertDescription::CloseNotify, out);
        self.writing = match self.writing {
            DirectionState::Open => DirectionState::Ended,
            closed => closed,
        };
    }

    /// Changes the keys that this side seals with, and tells the peer to change its own.
    pub fn refresh(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        self.sealer()?.update(Request::Requested, out)
    }

    /// Appends an alert, if this side can still write.
    pub(super) fn alert(&mut self, alert: AlertDescription, out: &mut Vec<u8>) {
        const WARNING: u8 = 1;
        const FATAL: u8 = 2;
        // The level is fatal for all but these two (RFC 8446 §6).
        let level = match alert {
            AlertDescription::CloseNotify | AlertDescription::UserCanceled => WARNING,
            _ => FATAL,
        };
        let alert = [level, u8::from(alert)];
        // A connection whose cipher refuses to work is closed without a word.
        if let Ok(mut sealer) = self.sealer() {
            let _ = sealer.record(kind::ALERT, &alert, out);
        }
    }
}

impl Sealer<'_> {
    /// Seals `plain` and appends it to `out`: one record for every 16 KiB, none if there is nothing.
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        out.reserve(plain.len() + plain.len().div_ceil(CONTENT_MAX) * OVERHEAD);
        if self.keys.owes_update && !plain.is_empty() {
            self.update(Request::NotRequested, out)?;
        }
        for content in plain.chunks(CONTENT_MAX) {
            if self.keys.tx.seq >= RECORDS_PER_KEY {
                self.update(Request::NotRequested, out)?;
            }
            self.record(kind::APPLICATION_DATA, content, out)?;
        }
        // Data allows the peer more records without data: see `open::EMPTY_RECORDS_MAX`.
        self.keys.empty_records = 0;
        Ok(())
    }

    /// Appends one record; `content` is at most [`CONTENT_MAX`] bytes.
    pub(super) fn record(&mut self, kind: u8, content: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let header = record::protected_header(content.len() + 1 + TAG_LEN);
        let start = out.len();
        out.extend_from_slice(&header);
        out.extend_from_slice(content);
        out.push(kind);
        let half = &mut self.keys.tx;
        let inner = &mut out[start + HEADER_LEN..];
        let sealed = self.cipher.seal_in_place_separate_tag(half.nonce(), Aad::from(header), inner);
        // A nonce is never used twice, not even after a failure. It cannot overflow: `RECORDS_PER_KEY` comes first.
        half.seq += 1;
        let Ok(tag) = sealed else {
            // No plaintext may be sent.
            out.truncate(start);
            return Err(Fault::Cipher);
        };
        out.extend_from_slice(tag.as_ref());
        Ok(())
    }

    /// Sends a KeyUpdate under the old key and moves on to the next.
    pub(super) fn update(&mut self, request: Request, out: &mut Vec<u8>) -> Result<(), Fault> {
        let message = key_update::message(request);
        self.record(kind::HANDSHAKE, &message, out)?;
        self.keys.owes_update = false;
        self.keys.tx.update(self.keys.suite)?;
        self.cipher = self.keys.tx.cipher(self.keys.suite)?;
        Ok(())
    }
}
