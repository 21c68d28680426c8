//! Whose work is next: domains take turns.

use carillon_core::model::DomainId;
use std::collections::{HashMap, VecDeque};

/// What waits, of many domains. It is bounded; at the bound each domain that has something waiting keeps an equal share of it.
#[derive(Debug)]
pub(super) struct Turns<T> {
    /// What waits of each domain, which is never nothing.
    waiting: HashMap<DomainId, VecDeque<T>>,
    /// Those domains, in the order of their turns.
    order: VecDeque<DomainId>,
    len: usize,
    max: usize,
}

impl<T> Turns<T> {
    /// With room for `max`.
    pub(super) fn new(max: usize) -> Turns<T> {
        Turns { waiting: HashMap::new(), order: VecDeque::new(), len: 0, max }
    }

    /// Adds what waits for a domain. Returns what there is no room for: the newest of the domain that has most, or this one.
    pub(super) fn push(&mut self, domain: DomainId, item: T) -> Option<T> {
        let mut without_room = None;
        if self.len >= self.max {
            let own = self.waiting.get(&domain).map_or(0, VecDeque::len);
            // There are at most `max` domains to look at.
            let longest = self.waiting.iter().max_by_key(|(domain, items)| (items.len(), domain.0));
            match longest.filter(|(_, items)| items.len() > own + 1).map(|(domain, _)| *domain) {
                Some(longest) => without_room = self.waiting.get_mut(&longest).and_then(VecDeque::pop_back),
                None => return Some(item),
            }
            self.len -= 1;
        }
        let items = self.waiting.entry(domain).or_default();
        if items.is_empty() {
            self.order.push_back(domain);
        }
        items.push_back(item);
        self.len += 1;
        without_room
    }

    /// Takes the first of the domain whose turn it is.
    pub(super) fn pop(&mut self) -> Option<T> {
        let domain = self.order.pop_front()?;
        let items = self.waiting.get_mut(&domain)?;
        let item = items.pop_front()?;
        if items.is_empty() {
            self.waiting.remove(&domain);
        } else {
            self.order.push_back(domain);
        }
        self.len -= 1;
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes, and says for each whose item found no room.
    fn push(turns: &mut Turns<u32>, domain: u32, times: usize) -> Vec<Option<u32>> {
        (0..times).map(|_| turns.push(DomainId(domain), domain)).collect()
    }

    fn pop(turns: &mut Turns<u32>, times: usize) -> Vec<u32> {
        (0..times).filter_map(|_| turns.pop()).collect()
    }

    #[test]
    fn a_domain_waits_for_one_item_of_each_other() {
        let mut turns = Turns::new(1024);
        push(&mut turns, 1, 1000);
        assert_eq!(pop(&mut turns, 3), [1, 1, 1]);
        push(&mut turns, 2, 2);
        push(&mut turns, 3, 1);
        assert_eq!(pop(&mut turns, 6), [1, 2, 3, 1, 2, 1]);
        assert_eq!(pop(&mut turns, 1024).len(), 994);
        assert!(turns.waiting.is_empty() && turns.order.is_empty() && turns.len == 0);
    }

    #[test]
    fn a_full_queue_has_room_for_those_who_have_less() {
        let mut turns = Turns::new(4);
        assert_eq!(push(&mut turns, 1, 5), [None, None, None, None, Some(1)]);
        assert_eq!(push(&mut turns, 2, 3), [Some(1), Some(1), Some(2)]);
        assert_eq!(push(&mut turns, 3, 2), [Some(2), Some(3)]);
        assert_eq!(push(&mut turns, 1, 1), [Some(1)]);
        assert_eq!(pop(&mut turns, 9), [1, 2, 3, 1]);
    }

    #[test]
    fn one_domain_alone_has_all_the_room() {
        let mut turns = Turns::new(100);
        assert!(push(&mut turns, 7, 100).iter().all(Option::is_none));
        assert_eq!(pop(&mut turns, 200).len(), 100);
    }
}
