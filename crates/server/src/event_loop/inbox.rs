//! What comes by the inbox, and the end.

use super::{EventLoop, Phase};
use crate::conn::Stage;
use crate::inbox::{Arrival, Control, InboxItem, turn_away};
use crate::machine::Machine;
use carillon_core::Input;
use carillon_core::message::ShardMessage;

impl<M: Machine> EventLoop<M> {
    /// Takes a bounded part of the mail. The effects of several letters are carried out together, so that what they
    /// send to one connection shares a record.
    pub(super) fn handle_inbox(&mut self) {
        if self.items.is_empty() {
            self.inbox.take(&mut self.items);
        }
        self.unpublished |= !self.items.is_empty();
        for _ in 0..ITEMS_PER_TURN {
            let Some(item) = self.items.pop_front() else { break };
            let input = match item {
                InboxItem::ShardMessage(letter) => Input::Message(letter),
                InboxItem::Answer { ticket, answer } => Input::Answer { ticket, answer },
                InboxItem::Derived { ticket, derived } => Input::Derived { ticket, derived },
                InboxItem::Arrival(arrival) => {
                    self.adopt(*arrival);
                    continue;
                }
                InboxItem::Control(control) => {
                    self.apply(control);
                    continue;
                }
            };
            self.machine.handle(self.now, input, &mut self.effects);
            if self.effects.bytes.len() > EFFECTS_BYTES {
                self.run_effects();
            }
            if self.is_late() {
                break;
            }
        }
        self.run_effects();
    }

    /// A connection moves in.
    fn adopt(&mut self, arrival: Arrival) {
        let Arrival { mut conn, moving } = arrival;
        // Whatever it waited for elsewhere, here it does not.
        conn.flow = crate::conn::ReadFlow::Open;
        match self.io.attach(conn) {
            Ok(id) => {
                self.handle(Input::Arrived { conn: id, moving });
                self.io.release_held(id);
                self.run_effects();
                // Decrypted bytes that came along have no edge.
                self.io.schedule(id);
            }
            Err(error) => tracing::error!(%error, "cannot watch a socket that moved here"),
        }
    }

    fn apply(&mut self, control: Control) {
        match control {
            Control::Drain => self.drain(),
            Control::Stop => self.phase = Phase::Stopping,
            Control::Tls(tls) => self.io.tls = tls,
            Control::OutQueue(bytes) => self.io.out_queue_bytes = bytes,
            Control::Settings(settings) => {
                self.io.settings = settings.clone();
                self.machine.reload(settings);
            }
            Control::Domains(domains, done) => {
                self.handle(Input::Message(ShardMessage::Domains(domains)));
                drop(done);
            }
            Control::Watch(watcher) => {
                self.io.watchers.add(watcher);
                // What comes behind it in the same mail is for it already.
                self.effects.watched = self.io.watchers.states();
            }
            Control::Kinds(kinds) => {
                if self.producer.is_some() {
                    self.effects.journal.keep(kinds);
                }
            }
            Control::Pulse(countdown) => countdown.count_down(),
            Control::Publish(done) => {
                self.figures.publish_blocking(&self.io.counters, self.machine.counters());
                drop(done);
            }
        }
    }

    /// Takes no new connections, and has everyone told. Who is not known to the core yet is not told.
    fn drain(&mut self) {
        self.listeners.clear();
        for id in self.io.conns.ids() {
            if self.io.conns.get_mut(id).is_some_and(|conn| matches!(conn.stage, Stage::New(_))) {
                self.io.drop_conn(id);
            }
        }
        self.handle(Input::Drain);
    }

    /// Ends: nobody waits for an answer that will not come.
    pub(super) fn stop(mut self) {
        self.listeners.clear();
        self.io.flush_deferred();
        self.io.outboxes.send();
        let left = std::mem::take(&mut self.items);
        turn_away(left.into_iter().chain(self.inbox.close()));
        for id in self.io.conns.ids() {
            self.io.conns.remove(id);
        }
        if let Some(producer) = self.producer.take() {
            producer.end(&mut self.effects.journal, self.clock.now().unix);
        }
        self.publish();
    }
}

/// Letters, answers and arrivals taken in one turn.
const ITEMS_PER_TURN: usize = 512;
/// Effects are carried out at the latest when they send so much.
pub(super) const EFFECTS_BYTES: usize = 128 * 1024;
