//! Codes: of links, derived from their URLs, and of recipients, derived from the ids of their notifications.
//!
//! A link's code is a keyed function of its URL, so that every node derives the same one without asking, and nobody can guess those of
//! others. What follows it in the link of a notification is the notification's id, enciphered: nothing has to be stored for a recipient, and
//! nobody can make one up. See `docs/adr/0026-the-code-of-a-link.md`.

use carillon_core::model::NotificationId;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What the codes of a domain are derived with.
pub(crate) type Secret = [u8; 32];

/// Characters of a code that is derived.
pub(crate) const CODE_LEN: usize = 8;
/// Characters of what follows a code in the link of a notification.
pub(crate) const TOKEN_LEN: usize = 22;
/// Codes that are tried for a URL. At 10⁸ links of a domain one is taken once in two million.
const TRIES: usize = 4;
/// The most characters of a code that somebody chose.
pub(crate) const CUSTOM_MAX: usize = 64;

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// How many codes there are.
const CODES: u64 = 62u64.pow(CODE_LEN as u32);

/// The codes of a URL, in the order in which they are tried.
pub(crate) fn of_url(secret: &Secret, url: &str) -> Vec<Box<str>> {
    let mac = keyed(secret, b"link\0", url.as_bytes());
    let (numbers, _) = mac.as_chunks::<8>();
    let code = |number: &[u8; 8]| digits(u128::from(u64::from_be_bytes(*number) % CODES), CODE_LEN).into();
    numbers.iter().take(TRIES).map(code).collect()
}

/// Whether somebody may choose a code: letters, digits, `-` and `_`.
pub(crate) fn is_valid(code: &str) -> bool {
    (1..=CUSTOM_MAX).contains(&code.len())
        && code.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_'))
}

/// What stands for a notification in the link that its recipient is given.
pub(crate) fn of_notification(secret: &Secret, id: NotificationId) -> String {
    digits(encipher(secret, id.0), TOKEN_LEN)
}

/// The notification that such a text stands for. Of a text that was made up it is an id that was never given.
pub(super) fn notification(secret: &Secret, token: &[u8; TOKEN_LEN]) -> Option<NotificationId> {
    let number = token.iter().try_fold(0u128, |number, c| {
        let digit = DIGITS.iter().position(|digit| digit == c)?;
        number.checked_mul(62)?.checked_add(digit as u128)
    })?;
    Some(NotificationId(decipher(secret, number)))
}

fn digits(mut number: u128, len: usize) -> String {
    let mut text = vec![b'0'; len];
    for place in text.iter_mut().rev() {
        *place = DIGITS[(number % 62) as usize];
        number /= 62;
    }
    String::from_utf8(text).expect("digits are ASCII")
}

/// A permutation of 128 bits: four rounds of Feistel with a keyed function are one that cannot be told from a random one (Luby and
/// Rackoff).
fn encipher(secret: &Secret, number: u128) -> u128 {
    let halves = ((number >> 64) as u64, number as u64);
    let (a, b) = (0..ROUNDS).fold(halves, |(a, b), n| (b, a ^ round(secret, n, b)));
    u128::from(a) << 64 | u128::from(b)
}

fn decipher(secret: &Secret, number: u128) -> u128 {
    let halves = ((number >> 64) as u64, number as u64);
    let (a, b) = (0..ROUNDS).rev().fold(halves, |(a, b), n| (b ^ round(secret, n, a), a));
    u128::from(a) << 64 | u128::from(b)
}

const ROUNDS: u8 = 4;

fn round(secret: &Secret, n: u8, half: u64) -> u64 {
    let mac = keyed(secret, &[n], &half.to_be_bytes());
    u64::from_be_bytes(*mac.first_chunk().expect("a digest has 32 bytes"))
}

fn keyed(secret: &Secret, purpose: &[u8], data: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(purpose);
    mac.update(data);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_core::model::UnixMs;
    use std::collections::HashSet;

    const SECRET: Secret = [7; 32];

    #[test]
    fn a_url_has_the_same_codes_everywhere_and_each_domain_others() {
        let codes = of_url(&SECRET, "https://example.com/");
        assert_eq!(codes, of_url(&SECRET, "https://example.com/"));
        assert_eq!(codes.iter().map(|code| code.len()).collect::<Vec<_>>(), [CODE_LEN; TRIES]);
        assert!(codes.iter().all(|code| is_valid(code)));
        let others = [of_url(&[8; 32], "https://example.com/"), of_url(&SECRET, "https://example.com/a")];
        let all: HashSet<_> = others.iter().flatten().chain(&codes).collect();
        assert_eq!(all.len(), 3 * TRIES);
        // What was given out must lead where it led: this never changes.
        assert_eq!(&*codes[0], "2EERnzPA");
    }

    #[test]
    fn a_recipients_text_is_read_by_the_domain_that_made_it() {
        for n in 0..1000 {
            let id = NotificationId::new(UnixMs(1_795_167_000_000 + n), n as u16, n << 40);
            let token = of_notification(&SECRET, id);
            let bytes: [u8; TOKEN_LEN] = token.as_bytes().try_into().expect("its length");
            assert_eq!(notification(&SECRET, &bytes), Some(id));
            assert_ne!(notification(&[8; 32], &bytes), Some(id));
        }
        assert_eq!(notification(&SECRET, b"zzzzzzzzzzzzzzzzzzzzzz"), None, "more than 128 bits");
        assert_eq!(notification(&SECRET, b"0123456789abcdefghij-."), None);
    }

    #[test]
    fn texts_of_ids_that_follow_each_other_have_nothing_in_common() {
        let tokens: Vec<String> = (0..100).map(|n| of_notification(&SECRET, NotificationId(n))).collect();
        let firsts: HashSet<&str> = tokens.iter().map(|token| &token[..4]).collect();
        assert!(firsts.len() > 95, "{}", firsts.len());
    }

    #[test]
    fn codes_that_people_choose_are_plain() {
        assert!(["a", "Summer-Sale_2026", &"a".repeat(64)].iter().all(|code| is_valid(code)));
        assert!(
            ["", "a b", "a.b", "a/b", "a+", "ü", "%41", &"a".repeat(65)].iter().all(|code| !is_valid(code))
        );
    }
}
