//! What a peer must not do, and what it may.

use rustls::AlertDescription as Alert;

use super::super::key_update::{self, Request};
use super::super::open::{EMPTY_RECORDS_MAX, UPDATES_PER_MINUTE_MAX};
use super::super::record::{CIPHERTEXT_MAX, CONTENT_MAX};
use super::super::seal::RECORDS_PER_KEY;
use super::super::suite::Suite;
use super::super::{Circumstances, Fault, Violation};
use super::{Keys, SUITES, kind, open, open_in, padded, peers, record};

const UPDATE: [u8; 5] = [24, 0, 0, 1, 0];
const UPDATE_REQUESTED: [u8; 5] = [24, 0, 0, 1, 1];

/// A client's records of these types and contents are refused with this fault and this alert, after which the
/// connection is dead.
fn refused(records: &[(u8, &[u8])], violation: Violation, alert: Alert) {
    refused_wire(
        |client| records.iter().flat_map(|(kind, content)| record(client, *kind, content)).collect(),
        violation,
        alert,
    );
}

fn refused_wire(wire: impl Fn(&mut Keys) -> Vec<u8>, violation: Violation, alert: Alert) {
    for suite in SUITES {
        let (mut client, mut server) = peers(suite);
        let before = record(&mut client, kind::APPLICATION_DATA, b"before");
        let wire = [before.clone(), wire(&mut client)].concat();
        let outcome = open(&mut server, &wire);
        assert!(
            matches!(outcome.opened, Err(Fault::Violation(found)) if found == violation),
            "{violation:?}"
        );
        assert_eq!(outcome.plain, b"before");
        assert_alerted(&mut client, &outcome.reply, alert);
        assert!(matches!(open(&mut server, &before).opened, Err(Fault::Closed)));
        assert!(matches!(server.seal(b"after", &mut Vec::new()), Err(Fault::Closed)));
    }
}

fn assert_alerted(client: &mut Keys, reply: &[u8], alert: Alert) {
    let told = open(client, reply).opened;
    assert!(matches!(told, Err(Fault::Alerted(found)) if found == alert), "{told:?}");
}

#[test]
fn records_of_types_that_have_no_place() {
    let ccs: &[u8] = &[20, 3, 3, 0, 1, 1];
    let clear_alert: &[u8] = &[21, 3, 3, 0, 2, 2, 0];
    for clear in [ccs, clear_alert, b"<stream:stream>"] {
        refused_wire(|_| clear.to_vec(), Violation::UnexpectedRecord, Alert::UnexpectedMessage);
    }
    // One byte is enough to tell.
    refused_wire(|_| vec![20], Violation::UnexpectedRecord, Alert::UnexpectedMessage);
    refused(&[(kind::CHANGE_CIPHER_SPEC, &[1])], Violation::UnexpectedRecord, Alert::UnexpectedMessage);
    refused(&[(24, b"heartbeat")], Violation::UnexpectedRecord, Alert::UnexpectedMessage);
    refused(&[(0, &[])], Violation::NoContentType, Alert::UnexpectedMessage);
    refused(&[(0, &[0; 1000])], Violation::NoContentType, Alert::UnexpectedMessage);
}

#[test]
fn records_that_are_too_long() {
    let header_only = [&[23, 3, 3][..], &(CIPHERTEXT_MAX as u16 + 1).to_be_bytes()].concat();
    refused_wire(|_| header_only.clone(), Violation::RecordOverflow, Alert::RecordOverflow);
    let content = vec![b'x'; CONTENT_MAX + 1];
    refused(&[(kind::APPLICATION_DATA, &content)], Violation::RecordOverflow, Alert::RecordOverflow);
    // Padding counts (RFC 8446 §5.4).
    refused_wire(
        |client| padded(client, kind::APPLICATION_DATA, b"x", CONTENT_MAX),
        Violation::RecordOverflow,
        Alert::RecordOverflow,
    );
}

#[test]
fn records_that_do_not_authenticate() {
    for len in 0..=17 {
        let short = [&[23, 3, 3, 0, len][..], &vec![0; usize::from(len)]].concat();
        refused_wire(|_| short.clone(), Violation::BadRecordMac, Alert::BadRecordMac);
    }
    // A record a second time.
    refused_wire(
        |client| record(client, kind::APPLICATION_DATA, b"").repeat(2),
        Violation::BadRecordMac,
        Alert::BadRecordMac,
    );
}

