//! A group: what a shard gives to another process, as bytes.

use crate::form::{Clock, Form, Malformed, Reader, Unreadable};
use crate::light;
use crate::model::Trace;
use crate::session::Moved;

/// A part of a group.
#[derive(Debug)]
pub(crate) enum Part {
    /// A session, with its connection or parked.
    Session(Moved),
    /// A connection of the light protocol.
    Light(light::Moved),
    /// What is known of a notification, and the store does not know.
    Trace(Box<Trace>),
}

crate::form! { enum Part { 0 = Session(session), 1 = Light(light), 2 = Trace(trace) } }

impl Part {
    /// All parts of a group, `clock.elapsed_ms` after it was written.
    pub(crate) fn read_all(bytes: &[u8], clock: Clock) -> Result<Vec<Part>, Unreadable> {
        let mut input = Reader::new(bytes, clock)?;
        let mut parts = Vec::new();
        while !input.is_done() {
            parts.push(Part::read_next(&mut input)?);
        }
        Ok(parts)
    }

    fn read_next(input: &mut Reader<'_>) -> Result<Part, Malformed> {
        // Version 1 has sessions alone.
        if input.version() < 2 { Moved::read(input).map(Part::Session) } else { Part::read(input) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::form::Writer;
    use crate::form::testing::{AT_ONCE, NOW_MS, first_bytes, written};

    #[test]
    fn a_group_of_version_1_has_sessions_alone() {
        let session = || written::<Moved>("Moved, parked");
        let mut now = Writer::new(NOW_MS);
        [Part::Session(session()), Part::Session(session())].iter().for_each(|part| part.write(&mut now));
        let now = Part::read_all(&now.finish(), AT_ONCE).expect("a group");
        let before = Part::read_all(&first_bytes("Moved, parked"), AT_ONCE).expect("a group");
        assert_eq!((now.len(), before.len()), (2, 1));
        for part in now.iter().chain(&before) {
            assert_eq!(format!("{part:?}"), format!("{:?}", Part::Session(session())));
        }
    }
}
