//! Matches that are over, as they were played: kept for a while, within a bound in bytes.

use crate::model::{DomainId, MatchId, MatchReplay, Mono};
use std::collections::VecDeque;

/// The replays of a shard, those that ended first in front.
#[derive(Debug, Default)]
pub(super) struct Replays {
    kept: VecDeque<Kept>,
    bytes: usize,
}

#[derive(Debug)]
struct Kept {
    until: Mono,
    domain: DomainId,
    replay: Box<MatchReplay>,
}

fn size(replay: &MatchReplay) -> usize {
    let accounts: usize = replay.accounts.iter().map(|account| account.as_str().len()).sum();
    size_of::<Kept>() + size_of::<MatchReplay>() + accounts + replay.frames.len()
}

impl Replays {
    /// Keeps one until then, in place of the oldest where there is no room. One that is larger than all may be is not kept.
    pub(super) fn keep(&mut self, domain: DomainId, mut replay: MatchReplay, until: Mono, bytes_max: usize) {
        replay.frames.shrink_to_fit();
        let bytes = size(&replay);
        if bytes > bytes_max {
            return;
        }
        while self.bytes + bytes > bytes_max && self.forget_first() {}
        self.bytes += bytes;
        self.kept.push_back(Kept { until, domain, replay: Box::new(replay) });
    }

    /// When the first is forgotten.
    pub(super) fn due(&self) -> Option<Mono> {
        self.kept.front().map(|kept| kept.until)
    }

    pub(super) fn forget(&mut self, now: Mono) {
        while self.due().is_some_and(|until| until <= now) {
            self.forget_first();
        }
    }

    pub(super) fn find(&self, domain: DomainId, id: MatchId) -> Option<&MatchReplay> {
        self.kept.iter().find(|kept| kept.domain == domain && kept.replay.id == id).map(|kept| &*kept.replay)
    }

    fn forget_first(&mut self) -> bool {
        let first = self.kept.pop_front();
        self.bytes -= first.as_ref().map_or(0, |kept| size(&kept.replay));
        first.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_wire::frame::game::Mode;

    fn replay(id: u128, bytes: usize) -> MatchReplay {
        MatchReplay {
            id: MatchId(id),
            queue: "q".into(),
            mode: Mode::Lockstep,
            tick_rate: 10,
            seed: 0,
            accounts: Vec::new(),
            module: None,
            result: None,
            forgotten: 0,
            tick: 1,
            frames: vec![0; bytes],
        }
    }

    #[test]
    fn those_that_ended_first_give_way_and_all_are_forgotten_in_time() {
        let (mut replays, domain) = (Replays::default(), DomainId(1));
        for id in 0..10 {
            replays.keep(domain, replay(id, 1000), Mono(1000 + id as u64), 5000);
            assert!(replays.bytes <= 5000);
        }
        let kept =
            |replays: &Replays| (0..10).filter(|id| replays.find(domain, MatchId(*id)).is_some()).count();
        assert_eq!(kept(&replays), 4);
        assert!(replays.find(domain, MatchId(9)).is_some());
        assert!(replays.find(DomainId(2), MatchId(9)).is_none());
        // One that has no room takes none from others.
        replays.keep(domain, replay(11, 5000), Mono(2000), 5000);
        assert_eq!(kept(&replays), 4);
        replays.forget(Mono(1007));
        assert_eq!((kept(&replays), replays.due()), (2, Some(Mono(1008))));
        replays.forget(Mono(3000));
        assert_eq!((kept(&replays), replays.bytes), (0, 0));
    }
}
