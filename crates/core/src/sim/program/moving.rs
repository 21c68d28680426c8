//! The node leaves its process: it restarts in order, or goes on in another one with its connections, or begins to and takes them
//! back. Here as in the server what is under way is given time to end, and the rest is as it is.

use super::{Client, Program, holds};
use crate::sim::Choice;

impl Program {
    /// One of these, and none during it.
    pub(super) fn moves(&mut self, how: fn(&mut Program) -> Result<(), String>) -> Result<(), String> {
        self.is_moving = true;
        let done = how(self);
        self.is_moving = false;
        done
    }

    /// The node is told to end, and starts again. Meanwhile everybody does what they do.
    pub(super) fn restarts(&mut self) -> Result<(), String> {
        let slices = 1 + self.dice.below(3) as u32;
        for slices_left in (0..slices).rev() {
            self.world.end_slice(slices_left, slices);
            self.look()?;
            for _ in 0..self.dice.below(30) {
                self.step()?;
            }
        }
        let rests = self.comes_to_rest()?;
        let bytes_max = if self.dice.once_in(8) { 3000 } else { u64::MAX };
        self.world.store_parked(bytes_max);
        self.look()?;
        self.tells_what_expired()?;
        self.forget_chats_that_wait();
        self.world.end();
        self.look()?;
        let (shards, away_ms) = (self.shards(), self.dice.below(8000) as u64);
        self.forget_after(rests);
        self.world.start_again(shards, away_ms);
        self.latest = self.latest.max(self.world.now().unix);
        self.look()
    }

    /// The node is to go on in another process, and does, or not.
    pub(super) fn upgrades(&mut self) -> Result<(), String> {
        self.tells_what_expired()?;
        self.world.freeze(true);
        let mut rests = self.comes_to_rest()?;
        if rests {
            self.world.prepare_hand_over();
            self.look()?;
            rests = self.comes_to_rest()?;
        }
        if rests {
            self.hands_sessions_over()?;
        }
        self.world.freeze(false);
        self.world.tick();
        self.look()
    }

    fn hands_sessions_over(&mut self) -> Result<(), String> {
        self.take_outcomes()?;
        let unanswered = self.outcomes.len();
        holds(unanswered == 0, || {
            format!("{unanswered} commands are not answered when sessions are handed over")
        })?;
        let estate = self.world.take_out();
        self.look()?;
        let elapsed_ms = self.dice.below(2000) as u64;
        self.world.leap(elapsed_ms);
        self.latest = self.latest.max(self.world.now().unix);
        let all = 0..self.clients.len();
        let lost: Vec<usize> =
            all.filter(|_| self.dice.once_in(20)).map(|whose| self.clients[whose].link).collect();
        if self.dice.below(3) > 0 {
            let shards = self.shards();
            self.world.replace(&estate, shards);
            self.notifications.goes_elsewhere();
        }
        self.world.take_in(estate, elapsed_ms, &lost);
        self.look()
    }

    /// How many shards the next process has: mostly as many as there are.
    fn shards(&mut self) -> u16 {
        if self.dice.once_in(3) { 1 + self.dice.below(4) as u16 } else { self.world.shards_per_node() }
    }

    /// What was swept is told before the jobs of the node end.
    fn tells_what_expired(&mut self) -> Result<(), String> {
        while self.tells_expired() {
            self.look()?;
        }
        Ok(())
    }

    /// Waits until nothing is under way, as long as the server does; whether it came to that. While the node is frozen no timer runs. A store
    /// may be too slow for it; what shards say to each other is not.
    fn comes_to_rest(&mut self) -> Result<bool, String> {
        let is_slow = self.dice.once_in(8);
        let mut steps = if is_slow { self.dice.below(40) } else { usize::MAX };
        let until = self.world.now().mono.plus(PATIENCE_MS);
        while !self.world.rests() && (steps > 0 || self.is_on_its_way()) {
            steps = steps.saturating_sub(1);
            self.stalls = if is_slow { steps + 1 } else { self.stalls };
            if self.is_on_its_way() || self.stalls > 0 || self.store_may_answer() {
                self.goes_on();
            } else {
                let due = self.world.next_wake().filter(|due| *due <= until && !self.world.is_frozen());
                let Some(due) = due else { return Ok(false) };
                self.passes(due.since(self.world.now().mono));
            }
            self.look()?;
        }
        self.stalls = 0;
        Ok(self.world.rests())
    }

    /// Whether something is on its way from shard to shard, or to followers.
    fn is_on_its_way(&self) -> bool {
        let is_it =
            |choice: &Choice| matches!(choice, Choice::Deliver(_) | Choice::Walk(_) | Choice::Derived(_));
        self.world.choices().iter().any(is_it)
    }

    fn store_may_answer(&self) -> bool {
        self.world.choices().iter().any(|choice| matches!(choice, Choice::Store(_)))
    }

    /// The process ended in order, with nothing under way, or not.
    fn forget_after(&mut self, rests: bool) {
        self.outcomes.clear();
        match rests {
            true => self.notifications.starts_again(),
            false => self.notifications.forget(),
        }
        self.chats_go_elsewhere(rests);
        for connected in &mut self.clients {
            if let Client::Xmpp(client) = &mut connected.client {
                client.node_restarts();
            }
        }
    }
}

/// How long what is under way may take.
const PATIENCE_MS: u64 = 2000;
