//! The figures of modules.

use super::Reasons;
use crate::model::UnixMs;
use crate::ports::modules::{MODULE_COUNTERS, ModuleHash};
use std::collections::VecDeque;
use std::sync::Arc;

/// How many lines, and how many differences, are kept of a module on each shard.
const KEPT_MAX: usize = 32;

/// Which version of a module decides on a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModuleStanding {
    /// The version that is activated, for whom it is activated.
    #[default]
    Active,
    /// The last good one, because the activated version failed too often.
    RolledBack,
    /// None: both failed too often, or there is no other.
    Off,
}

impl ModuleStanding {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            ModuleStanding::Active => "active",
            ModuleStanding::RolledBack => "rolled-back",
            ModuleStanding::Off => "off",
        }
    }
}

/// What is counted of a module that is active.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleFigures {
    /// Its name.
    pub name: Arc<str>,
    /// The version that is activated.
    pub hash: ModuleHash,
    /// Which version decides: of several shards the worst.
    pub standing: ModuleStanding,
    /// What was decided, by verdict.
    pub verdicts: Reasons,
    /// Calls without a verdict, by the reason.
    pub failures: Reasons,
    /// Fuel that was used.
    pub fuel: u64,
    /// In shadow: calls of which both versions said the same.
    pub same: u64,
    /// In shadow: calls of which they did not.
    pub different: u64,
    /// The counters that the module keeps itself.
    pub counts: [u64; MODULE_COUNTERS],
    /// The last lines of its log, oldest first.
    pub lines: VecDeque<ModuleLine>,
    /// The last differences in shadow, oldest first.
    pub differences: VecDeque<ModuleLine>,
}

/// Something that is said of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleLine {
    /// When.
    pub at: UnixMs,
    /// What.
    pub text: Arc<str>,
}

impl ModuleFigures {
    /// Keeps a line of its log.
    pub fn note(&mut self, at: UnixMs, text: impl Into<Arc<str>>) {
        keep(&mut self.lines, ModuleLine { at, text: text.into() });
    }

    /// Keeps a difference.
    pub fn differ(&mut self, at: UnixMs, text: impl Into<Arc<str>>) {
        self.different += 1;
        keep(&mut self.differences, ModuleLine { at, text: text.into() });
    }

    /// Adds the figures of another shard.
    pub fn add(&mut self, other: ModuleFigures) {
        let ModuleFigures {
            name: _,
            hash: _,
            standing,
            verdicts,
            failures,
            fuel,
            same,
            different,
            counts,
            lines,
            differences,
        } = other;
        self.standing = self.standing.max(standing);
        self.verdicts.add_all(&verdicts);
        self.failures.add_all(&failures);
        self.fuel += fuel;
        self.same += same;
        self.different += different;
        self.counts.iter_mut().zip(counts).for_each(|(sum, more)| *sum += more);
        merge(&mut self.lines, lines);
        merge(&mut self.differences, differences);
    }

    /// Adds the figures of a shard to those of others, module by module.
    pub fn add_all(sum: &mut Vec<ModuleFigures>, others: Vec<ModuleFigures>) {
        for other in others {
            match sum.iter_mut().find(|known| known.name == other.name && known.hash == other.hash) {
                Some(known) => known.add(other),
                None => sum.push(other),
            }
        }
    }
}

fn keep(lines: &mut VecDeque<ModuleLine>, line: ModuleLine) {
    if lines.len() == KEPT_MAX {
        lines.pop_front();
    }
    lines.push_back(line);
}

/// The lines of all shards in the order of time; each shard's own stay in theirs.
fn merge(lines: &mut VecDeque<ModuleLine>, others: VecDeque<ModuleLine>) {
    lines.extend(others);
    lines.make_contiguous().sort_by_key(|line| line.at);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(name: &str, standing: ModuleStanding) -> ModuleFigures {
        ModuleFigures { name: name.into(), standing, fuel: 3, ..ModuleFigures::default() }
    }

    #[test]
    fn the_worst_standing_of_all_shards_is_shown() {
        let mut sum = vec![figures("a", ModuleStanding::RolledBack)];
        ModuleFigures::add_all(&mut sum, vec![figures("b", ModuleStanding::Off)]);
        ModuleFigures::add_all(&mut sum, vec![figures("a", ModuleStanding::Active)]);
        let found: Vec<_> = sum.iter().map(|module| (&*module.name, module.standing, module.fuel)).collect();
        assert_eq!(found, [("a", ModuleStanding::RolledBack, 6), ("b", ModuleStanding::Off, 3)]);
    }

    #[test]
    fn the_last_lines_are_kept_and_those_of_shards_are_in_order() {
        let mut one = figures("a", ModuleStanding::Active);
        (0..40).for_each(|n| one.note(UnixMs(n), format!("{n}")));
        assert_eq!((one.lines.len(), &*one.lines[0].text), (KEPT_MAX, "8"));
        let mut other = figures("a", ModuleStanding::Active);
        other.note(UnixMs(9), "other");
        one.add(other);
        let texts: Vec<_> = one.lines.iter().take(3).map(|line| &*line.text).collect();
        assert_eq!(texts, ["8", "9", "other"]);
    }
}