#[test]
fn any_corrupted_byte_is_noticed() {
    for suite in SUITES {
        for at in 0..60 {
            for bit in 0..8 {
                let (mut client, mut server) = peers(suite);
                let mut wire = record(&mut client, kind::APPLICATION_DATA, &[7; 40]);
                assert_eq!(wire.len(), 62);
                wire[at] ^= 1 << bit;
                // A length that has grown swallows the next record.
                for _ in 0..CIPHERTEXT_MAX / 1000 + 1 {
                    wire.extend(record(&mut client, kind::APPLICATION_DATA, &[7; 1000]));
                }
                let outcome = open(&mut server, &wire);
                let Err(fault) = outcome.opened else {
                    panic!("byte {at}, bit {bit} went unnoticed");
                };
                assert!(outcome.plain.is_empty());
                assert_alerted(&mut client, &outcome.reply, fault.alert().unwrap());
            }
        }
    }
}

#[test]
fn alerts() {
    refused(&[(kind::ALERT, &[])], Violation::EmptyRecord, Alert::UnexpectedMessage);
    refused(&[(kind::ALERT, &[1])], Violation::WrongLength, Alert::DecodeError);
    refused(&[(kind::ALERT, &[1, 90, 1, 0])], Violation::WrongLength, Alert::DecodeError);
    // The level says nothing: everything but these two is fatal (RFC 8446 §6.2).
    for level in [1, 2] {
        let (mut client, mut server) = peers(Suite::Aes128Gcm);
        let wire = record(&mut client, kind::ALERT, &[level, 40]);
        let outcome = open(&mut server, &wire);
        assert!(matches!(outcome.opened, Err(Fault::Alerted(Alert::HandshakeFailure))));
        assert!(outcome.reply.is_empty());
    }
    let (mut client, mut server) = peers(Suite::Aes128Gcm);
    let wire = [
        record(&mut client, kind::ALERT, &[1, 90]),
        record(&mut client, kind::APPLICATION_DATA, b"last"),
        record(&mut client, kind::ALERT, &[1, 0]),
        b"whatever".to_vec(),
    ]
    .concat();
    let outcome = open(&mut server, &wire);
    let opened = outcome.opened.unwrap();
    assert_eq!((opened.consumed, opened.closed), (wire.len(), true));
    assert_eq!((outcome.plain, outcome.reply), (b"last".to_vec(), Vec::new()));
    assert!(open(&mut server, b"more").opened.unwrap().closed);
    // The other direction goes on until it is closed, too.
    assert!(server.seal(b"farewell", &mut Vec::new()).is_ok());
    let mut closing = Vec::new();
    server.close_notify(&mut closing);
    server.close_notify(&mut closing);
    assert_eq!(closing.len(), 24);
    assert!(matches!(server.seal(b"more", &mut closing), Err(Fault::Closed)));
}

#[test]
fn handshake_messages() {
    let (hs, data) = (kind::HANDSHAKE, kind::APPLICATION_DATA);
    let unexpected = Alert::UnexpectedMessage;
    refused(&[(hs, &[])], Violation::EmptyRecord, unexpected);
    // NewSessionTicket, ClientHello, Certificate, Finished: none of them a client's now.
    for message in [4, 1, 11, 20] {
        refused(&[(hs, &[message, 0, 0, 1, 0])], Violation::UnexpectedHandshake, unexpected);
    }
    refused(&[(hs, &[24, 0, 0, 0])], Violation::WrongLength, Alert::DecodeError);
    refused(&[(hs, &[24, 0, 0, 2, 0, 0])], Violation::WrongLength, Alert::DecodeError);
    refused(&[(hs, &[24, 0, 0, 1, 2])], Violation::UnknownUpdateRequest, Alert::IllegalParameter);
    refused(&[(hs, &[24, 0, 0, 1, 0, 24])], Violation::SpansKeyChange, unexpected);
    refused(&[(hs, &UPDATE.repeat(2))], Violation::SpansKeyChange, unexpected);
    refused(&[(hs, &[24, 0]), (data, b"x")], Violation::Interleaved, unexpected);
    refused(&[(hs, &[24, 0, 0, 1]), (kind::ALERT, &[1, 0])], Violation::Interleaved, unexpected);
    refused(&[(hs, &[24]), (hs, &[])], Violation::EmptyRecord, unexpected);
}

