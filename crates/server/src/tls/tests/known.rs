//! Known answers: the trace of RFC 8448 §3.

use super::super::suite::Suite;
use super::{Half, Keys, kind, open, record};

const CLIENT_SECRET: &str = "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5";
const SERVER_SECRET: &str = "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643";
const CLIENT_DATA: &str = "1703030043a23f7054b62c94d0affafe8228ba55cbefacea42f914aa66bcab3f2b9819a8a5b46b395bd54\
                           a9a20441e2b62974e1f5a6292a2977014bd1e3deae63aeebb21694915e4";
const CLIENT_CLOSE: &str = "1703030013c9872760655666b74d7ff1153efd6db6d0b0e3";
const SERVER_DATA: &str = "17030300432e937e11ef4ac740e538ad36005fc4a46932fc3225d05f82aa1b36e30efaf97d90e6dffc602dc\
                           b501a59a8fcc49c4bf2e5f0a21c0047c2abf332540dd032e167c2955d";

#[test]
fn the_trace_of_rfc_8448() {
    let half = |secret, seq| Half::from_secret(Suite::Aes128Gcm, &unhex(secret), seq).unwrap();
    // The server has sent a ticket before.
    let mut server = Keys::new(Suite::Aes128Gcm, half(CLIENT_SECRET, 0), half(SERVER_SECRET, 1));
    let mut client = Keys::new(Suite::Aes128Gcm, half(SERVER_SECRET, 1), half(CLIENT_SECRET, 0));
    let data: Vec<u8> = (0..50).collect();

    assert_eq!(record(&mut client, kind::APPLICATION_DATA, &data), unhex(CLIENT_DATA));
    let mut close = Vec::new();
    client.close_notify(&mut close);
    assert_eq!(close, unhex(CLIENT_CLOSE));

    let outcome = open(&mut server, &unhex(CLIENT_DATA));
    assert_eq!((outcome.plain, outcome.opened.unwrap().closed), (data.clone(), false));
    assert!(open(&mut server, &unhex(CLIENT_CLOSE)).opened.unwrap().closed);
    // The peer may still read (RFC 8446 §6.1).
    let mut wire = Vec::new();
    server.seal(&data, &mut wire).unwrap();
    assert_eq!(wire, unhex(SERVER_DATA));
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().map(|digit| digit.to_digit(16).unwrap() as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
