//! What may happen next.

use super::{Link, World};
use crate::Input;
use crate::ports::Fault;
use crate::sim::store::{Answered, Step};
use carillon_wire::Framing;

/// Something that is under way and may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The oldest of what one shard has for another is delivered; which two, as one number.
    Deliver(usize),
    /// The store goes on.
    Store(Step),
    /// Derived keys are given to their shard.
    Derived(usize),
    /// A shard goes on with its fan-outs.
    Walk(usize),
    /// What a client sent comes further, by at most so many bytes.
    ToServer(usize, usize),
    /// What the socket took comes further to the client, by at most so many bytes.
    ToClient(usize, usize),
}

impl World {
    /// What may happen next, always in the same order.
    pub fn choices(&self) -> Vec<Choice> {
        let posts = (0..self.posts.len()).filter(|queue| !self.posts[*queue].is_empty());
        let derived = if self.holds_derived { 0 } else { self.derived.len() };
        let walking = (0..self.walking.len()).filter(|shard| self.walking[*shard]);
        let links = || self.links.iter().enumerate();
        let is_read = |link: &Link| !self.is_frozen && link.is_read() && !link.to_server.is_empty();
        let to_server = links().filter(|(_, link)| is_read(link));
        let to_client = links().filter(|(_, link)| link.on_the_way() > 0);
        let work = posts.map(Choice::Deliver).chain(walking.map(Choice::Walk));
        let work = work.chain(self.disk.steps().map(Choice::Store)).chain((0..derived).map(Choice::Derived));
        let work = work.chain(to_server.map(|(key, _)| Choice::ToServer(key, usize::MAX)));
        work.chain(to_client.map(|(key, _)| Choice::ToClient(key, usize::MAX))).collect()
    }

    /// Lets it happen.
    pub fn choose(&mut self, choice: Choice) {
        self.trace.note(format_args!("{choice:?}"));
        match choice {
            Choice::Deliver(queue) => self.deliver(queue),
            Choice::Store(step) => {
                let answered = self.disk.take(step);
                self.tell(answered);
            }
            Choice::Derived(place) => {
                let (shard, input) = self.derived.remove(place);
                self.give(shard, input);
            }
            Choice::Walk(shard) => self.walk(shard),
            Choice::ToServer(key, most) => self.carry(key, most),
            Choice::ToClient(key, most) => self.links[key].arrive(most),
        }
    }

    /// The oldest question to the store is answered, past all that is under way; whether there was one.
    pub fn answer_oldest(&mut self) -> bool {
        let answered = self.disk.answer_oldest();
        self.tell(answered)
    }

    /// The oldest question to the store fails; whether there was one.
    pub fn fail_oldest(&mut self, fault: Fault) -> bool {
        let answered = self.disk.fail_oldest(fault);
        self.tell(answered)
    }

    fn tell(&mut self, answered: Option<Answered>) -> bool {
        let Some(Answered { shard, ticket, answer }) = answered else { return false };
        self.give(shard, Input::Answer { ticket, answer });
        true
    }

    /// Gives a session what its client sent, at most so many bytes of it; of WebSocket, a whole message.
    fn carry(&mut self, key: usize, most: usize) {
        let link = &mut self.links[key];
        let Some(mut piece) = link.to_server.pop_front() else { return };
        if link.framing == Framing::Tcp && piece.len() > most.max(1) {
            let rest = piece.split_off(most.max(1));
            link.to_server.push_front(rest);
        }
        link.heard_bytes += piece.len() as u64;
        let (shard, conn) = (link.shard, link.conn);
        self.give(shard, Input::Bytes { conn, bytes: &piece });
    }

    /// Something happens, if anything is under way: `pick` says what. Whether it did.
    pub fn step(&mut self, pick: usize) -> bool {
        let choices = self.choices();
        let choice = choices.get(pick % choices.len().max(1)).copied();
        choice.inspect(|choice| self.choose(*choice)).is_some()
    }

    /// Until nothing is under way.
    pub fn settle(&mut self) {
        while self.step(0) {}
    }

    /// Until nothing is under way but at the store.
    pub fn settle_without_store(&mut self) {
        let next =
            |world: &World| world.choices().into_iter().find(|choice| !matches!(choice, Choice::Store(_)));
        while let Some(choice) = next(self) {
            self.choose(choice);
        }
    }

    /// Derived keys are held from now on, as if those who derive them took long; or no longer.
    pub fn hold_derived(&mut self, holds: bool) {
        self.holds_derived = holds;
    }
}
