//! One TLS connection: records in, text out, and the reverse. rustls' interface without buffers keeps an idle
//! connection small: bytes stay here only while a record is incomplete.

use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};
use rustls::{ClientConfig, Error};

use super::exporter::take_keying_material;
use crate::client::event::Security;

/// What a record adds to the text in it: header, content type and tag (RFC 8446 §5.2), and a nonce in TLS 1.2.
const RECORD_OVERHEAD_BYTES: usize = 5 + 1 + 16 + 8;
/// The most text in one record (RFC 8446 §5.1).
const RECORD_TEXT_BYTES: usize = 16 * 1024;
/// The room a closing alert takes.
const ALERT_BYTES: usize = 2 + RECORD_OVERHEAD_BYTES;

/// A client's TLS connection.
pub(crate) struct TlsLayer {
    connection: Connection,
    /// The beginning of a record whose rest has not arrived.
    rest: Vec<u8>,
    exporter: Option<Box<[u8; 32]>>,
}

/// rustls' part of it.
#[expect(clippy::large_enum_variant, reason = "there is one a connection, boxed, and it fails at most once")]
enum Connection {
    Up(UnbufferedClientConnection),
    /// It must not be used again.
    Failed(Error),
}

/// The peer ended its side of the TLS connection in good order, or not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerState {
    /// More may come.
    Open,
    /// `close_notify` was received: nothing more will come.
    Closed,
}

impl TlsLayer {
    /// Begins a handshake; the first message goes to `output`.
    pub(crate) fn new(
        config: &Arc<ClientConfig>,
        name: ServerName<'static>,
        output: &mut Vec<u8>,
    ) -> Result<Self, Error> {
        let connection = UnbufferedClientConnection::new(Arc::clone(config), name)?;
        let mut layer = Self { connection: Connection::Up(connection), rest: Vec::new(), exporter: None };
        layer.drive(&mut Vec::new(), output)?;
        Ok(layer)
    }

    /// Takes bytes off the network, appends the text in them to `text` and what must be answered to `output`.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        text: &mut Vec<u8>,
        output: &mut Vec<u8>,
    ) -> Result<PeerState, Error> {
        self.rest.extend_from_slice(bytes);
        let was_handshaking = self.is_handshaking();
        let state = self.drive(text, output)?;
        if was_handshaking && !self.is_handshaking() {
            self.exporter = take_keying_material().map(Box::new);
        }
        Ok(state)
    }

    /// Protects `text` and appends the records to `output`.
    pub(crate) fn send(&mut self, text: &[u8], output: &mut Vec<u8>) -> Result<(), Error> {
        let records = text.len() / RECORD_TEXT_BYTES + 1;
        let room = text.len() + records * RECORD_OVERHEAD_BYTES;
        self.write(room, output, |state, room| match state {
            // Nothing is sent before the handshake is complete.
            ConnectionState::WriteTraffic(mut traffic) => {
                traffic.encrypt(text, room).map_err(|_| Error::EncryptError)
            }
            _ => Err(Error::HandshakeNotComplete),
        })
    }

    /// Announces that nothing more will be sent.
    pub(crate) fn close(&mut self, output: &mut Vec<u8>) {
        let announced = self.write(ALERT_BYTES, output, |state, room| match state {
            ConnectionState::WriteTraffic(mut traffic) => {
                traffic.queue_close_notify(room).map_err(|_| Error::EncryptError)
            }
            _ => Ok(0),
        });
        // A connection that has failed has sent its alert already.
        let _ = announced;
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        matches!(&self.connection, Connection::Up(connection) if connection.is_handshaking())
    }

    /// What the handshake agreed on; `None` before it has.
    pub(crate) fn security(&self) -> Option<Security> {
        let Connection::Up(connection) = &self.connection else { return None };
        Some(Security {
            version: format!("{:?}", connection.protocol_version()?),
            alpn: connection.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
            resumed: connection.handshake_kind() == Some(rustls::HandshakeKind::Resumed),
        })
    }

    /// Keying material for the channel binding `tls-exporter`, once; with TLS 1.3 only.
    pub(crate) fn take_exporter(&mut self) -> Option<[u8; 32]> {
        self.exporter.take().map(|keying_material| *keying_material)
    }

    /// Lets the connection work through the bytes that are there.
    fn drive(&mut self, text: &mut Vec<u8>, output: &mut Vec<u8>) -> Result<PeerState, Error> {
        let connection = self.connection.up()?;
        // rustls counts on seeing the same bytes again until it has discarded them, whatever it is called for.
        let mut taken = 0;
        let result = work(connection, &mut self.rest, &mut taken, text, output);
        match &result {
            Ok(_) => {
                // Nothing is held by an idle connection, not even room.
                self.rest = self.rest.get(taken..).unwrap_or_default().to_vec();
            }
            Err(error) => {
                let records = self.rest.get_mut(taken..).unwrap_or_default();
                let alert = connection.process_tls_records(records).state;
                if let Ok(ConnectionState::EncodeTlsData(alert)) = alert {
                    encode(alert, output)?;
                }
                self.connection = Connection::Failed(error.clone());
                self.rest = Vec::new();
            }
        }
        result
    }

    /// Sends what is pending, then gives the connection's state and `room` bytes of output to `write`, which says how
    /// many it used.
    fn write(
        &mut self,
        room: usize,
        output: &mut Vec<u8>,
        write: impl FnOnce(ConnectionState<'_, '_, ClientConnectionData>, &mut [u8]) -> Result<usize, Error>,
    ) -> Result<(), Error> {
        self.drive(&mut Vec::new(), output)?;
        let before = output.len();
        output.resize(before + room, 0);
        let state = self.connection.up()?.process_tls_records(&mut self.rest).state;
        let used = state.and_then(|state| write(state, output.get_mut(before..).unwrap_or_default()));
        output.truncate(before + used.as_ref().copied().unwrap_or_default());
        used.map(|_| ())
    }
}

