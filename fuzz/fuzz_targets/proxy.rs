//! PROXY headers: a verdict on the first bytes stands when more come, and no more than the bound is waited for.
#![no_main]

use carillon_wire::frame::proxy::{HEADER_BYTES_MAX, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let whole = read(bytes);
    match whole {
        Ok(None) => assert!(bytes.len() < HEADER_BYTES_MAX),
        Ok(Some(header)) => {
            assert!(header.bytes <= bytes.len().min(HEADER_BYTES_MAX));
            assert_eq!(read(&bytes[..header.bytes]), whole);
            assert_eq!(read(&bytes[..header.bytes - 1]), Ok(None));
        }
        Err(_) => {}
    }
    let first = (0..bytes.len()).map(|len| read(&bytes[..len])).find(|verdict| *verdict != Ok(None));
    assert!(first.is_none_or(|first| first == whole));
});
