//! A server that hands its sessions to the process of another binary, and ends; or goes on, if that one fails.

use super::Server;
use crate::channels::inbox::Control;
use crate::channels::join::AllDone;
use crate::handover::{GivenKind, HandedConn, HandedPart, ListenerKind, Relays, ShardHandover};
use crate::node::parked;
use carillon_core::model::ShardId;
use carillon_core::ports::Bus;
use socket2::Socket;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::PoisonError;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Sessions that were handed over: whoever has this may still take them back.
pub struct HandedOver {
    given: Vec<ShardHandover>,
}

/// Why a server cannot hand its sessions over now. It goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FreezeError {
    /// The store does not answer.
    #[error("what is under way did not end within {} ms: the store or a fan-out takes too long", .0.as_millis())]
    UnderWay(Duration),
}

impl HandedOver {
    /// How many sessions there are.
    pub fn sessions(&self) -> u64 {
        self.groups().map(|part| u64::from(part.sessions)).sum()
    }

    /// How many of them have a connection.
    pub fn connections(&self) -> usize {
        let of_sessions = self.groups().flat_map(|part| &part.conns).flatten().filter_map(HandedConn::here);
        let relays = self.given.iter().map(|given| match given {
            ShardHandover::Far(far) => far.relays.len(),
            ShardHandover::Group(_) => 0,
        });
        of_sessions.count() + relays.sum::<usize>()
    }

    fn groups(&self) -> impl Iterator<Item = &HandedPart> {
        self.given.iter().filter_map(|given| match given {
            ShardHandover::Group(part) => Some(part),
            ShardHandover::Far(_) => None,
        })
    }
}

impl Server {
    /// The listening sockets.
    pub fn listening(&self) -> impl Iterator<Item = (ListenerKind, BorrowedFd<'_>)> {
        self.listening.iter().map(|(kind, socket)| (*kind, Socket::as_fd(socket)))
    }

    /// The keys of the TLS session tickets, for [`tls::Settings::with_ticket_keys`] in the successor. Tickets that were given out then
    /// open there.
    ///
    /// [`tls::Settings::with_ticket_keys`]: crate::tls::Settings::with_ticket_keys
    pub fn ticket_keys(&self) -> Zeroizing<Vec<u8>> {
        self.tls.lock().unwrap_or_else(PoisonError::into_inner).ticket_keys()
    }

    /// Leaves connections that come from now on in the kernel's queues, or accepts them again.
    pub fn set_accepting(&self, accepts: bool) {
        self.node.control(|| Control::Accept(accepts));
    }

    /// Waits until no connection is without a session, `timeout` at most. How many are left.
    pub fn wait_for_logins(&self, timeout: Duration) -> usize {
        let until = Instant::now() + timeout;
        loop {
            let unbound = self.node.sum(Control::Unbound, ANSWER);
            if unbound == 0 || Instant::now() >= until {
                return unbound;
            }
            std::thread::sleep(MOMENT);
        }
    }

    /// Reads no connection and begins nothing from now on, hears nothing of other nodes, and waits until nothing is under way.
    ///
    /// # Errors
    /// If that takes longer than `timeout`. Then the server goes on.
    pub fn freeze(&self, timeout: Duration) -> Result<(), FreezeError> {
        let until = Instant::now() + timeout;
        let left = || until.saturating_duration_since(Instant::now());
        let mut rests = self.threads.pause_jobs(timeout);
        if rests {
            self.node.refuse_commands(true);
            self.node.control(|| Control::Freeze(true));
            rests = match self.node.bus_of_cell() {
                Some(bus) => self.rest_among_others(&*bus, until),
                None => parked::settle(&self.node, left()),
            };
        }
        if rests {
            self.node.control(|| Control::PrepareHandOver);
            rests = parked::settle(&self.node, left());
        }
        if !rests {
            self.thaw();
            return Err(FreezeError::UnderWay(timeout));
        }
        Ok(())
    }

