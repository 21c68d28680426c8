//! What travels: records of one sender to one subject, or a beat.
//!
//! An envelope has a version of its own, so that what nodes say to each other does not depend on the version of a session's form:
//! two bytes of magic, the version, what it is, then values in the form of `carillon_core::form`. A record is bytes to it.

use carillon_core::form::{Clock, Form, Malformed, Reader, Writer};
use carillon_core::model::Epoch;
use carillon_core::ports::Subject;

/// What every envelope begins with.
const MAGIC: [u8; 2] = *b"CB";
/// The version that is written, and the only one that is read.
const VERSION: u8 = 1;

const RECORDS: u8 = 0;
const BEAT: u8 = 1;
const WANT: u8 = 2;
const GONE: u8 = 3;

const NODE: u8 = 0;
const PARTITION: u8 = 1;
const ALL: u8 = 2;

/// Who sends: a node, and a random number that tells its bus from an earlier one of the same epoch, such as before a live upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sender {
    pub(crate) epoch: Epoch,
    pub(crate) run: u64,
}

/// An envelope, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Envelope<'a> {
    /// Records to one subject, the first of which has this number among those of this sender to it.
    Records { from: Sender, number: u64, records: Vec<&'a [u8]> },
    /// A beat, with the number of the last record to each subject.
    Beat { from: Sender, count: u64, store: bool, last: Vec<(Subject, u64)> },
    /// Records with these numbers, which this run of the bus of whoever hears it sent to a subject, were not heard.
    Want { run: u64, subject: Subject, first: u64, last: u64 },
    /// Records before this number, among those of this sender to the subject, are not there any more.
    Gone { from: Sender, number: u64 },
}

/// Why bytes are no envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unreadable {
    /// They do not begin as an envelope does.
    #[error("no envelope of a bus")]
    NotOurs,
    /// Another release wrote them.
    #[error("an envelope of version {0}, and not {VERSION}")]
    Version(u8),
    /// They go on otherwise.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// Begins an envelope of records. Each is appended by [`append`]; nothing follows the last.
pub(super) fn begin(from: Sender, number: u64) -> Vec<u8> {
    let mut out = head(RECORDS, from);
    out.number(number);
    out.finish()
}

/// Appends a record.
pub(super) fn append(envelope: &mut Vec<u8>, record: &[u8]) {
    let mut length = Writer::headless(0);
    length.number(record.len() as u64);
    envelope.extend_from_slice(&length.finish());
    envelope.extend_from_slice(record);
}

/// A beat.
pub(super) fn beat(from: Sender, count: u64, store: bool, last: &[(Subject, u64)]) -> Vec<u8> {
    let mut out = head(BEAT, from);
    out.number(count);
    store.write(&mut out);
    out.number(last.len() as u64);
    for (subject, number) in last {
        write_subject(*subject, &mut out);
        out.number(*number);
    }
    out.finish()
}

/// Asks for records again.
pub(super) fn want(from: Sender, run: u64, subject: Subject, first: u64, last: u64) -> Vec<u8> {
    let mut out = head(WANT, from);
    out.number(run);
    write_subject(subject, &mut out);
    out.number(first);
    out.number(last);
    out.finish()
}

/// Says that there are no records any more before a number.
pub(super) fn gone(from: Sender, number: u64) -> Vec<u8> {
    let mut out = head(GONE, from);
    out.number(number);
    out.finish()
}