#[test]
fn records_that_carry_nothing_are_limited() {
    let most = usize::from(EMPTY_RECORDS_MAX);
    let flood = |kind: u8, content: &'static [u8]| vec![(kind, content); most + 1];
    refused(&flood(kind::APPLICATION_DATA, b""), Violation::Flood, Alert::UnexpectedMessage);
    refused(&flood(kind::ALERT, &[1, 90]), Violation::Flood, Alert::UnexpectedMessage);
    refused_wire(
        |client| {
            let mut wire = Vec::new();
            for _ in 0..=most {
                client.sealer().unwrap().update(Request::Requested, &mut wire).unwrap();
            }
            wire
        },
        Violation::Flood,
        Alert::UnexpectedMessage,
    );
    // As many as are allowed, between data of either direction, do no harm.
    let (mut client, mut server) = peers(Suite::Aes128Gcm);
    for round in 0..10 {
        let empty: Vec<u8> =
            (0..most).flat_map(|_| record(&mut client, kind::APPLICATION_DATA, b"")).collect();
        assert_eq!(open(&mut server, &empty).opened.unwrap().consumed, empty.len());
        match round % 2 {
            0 => {
                let data = record(&mut client, kind::APPLICATION_DATA, b"x");
                assert_eq!(open(&mut server, &data).plain, b"x");
            }
            _ => server.seal(b"y", &mut Vec::new()).unwrap(),
        }
    }
}

#[test]
fn sequence_numbers_do_not_wrap() {
    let (mut client, mut server) = peers(Suite::Aes128Gcm);
    (client.tx.seq, server.rx.seq) = (u64::MAX - 1, u64::MAX - 1);
    let last = record(&mut client, kind::APPLICATION_DATA, b"last");
    assert_eq!(open(&mut server, &last).plain, b"last");
    let outcome = open(&mut server, &last);
    assert!(matches!(outcome.opened, Err(Fault::Violation(Violation::SequenceExhausted))));
    assert_alerted(&mut client, &outcome.reply, Alert::InternalError);
}

#[test]
fn a_key_update_in_fragments_between_reads() {
    for suite in SUITES {
        for request in [Request::NotRequested, Request::Requested] {
            let (mut client, mut server) = peers(suite);
            let mut reply = Vec::new();
            for byte in key_update::message(request) {
                let outcome = open(&mut server, &record(&mut client, kind::HANDSHAKE, &[byte]));
                outcome.opened.unwrap();
                assert!(reply.is_empty());
                reply = outcome.reply;
                // It survives a move to another process in the middle.
                server = Keys::from_bytes(&*server.to_bytes()).unwrap();
            }
            client.tx.update(suite).unwrap();
            let wire = record(&mut client, kind::APPLICATION_DATA, b"new key");
            assert_eq!(open(&mut server, &wire).plain, b"new key");
            assert_eq!(reply.is_empty(), request == Request::NotRequested);
            let mut wire = reply;
            server.seal(b"answered", &mut wire).unwrap();
            let outcome = open(&mut client, &wire);
            assert_eq!((outcome.plain, outcome.reply), (b"answered".to_vec(), Vec::new()));
        }
    }
}

#[test]
fn many_requests_get_one_answer() {
    let (mut client, mut server) = peers(Suite::Aes128Gcm);
    let mut wire = Vec::new();
    for _ in 0..5 {
        let mut sealer = client.sealer().unwrap();
        sealer.update(Request::Requested, &mut wire).unwrap();
        sealer.seal(b"x", &mut wire).unwrap();
    }
    let outcome = open(&mut server, &wire);
    assert_eq!((outcome.plain, outcome.reply.len()), (b"xxxxx".to_vec(), 27));
    open(&mut client, &outcome.reply).opened.unwrap();
    // One that has closed its side has nothing to answer.
    server.close_notify(&mut Vec::new());
    let wire = record(&mut client, kind::HANDSHAKE, &UPDATE_REQUESTED);
    assert!(open(&mut server, &wire).reply.is_empty());
}

/// A KeyUpdate that asks for one, and data behind it.
fn request_and_data(client: &mut Keys) -> Vec<u8> {
    let mut wire = Vec::new();
    let mut sealer = client.sealer().unwrap();
    sealer.update(Request::Requested, &mut wire).unwrap();
    sealer.seal(b"x", &mut wire).unwrap();
    wire
}

