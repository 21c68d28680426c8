//! A server that hands its sessions to the process of another binary, and ends; or goes on, if that one fails.

use super::Server;
use crate::handover::{HandedPart, ListenerKind, Relays};
use crate::inbox::Control;
use crate::join::AllDone;
use crate::parked;
use socket2::Socket;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::PoisonError;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Sessions that were handed over: whoever has this may still take them back.
pub struct HandedOver {
    parts: Vec<HandedPart>,
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
        self.parts.iter().map(|part| u64::from(part.sessions)).sum()
    }

    /// How many of them have a connection.
    pub fn connections(&self) -> usize {
        self.parts.iter().flat_map(|part| &part.conns).flatten().count()
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

    /// Reads no connection and begins nothing from now on, and waits until nothing is under way.
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
            rests = parked::settle(&self.node, left());
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

    /// Goes on after [`Server::freeze`].
    pub fn thaw(&self) {
        self.node.refuse_commands(false);
        self.node.control(|| Control::Freeze(false));
        self.threads.resume_jobs();
    }

    /// Takes all sessions out of the shards and gives them to `send`, group by group, with the descriptors of their connections. After
    /// an error of `send` the others are not sent, but taken out, too.
    pub fn hand_over(
        &self,
        mut send: impl FnMut(&[u8], &[BorrowedFd<'_>]) -> io::Result<()>,
    ) -> (HandedOver, io::Result<()>) {
        let (sender, groups) = sync_channel(WAITING_MAX);
        self.node.control(|| Control::HandOver(sender.clone()));
        drop(sender);
        let (mut parts, mut sent) = (Vec::new(), Ok(()));
        // It ends when the last shard has dropped its sender.
        for part in groups {
            if sent.is_ok() {
                sent = send(&part.write(), &part.descriptors());
            }
            parts.push(part);
        }
        (HandedOver { parts }, sent)
    }

    /// Takes the sessions back. They go on after [`Server::thaw`].
    pub fn take_back(&self, handed: HandedOver) {
        for (shard, parts) in handed.by_shard() {
            self.node.control_of(shard, Control::TakeBack(parts));
        }
    }

    /// Ends what the successor needs for itself: the jobs, the event log, the store. There is no way back from here.
    pub fn close_for_successor(&mut self) {
        self.threads.stop_jobs();
        let (sender, ended) = sync_channel::<()>(1);
        let done = AllDone::new(Box::new(move |()| drop(sender)));
        self.node.control(|| Control::EndEvents(done.clone()));
        drop(done);
        // It ends by an error, when the last shard has dropped its token.
        let _ = ended.recv_timeout(ANSWER);
        drop(self.events.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.store.close();
    }

    /// Ends. The sessions are the successor's: their connections are closed here, and no peer notices. Others are told to end, and have
    /// `timeout` for it. What is left is to be relayed.
    pub fn leave(mut self, handed: HandedOver, timeout: Duration) -> Relays {
        let conns = handed.parts.into_iter().flat_map(|part| part.conns).flatten();
        let relays = Relays::new(conns);
        self.listening.clear();
        self.node.control(|| Control::Freeze(false));
        self.node.control(|| Control::Drain);
        self.admission.wait_until_empty(timeout);
        self.threads.stop(&self.node);
        relays
    }
}

impl HandedOver {
    fn by_shard(self) -> impl Iterator<Item = (carillon_core::model::ShardId, Vec<HandedPart>)> {
        let mut shards = std::collections::BTreeMap::<u16, Vec<HandedPart>>::new();
        for part in self.parts {
            shards.entry(part.shard).or_default().push(part);
        }
        shards.into_iter().map(|(shard, parts)| (carillon_core::model::ShardId(shard), parts))
    }
}

/// Groups that wait to be sent at most.
const WAITING_MAX: usize = 8;
/// How long a shard may take for an answer.
const ANSWER: Duration = Duration::from_secs(5);
/// The time between two looks.
const MOMENT: Duration = Duration::from_millis(5);
