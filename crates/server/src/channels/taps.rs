//! Who reads what was noted of accounts that are followed ([`carillon_core::tap`]).

use carillon_core::tap::{Entry, Tape};

/// What a reader is given.
#[derive(Debug)]
pub enum Tapped {
    /// Something happened.
    Entry(Box<Entry>),
    /// So much else happened that is not told, because there was no room for it.
    Missed(u64),
}

/// Takes what is noted until it returns false. It must not block.
pub type TapSink = std::sync::Arc<dyn Fn(Tapped) -> bool + Send + Sync>;

/// The readers as one shard knows them.
#[derive(Default)]
pub(crate) struct TapSinks(Vec<(u64, TapSink)>);

impl TapSinks {
    /// Adds the reader of a tap.
    pub(crate) fn add(&mut self, tap: u64, sink: TapSink) {
        self.0.push((tap, sink));
    }

    /// Forgets the reader of a tap.
    pub(crate) fn remove(&mut self, tap: u64) {
        self.0.retain(|(of, _)| *of != tap);
    }

    /// Gives the readers what was noted. The taps of those that want no more.
    pub(crate) fn give(&self, tape: &mut Tape) -> Vec<u64> {
        let (entries, missed) = tape.take();
        let entries = entries.into_iter().map(|entry| (entry.tap, Tapped::Entry(Box::new(entry))));
        let missed = missed.into_iter().map(|(tap, count)| (tap, Tapped::Missed(count)));
        let mut gone = Vec::new();
        for (tap, tapped) in entries.chain(missed) {
            let sink = self.0.iter().find(|(of, _)| *of == tap);
            if !gone.contains(&tap) && !sink.is_some_and(|(_, sink)| sink(tapped)) {
                gone.push(tap);
            }
        }
        gone
    }
}
