//! The verbs of a link on a rustls connection: for TLS 1.2, and for the handshake to feed records with.

use std::io::{Read, Write};

use rustls::{IoState, ServerConnection};

use super::fault::{Fault, Violation};
use super::link::Opened;
use super::record::{self, Frame, HEADER_LEN};

pub(super) fn seal(connection: &mut ServerConnection, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let written = connection.writer().write_all(plain);
    drain(connection, out);
    // Nothing else can stop it: there is no limit to the buffer, which has just been emptied.
    written.map_err(|_| Fault::Closed)
}

pub(super) fn open(
    connection: &mut ServerConnection,
    input: &[u8],
    plain: &mut Vec<u8>,
    reply: &mut Vec<u8>,
) -> Result<Opened, Fault> {
    let mut consumed = 0;
    loop {
        let rest = &input[consumed..];
        let record = match record::frame(rest) {
            Frame::Partial => return Ok(Opened { consumed, closed: false }),
            Frame::Whole(len) => &rest[..len],
            Frame::Malformed => {
                process(connection, &rest[..HEADER_LEN], reply)?;
                return Err(Violation::NotTls.into());
            }
        };
        let state = process(connection, record, reply)?;
        read(connection, &state, plain)?;
        consumed += record.len();
        if state.peer_has_closed() {
            return Ok(Opened::ended(input));
        }
    }
}

pub(super) fn close_notify(connection: &mut ServerConnection, out: &mut Vec<u8>) {
    connection.send_close_notify();
    drain(connection, out);
}

/// Has rustls process one record, and appends what it wants to send to `out`.
pub(super) fn process(
    connection: &mut ServerConnection,
    mut record: &[u8],
    out: &mut Vec<u8>,
) -> Result<IoState, rustls::Error> {
    while !record.is_empty() {
        match connection.read_tls(&mut record) {
            // It wants no more after a close_notify.
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

fn read(connection: &mut ServerConnection, state: &IoState, plain: &mut Vec<u8>) -> Result<(), Fault> {
    let start = plain.len();
    plain.resize(start + state.plaintext_bytes_to_read(), 0);
    connection
        .reader()
        .read_exact(&mut plain[start..])
        .map_err(|error| rustls::Error::General(error.to_string()).into())
}
