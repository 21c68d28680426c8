//! What comes by the inbox, and the end.

use super::{Phase, Shard};
use crate::conn::Stage;
use crate::inbox::{Arrival, Mail, Order, turn_away};
use crate::machine::Machine;
use carillon_core::Input;
use carillon_core::node::Letter;

impl<M: Machine> Shard<M> {
    /// Takes a bounded part of the mail. The effects of several letters are carried out together, so that what they
    /// send to one connection shares a record.
    pub(super) fn take_mail(&mut self) {
        if self.mail.is_empty() {
            self.inbox.take(&mut self.mail);
        }
        self.unpublished |= !self.mail.is_empty();
        for _ in 0..MAIL_A_TURN {
            let Some(mail) = self.mail.pop_front() else { break };
            let input = match mail {
                Mail::Letter(letter) => Input::Letter(letter),
                Mail::Answer { ticket, answer } => Input::Answer { ticket, answer },
                Mail::Derived { ticket, derived } => Input::Derived { ticket, derived },
                Mail::Arrival(arrival) => {
                    self.arrive(*arrival);
                    continue;
                }
                Mail::Order(order) => {
                    self.obey(order);
                    continue;
                }
            };
            self.machine.handle(self.now, input, &mut self.effects);
            if self.effects.bytes.len() > EFFECTS_BYTES {
                self.settle();
            }
            if self.is_late() {
                break;
            }
        }
        self.settle();
    }

    /// A connection moves in.
    fn arrive(&mut self, arrival: Arrival) {
        let Arrival { mut conn, moving } = arrival;
        // Whatever it waited for elsewhere, here it does not.
        conn.flow = crate::conn::Flow::Open;
        match self.world.attach(conn) {
            Ok(id) => {
                self.handle(Input::Arrived { conn: id, moving });
                self.world.let_go(id);
                self.settle();
                // Decrypted bytes that came along have no edge.
                self.world.schedule(id);
            }
            Err(error) => tracing::error!(%error, "cannot watch a socket that moved here"),
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Drain => self.drain(),
            Order::Stop => self.phase = Phase::Stopping,
            Order::Tls(offers) => self.world.offers = offers,
            Order::OutQueue(bytes) => self.world.out_queue_bytes = bytes,
            Order::Settings(settings) => {
                self.world.settings = settings.clone();
                self.machine.reload(settings);
            }
            Order::Domains(domains, done) => {
                self.handle(Input::Letter(Letter::Domains(domains)));
                drop(done);
            }
            Order::Watch(watcher) => {
                self.world.watchers.add(watcher);
                // What comes behind it in the same mail is for it already.
                self.effects.watched = self.world.watchers.states();
            }
            Order::Kinds(kinds) => {
                if self.lane.is_some() {
                    self.effects.journal.keep(kinds);
                }
            }
            Order::Beat(beats) => beats.beat(),
            Order::Publish(done) => {
                self.board.publish_asked(&self.world.tally, self.machine.counters());
                drop(done);
            }
        }
    }

    /// Takes no new connections, and has everyone told. Who is not known to the core yet is not told.
    fn drain(&mut self) {
        self.listeners.clear();
        for id in self.world.conns.ids() {
            if self.world.conns.get_mut(id).is_some_and(|conn| matches!(conn.stage, Stage::New(_))) {
                self.world.lose(id);
            }
        }
        self.handle(Input::Drain);
    }

    /// Ends: nobody waits for an answer that will not come.
    pub(super) fn stop(mut self) {
        self.listeners.clear();
        self.world.run_errands();
        self.world.post.send();
        let left = std::mem::take(&mut self.mail);
        turn_away(left.into_iter().chain(self.inbox.close()));
        for id in self.world.conns.ids() {
            self.world.conns.remove(id);
        }
        if let Some(lane) = self.lane.take() {
            lane.end(&mut self.effects.journal, self.clock.now().unix);
        }
        self.publish();
    }
}

/// Letters, answers and arrivals taken in one turn.
const MAIL_A_TURN: usize = 512;
/// Effects are carried out at the latest when they send so much.
pub(super) const EFFECTS_BYTES: usize = 128 * 1024;
