//! What a client was given and has not acknowledged, and how much of it has arrived at its side, by what its TCP acknowledged.

/// What a session was given, until it is known that its client has it. Whoever gives says how many bytes the session has been sent, of
/// whatever kind; [`Effect::CountUnacked`](crate::Effect::CountUnacked) says how many of the last ones have not arrived.
#[derive(Debug)]
pub struct Flight<E> {
    /// Bytes that the session was sent with the last entry.
    given: u64,
    /// Given and not acknowledged, oldest first.
    entries: Vec<InFlight<E>>,
    /// The session's own count at that time ([`BoundSession::sent`](crate::session::BoundSession::sent)).
    seen: u32,
}

// The count of the session begins again in another process.
crate::form! { struct Flight<E> { given, entries, seen: omitted(0) } }

#[derive(Debug)]
struct InFlight<E> {
    entry: E,
    /// [`Flight::given`] with this one.
    end: u64,
}

crate::form! { struct InFlight<E> { entry, end } }

impl<E> Default for Flight<E> {
    fn default() -> Flight<E> {
        Flight { given: 0, entries: Vec::new(), seen: 0 }
    }
}

impl<E> Flight<E> {
    /// An entry was given to a session that has been sent `sent` bytes with it, modulo 2^32.
    pub fn gave(&mut self, entry: E, sent: u32) {
        self.given = self.given_with(sent);
        self.seen = sent;
        self.entries.push(InFlight { entry, end: self.given });
    }

    /// Bytes of all that the session was sent. Of one that was sent 2^32 more than was looked at it is too few, never too many.
    fn given_with(&self, sent: u32) -> u64 {
        self.given + u64::from(sent.wrapping_sub(self.seen))
    }

    /// The same when it was counted what has arrived, which may have been before the last entry.
    fn given_at(&self, sent: u32) -> u64 {
        match self.seen.wrapping_sub(sent) {
            before @ ..=SINCE_COUNT_BYTES_MAX => self.given.saturating_sub(u64::from(before)),
            _ => self.given_with(sent),
        }
    }

    /// Whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes that it takes, but for what entries keep elsewhere.
    pub fn bytes(&self) -> usize {
        self.entries.len() * size_of::<InFlight<E>>()
    }

    /// Given and not acknowledged, oldest first.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &E> {
        self.entries.iter().map(|given| &given.entry)
    }

    /// The same, to be changed.
    pub fn entries_mut(&mut self) -> impl ExactSizeIterator<Item = &mut E> {
        self.entries.iter_mut().map(|given| &mut given.entry)
    }

    /// Takes out one entry.
    pub fn take(&mut self, is_it: impl Fn(&E) -> bool) -> Option<E> {
        let at = self.entries.iter().position(|given| is_it(&given.entry))?;
        Some(self.entries.remove(at).entry)
    }

    /// Takes out all such entries, oldest first.
    pub fn take_all(&mut self, is_it: impl Fn(&E) -> bool) -> Vec<E> {
        self.entries.extract_if(.., |given| is_it(&given.entry)).map(|given| given.entry).collect()
    }

    /// What has arrived at the client's side, of which `unacked` bytes of the connection had not ([`crate::Input::Unacked`]) when the
    /// session had been sent `sent` bytes, modulo 2^32. What it was given since is not known to have.
    pub fn arrived(&self, unacked: u64, sent: u32) -> impl Iterator<Item = &E> {
        let given = self.given_at(sent);
        let arrived =
            move |entry: &&InFlight<E>| entry.end <= given && has_arrived(given - entry.end, unacked);
        self.entries.iter().take_while(arrived).map(|given| &given.entry)
    }

    /// Takes out what has arrived, oldest first.
    pub fn take_arrived(&mut self, unacked: u64, sent: u32) -> impl Iterator<Item = E> {
        let count = self.arrived(unacked, sent).count();
        self.entries.drain(..count).map(|given| given.entry)
    }

    /// Whether the counts fit each other.
    pub(super) fn is_sound(&self) -> bool {
        let ends = self.entries.iter().map(|given| given.end);
        ends.is_sorted() && self.entries.last().is_none_or(|last| last.end <= self.given)
    }

    /// Entries with where each ends.
    #[cfg(test)]
    pub(super) fn made(given: u64, entries: impl IntoIterator<Item = (E, u64)>) -> Flight<E> {
        let entries = entries.into_iter().map(|(entry, end)| InFlight { entry, end }).collect();
        Flight { given, entries, seen: 0 }
    }

    /// The same in another process.
    #[cfg(test)]
    pub(super) fn elsewhere(&mut self) {
        self.seen = 0;
    }
}

/// Whether something that a client was sent has arrived at its side. At least `behind` bytes were sent after it, and
/// `unacked` bytes of the connection have not arrived. What is sent is longer on the wire than it is here, so it has arrived
/// if `behind` is at least `unacked`; but a client can read nothing of a TLS record that it has only in part.
fn has_arrived(behind: u64, unacked: u64) -> bool {
    unacked == 0 || behind >= unacked.saturating_add(RECORD_BYTES_MAX)
}

/// A session is sent no more than this between a count of what has arrived and its answer.
const SINCE_COUNT_BYTES_MAX: u32 = 1 << 28;
/// The largest TLS record (RFC 8446 §5.1).
const RECORD_BYTES_MAX: u64 = 1 << 14;
