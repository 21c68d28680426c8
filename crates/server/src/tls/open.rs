//! Opening: protected records to plaintext, and everything else a peer may send after the handshake.

use aws_lc_rs::aead::{Aad, LessSafeKey};
use rustls::AlertDescription;

use super::fault::{Fault, Violation};
use super::key_update::{HEADER, Request};
use super::keys::{DirectionState, Keys};
use super::opened::{Circumstances, OpenedRecords};
use super::record::{self, CONTENT_MAX, HEADER_LEN, TAG_LEN, kind};
use super::seal::RECORDS_PER_KEY;

/// Consecutive records without data (empty ones, KeyUpdates, ignored alerts) that are allowed while no data flows either
/// way. Each costs the server more than the peer: without a limit they could keep a processor core busy.
pub(super) const EMPTY_RECORDS_MAX: u8 = 32;

/// KeyUpdates that a peer may send per minute, with data between them. Each costs two derivations, and its answer two
/// more; a peer that follows RFC 8446 §5.5 sends one in some million records.
pub(super) const UPDATES_PER_MINUTE_MAX: u8 = 60;

impl Keys {
    /// Opens every whole record at the start of `input`, in place, and appends its data to `plain`. What must be sent to
    /// the peer (a KeyUpdate that it asked for, or the alert of a fault) is appended to `reply`, to be sent before
    /// anything sealed later. On a fault, `plain` has the data of the records before it.
    ///
    /// A KeyUpdate that the peer asked for must precede the next data (RFC 8446 §4.6.3). While something waits to be sent
    /// it is left to [`Sealer::seal`](super::seal::Sealer::seal), and one KeyUpdate answers all requests until then.
    pub fn open(
        &mut self,
        input: &mut [u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
        circumstances: Circumstances,
    ) -> Result<OpenedRecords, Fault> {
        match self.reading {
            DirectionState::Open => {}
            // What follows a close_notify is ignored (RFC 8446 §6.1).
            DirectionState::Ended => return Ok(OpenedRecords::ended(input)),
            DirectionState::Broken => return Err(Fault::Closed),
        }
        let seq_before = self.rx.seq;
        let mut burst = Burst { keys: self, cipher: None, minute: circumstances.minute };
        let opened = burst.run(input, plain);
        let answers_update = self.owes_update && !circumstances.has_queue;
        // A peer that never updates its keys is asked to do so once, when it crosses the limit.
        let asks_update = (seq_before..self.rx.seq).contains(&RECORDS_PER_KEY);
        let opened = opened.and_then(|opened| {
            match (asks_update, answers_update) {
                _ if self.writing != DirectionState::Open => {}
                (true, _) => self.sealer()?.update(Request::Requested, reply)?,
                (false, true) => self.sealer()?.update(Request::NotRequested, reply)?,
                (false, false) => {}
            }
            Ok(opened)
        });
        if let Err(fault) = &opened {
            if let Some(alert) = fault.alert() {
                self.alert(alert, reply);
            }
            (self.reading, self.writing) = (DirectionState::Broken, DirectionState::Broken);
        }
        opened
    }
}

/// The records of one call. The cipher is keyed when the first of them is whole.
struct Burst<'a> {
    keys: &'a mut Keys,
    cipher: Option<LessSafeKey>,
    /// [`Circumstances::minute`]
    minute: u32,
}