/// Takes an envelope apart.
pub(super) fn read(bytes: &[u8]) -> Result<Envelope<'_>, Unreadable> {
    let rest = bytes.strip_prefix(&MAGIC).ok_or(Unreadable::NotOurs)?;
    let (version, rest) = rest.split_first().ok_or(Unreadable::NotOurs)?;
    if *version != VERSION {
        return Err(Unreadable::Version(*version));
    }
    let mut input = Reader::headless(rest, Clock::default());
    let kind = input.tag()?;
    let from = Sender { epoch: Epoch::read(&mut input)?, run: input.number()? };
    let envelope = match kind {
        RECORDS => {
            let (number, mut records) = (input.number()?, Vec::new());
            while !input.is_done() {
                records.push(input.string()?);
            }
            Envelope::Records { from, number, records }
        }
        BEAT => {
            let (count, store) = (input.number()?, bool::read(&mut input)?);
            let entries = input.count()?;
            let mut last = Vec::with_capacity(input.capacity_for::<(Subject, u64)>(entries));
            for _ in 0..entries {
                last.push((read_subject(&mut input)?, input.number()?));
            }
            // What a later release of the same version appends is skipped.
            Envelope::Beat { from, count, store, last }
        }
        WANT => {
            let (run, subject) = (input.number()?, read_subject(&mut input)?);
            Envelope::Want { run, subject, first: input.number()?, last: input.number()? }
        }
        GONE => Envelope::Gone { from, number: input.number()? },
        _ => return Err(input.malformed("there is no such envelope").into()),
    };
    Ok(envelope)
}

fn head(kind: u8, from: Sender) -> Writer {
    let mut out = Writer::headless(0);
    out.raw(&MAGIC);
    out.raw(&[VERSION, kind]);
    from.epoch.write(&mut out);
    out.number(from.run);
    out
}

pub(super) fn write_subject(subject: Subject, out: &mut Writer) {
    match subject {
        Subject::Node(epoch) => {
            out.tag(NODE);
            epoch.write(out);
        }
        Subject::Partition(partition) => {
            out.tag(PARTITION);
            partition.write(out);
        }
        Subject::All => out.tag(ALL),
    }
}

pub(super) fn read_subject(input: &mut Reader<'_>) -> Result<Subject, Malformed> {
    match input.tag()? {
        NODE => Ok(Subject::Node(Epoch::read(input)?)),
        PARTITION => Ok(Subject::Partition(u16::read(input)?)),
        ALL => Ok(Subject::All),
        _ => Err(input.unknown_tag("there is no such subject")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Sender = Sender { epoch: Epoch(300), run: u64::MAX };

    #[test]
    fn envelopes_are_read_as_they_were_written() {
        let mut bytes = begin(FROM, 7);
        append(&mut bytes, b"one");
        append(&mut bytes, b"");
        append(&mut bytes, &[0; 300]);
        let records = vec![&b"one"[..], b"", &[0; 300]];
        assert_eq!(read(&bytes), Ok(Envelope::Records { from: FROM, number: 7, records }));
        let last = vec![(Subject::All, 1), (Subject::Node(Epoch(9)), 2), (Subject::Partition(255), u64::MAX)];
        let bytes = beat(FROM, 3, false, &last);
        assert_eq!(read(&bytes), Ok(Envelope::Beat { from: FROM, count: 3, store: false, last }));
        let subject = Subject::Node(Epoch(9));
        let bytes = want(FROM, 7, subject, 3, u64::MAX);
        assert_eq!(read(&bytes), Ok(Envelope::Want { run: 7, subject, first: 3, last: u64::MAX }));
        assert_eq!(read(&gone(FROM, 300)), Ok(Envelope::Gone { from: FROM, number: 300 }));
    }

    #[test]
    fn what_is_no_envelope_is_refused() {
        let mut whole = begin(FROM, 7);
        append(&mut whole, b"one");
        for length in 0..whole.len() {
            // Between records an envelope may end.
            let is_whole = length == whole.len() - 4;
            assert_eq!(read(&whole[..length]).is_ok(), is_whole, "{length}");
        }
        let whole = beat(FROM, 3, true, &[(Subject::All, 1)]);
        assert!((0..whole.len()).all(|length| read(&whole[..length]).is_err()));
        assert_eq!(read(b"CB\x02"), Err(Unreadable::Version(2)));
        assert_eq!(read(b"CrlF"), Err(Unreadable::NotOurs));
    }
}
