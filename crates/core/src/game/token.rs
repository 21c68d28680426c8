//! The right to take a seat: the match, the seat and a time, proved by the match's key for the account that has the seat.

use crate::model::{MatchId, UnixMs};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use carillon_wire::jid::BareJid;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What a token claims. Whether it is true, only the key of its match tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeatClaim {
    /// The match.
    pub(crate) id: MatchId,
    /// The seat.
    pub(crate) seat: u8,
    /// Until when the token may be used for the first time.
    pub(crate) expires: UnixMs,
    proof: [u8; PROOF_BYTES],
}

/// In place of a seat and its account, in the token of spectators. No account is called so.
pub(crate) const SPECTATOR: (u8, &str) = (u8::MAX, "spectators");

/// Bytes of the proof: half of an HMAC-SHA-256.
const PROOF_BYTES: usize = 16;
const CLAIM_BYTES: usize = 16 + 1 + 8;

/// The token of a seat, in base 64 (URL alphabet).
pub(crate) fn mint(key: &[u8; 32], id: MatchId, seat: u8, expires: UnixMs, account: &str) -> Box<str> {
    let claim = claim(id, seat, expires);
    let proof = mac(key, &claim, account).finalize().into_bytes();
    let mut bytes = claim.to_vec();
    bytes.extend(proof.iter().take(PROOF_BYTES));
    URL_SAFE_NO_PAD.encode(bytes).into()
}

impl SeatClaim {
    /// Reads a token; none if it is not one.
    pub(crate) fn read(token: &[u8]) -> Option<SeatClaim> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (id, rest) = bytes.split_first_chunk()?;
        let (seat, rest) = rest.split_first()?;
        let (expires, proof) = rest.split_first_chunk()?;
        Some(SeatClaim {
            id: MatchId(u128::from_be_bytes(*id)),
            seat: *seat,
            expires: UnixMs(u64::from_be_bytes(*expires)),
            proof: proof.try_into().ok()?,
        })
    }

    /// Whether it was minted with this key for the account. Takes as long for any wrong one.
    pub(crate) fn is_proved(&self, key: &[u8; 32], account: &BareJid) -> bool {
        self.is_proved_for(key, account.as_str())
    }

    /// The same for whoever the name stands for.
    pub(crate) fn is_proved_for(&self, key: &[u8; 32], account: &str) -> bool {
        let SeatClaim { id, seat, expires, proof } = self;
        mac(key, &claim(*id, *seat, *expires), account).verify_truncated_left(proof).is_ok()
    }
}

fn claim(id: MatchId, seat: u8, expires: UnixMs) -> [u8; CLAIM_BYTES] {
    let mut bytes = [0; CLAIM_BYTES];
    let (of_id, rest) = bytes.split_at_mut(16);
    of_id.copy_from_slice(&id.0.to_be_bytes());
    if let Some((of_seat, of_expires)) = rest.split_first_mut() {
        *of_seat = seat;
        of_expires.copy_from_slice(&expires.0.to_be_bytes());
    }
    bytes
}

fn mac(key: &[u8; 32], claim: &[u8], account: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(b"carillon-match/1");
    mac.update(claim);
    mac.update(account.as_bytes());
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_proved_for_its_match_seat_time_and_account_only() {
        let (key, id, expires) = ([7; 32], MatchId(5), UnixMs(1_000_000));
        let alice = BareJid::new("alice@localhost").unwrap();
        let bob = BareJid::new("bob@localhost").unwrap();
        let token = mint(&key, id, 3, expires, alice.as_str());
        let claim = SeatClaim::read(token.as_bytes()).unwrap();
        assert_eq!((claim.id, claim.seat, claim.expires), (id, 3, expires));
        assert!(claim.is_proved(&key, &alice));
        assert!(!claim.is_proved(&key, &bob));
        assert!(!claim.is_proved(&[8; 32], &alice));
        assert!(!SeatClaim { seat: 2, ..claim }.is_proved(&key, &alice));
        assert!(!SeatClaim { id: MatchId(6), ..claim }.is_proved(&key, &alice));
        assert!(!SeatClaim { expires: expires.plus(1), ..claim }.is_proved(&key, &alice));
        for wrong in [
            "",
            "x",
            token.get(1..).expect("ASCII"),
            token.get(..token.len() - 2).expect("ASCII"),
            &format!("{token}AA"),
        ] {
            assert_eq!(SeatClaim::read(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
