//! What can go wrong on a TLS connection: whose fault it is, and which alert tells the peer.

use rustls::AlertDescription;

/// Why a connection cannot go on. The alert that tells the peer, where one can be sent, has already been appended to
/// the output of the call that failed: flush it, then close.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Fault {
    /// The peer broke the rules of the TLS 1.3 record layer.
    #[error("the peer broke TLS: {0}")]
    Violation(#[from] Violation),
    /// rustls refused the handshake, or a TLS 1.2 record.
    #[error("TLS failed: {0}")]
    Tls(rustls::Error),
    /// The peer gave up with this alert. Nothing is to be sent back (RFC 8446 §6.2).
    #[error("the peer sent a fatal alert: {0:?}")]
    Alerted(AlertDescription),
    /// This direction of the connection was closed by an earlier call.
    #[error("the connection is closed")]
    Closed,
    /// The cryptographic library refused a call that cannot fail with the arguments given.
    #[error("the cipher refused to work")]
    Cipher,
    /// rustls finished a handshake but did not hand out what continues it.
    #[error("the connection could not be taken over: {0}")]
    Extraction(&'static str),
}

/// Who is to blame for a [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The peer, or somebody in between: logged at debug level.
    Peer,
    /// This program: logged as an error.
    Ours,
}

impl Fault {
    /// Says whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            Fault::Violation(_) | Fault::Alerted(_) | Fault::Closed => Blame::Peer,
            Fault::Cipher | Fault::Extraction(_) => Blame::Ours,
            Fault::Tls(error) => match error {
                rustls::Error::General(_)
                | rustls::Error::FailedToGetCurrentTime
                | rustls::Error::FailedToGetRandomBytes
                | rustls::Error::Other(_) => Blame::Ours,
                _ => Blame::Peer,
            },
        }
    }

    /// The alert that an extracted connection sends for this fault; `None` where the peer must not or cannot be told,
    /// or where rustls has already chosen one.
    pub fn alert(&self) -> Option<AlertDescription> {
        match self {
            Fault::Violation(violation) => Some(violation.alert()),
            Fault::Cipher | Fault::Extraction(_) => Some(AlertDescription::InternalError),
            Fault::Tls(_) | Fault::Alerted(_) | Fault::Closed => None,
        }
    }

    /// The fault as a metric label.
    pub fn label(&self) -> &'static str {
        match self {
            Fault::Violation(violation) => violation.label(),
            Fault::Tls(_) => "tls",
            Fault::Alerted(_) => "alerted",
            Fault::Closed => "closed",
            Fault::Cipher => "cipher",
            Fault::Extraction(_) => "extraction",
        }
    }
}

impl From<rustls::Error> for Fault {
    fn from(error: rustls::Error) -> Fault {
        match error {
            rustls::Error::AlertReceived(alert) => Fault::Alerted(alert),
            other => Fault::Tls(other),
        }
    }
}

/// A rule of the record layer that the peer broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A record longer than 2^14 + 256 bytes, or its plaintext longer than 2^14 (RFC 8446 §5.1, §5.2).
    #[error("a record is too long")]
    RecordOverflow,
    /// A record that does not authenticate (RFC 8446 §5.2).
    #[error("a record does not authenticate")]
    BadRecordMac,
    /// A record of a type that has no place after the handshake, encrypted or not (RFC 8446 §5).
    #[error("a record of a type that has no place here")]
    UnexpectedRecord,
    /// A decrypted record with no content type: nothing but padding (RFC 8446 §5.4).
    #[error("a record without a content type")]
    NoContentType,
    /// A handshake or alert record without content (RFC 8446 §5.4).
    #[error("an empty handshake or alert record")]
    EmptyRecord,
    /// A handshake message other than KeyUpdate: clients have no other to send (RFC 8446 §4.6).
    #[error("a handshake message that has no place here")]
    UnexpectedHandshake,
    /// A record of another type between the fragments of a handshake message (RFC 8446 §5.1).
    #[error("a record between the fragments of a handshake message")]
    Interleaved,
    /// A KeyUpdate that does not end its record, so that what follows spans the key change (RFC 8446 §5.1).
    #[error("a KeyUpdate that does not end its record")]
    SpansKeyChange,
    /// A KeyUpdate whose length is not one, or an alert whose length is not two.
    #[error("a message of the wrong length")]
    WrongLength,
    /// A KeyUpdate that neither requests an update nor does without (RFC 8446 §4.6.3).
    #[error("a KeyUpdate with an unknown request")]
    UnknownUpdateRequest,
    /// More consecutive records without data than allowed (empty ones, KeyUpdates, ignored alerts), or more KeyUpdates
    /// per minute than allowed.
    #[error("too many records that carry nothing")]
    Flood,
    /// The peer used up its sequence numbers without updating its key (RFC 8446 §5.3).
    #[error("the sequence numbers are used up")]
    SequenceExhausted,
    /// A handshake of more bytes than any honest one.
    #[error("the handshake is too long")]
    HandshakeOverflow,
    /// Bytes that are no TLS record, in a handshake.
    #[error("not a TLS record")]
    NotTls,
}

impl Violation {
    /// The alert for it (RFC 8446 §6.2).
    pub fn alert(self) -> AlertDescription {
        match self {
            Violation::RecordOverflow => AlertDescription::RecordOverflow,
            Violation::BadRecordMac => AlertDescription::BadRecordMac,
            Violation::WrongLength | Violation::NotTls => AlertDescription::DecodeError,
            Violation::UnknownUpdateRequest => AlertDescription::IllegalParameter,
            Violation::SequenceExhausted => AlertDescription::InternalError,
            Violation::UnexpectedRecord
            | Violation::NoContentType
            | Violation::EmptyRecord
            | Violation::UnexpectedHandshake
            | Violation::Interleaved
            | Violation::SpansKeyChange
            | Violation::Flood
            | Violation::HandshakeOverflow => AlertDescription::UnexpectedMessage,
        }
    }

    /// The violation as a metric label.
    pub fn label(self) -> &'static str {
        match self {
            Violation::RecordOverflow => "record_overflow",
            Violation::BadRecordMac => "bad_record_mac",
            Violation::UnexpectedRecord => "unexpected_record",
            Violation::NoContentType => "no_content_type",
            Violation::EmptyRecord => "empty_record",
            Violation::UnexpectedHandshake => "unexpected_handshake",
            Violation::Interleaved => "interleaved",
            Violation::SpansKeyChange => "spans_key_change",
            Violation::WrongLength => "wrong_length",
            Violation::UnknownUpdateRequest => "unknown_update_request",
            Violation::Flood => "flood",
            Violation::SequenceExhausted => "sequence_exhausted",
            Violation::HandshakeOverflow => "handshake_overflow",
            Violation::NotTls => "not_tls",
        }
    }
}
