//! What waits, in its order, and in lanes of accounts that ask much.

use crate::engine::asked::Asked;
use carillon_core::model::Map;
use std::collections::VecDeque;

/// Units of work that an account has among the others ([`Asked::cost`]). One of any size it always has.
pub(super) const SHARE: usize = 128;

/// Units of work that a batch ends with.
const BATCH: usize = 4096;

/// Of those, what may come out of the lanes: so many that an account that is alone is not held up.
const FROM_LANES: usize = 2048;

/// What an account owes at most: it waits for no more than so many batches for it.
const DEBT_MAX: usize = 64 * SHARE;

/// Questions that wait.
pub(super) struct Lanes<A> {
    /// In their order.
    first: VecDeque<Asked<A>>,
    /// Units of work that accounts have there.
    shares: Map<u64, usize>,
    /// Units of work that were done for accounts beyond what their questions had counted as. A share of it is made up for with each batch.
    debts: Map<u64, usize>,
    /// What accounts ask beyond their shares, each in its order.
    lanes: Map<u64, VecDeque<Asked<A>>>,
    /// Whose turn it is next.
    turns: VecDeque<u64>,
    /// Questions in all lanes.
    waiting: usize,
}

impl<A> Default for Lanes<A> {
    fn default() -> Lanes<A> {
        let (first, turns) = (VecDeque::new(), VecDeque::new());
        Lanes {
            first,
            shares: Map::default(),
            debts: Map::default(),
            lanes: Map::default(),
            turns,
            waiting: 0,
        }
    }
}

impl<A> Lanes<A> {
    /// Adds a question, or gives it back if its account has `lane_max` in its lane.
    pub(super) fn push(&mut self, question: Asked<A>, lane_max: usize) -> Result<(), Asked<A>> {
        let Some(account) = question.account() else {
            self.first.push_back(question);
            return Ok(());
        };
        if let Some(lane) = self.lanes.get_mut(&account) {
            if lane.len() >= lane_max {
                return Err(question);
            }
            lane.push_back(question);
            self.waiting += 1;
            return Ok(());
        }
        let cost = question.cost();
        let share = self.shares.get(&account).copied().unwrap_or_default();
        let is_among_first = !self.debts.contains_key(&account) && (share == 0 || share + cost <= SHARE);
        if is_among_first {
            self.shares.insert(account, share + cost);
            self.first.push_back(question);
        } else {
            self.lanes.insert(account, VecDeque::from([question]));
            self.turns.push_back(account);
            self.waiting += 1;
        }
        Ok(())
    }

    /// Takes at most `max` questions, and no further one once they are much work: those in their order, then lanes in turns. Where there are lanes,
    /// some room is theirs.
    pub(super) fn take(&mut self, max: usize) -> Vec<Asked<A>> {
        let max_first = if self.turns.is_empty() { max } else { max - max / 4 };
        let mut batch = Vec::with_capacity(max_first.min(self.first.len()));
        let mut units = 0;
        while batch.len() < max_first
            && units < BATCH
            && let Some(question) = self.first.pop_front()
        {
            units += question.cost();
            batch.push(question);
        }
        match self.first.is_empty() {
            true => self.shares.clear(),
            false => batch.iter().for_each(|question| self.leave(question)),
        }
        self.debts.retain(|_, debt| {
            *debt = debt.saturating_sub(SHARE);
            *debt > 0
        });
        units = 0;
        // Each has its turn at least once.
        let mut passed = 0;
        while batch.len() < max
            && units < FROM_LANES
            && passed < self.turns.len()
            && let Some(account) = self.turns.pop_front()
        {
            // What it asked before is not taken yet, or not made up for.
            if self.shares.contains_key(&account) || self.debts.contains_key(&account) {
                self.turns.push_back(account);
                passed += 1;
                continue;
            }
            passed = 0;
            units += self.turn(account, max, &mut batch);
        }
        // Nobody waits but those who have something to make up for.
        if batch.is_empty()
            && let Some(account) = self.turns.pop_front()
        {
            self.turn(account, max, &mut batch);
        }
        batch
    }

