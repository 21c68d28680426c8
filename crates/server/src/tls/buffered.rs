//! The operations of a link on a rustls connection: for TLS 1.2, and for processing the records of a handshake.

use std::io::{Read, Write};

use rustls::{IoState, ServerConnection};

use super::fault::{Fault, Violation};
use super::keys::DirectionState;
use super::opened::OpenedRecords;
use super::record::{self, Frame, HEADER_LEN};

/// A TLS 1.2 connection after its handshake, on rustls' record layer.
#[derive(Debug)]
pub struct Buffered {
    connection: ServerConnection,
    writing: DirectionState,
}

impl Buffered {
    pub(super) fn new(mut connection: ServerConnection) -> Buffered {
        // What is written to it is read from it at once.
        connection.set_buffer_limit(None);
        Buffered { connection, writing: DirectionState::Open }
    }

    pub(super) fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        if self.writing != DirectionState::Open {
            return Err(Fault::Closed);
        }
        let written = self.connection.writer().write_all(plain);
        drain(&mut self.connection, out);
        // Without a limit to its buffer, it refuses only after a fault.
        written.map_err(|_| Fault::Closed)
    }

    pub(super) fn open(
        &mut self,
        input: &[u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<OpenedRecords, Fault> {
        let opened = self.records(input, plain, reply);
        if opened.is_err() {
            self.writing = DirectionState::Broken;
        }
        opened
    }

    pub(super) fn close_notify(&mut self, out: &mut Vec<u8>) {
        if self.writing == DirectionState::Open {
            self.connection.send_close_notify();
            drain(&mut self.connection, out);
            self.writing = DirectionState::Ended;
        }
    }

    fn records(
        &mut self,
        input: &[u8],
        plain: &mut Vec<u8>,
        reply: &mut Vec<u8>,
    ) -> Result<OpenedRecords, Fault> {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            let record = match record::frame(rest) {
                Frame::Partial => return Ok(OpenedRecords { consumed, closed: false }),
                Frame::Whole(len) => &rest[..len],
                Frame::Malformed => {
                    process(&mut self.connection, &rest[..HEADER_LEN], reply)?;
                    return Err(Violation::NotTls.into());
                }
            };
            let state = process(&mut self.connection, record, reply)?;
            self.take_plain(&state, plain)?;
            consumed += record.len();
            if state.peer_has_closed() {
                return Ok(OpenedRecords::ended(input));
            }
        }
    }

    fn take_plain(&mut self, state: &IoState, plain: &mut Vec<u8>) -> Result<(), Fault> {
        let start = plain.len();
        plain.resize(start + state.plaintext_bytes_to_read(), 0);
        self.connection
            .reader()
            .read_exact(&mut plain[start..])
            .map_err(|error| rustls::Error::General(error.to_string()).into())
    }
}

/// Has rustls process one record, and appends what it wants to send to `out`.
pub(super) fn process(
    connection: &mut ServerConnection,
    mut record: &[u8],
    out: &mut Vec<u8>,
) -> Result<IoState, rustls::Error> {
    while !record.is_empty() {
        match connection.read_tls(&mut record) {
            // It reads no more after a close_notify.
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return Err(rustls::Error::General(error.to_string())),
        }
    }
    let processed = connection.process_new_packets();
    // On an error, too: that is its alert.
    drain(connection, out);
    processed
}

/// Appends what rustls wants to send to `out`.
pub(super) fn drain(connection: &mut ServerConnection, out: &mut Vec<u8>) {
    // Writing to a `Vec` does not fail.
    while connection.wants_write() && connection.write_tls(out).is_ok_and(|written| written > 0) {}
}
