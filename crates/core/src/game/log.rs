//! The ticks of a match, as they were sent: for those who come back.

/// The inputs of consecutive ticks, in one buffer. When it is full, the older half is forgotten.
#[derive(Debug, Default)]
pub(super) struct TickLog {
    /// The ticks before these are forgotten.
    forgotten: u32,
    bytes: Vec<u8>,
    /// Where in `bytes` each tick ends.
    ends: Vec<u32>,
}

impl TickLog {
    /// The last tick; 0 if there was none.
    pub(super) fn last(&self) -> u32 {
        self.forgotten + self.ends.len() as u32
    }

    /// The tick before the first that is here.
    pub(super) fn forgotten(&self) -> u32 {
        self.forgotten
    }

    /// Adds the next tick, which `write` appends.
    pub(super) fn add(&mut self, bytes_max: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if self.bytes.len() + self.ends.len() * size_of::<u32>() >= bytes_max {
            self.forget_half();
        }
        write(&mut self.bytes);
        self.ends.push(self.bytes.len() as u32);
    }

    /// Bytes of all ticks that are here.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of the ticks behind one, up to another.
    pub(super) fn bytes_between(&self, have: u32, tick: u32) -> usize {
        let end = |tick: u32| {
            let at = tick.checked_sub(self.forgotten + 1);
            at.and_then(|at| self.ends.get(at as usize)).map_or(0, |end| *end as usize)
        };
        end(tick).saturating_sub(end(have))
    }

    /// The inputs of a tick, if they are here.
    pub(super) fn tick(&self, tick: u32) -> Option<&[u8]> {
        let at = tick.checked_sub(self.forgotten + 1)? as usize;
        let end = *self.ends.get(at)? as usize;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize);
        self.bytes.get(start..end)
    }

    fn forget_half(&mut self) {
        let half = self.ends.len().div_ceil(2);
        let Some(&bytes) = half.checked_sub(1).and_then(|last| self.ends.get(last)) else { return };
        self.bytes.drain(..bytes as usize);
        self.ends.drain(..half);
        self.ends.iter_mut().for_each(|end| *end -= bytes);
        self.forgotten += half as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::TickLog;

    #[test]
    fn the_older_half_is_forgotten_when_it_is_full() {
        let mut log = TickLog::default();
        for tick in 1..=1000_u32 {
            log.add(1200, |out| out.extend_from_slice(&tick.to_le_bytes()[..(tick % 4) as usize]));
            assert_eq!(log.last(), tick);
            assert!(log.bytes.len() + log.ends.len() * 4 <= 1200 + 8);
        }
        assert!(log.forgotten() > 0 && log.last() - log.forgotten() >= 90);
        assert_eq!(log.bytes_between(log.forgotten(), 1000), log.bytes.len());
        assert_eq!((log.bytes_between(999, 1000), log.bytes_between(998, 1000)), (0, 3));
        assert_eq!(log.tick(log.forgotten()), None);
        assert_eq!(log.tick(1001), None);
        for tick in log.forgotten() + 1..=1000 {
            assert_eq!(log.tick(tick), Some(&tick.to_le_bytes()[..(tick % 4) as usize]));
        }
    }
}
