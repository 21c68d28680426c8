//! What is the same of idempotency keys in every store: how digests of lines are kept, in blocks.

use carillon_core::ports::store::idempotency::{LINES_MAX, LineDigest};

/// How long a request may take before another with the same key may try: it must have died.
pub(crate) const IN_PROGRESS_MS: u64 = 60 * 1000;

/// Lines whose digests are one row.
const BLOCK_LINES: u64 = 256;

/// The block that a line's digest is in; none where it is not noted.
pub(crate) fn block_of(line: &LineDigest) -> Option<u64> {
    (1..=LINES_MAX).contains(&line.number).then(|| (line.number - 1) / BLOCK_LINES)
}

/// Notes lines of one block among its `digests`, and collects those that were others before. Whether `digests` changed.
pub(crate) fn note(digests: &mut Vec<u8>, lines: &[LineDigest], altered: &mut Vec<u64>) -> bool {
    let mut is_changed = false;
    for line in lines {
        let at = ((line.number - 1) % BLOCK_LINES) as usize * size_of::<u64>();
        if digests.len() < at + size_of::<u64>() {
            digests.resize(at + size_of::<u64>(), 0);
        }
        let place = &mut digests[at..at + size_of::<u64>()];
        let digest = line.digest.to_be_bytes();
        if place.iter().all(|byte| *byte == 0) {
            place.copy_from_slice(&digest);
            is_changed = true;
        } else if *place != digest {
            altered.push(line.number);
        }
    }
    is_changed
}