    /// An account owes so many units of work more.
    pub(super) fn charge(&mut self, account: u64, units: usize) {
        let debt = self.debts.entry(account).or_default();
        *debt = (*debt + units).min(DEBT_MAX);
    }

    /// A question is not among the first any more.
    fn leave(&mut self, question: &Asked<A>) {
        let Some(account) = question.account() else { return };
        if let Some(share) = self.shares.get_mut(&account) {
            *share = share.saturating_sub(question.cost());
            if *share == 0 {
                self.shares.remove(&account);
            }
        }
    }

    /// Takes a share out of a lane; the units of work that it is.
    fn turn(&mut self, account: u64, max: usize, batch: &mut Vec<Asked<A>>) -> usize {
        let Some(lane) = self.lanes.get_mut(&account) else { return 0 };
        let mut units = 0;
        while units < SHARE
            && batch.len() < max
            && let Some(question) = lane.pop_front()
        {
            units += question.cost();
            self.waiting -= 1;
            batch.push(question);
        }
        if lane.is_empty() {
            self.lanes.remove(&account);
        } else {
            self.turns.push_back(account);
        }
        units
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.first.len() + self.waiting
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives back the memory for more than so many.
    pub(super) fn shrink_to(&mut self, kept: usize) {
        self.first.shrink_to(kept);
        self.shares.shrink_to(kept);
        self.lanes.shrink_to_fit();
        self.turns.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::asked::{Respond, Write};
    use bytes::Bytes;
    use carillon_core::model::DomainId;
    use carillon_core::ports::Ask;
    use carillon_core::ports::store::domains::DeleteDomain;
    use carillon_core::ports::store::vcard::StoreVcard;

    const NO_BOUND: usize = usize::MAX;

    fn asked(ask: impl Into<Ask>) -> Asked<Write> {
        let Ask::Write(ask) = ask.into() else { panic!("it is a write") };
        Asked::new(ask.into(), Respond::to_write(Box::new(|_| ())))
    }

    /// A write of an account, of so many bytes.
    fn of(account: &str, bytes: usize) -> Asked<Write> {
        asked(StoreVcard { domain: DomainId(1), local: account.into(), xml: Bytes::from(vec![b'x'; bytes]) })
    }

    /// One that is nobody's, told apart by a number.
    fn nobodys(number: u32) -> Asked<Write> {
        asked(DeleteDomain { domain: DomainId(number), now: carillon_core::model::UnixMs(0), rows_max: 1 })
    }

    fn push(lanes: &mut Lanes<Write>, question: Asked<Write>) {
        assert!(lanes.push(question, NO_BOUND).is_ok());
    }

    fn is_of(question: &Asked<Write>, account: &str) -> bool {
        question.account() == of(account, 0).account()
    }

    #[test]
    fn who_asks_once_waits_for_no_more_than_a_share_of_who_asks_much() {
        for bytes in [0, 1000, 200_000] {
            let mut lanes = Lanes::default();
            (0..5000).for_each(|_| push(&mut lanes, of("flood", bytes)));
            push(&mut lanes, of("alice", 10));
            push(&mut lanes, nobodys(1));
            let batch = lanes.take(1000);
            let place =
                batch.iter().position(|question| is_of(question, "alice")).expect("it is in the next batch");
            let before: usize = batch[..place].iter().map(Asked::cost).sum();
            assert!(before <= SHARE.max(of("flood", bytes).cost()), "{before} units of {bytes} bytes each");
            assert!(batch.iter().any(|question| question.account().is_none()), "what is nobody's, too");
        }
    }

    #[test]
    fn who_is_alone_has_whole_batches() {
        let mut lanes = Lanes::default();
        (0..5000).for_each(|_| push(&mut lanes, of("alone", 200)));
        let batches: Vec<usize> = (0..5).map(|_| lanes.take(1000).len()).collect();
        assert_eq!(batches, [1000; 5]);
        assert!(lanes.is_empty() && lanes.shares.is_empty() && lanes.lanes.is_empty());
    }

    #[test]
    fn what_was_more_work_than_it_counted_as_is_made_up_for() {
        let mut lanes = Lanes::default();
        lanes.charge(of("heavy", 0).account().expect("an account"), 10 * SHARE);
        push(&mut lanes, of("heavy", 0));
        for batch in 0..9 {
            push(&mut lanes, of("alice", 10));
            let taken = lanes.take(1000);
            assert!(taken.iter().all(|question| is_of(question, "alice")), "{batch}");
        }
        push(&mut lanes, of("alice", 10));
        assert_eq!(lanes.take(1000).len(), 2);
        assert!(lanes.debts.is_empty() && lanes.is_empty());
        // Where nobody else waits it does not wait either, and it keeps its order.
        lanes.charge(of("heavy", 0).account().expect("an account"), usize::MAX);
        (1..=3).for_each(|n| push(&mut lanes, of("heavy", n)));
        let taken: Vec<usize> = lanes.take(1000).iter().map(Asked::bytes).collect();
        assert_eq!(taken, [1, 2, 3]);
        (0..DEBT_MAX / SHARE).for_each(|_| drop(lanes.take(1000)));
        assert!(lanes.debts.is_empty());
    }

    #[test]
    fn a_batch_is_bounded_in_work() {
        let mut lanes = Lanes::default();
        (0..1000).for_each(|n| push(&mut lanes, of(&format!("a{n}"), 200_000)));
        (0..1000).for_each(|_| push(&mut lanes, of("flood", 200_000)));
        let most = BATCH + FROM_LANES + 2 * of("a", 200_000).cost();
        while !lanes.is_empty() {
            let units: usize = lanes.take(1000).iter().map(Asked::cost).sum();
            assert!(units > 0 && units <= most, "{units}");
        }
    }

    #[test]
    fn an_account_keeps_its_order_and_nothing_is_lost() {
        let mut random = 7_u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % below
        };
        let mut lanes = Lanes::default();
        let (mut pushed, mut taken) = (vec![Vec::new(); 5], vec![Vec::new(); 5]);
        for _ in 0..20_000 {
            if next(10) > 0 {
                // One of four floods, and one is nobody's.
                let (who, bytes) = ((next(12)).min(4), next(30) * next(3000));
                pushed[who].push(bytes);
                let question = if who == 4 { nobodys(bytes as u32) } else { of(&format!("a{who}"), bytes) };
                push(&mut lanes, question);
            } else {
                note(&lanes.take(1 + next(40)), &mut taken);
            }
        }
        while !lanes.is_empty() {
            note(&lanes.take(100), &mut taken);
        }
        assert_eq!(pushed, taken);
        assert!(lanes.shares.is_empty());
    }

    fn note(batch: &[Asked<Write>], taken: &mut [Vec<usize>]) {
        for question in batch {
            match (0..4).find(|who| is_of(question, &format!("a{who}"))) {
                Some(who) => taken[who].push(question.bytes()),
                None => taken[4].push(number(question)),
            }
        }
    }

    fn number(question: &Asked<Write>) -> usize {
        use carillon_core::ports::store::{WriteAsk, domains};
        match &question.ask.ask {
            WriteAsk::Domains(domains::WriteAsk::DeleteDomain(asked)) => asked.domain.0 as usize,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_account_does_not_fill_the_queue() {
        let mut lanes = Lanes::default();
        let refused = (0..1000).filter(|_| lanes.push(of("flood", 300), 100).is_err()).count();
        assert_eq!(1000 - refused, 100 + SHARE / of("flood", 300).cost());
        push(&mut lanes, of("alice", 10));
    }
}