#[test]
fn requests_are_answered_once_while_something_waits_to_be_sent() {
    let (mut client, mut server) = peers(Suite::Aes128Gcm);
    let queued = Circumstances { has_queue: true, ..Circumstances::default() };
    for _ in 0..50 {
        let outcome = open_in(&mut server, &request_and_data(&mut client), queued);
        assert_eq!((outcome.plain, outcome.reply), (b"x".to_vec(), Vec::new()));
    }
    // It is not forgotten by a move to another process.
    server = Keys::from_bytes(&*server.to_bytes()).unwrap();
    let (mut first, mut second) = (Vec::new(), Vec::new());
    server.seal(b"y", &mut first).unwrap();
    server.seal(b"z", &mut second).unwrap();
    assert_eq!((first.len(), second.len()), (27 + 23, 23));
    let outcome = open(&mut client, &[first, second].concat());
    assert_eq!((outcome.plain, outcome.reply), (b"yz".to_vec(), Vec::new()));
    // One that waits for nothing answers at once, and then owes nothing.
    assert_eq!(open(&mut server, &request_and_data(&mut client)).reply.len(), 27);
    let mut after = Vec::new();
    server.seal(b"w", &mut after).unwrap();
    assert_eq!(after.len(), 23);
}

#[test]
fn key_updates_are_limited_by_the_minute() {
    let (mut client, mut server) = peers(Suite::Aes128Gcm);
    for minute in 0..3 {
        for _ in 0..UPDATES_PER_MINUTE_MAX {
            let now = Circumstances { minute, ..Circumstances::default() };
            let outcome = open_in(&mut server, &request_and_data(&mut client), now);
            assert!(outcome.opened.is_ok());
            open(&mut client, &outcome.reply).opened.unwrap();
        }
        // Not the client's own clock, which always stands still here.
        client.updates = 0;
    }
    let now = Circumstances { minute: 2, ..Circumstances::default() };
    let outcome = open_in(&mut server, &request_and_data(&mut client), now);
    assert!(matches!(outcome.opened, Err(Fault::Violation(Violation::Flood))));
    assert_alerted(&mut client, &outcome.reply, Alert::UnexpectedMessage);
}

#[test]
fn keys_are_changed_before_they_wear_out() {
    for suite in SUITES {
        let (mut client, mut server) = peers(suite);
        let worn = RECORDS_PER_KEY - 2;
        (client.rx.seq, server.tx.seq) = (worn, worn);
        (client.tx.seq, server.rx.seq) = (worn, worn);
        let mut wire = Vec::new();
        for _ in 0..5 {
            server.seal(b"x", &mut wire).unwrap();
        }
        assert_eq!(server.tx.seq, 3);
        let outcome = open(&mut client, &wire);
        assert_eq!((outcome.plain, outcome.reply), (b"xxxxx".to_vec(), Vec::new()));

        // A client that does not change its own is asked to, once, and the server changes its with that.
        let mut asked = 0;
        for _ in 0..5 {
            let wire = record(&mut client, kind::APPLICATION_DATA, b"x");
            let outcome = open(&mut server, &wire);
            assert_eq!(outcome.plain, b"x");
            if !outcome.reply.is_empty() {
                asked += 1;
                assert_eq!(server.tx.seq, 0);
                let answer = open(&mut client, &outcome.reply).reply;
                open(&mut server, &answer).opened.unwrap();
                assert_eq!(server.rx.seq, 0);
            }
        }
        assert_eq!(asked, 1);
    }
}

#[test]
fn padding_is_taken_off() {
    let (mut client, mut server) = peers(Suite::Aes128Gcm);
    for (len, padding) in [(0, 1), (1, 1), (100, 300), (CONTENT_MAX - 10, 10), (0, CONTENT_MAX)] {
        let content = vec![b'x'; len];
        let wire = padded(&mut client, kind::APPLICATION_DATA, &content, padding);
        assert_eq!(open(&mut server, &wire).plain, content, "{len} bytes, {padding} of padding");
    }
    // Content that ends in zeros keeps them.
    let wire = padded(&mut client, kind::APPLICATION_DATA, &[1, 0, 0], 5);
    assert_eq!(open(&mut server, &wire).plain, [1, 0, 0]);
}
