//! What comes by the inbox, and how the loop ends.

use super::{EventLoop, Phase};
use crate::channels::inbox::{Arrival, Control, InboxItem, LogNews, Moving, TopSink, turn_away};
use crate::channels::taps::TapSink;
use crate::conn::Stage;
use crate::machine::Machine;
use carillon_core::Input;
use carillon_core::message::ShardMessage;
use carillon_core::tap::Order;

impl<M: Machine> EventLoop<M> {
    /// Handles a bounded number of items. The effects of several messages are carried out together, so that what they
    /// send to one connection shares a record.
    pub(super) fn handle_inbox(&mut self) {
        if self.items.is_empty() {
            self.inbox.take(&mut self.items);
        }
        self.unpublished |= !self.items.is_empty();
        for _ in 0..ITEMS_PER_TURN {
            let Some(item) = self.items.pop_front() else { break };
            let input = match item {
                InboxItem::ShardMessage(message) => {
                    if let ShardMessage::Settled(settlement) = &message {
                        self.io.cell.unsettled.settled(settlement);
                    }
                    Input::Message(message)
                }
                InboxItem::Answer { ticket, answer } => Input::Answer { ticket, answer },
                InboxItem::Derived { ticket, derived } => Input::Derived { ticket, derived },
                InboxItem::Arrival(arrival) => {
                    self.adopt(*arrival);
                    continue;
                }
                InboxItem::Quic(item) => {
                    self.quic_item(*item);
                    continue;
                }
                InboxItem::Control(control) => {
                    self.apply(control);
                    continue;
                }
                InboxItem::Log(news) => {
                    self.log_news(news);
                    continue;
                }
                far => {
                    self.far(far);
                    continue;
                }
            };
            self.figures.flight.input(self.now.mono, &input);
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

    /// A connection moves to this shard.
    fn adopt(&mut self, arrival: Arrival) {
        let Arrival { mut conn, moving } = arrival;
        // Whatever it waited for at the other shard, it does not wait for it here.
        conn.flow = crate::conn::ReadFlow::Open;
        match self.io.attach(conn) {
            Ok(id) => {
                self.handle(match moving {
                    Moving::Client(moving) => Input::Arrived { conn: id, moving },
                    Moving::Player(joining) => Input::ArrivedPlayer { conn: id, joining },
                });
                self.io.release_held(id);
                self.run_effects();
                // No edge announces the decrypted bytes that came along.
                self.io.schedule(id);
            }
            Err(error) => tracing::error!(%error, "cannot watch a socket that moved here"),
        }
    }

    fn apply(&mut self, control: Control) {
        self.figures.flight.control(self.now.mono);
        match control {
            Control::Drain => self.drain(),
            Control::StopListening => self.stop_listening(),
            Control::DrainSlice(slice) => self.handle(Input::DrainSlice(slice)),
            Control::StopDraining => self.handle(Input::StopDraining),
            // Who asked may have given up.
            Control::Awaited(count) => drop(count.send(self.awaited())),
            Control::WriteParked(sink) => self.write_parked(&sink),
            Control::Restore(groups) => self.restore(&groups),
            Control::Accept(accepts) => self.accepts = accepts,
            Control::Unbound(count) => drop(count.send(self.machine.unbound())),
            Control::Freeze(frozen) => self.frozen = frozen,
            Control::PrepareHandOver => {
                self.machine.prepare_hand_over(self.now, &mut self.effects);
                self.run_effects();
            }
            Control::HandOver(sink) => self.hand_over(&sink),
            Control::TakeBack(parts) => self.take_back(parts),
            Control::EndEvents(done) => {
                self.end_events();
                drop(done);
            }
            Control::Stop => self.phase = Phase::Stopping,
            Control::Tls(tls) => self.io.set_tls(tls),
            Control::OutQueues(bounds) => {
                self.io.out_queues = bounds.of_shard(self.io.outboxes.inboxes.len());
            }
            Control::Settings(settings) => {
                self.io.settings = settings.clone();
                self.machine.reload(settings);
            }
            Control::Modules(modules, done) => {
                self.machine.set_modules(modules);
                self.unpublished = true;
                drop(done);
            }
            Control::Directory(directory) => self.handle(Input::Directory(directory)),
            Control::Domains(domains, done) => {
                self.handle(Input::Domains(domains));
                drop(done);
            }
            Control::Watch(watcher) => {
                self.io.watchers.add(watcher);
                // It watches what comes behind it among the same items.
                self.effects.watched = self.io.watchers.states();
                self.effects.events_watched = self.io.watchers.follow_events();
            }
            Control::Kinds(kinds) => {
                if self.producer.is_some() {
                    self.effects.journal.keep(kinds);
                }
            }
            Control::FollowHops(sink) => self.io.hops.set(sink),
            Control::Tap(tap) => self.tap(*tap),
            Control::Untap(tap) => self.untap(tap),
            Control::Top(take, done) => {
                self.top(&take);
                drop(done);
            }
            Control::Pulse(countdown) => countdown.count_down(),
            Control::Publish(done) => {
                self.figures.publish_blocking(&self.io.counters, self.machine.counters());
                drop(done);
            }
        }
    }

    /// Gives what was noted of accounts that are followed to those who read it.
    #[cold]
    pub(super) fn give_tape(&mut self) {
        for tap in self.io.tap_sinks.give(&mut self.effects.tape) {
            self.io.tap_sinks.remove(tap);
            self.machine.untap(tap);
        }
    }

    fn tap(&mut self, (order, sink): (Order, TapSink)) {
        self.io.tap_sinks.add(order.id, sink);
        self.machine.tap(order);
    }

    fn untap(&mut self, tap: u64) {
        self.give_tape();
        self.io.tap_sinks.remove(tap);
        self.machine.untap(tap);
    }

    /// Says which accounts cost most.
    fn top(&mut self, take: &TopSink) {
        let queues = self.io.queues();
        take(self.machine.top(self.now.mono, &queues));
    }

    /// Accepts no more connections, and has the core close every stream.
    fn drain(&mut self) {
        self.stop_listening();
        self.handle(Input::Drain);
        if let Some(quic) = self.io.quic.as_deref_mut() {
            quic.end();
        }
    }

    /// Accepts no more connections. Those that the core does not know yet are dropped.
    fn stop_listening(&mut self) {
        self.listeners.clear();
        if let Some(quic) = self.io.quic.as_deref_mut() {
            quic.refuse();
        }
        for id in self.io.conns.ids() {
            if self.io.conns.get_mut(id).is_some_and(|conn| matches!(conn.stage, Stage::New(_))) {
                self.io.drop_conn(id);
            }
        }
    }

    /// Ends the loop. Whoever waits for an answer gets one.
    pub(super) fn stop(mut self) {
        self.listeners.clear();
        self.log_news(LogNews::Away);
        self.io.flush_deferred();
        self.io.outboxes.send();
        let left = std::mem::take(&mut self.items);
        turn_away(left.into_iter().chain(self.inbox.close()), &self.io.replies);
        for id in self.io.conns.ids() {
            self.io.remove(id);
        }
        self.end_events();
        self.publish();
    }

    /// Ends the event log of this shard.
    fn end_events(&mut self) {
        if let Some(producer) = self.producer.take() {
            producer.end(&mut self.effects.journal, self.clock.now().unix);
        }
    }
}

/// Items that are handled per turn.
const ITEMS_PER_TURN: usize = 512;
/// Effects are carried out at the latest when they send this many bytes.
pub(super) const EFFECTS_BYTES: usize = 128 * 1024;
