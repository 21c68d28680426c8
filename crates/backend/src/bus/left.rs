//! What a bus leaves to the next process of its node in a live upgrade: the numbers that it gave and heard, so that nobody hears anything twice
//! and nothing is lost unseen, and what has left and may be asked for again.

use super::envelope::{read_subject, write_subject};
use bytes::Bytes;
use carillon_core::form::{Clock, Form, Malformed, Reader, Unreadable, Writer};
use carillon_core::model::Epoch;
use carillon_core::ports::Subject;

/// What a bus leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    /// The number of this life of the bus, which goes on.
    pub(super) run: u64,
    /// Beats that were sent.
    pub(super) beats: u64,
    /// Numbers of subjects that were forgotten are not above this one.
    pub(super) floor: u64,
    /// The number of the last record to each subject.
    pub(super) posted: Vec<(Subject, u64)>,
    /// Envelopes that others may ask for, the oldest first.
    pub(super) kept: Vec<LeftEnvelope>,
    /// The runs of the other nodes.
    pub(super) runs: Vec<(Epoch, u64)>,
    /// The number of the next record of each of them on each subject.
    pub(super) next: Vec<(Epoch, Subject, u64)>,
}

/// An envelope that others may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeftEnvelope {
    pub(super) subject: Subject,
    /// The numbers of its first and last record.
    pub(super) first: u64,
    pub(super) last: u64,
    /// After which beat it left.
    pub(super) beat: u64,
    pub(super) envelope: Bytes,
}

impl Left {
    /// The bytes for the next process.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut out = Writer::new(0);
        let Left { run, beats, floor, posted, kept, runs, next } = self;
        [*run, *beats, *floor].iter().for_each(|number| out.number(*number));
        out.number(posted.len() as u64);
        for (subject, number) in posted {
            write_subject(*subject, &mut out);
            out.number(*number);
        }
        out.number(kept.len() as u64);
        for LeftEnvelope { subject, first, last, beat, envelope } in kept {
            write_subject(*subject, &mut out);
            [*first, *last, *beat].iter().for_each(|number| out.number(*number));
            out.string(envelope);
        }
        out.number(runs.len() as u64);
        for (epoch, run) in runs {
            epoch.write(&mut out);
            out.number(*run);
        }
        out.number(next.len() as u64);
        for (epoch, subject, number) in next {
            epoch.write(&mut out);
            write_subject(*subject, &mut out);
            out.number(*number);
        }
        out.finish()
    }

    /// What [`Left::write`] wrote.
    pub(super) fn read(bytes: &[u8]) -> Result<Left, Unreadable> {
        let mut input = Reader::new(bytes, Clock::default())?;
        let (run, beats, floor) = (input.number()?, input.number()?, input.number()?);
        let posted = list(&mut input, |input| Ok((read_subject(input)?, input.number()?)))?;
        let kept = list(&mut input, |input| {
            let subject = read_subject(input)?;
            let (first, last, beat) = (input.number()?, input.number()?, input.number()?);
            let envelope = Bytes::copy_from_slice(input.string()?);
            Ok(LeftEnvelope { subject, first, last, beat, envelope })
        })?;
        let runs = list(&mut input, |input| Ok((Epoch::read(input)?, input.number()?)))?;
        let next =
            list(&mut input, |input| Ok((Epoch::read(input)?, read_subject(input)?, input.number()?)))?;
        input.finish()?;
        Ok(Left { run, beats, floor, posted, kept, runs, next })
    }
}

fn list<T>(
    input: &mut Reader<'_>,
    mut read: impl FnMut(&mut Reader<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let count = input.count()?;
    let mut all = Vec::with_capacity(input.capacity_for::<T>(count));
    for _ in 0..count {
        all.push(read(input)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_read_as_it_was_written() {
        let to = Subject::Node(Epoch(2));
        let envelope = Bytes::from_static(b"an envelope");
        let left = Left {
            run: u64::MAX,
            beats: 7,
            floor: 3,
            posted: vec![(to, 9), (Subject::All, 1)],
            kept: vec![LeftEnvelope { subject: to, first: 8, last: 9, beat: 6, envelope }],
            runs: vec![(Epoch(2), 5)],
            next: vec![(Epoch(2), Subject::Partition(255), 300)],
        };
        let bytes = left.write();
        assert_eq!(Left::read(&bytes), Ok(left));
        assert!((0..bytes.len()).all(|length| Left::read(&bytes[..length]).is_err()));
    }
}
