//! The end of a program: all that is under way ends, and what must hold then.

use super::notifications::CLAIM_MS;
use super::{ACCOUNTS, Connected, Mix, Program, RESUME_MS, holds};

impl Program {
    /// Lets all that is under way end; then what must hold in the end is looked at.
    ///
    /// # Errors
    /// What does not hold.
    pub fn finish(&mut self) -> Result<(), String> {
        self.stalls = 0;
        self.tells_lost();
        self.settle()?;
        if self.mix == Mix::Losing {
            // What the store could not read is read again after a while.
            self.passes(2000);
            self.settle()?;
        }
        self.homes_are_found()?;
        self.check_outcomes()?;
        if self.mix.recipe().is_about_topics {
            return self.check_topics();
        }
        // By those who were there all the time; in the end others are.
        if self.mix.recipe().wants_to_know {
            // Nobody waits any more for those who do not come back.
            for _ in 0..=RESUME_MS / 5000 {
                self.passes(5000);
                self.settle()?;
            }
            self.check_shared()?;
        }
        // What was claimed before the clock was set back is due again.
        self.world.set_wall_clock(self.latest.plus(CLAIM_MS));
        self.quiet()?;
        self.works_on()?;
        self.quiet()?;
        self.note_read();
        for account in ACCOUNTS {
            self.one_who_reads_slowly_is_given_what_waits(account)?;
        }
        self.quiet()?;
        self.check_outcomes()?;
        self.check_requests()?;
        self.check_notifications()?;
        self.check_rosters()?;
        self.check_shared()?;
        self.check_room()?;
        self.check_chats()
    }

    /// Everything under way ends, everyone who is connected becomes available, and reads.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        for round in 0..2 {
            for whose in 0..self.clients.len() {
                self.world.has_room(self.clients[whose].link, None);
                if round > 0 {
                    self.becomes_available(whose);
                }
            }
            self.goes_on_to_the_end()?;
        }
        Ok(())
    }

    /// Of several nodes a new one asks again after a while for what it was not told, as it is while the store refuses writes.
    fn homes_are_found(&mut self) -> Result<(), String> {
        let is_alone = usize::from(self.world.shards_per_node()) == self.world.shard_count();
        for _ in 0..4 {
            self.take_outcomes()?;
            if is_alone || self.outcomes.is_empty() {
                break;
            }
            self.passes(5000);
            self.settle()?;
        }
        Ok(())
    }

    fn goes_on_to_the_end(&mut self) -> Result<(), String> {
        loop {
            let goes_on = self.world.step(0);
            self.look()?;
            if !goes_on && self.world.choices().is_empty() {
                return Ok(());
            }
        }
    }

    /// What the store refused is asked for again after a while, and what has arrived is found out.
    fn quiet(&mut self) -> Result<(), String> {
        for _ in 0..14 {
            self.passes(5000);
            self.settle()?;
        }
        Ok(())
    }

    /// Every command was answered.
    fn check_outcomes(&mut self) -> Result<(), String> {
        self.take_outcomes()?;
        let unanswered = self.outcomes.len();
        holds(unanswered == 0, || format!("{unanswered} commands were not answered"))
    }

    /// Every request of a client that is there was answered.
    fn check_requests(&self) -> Result<(), String> {
        let there = self.clients.iter().filter(|client| self.is_open(client)).filter_map(Connected::xmpp);
        let mut waiting = there.filter(|client| !client.is_leaving && !client.requests.is_empty());
        let first = waiting.next();
        holds(first.is_none(), || format!("not answered: {:?}", first.map(|client| &client.requests)))
    }

    /// When nobody sends anything any more, a client that reads slowly is given all that waits for its account, and is not cut off.
    fn one_who_reads_slowly_is_given_what_waits(&mut self, account: &str) -> Result<(), String> {
        for whose in 0..self.clients.len() {
            if self.clients[whose].is_of(account) {
                self.closes(whose);
            }
        }
        self.goes_on_to_the_end()?;
        let waiting = [self.waiting_notifications(account), self.waiting_chats(account)].concat();
        self.connect(account);
        let whose = self.clients.len() - 1;
        self.goes_on_to_the_end()?;
        let link = self.clients[whose].link;
        self.world.has_room(link, Some(0));
        self.becomes_available(whose);
        for _ in 0..1000 {
            self.goes_on_to_the_end()?;
            if self.world.connection(link).queued() == 0 {
                break;
            }
            let room = 1 + self.dice.below(4000);
            self.world.has_room(link, Some(room));
        }
        self.world.has_room(link, None);
        self.goes_on_to_the_end()?;
        let client = &self.clients[whose];
        holds(self.is_available(client), || {
            format!("{account}, who reads slowly, was cut off: {:?}", client.xmpp())
        })?;
        let missing = waiting.iter().find(|id| !client.had_notification(id) && !client.had_chat(id));
        holds(missing.is_none(), || format!("{account}, who reads slowly, was not given {missing:?}"))
    }
}
