//! What is told of a match: how it is, and how it was played.

use super::Match;
use crate::model::{MatchReplay, MatchResult, MatchView};
use carillon_wire::frame::game::{Header, ServerFrame, framed};

impl Match {
    /// As it is now.
    pub(in crate::game) fn view(&self) -> MatchView {
        MatchView {
            id: self.id,
            queue: self.queue.name.clone(),
            mode: self.rules.mode,
            tick: self.log.last(),
            runs: self.runs(),
            seats: self.seats.iter().map(|seat| (seat.account.clone(), seat.state())).collect(),
            desyncs: self.desyncs,
            module: self.version(),
            spectators: self.watched.len() as u32,
        }
    }

    /// How it was played so far: the inputs of each tick that is still there.
    pub(in crate::game) fn replay(&self, result: Option<&MatchResult>) -> MatchReplay {
        let mut frames =
            Vec::with_capacity(self.log.bytes() + 8 * (self.log.last() - self.log.forgotten()) as usize);
        for tick in self.log.forgotten() + 1..=self.log.last() {
            let Some(inputs) = self.log.tick(tick) else { break };
            framed(&mut frames, |out| ServerFrame::write_tick(out, Header::at(tick), inputs));
        }
        MatchReplay {
            id: self.id,
            queue: self.queue.name.clone(),
            mode: self.rules.mode,
            tick_rate: self.rules.tick_rate,
            seed: self.seed,
            accounts: self.seats.iter().map(|seat| seat.account.clone()).collect(),
            module: self.version(),
            result: result.cloned(),
            forgotten: self.log.forgotten(),
            tick: self.log.last(),
            frames,
        }
    }
}
