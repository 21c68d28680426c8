//! Randomness from the operating system.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::cell::RefCell;

/// `N` random bytes.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives randomness");
    bytes
}

/// A random number. Each comes from the operating system and is used once; they are fetched in stock, because asking is
/// a system call.
pub(crate) fn number() -> u64 {
    thread_local! {
        static STOCK: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    }
    STOCK.with_borrow_mut(|stock| {
        if stock.is_empty() {
            let fresh = bytes::<{ 8 * STOCK_NUMBERS }>();
            stock.extend(fresh.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)));
        }
        stock.pop().expect("it was filled")
    })
}

const STOCK_NUMBERS: usize = 32;

/// A secret no one can guess: 32 characters of base64url, 192 bits.
pub(crate) fn secret() -> String {
    URL_SAFE_NO_PAD.encode(bytes::<24>())
}

/// A local part no one else has: 26 lower-case characters of base 32, 128 bits. Lower case, because local parts are.
pub(crate) fn local_part() -> String {
    let random = u128::from_ne_bytes(bytes());
    (0..26).map(|i| char::from(ALPHABET[(random >> (5 * i)) as usize & 31])).collect()
}

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_names_are_long_and_differ() {
        assert_eq!((secret().len(), local_part().len()), (32, 26));
        assert_ne!(secret(), secret());
        assert_ne!(local_part(), local_part());
    }
}
