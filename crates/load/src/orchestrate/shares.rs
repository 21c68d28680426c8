//! Distributes the players over the workers.

use crate::plan::Scenario;

/// Shares are multiples of this number of players, and of the scenario's buckets.
const GROUP: u32 = 10;

/// Shares players out by capacity: a number of players for each worker, in their order. Every share but the last is a
/// multiple of `group`. `None` if there is not enough room.
pub(super) fn share_out(players: u32, group: u32, capacities: &[u32]) -> Option<Vec<u32>> {
    let group = group.max(1);
    let groups = u64::from(players.div_ceil(group));
    let rooms: Vec<u64> = capacities.iter().map(|capacity| u64::from(capacity / group)).collect();
    let room: u64 = rooms.iter().sum();
    if room < groups {
        // One worker may have just enough for all, the last group being a part of one.
        let whole = capacities.iter().position(|capacity| *capacity >= players)?;
        return Some((0..capacities.len()).map(|at| if at == whole { players } else { 0 }).collect());
    }
    let mut shares: Vec<u64> = rooms.iter().map(|own| groups * own / room.max(1)).collect();
    let mut left = groups - shares.iter().sum::<u64>();
    for (share, own) in shares.iter_mut().zip(&rooms) {
        let more = left.min(own - *share).min(1);
        *share += more;
        left -= more;
    }
    let mut shares: Vec<u32> = shares
        .into_iter()
        .map(|groups| u32::try_from(groups).unwrap_or(u32::MAX).saturating_mul(group))
        .collect();
    let over = shares.iter().sum::<u32>() - players;
    if let Some(last) = shares.iter_mut().rfind(|share| **share > 0) {
        *last -= over;
    }
    Some(shares)
}

/// The size of groups in which a scenario's players are shared out.
pub(super) fn group(scenario: &Scenario) -> u32 {
    let buckets = scenario.phases.iter().map(|phase| phase.action.bucket());
    buckets.fold(GROUP, |group, bucket| group / gcd(group, bucket) * bucket)
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_players_are_carried_and_no_group_is_torn(
            players in 1u32..100_000, group in 1u32..50, capacities in prop::collection::vec(0u32..30_000, 1..8)
        ) {
            let Some(shares) = share_out(players, group, &capacities) else {
                prop_assert!(capacities.iter().map(|capacity| capacity / group).sum::<u32>() < players.div_ceil(group));
                return Ok(());
            };
            prop_assert_eq!(shares.iter().sum::<u32>(), players);
            prop_assert!(shares.iter().zip(&capacities).all(|(share, capacity)| share <= capacity));
            let used: Vec<_> = shares.iter().filter(|share| **share > 0).collect();
            prop_assert!(used[..used.len() - 1].iter().all(|share| *share % group == 0));
        }
    }

    #[test]
    fn capacity_decides() {
        assert_eq!(share_out(100, 10, &[1000, 3000]), Some(vec![30, 70]));
        assert_eq!(share_out(15, 10, &[5, 15]), Some(vec![0, 15]));
        assert_eq!(share_out(25, 10, &[18_000]), Some(vec![25]));
        assert_eq!(share_out(25, 10, &[10, 10]), None);
    }
}
