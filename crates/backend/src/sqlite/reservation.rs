//! Which reservations of idempotency keys are newer than others.

use rusqlite::{Connection, Result};

/// The number of a reservation: those that are made later have a higher one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReservationNumber(pub(super) i64);

impl ReservationNumber {
    /// The last of them; 0 if there is none.
    pub(super) fn last(db: &Connection) -> Result<ReservationNumber> {
        let last = db.query_row("SELECT coalesce(max(seq), 0) FROM idempotency", [], |row| row.get(0))?;
        Ok(ReservationNumber(last))
    }
}
