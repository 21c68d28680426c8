//! The archives of rooms: what is the same whatever keeps the rows.

use super::page::Room as Space;
use carillon_core::model::*;
use carillon_core::ports::store::archive::{ArchivePageAnswer, EXAMINED_MAX};
use carillon_core::ports::store::rooms::RoomArchivePage;

/// Messages that are looked for at once.
const STEP: usize = 256;

/// A message, and the account that sent it.
pub(crate) type Entry = (Box<str>, ArchivedMessage);

/// The archive of a room, as of a snapshot.
pub(crate) trait RoomArchive {
    /// Why it cannot be read.
    type Error;

    /// Up to which message it was erased.
    fn erased(&self) -> u64;

    /// A message, if it is there and was not erased.
    fn message(&self, id: ArchiveId) -> Result<Option<ArchivedMessage>, Self::Error>;

    /// Messages between two numbers, without these, in their order or against it.
    fn entries(
        &self,
        after: u64,
        before: u64,
        is_backward: bool,
        max: usize,
    ) -> Result<Vec<Entry>, Self::Error>;
}

/// A page.
pub(crate) fn page<A: RoomArchive>(
    archive: &A,
    asked: &RoomArchivePage,
) -> Result<ArchivePageAnswer, A::Error> {
    let (filter, start) = (&asked.filter, asked.start);
    let (after, before) = match start {
        ArchiveStart::After(id) => (Some(id), None),
        ArchiveStart::Before(id) => (None, Some(id)),
        ArchiveStart::First | ArchiveStart::Last => (None, None),
    };
    for named in [filter.after, filter.before, after, before].into_iter().flatten() {
        if archive.message(named)?.is_none() {
            return Ok(ArchivePageAnswer::NotFound);
        }
    }
    let after = [filter.after, after].into_iter().flatten().map(|id| id.0).fold(archive.erased(), u64::max);
    let before = [filter.before, before].into_iter().flatten().map(|id| id.0).fold(u64::MAX, u64::min);
    let after = not_before(archive, filter.start, after, before)?;
    between(archive, after, before, asked)
}

/// Messages by their numbers.
pub(crate) fn named<A: RoomArchive>(archive: &A, ids: &[ArchiveId]) -> Result<ArchivePageAnswer, A::Error> {
    let mut ids = ids.to_vec();
    ids.sort();
    ids.dedup();
    let mut messages = Vec::with_capacity(ids.len());
    for id in ids {
        match archive.message(id)? {
            Some(message) => messages.push(message),
            None => return Ok(ArchivePageAnswer::NotFound),
        }
    }
    Ok(ArchivePageAnswer::Page { messages, more: false, reached: None })
}

/// The oldest message and the newest.
pub(crate) fn ends<A: RoomArchive>(archive: &A) -> Result<Option<ArchiveEnds>, A::Error> {
    let end = |is_backward| -> Result<Option<(ArchiveId, UnixMs)>, A::Error> {
        let found = archive.entries(archive.erased(), u64::MAX, is_backward, 1)?;
        Ok(found.into_iter().next().map(|(_, message)| (message.id, message.received)))
    };
    Ok(end(false)?.zip(end(true)?).map(|(first, last)| ArchiveEnds { first, last }))
}

/// A number behind which the first message of a time is, as near to it as one gets by halving: the times ascend but where the clock was set
/// back.
fn not_before<A: RoomArchive>(
    archive: &A,
    start: Option<UnixMs>,
    after: u64,
    before: u64,
) -> Result<u64, A::Error> {
    let Some(start) = start else { return Ok(after) };
    let newest = archive.entries(after, before, true, 1)?;
    let Some((_, newest)) = newest.first() else { return Ok(after) };
    let (mut low, mut high) = (after, newest.id.0);
    while high.saturating_sub(low) > STEP as u64 {
        let middle = low + (high - low) / 2;
        match archive.entries(middle - 1, high + 1, false, 1)?.first() {
            Some((_, message)) if message.received < start && message.id.0 > low => low = message.id.0,
            _ => high = middle - 1,
        }
    }
    Ok(low)
}

fn between<A: RoomArchive>(
    archive: &A,
    mut after: u64,
    mut before: u64,
    asked: &RoomArchivePage,
) -> Result<ArchivePageAnswer, A::Error> {
    let (filter, is_backward) = (&asked.filter, asked.start.is_backward());
    let (mut messages, mut space, mut examined) = (Vec::new(), Space::new(asked.page), 0);
    // One more than there is space for says whether more follow.
    let step = match filter.with {
        Some(_) => STEP,
        None => STEP.min(usize::from(asked.page.entries) + 1),
    };
    let (more, reached) = 'page: loop {
        let entries = archive.entries(after, before, is_backward, step)?;
        let Some(last) = entries.last().map(|(_, message)| message.id) else { break (false, None) };
        examined += entries.len();
        for (sender, message) in entries {
            let is_wanted = filter.start.is_none_or(|start| message.received >= start)
                && filter.end.is_none_or(|end| message.received <= end)
                && filter.with.as_ref().is_none_or(|with| {
                    with.bare_str() == &*sender && (with.is_bare() || is_with(&message.stanza, with))
                });
            if !is_wanted {
                continue;
            }
            if !space.takes(message.stanza.len()) {
                break 'page (true, None);
            }
            messages.push(message);
        }
        match is_backward {
            true => before = last.0,
            false => after = last.0,
        }
        if examined >= EXAMINED_MAX {
            break (true, Some(last));
        }
    };
    if is_backward {
        messages.reverse();
    }
    Ok(ArchivePageAnswer::Page { messages, more, reached })
}

/// What of an archive is kept, while its oldest messages are looked at.
#[derive(Debug)]
pub(crate) struct Sweep {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) erased: u64,
    pub(crate) bounds: ArchiveBounds,
}

impl Sweep {
    /// That of a room that is gone: nothing is kept.
    pub(crate) fn of_nothing() -> Sweep {
        Sweep { messages: 0, bytes: 0, erased: u64::MAX, bounds: ArchiveBounds::default() }
    }

    /// Whether the oldest message is removed; then it is not counted any more.
    pub(crate) fn removes(&mut self, seq: u64, received: UnixMs, bytes: u64, now: UnixMs) -> bool {
        let is_over = seq <= self.erased
            || received < self.bounds.cutoff(now)
            || self.bounds.are_exceeded(self.messages, self.bytes);
        if is_over {
            self.messages = self.messages.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(bytes);
        }
        is_over
    }
}

/// The hashes of photos, one after the other.
pub(crate) fn photos_bytes(photos: &[PhotoHash]) -> Vec<u8> {
    photos.iter().flat_map(|hash| hash.0).collect()
}

/// Those of [`photos_bytes`]; none if the bytes are no such hashes.
pub(crate) fn photos_of(bytes: &[u8]) -> Option<Box<[PhotoHash]>> {
    let (hashes, rest) = bytes.as_chunks();
    rest.is_empty().then(|| hashes.iter().map(|hash| PhotoHash(*hash)).collect())
}

/// Whether everybody can find a room.
pub(crate) fn is_found(config: &RoomConfig) -> bool {
    config.public && !config.locked
}