    /// The same in a cell: what is under way may need answers of other nodes, and these give it more to do as long as they are heard.
    fn rest_among_others(&self, bus: &dyn Bus, until: Instant) -> bool {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            // Under load it comes to no rest while others are heard.
            parked::settle(&self.node, left.min(HEARING));
            bus.rest(true);
            let left = until.saturating_duration_since(Instant::now());
            if parked::settle(&self.node, left.min(RESTING)) {
                return true;
            }
            bus.rest(false);
        }
    }

    /// Goes on after [`Server::freeze`].
    pub fn thaw(&self) {
        if let Some(bus) = self.node.bus_of_cell() {
            bus.rest(false);
        }
        self.node.refuse_commands(false);
        self.node.control(|| Control::Freeze(false));
        self.threads.resume_jobs();
    }

    /// Takes all sessions out of the shards and gives them to `send`, group by group, with the descriptors of their connections; in a cell also
    /// what there is for other nodes. After
    /// an error of `send` the others are not sent, but taken out, too.
    pub fn hand_over(
        &self,
        mut send: impl FnMut(GivenKind, &[u8], &[BorrowedFd<'_>]) -> io::Result<()>,
    ) -> (HandedOver, io::Result<()>) {
        let (sender, groups) = sync_channel(WAITING_MAX);
        self.node.control(|| Control::HandOver(sender.clone()));
        drop(sender);
        let (mut all, mut sent) = (Vec::new(), Ok(()));
        // It ends when the last shard has dropped its sender.
        for given in groups {
            if sent.is_ok() {
                sent = match &given {
                    ShardHandover::Group(part) => send(GivenKind::Group, &part.write(), &part.descriptors()),
                    ShardHandover::Far(far) => send(GivenKind::Far, &far.write(), &far.descriptors()),
                };
            }
            all.push(given);
        }
        (HandedOver { given: all }, sent)
    }

    /// Takes the sessions back. They go on after [`Server::thaw`].
    pub fn take_back(&self, handed: HandedOver) {
        for (shard, given) in handed.by_shard() {
            self.node.control_of(shard, Control::TakeBack(given));
        }
    }

    /// Ends what the successor needs for itself: the jobs, the event log, the log of sessions, the store, the bus. There is no way back from here.
    /// What the bus of the successor begins with, in a cell.
    pub fn close_for_successor(&mut self) -> Vec<u8> {
        self.threads.stop_jobs();
        let (sender, ended) = sync_channel::<()>(1);
        let done = AllDone::new(Box::new(move |()| drop(sender)));
        self.node.control(|| Control::EndEvents(done.clone()));
        drop(done);
        // It ends by an error, when the last shard has dropped its token.
        let _ = ended.recv_timeout(ANSWER);
        drop(self.events.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.log.iter().for_each(|log| log.leave());
        self.store.close();
        self.node.bus_of_cell().map(|bus| bus.hand_over()).unwrap_or_default()
    }

    /// Ends. The sessions are the successor's: their connections are closed here, and no peer notices. Others are told to end, and have
    /// `timeout` for it. What is left is to be relayed.
    pub fn leave(mut self, handed: HandedOver, timeout: Duration) -> Relays {
        let relays = Relays::new(handed.given.into_iter().flat_map(ShardHandover::into_sockets));
        self.listening.clear();
        self.node.control(|| Control::Freeze(false));
        self.node.control(|| Control::Drain);
        self.admission.wait_until_empty(timeout);
        self.threads.stop(&self.node);
        relays
    }
}

impl HandedOver {
    fn by_shard(self) -> impl Iterator<Item = (ShardId, Vec<ShardHandover>)> {
        let mut shards = BTreeMap::<u16, Vec<ShardHandover>>::new();
        for given in self.given {
            shards.entry(given.shard()).or_default().push(given);
        }
        shards.into_iter().map(|(shard, given)| (ShardId(shard), given))
    }
}

/// How long other nodes are heard for answers to what is under way, before it is tried to rest; and how long that may take.
const HEARING: Duration = Duration::from_millis(100);
const RESTING: Duration = Duration::from_millis(500);
/// Groups that wait to be sent at most.
const WAITING_MAX: usize = 8;
/// How long a shard may take for an answer.
const ANSWER: Duration = Duration::from_secs(5);
/// The time between two looks.
const MOMENT: Duration = Duration::from_millis(5);
