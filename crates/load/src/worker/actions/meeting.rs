//! Contacts that become available one after the other: whose presence is due to whom, what has come, and what came twice.

use crate::worker::ring::Ring;

/// What the players of one thread have seen of each other.
#[derive(Debug)]
pub(super) struct Meeting {
    ring: Ring,
    /// The number of the first player.
    first: usize,
    present: Vec<bool>,
    /// By player and the place of its contact.
    views: Vec<View>,
    /// For each player, how many of the contacts that were there before it has not seen.
    awaited: Vec<u32>,
    /// Presences that are due to all players together.
    due: u64,
}

/// What a player has seen of a contact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum View {
    /// One of the two is not there.
    #[default]
    None,
    /// Its presence is due; it was there after the player.
    Due,
    /// The same; it was there before the player.
    Awaited,
    /// Its presence has come.
    Seen,
}

/// What a presence is to the one who receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// The first of this contact.
    New,
    /// The first of this contact, and the last of those that were there before the player.
    LastAwaited,
    /// It came before.
    Again,
    /// Of nobody from whom presence is due.
    Unexpected,
}

impl Meeting {
    /// Nobody is there; `players` of this thread, from `first` on.
    pub(super) fn new(ring: Ring, first: usize, players: usize) -> Self {
        Self {
            ring,
            first,
            present: vec![false; players],
            views: vec![View::None; players * ring.contacts_max()],
            awaited: vec![0; players],
            due: 0,
        }
    }

    /// A player becomes available; returns how many of its contacts are there.
    pub(super) fn arrive(&mut self, number: usize) -> u32 {
        let own = number - self.first;
        self.present[own] = true;
        let mut there = 0;
        for (place, contact) in self.ring.contacts(number).enumerate() {
            if !self.is_present(contact) {
                continue;
            }
            let at = self.at(number, place);
            self.views[at] = View::Awaited;
            if let Some(at) = self.find(contact, number) {
                self.views[at] = View::Due;
            }
            there += 1;
        }
        self.awaited[own] = there;
        self.due += 2 * u64::from(there);
        there
    }

    /// A player is gone: nothing is due to it or from it.
    pub(super) fn leave(&mut self, number: usize) {
        let own = number - self.first;
        if !std::mem::replace(&mut self.present[own], false) {
            return;
        }
        self.awaited[own] = 0;
        for (place, contact) in self.ring.contacts(number).enumerate() {
            let at = self.at(number, place);
            self.forget(at);
            let Some(at) = self.find(contact, number).filter(|_| self.is_present(contact)) else { continue };
            if self.views[at] == View::Awaited {
                self.awaited[contact - self.first] -= 1;
            }
            self.forget(at);
        }
    }

    /// A player receives the presence of another.
    pub(super) fn see(&mut self, number: usize, contact: usize) -> Sight {
        let Some(at) = self.find(number, contact) else { return Sight::Unexpected };
        match self.views[at] {
            View::None => return Sight::Unexpected,
            View::Seen => return Sight::Again,
            View::Due | View::Awaited => self.due -= 1,
        }
        if std::mem::replace(&mut self.views[at], View::Seen) == View::Awaited {
            let awaited = &mut self.awaited[number - self.first];
            *awaited -= 1;
            if *awaited == 0 {
                return Sight::LastAwaited;
            }
        }
        Sight::New
    }

    /// Presences that are due and have not come.
    pub(super) fn due(&self) -> u64 {
        self.due
    }

    fn is_present(&self, number: usize) -> bool {
        number.checked_sub(self.first).and_then(|own| self.present.get(own)).copied().unwrap_or(false)
    }

    fn find(&self, number: usize, contact: usize) -> Option<usize> {
        Some(self.at(number, self.ring.place(number, contact)?))
    }

    fn at(&self, number: usize, place: usize) -> usize {
        (number - self.first) * self.ring.contacts_max() + place
    }

    fn forget(&mut self, at: usize) {
        if matches!(std::mem::take(&mut self.views[at]), View::Due | View::Awaited) {
            self.due -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Contacts;

    /// Players 10 to 14, of whom each has the two next to it as contacts.
    fn five() -> Meeting {
        Meeting::new(Ring::new(Contacts { contacts: 2, bucket: 5 }, 15), 10, 5)
    }

    #[test]
    fn presence_is_due_to_both_when_the_second_arrives() {
        let mut meeting = five();
        assert_eq!((meeting.arrive(10), meeting.due()), (0, 0));
        assert_eq!((meeting.arrive(12), meeting.due()), (0, 0));
        assert_eq!((meeting.arrive(11), meeting.due()), (2, 4));
        assert_eq!(meeting.see(11, 10), Sight::New);
        assert_eq!(meeting.see(11, 10), Sight::Again);
        assert_eq!(meeting.see(11, 12), Sight::LastAwaited);
        // Those who were there before await nobody, but are told.
        assert_eq!(meeting.see(12, 11), Sight::New);
        assert_eq!(meeting.due(), 1);
        assert_eq!(meeting.see(12, 10), Sight::Unexpected);
        assert_eq!(meeting.see(12, 13), Sight::Unexpected);
    }

    #[test]
    fn nothing_is_due_from_or_to_those_who_are_gone() {
        let mut meeting = five();
        meeting.arrive(10);
        meeting.arrive(11);
        meeting.arrive(12);
        assert_eq!(meeting.see(10, 11), Sight::New);
        meeting.leave(11);
        meeting.leave(11);
        assert_eq!(meeting.due(), 0);
        assert_eq!(meeting.arrive(13), 1);
        assert_eq!((meeting.arrive(11), meeting.due()), (2, 6));
        assert_eq!(meeting.see(10, 11), Sight::New);
        meeting.leave(10);
        // Of its two, one is gone: the other is the last.
        assert_eq!(meeting.see(11, 12), Sight::LastAwaited);
    }
}