impl Burst<'_> {
    fn run(&mut self, input: &mut [u8], plain: &mut Vec<u8>) -> Result<OpenedRecords, Fault> {
        let mut consumed = 0;
        while let Some(len) = record::protected(&input[consumed..])? {
            let (kind, content) = self.decrypt(&mut input[consumed..consumed + len])?;
            consumed += len;
            if kind != kind::HANDSHAKE && self.keys.update_seen > 0 {
                return Err(Violation::Interleaved.into());
            }
            match kind {
                kind::APPLICATION_DATA if content.is_empty() => self.empty_records()?,
                kind::APPLICATION_DATA => {
                    plain.extend_from_slice(content);
                    self.keys.empty_records = 0;
                }
                kind::HANDSHAKE => self.handshake(content)?,
                kind::ALERT if self.alert(content)? == DirectionState::Ended => {
                    self.keys.reading = DirectionState::Ended;
                    return Ok(OpenedRecords::ended(input));
                }
                kind::ALERT => self.empty_records()?,
                _ => return Err(Violation::UnexpectedRecord.into()),
            }
        }
        Ok(OpenedRecords { consumed, closed: false })
    }

    /// Decrypts a whole record and removes its padding; returns its inner content type and its content.
    fn decrypt<'b>(&mut self, record: &'b mut [u8]) -> Result<(u8, &'b [u8]), Fault> {
        let half = &mut self.keys.rx;
        let cipher = match &mut self.cipher {
            Some(cipher) => cipher,
            none => none.insert(half.cipher(self.keys.suite)?),
        };
        let next_seq = half.seq.checked_add(1).ok_or(Violation::SequenceExhausted)?;
        let (header, body) = record.split_first_chunk_mut::<HEADER_LEN>().ok_or(Violation::BadRecordMac)?;
        let split = body.len().checked_sub(TAG_LEN).ok_or(Violation::BadRecordMac)?;
        let (ciphertext, tag) = body.split_at_mut(split);
        let inner = cipher
            .open_in_place_separate_tag(half.nonce(), Aad::from(*header), tag, ciphertext)
            .map_err(|_| Violation::BadRecordMac)?;
        half.seq = next_seq;
        // The content type and the padding count, too (RFC 8446 §5.4).
        if inner.len() > CONTENT_MAX + 1 {
            return Err(Violation::RecordOverflow.into());
        }
        let end = inner.iter().rposition(|byte| *byte != 0).ok_or(Violation::NoContentType)?;
        Ok((inner[end], &inner[..end]))
    }

    /// Handles the content of a handshake record: a KeyUpdate or a fragment of one.
    fn handshake(&mut self, content: &[u8]) -> Result<(), Fault> {
        if content.is_empty() {
            return Err(Violation::EmptyRecord.into());
        }
        for (at, byte) in content.iter().enumerate() {
            let seen = usize::from(self.keys.update_seen);
            let Some(expected) = HEADER.get(seen) else {
                let request = *byte;
                // The sender's next record is under its next key, so nothing may follow in this one.
                if at + 1 != content.len() {
                    return Err(Violation::SpansKeyChange.into());
                }
                return self.key_update(request);
            };
            match byte == expected {
                true => self.keys.update_seen += 1,
                false if seen == 0 => return Err(Violation::UnexpectedHandshake.into()),
                false => return Err(Violation::WrongLength.into()),
            }
        }
        // A fragment has no effect yet; a flood of fragments ends with the message, which has five bytes.
        Ok(())
    }

    fn key_update(&mut self, request: u8) -> Result<(), Fault> {
        // One update answers any number of requests (RFC 8446 §4.6.3).
        self.keys.owes_update |= match request {
            0 => false,
            1 => true,
            _ => return Err(Violation::UnknownUpdateRequest.into()),
        };
        self.keys.update_seen = 0;
        self.empty_records()?;
        self.count_update()?;
        self.keys.rx.update(self.keys.suite)?;
        self.cipher = None;
        Ok(())
    }

    /// Handles an alert: it ends the direction, or is ignored. All others end the connection, whatever their level (RFC
    /// 8446 §6.2).
    fn alert(&self, content: &[u8]) -> Result<DirectionState, Fault> {
        let [_level, description] = *content else {
            return Err(match content.is_empty() {
                true => Violation::EmptyRecord.into(),
                false => Violation::WrongLength.into(),
            });
        };
        match AlertDescription::from(description) {
            AlertDescription::CloseNotify => Ok(DirectionState::Ended),
            // Mozilla's NSS sends it before its close_notify; only that one says that the peer is done.
            AlertDescription::UserCanceled => Ok(DirectionState::Open),
            fatal => Err(Fault::Alerted(fatal)),
        }
    }

    fn count_update(&mut self) -> Result<(), Violation> {
        if self.keys.updates_minute != self.minute {
            (self.keys.updates, self.keys.updates_minute) = (0, self.minute);
        }
        if self.keys.updates >= UPDATES_PER_MINUTE_MAX {
            return Err(Violation::Flood);
        }
        self.keys.updates += 1;
        Ok(())
    }

    fn empty_records(&mut self) -> Result<(), Violation> {
        if self.keys.empty_records >= EMPTY_RECORDS_MAX {
            return Err(Violation::Flood);
        }
        self.keys.empty_records += 1;
        Ok(())
    }
}