impl Connection {
    fn up(&mut self) -> Result<&mut UnbufferedClientConnection, Error> {
        match self {
            Self::Up(connection) => Ok(connection),
            Self::Failed(error) => Err(error.clone()),
        }
    }
}

/// Works through `records` until more are needed; `taken` says how many bytes of them are done with.
fn work(
    connection: &mut UnbufferedClientConnection,
    records: &mut [u8],
    taken: &mut usize,
    text: &mut Vec<u8>,
    output: &mut Vec<u8>,
) -> Result<PeerState, Error> {
    loop {
        let left = records.get_mut(*taken..).unwrap_or_default();
        let UnbufferedStatus { discard, state } = connection.process_tls_records(left);
        *taken += discard;
        match state? {
            ConnectionState::ReadTraffic(mut traffic) => {
                while let Some(record) = traffic.next_record() {
                    text.extend_from_slice(record?.payload);
                }
            }
            ConnectionState::EncodeTlsData(data) => encode(data, output)?,
            ConnectionState::TransmitTlsData(data) => data.done(),
            ConnectionState::PeerClosed | ConnectionState::Closed => return Ok(PeerState::Closed),
            _ => return Ok(PeerState::Open),
        }
    }
}

/// Appends a handshake message or alert.
fn encode<Data>(mut data: EncodeTlsData<'_, Data>, output: &mut Vec<u8>) -> Result<(), Error> {
    let before = output.len();
    // The first attempt, without room, asks how much is needed.
    let room = match data.encode(&mut []) {
        Err(EncodeError::InsufficientSize(needed)) => needed.required_size,
        Ok(_) | Err(EncodeError::AlreadyEncoded) => return Ok(()),
    };
    output.resize(before + room, 0);
    let place = output.get_mut(before..).unwrap_or_default();
    let used = data.encode(place).map_err(|_| Error::EncryptError)?;
    output.truncate(before + used);
    Ok(())
}

#[cfg(test)]
mod tests;
