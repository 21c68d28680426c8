//! Frames of matches: what is read is written as it was, on both sides, and a stream is cut the same wherever it is divided.
#![no_main]

use carillon_wire::frame::game::{CLIENT_BYTES_MAX, ClientFrame, ServerFrame, cut};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(frame) = ClientFrame::read(bytes) {
        let mut out = Vec::new();
        frame.write(&mut out);
        assert_eq!(ClientFrame::read(&out), Ok(frame));
    }
    if let Ok(frame) = ServerFrame::read(bytes) {
        let mut out = Vec::new();
        frame.write(&mut out);
        assert_eq!(ServerFrame::read(&out), Ok(frame));
        if let ServerFrame::Tick { inputs, .. } = frame {
            let mut given = 0_u64;
            inputs.each(|seat, _| given |= 1 << seat);
            assert_eq!(given, inputs.given);
        }
    }
    let whole = cut(bytes, CLIENT_BYTES_MAX);
    for len in 0..bytes.len().min(CLIENT_BYTES_MAX) {
        match (cut(&bytes[..len], CLIENT_BYTES_MAX), &whole) {
            (Ok(None), _) => {}
            (Ok(Some((frame, _))), Ok(Some((same, _)))) => assert_eq!(frame, *same),
            (early, whole) => assert_eq!(early, *whole),
        }
    }
});
