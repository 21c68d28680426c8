//! Who is whose contact: computed from the players' numbers, so that nobody has to be told.
//!
//! The players of a bucket stand in a ring. A player's contacts are spread evenly over it, as many in one direction as in the
//! other, so contacts are mutual, and players who log in one after the other are seldom contacts. A bucket stays in one
//! thread, which therefore knows which contacts are there.

use std::ops::Range;

use crate::plan::Contacts;

/// The contacts of all players.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    plan: Contacts,
    /// How many players there are in all: the last bucket may be smaller.
    total: usize,
}

/// What a bucket's size means for the contacts of its players.
#[derive(Clone, Copy, Debug)]
struct Spread {
    members: usize,
    /// Contacts in each direction; `None` if everyone else is a contact.
    each_way: Option<usize>,
    stride: usize,
}

impl Ring {
    /// The contacts by a plan, among this many players.
    pub(super) fn new(plan: Contacts, total: u32) -> Self {
        Self { plan, total: total as usize }
    }

    /// The most contacts that a player has.
    pub(super) fn contacts_max(&self) -> usize {
        self.plan.contacts as usize
    }

    /// The contacts of a player, in the order of their places.
    pub(super) fn contacts(self, number: usize) -> impl Iterator<Item = usize> {
        let bucket = self.bucket(number);
        let spread = self.spread(&bucket);
        let own = number - bucket.start;
        spread.offsets().map(move |offset| bucket.start + (own + offset) % spread.members)
    }

    /// The place of a contact among those of a player; `None` if it is none.
    pub(super) fn place(self, number: usize, contact: usize) -> Option<usize> {
        let bucket = self.bucket(number);
        if number == contact || !bucket.contains(&contact) {
            return None;
        }
        self.spread(&bucket).place((contact + bucket.len() - number) % bucket.len())
    }

    fn bucket(self, number: usize) -> Range<usize> {
        let size = self.plan.bucket as usize;
        let first = number / size * size;
        first..(first + size).min(self.total.max(number + 1))
    }

    fn spread(self, bucket: &Range<usize>) -> Spread {
        let (members, contacts) = (bucket.len(), self.contacts_max());
        let each_way = (members > contacts).then_some(contacts / 2);
        Spread { members, each_way, stride: (members / (contacts + 1)).max(1) }
    }
}

impl Spread {
    /// How far the contacts are from a player, forwards along the ring.
    fn offsets(self) -> impl Iterator<Item = usize> {
        let forwards = self.each_way.unwrap_or(self.members - 1);
        let backwards = self.each_way.unwrap_or(0);
        let forwards = (1..=forwards).map(move |step| step * self.stride);
        forwards.chain((1..=backwards).map(move |step| self.members - step * self.stride))
    }

    fn place(self, offset: usize) -> Option<usize> {
        let each_way = self.each_way.unwrap_or(self.members - 1);
        let step = |distance: usize| {
            let step = distance / self.stride;
            (distance.is_multiple_of(self.stride) && (1..=each_way).contains(&step)).then(|| step - 1)
        };
        let backwards = || step(self.members - offset).map(|step| each_way + step);
        step(offset).or_else(backwards)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_sound(ring: Ring, total: usize, expected: impl Fn(usize) -> usize) {
        for number in 0..total {
            let contacts: Vec<_> = ring.contacts(number).collect();
            assert_eq!(contacts.len(), expected(number), "of {number}");
            for (place, contact) in contacts.iter().enumerate() {
                assert_ne!(*contact, number);
                assert_eq!(ring.place(number, *contact), Some(place), "{contact} of {number}");
                assert!(ring.place(*contact, number).is_some(), "{number} of {contact}");
            }
            let strangers = (0..total).filter(|other| !contacts.contains(other));
            assert!(strangers.into_iter().all(|other| ring.place(number, other).is_none()));
        }
    }

    #[test]
    fn contacts_are_mutual_and_each_has_its_place() {
        let plan = Contacts { contacts: 6, bucket: 50 };
        is_sound(Ring::new(plan, 123), 123, |_| 6);
    }

    #[test]
    fn in_a_small_bucket_everyone_is_a_contact_of_everyone() {
        let plan = Contacts { contacts: 6, bucket: 10 };
        is_sound(Ring::new(plan, 24), 24, |number| if number < 20 { 6 } else { 3 });
        is_sound(Ring::new(plan, 7), 7, |_| 6);
        is_sound(Ring::new(plan, 1), 1, |_| 0);
    }

    #[test]
    fn contacts_are_far_from_each_other() {
        let ring = Ring::new(Contacts { contacts: 4, bucket: 100 }, 100);
        assert_eq!(ring.contacts(10).collect::<Vec<_>>(), [30, 50, 90, 70]);
    }
}
