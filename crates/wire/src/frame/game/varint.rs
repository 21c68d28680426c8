//! Numbers in the little-endian base 128.

use super::Malformed;

/// Appends a number.
pub fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number off the input.
///
/// # Errors
/// [`Malformed::Short`] if it is not complete, [`Malformed::Number`] if it is too large or not written in the shortest way.
pub fn take(input: &mut &[u8]) -> Result<u64, Malformed> {
    let mut number = 0_u64;
    for (at, &byte) in input.iter().enumerate() {
        let part = u64::from(byte & 0x7f);
        let shift = 7 * at as u32;
        // The tenth byte has room for one bit.
        if at > 9 || (at == 9 && part > 1) {
            return Err(Malformed::Number);
        }
        number |= part << shift;
        if byte & 0x80 == 0 {
            if byte == 0 && at > 0 {
                return Err(Malformed::Number);
            }
            *input = input.get(at + 1..).unwrap_or_default();
            return Ok(number);
        }
    }
    if input.len() > 9 { Err(Malformed::Number) } else { Err(Malformed::Short) }
}

pub(super) fn take_u32(input: &mut &[u8]) -> Result<u32, Malformed> {
    u32::try_from(take(input)?).map_err(|_| Malformed::Number)
}

/// Small numbers of either sign become small numbers.
pub(super) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

pub(super) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
