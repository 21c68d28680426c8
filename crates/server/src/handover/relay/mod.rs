//! Connections under TLS 1.2, whose record layer cannot leave the process. The session is the successor's; this process opens what
//! comes from the client and seals what comes from the successor, until one of them ends or the time is up. A client whose time is
//! up finds its connection closed and resumes its session at the successor.

#[cfg(test)]
mod tests;

use super::HandedSocket;
use crate::conn::Relayed;
use crate::tls::Circumstances;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use socket2::Socket;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Connections that this process relays.
pub struct Relays(Vec<Relay>);

/// A connection between a client, under TLS, and the successor, in the clear.
struct Relay {
    client: Relayed,
    inner: Socket,
    /// Opened, and not yet taken by the successor.
    to_inner: Vec<u8>,
    /// The client sends no more, or the successor takes no more: when all is passed on, the successor is told.
    client_ended: bool,
    /// The successor sends no more, or the client takes no more: when all is passed on, the client is told.
    inner_ended: bool,
}

/// What becomes of a relay after its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// An edge will tell when there is more to do.
    Waits,
    /// There may be more to do, and no edge will tell.
    More,
    /// Both sides have ended, and all is passed on.
    Over,
}

impl Relays {
    /// Those of the connections that are relayed; the others are closed here.
    pub(crate) fn new(conns: impl Iterator<Item = HandedSocket>) -> Relays {
        let relay = |HandedSocket { conn, relay }: HandedSocket| {
            let (inner, _theirs) = relay?;
            Some(Relay::new(conn.into_relayed()?, inner))
        };
        Relays(conns.filter_map(relay).collect())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Relays until all have ended, `time` at most; then the rest is closed.
    ///
    /// # Errors
    /// If the system provides no poll.
    pub fn run(self, time: Duration) -> io::Result<()> {
        let until = Instant::now() + time;
        let mut poll = Poll::new()?;
        let mut events = Events::with_capacity(EVENTS);
        let mut relays: Vec<Option<Relay>> = Vec::with_capacity(self.0.len());
        for (n, relay) in self.0.into_iter().enumerate() {
            let both = Interest::READABLE | Interest::WRITABLE;
            for fd in [relay.client.socket.as_raw_fd(), relay.inner.as_raw_fd()] {
                poll.registry().register(&mut SourceFd(&fd), Token(n), both)?;
            }
            relays.push(Some(relay));
        }
        let (mut left, mut buffer) = (relays.len(), vec![0; BUFFER_BYTES]);
        let mut turns = Turns::new(left);
        while left > 0 {
            let wait = until.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                tracing::info!(left, "connections under TLS 1.2 are closed: their time is up");
                relays.into_iter().flatten().for_each(Relay::close);
                break;
            }
            match poll.poll(&mut events, Some(if turns.is_empty() { wait } else { Duration::ZERO })) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            events.iter().for_each(|event| turns.add(event.token().0));
            for place in turns.take() {
                let fate =
                    relays.get_mut(place).and_then(Option::as_mut).map(|relay| relay.pass(&mut buffer));
                match fate {
                    Some(Fate::More) => turns.add(place),
                    Some(Fate::Over) => {
                        relays[place] = None;
                        left -= 1;
                    }
                    Some(Fate::Waits) | None => {}
                }
            }
        }
        Ok(())
    }
}

/// Relays whose turn it is, each once.
struct Turns {
    places: Vec<usize>,
    is_in: Vec<bool>,
}

impl Turns {
    fn new(count: usize) -> Turns {
        Turns { places: Vec::new(), is_in: vec![false; count] }
    }

    fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn add(&mut self, place: usize) {
        if let Some(is_in) = self.is_in.get_mut(place).filter(|is_in| !**is_in) {
            *is_in = true;
            self.places.push(place);
        }
    }

    /// Those whose turn it is, in the order in which they were added.
    fn take(&mut self) -> Vec<usize> {
        let places = std::mem::take(&mut self.places);
        places.iter().for_each(|place| self.is_in[*place] = false);
        places
    }
}

impl Relay {
    fn new(client: Relayed, inner: Socket) -> Relay {
        let mut relay =
            Relay { client, inner, to_inner: Vec::new(), client_ended: false, inner_ended: false };
        // Whole records may have waited while the connection was not read: no edge would tell of them.
        relay.open();
        relay
    }

    /// Passes on what there is, in both directions, until the sockets have no more or take no more, or the turn is over: nobody who
    /// sends without end keeps the others waiting. One direction goes on when the other cannot, so that what was said last
    /// arrives.
    fn pass(&mut self, buffer: &mut [u8]) -> Fate {
        let inwards = self.inwards(buffer).unwrap_or_else(|_| {
            self.to_inner.clear();
            self.client_ended = true;
            // Now: no edge may come for it. A second time does no harm.
            let _ = self.inner.shutdown(Shutdown::Write);
            Fate::Waits
        });
        let outwards = self.outwards(buffer).unwrap_or_else(|_| {
            self.client.sealed.clear();
            self.inner_ended = true;
            Fate::Waits
        });
        for queue in [&mut self.to_inner, &mut self.client.record, &mut self.client.sealed] {
            if queue.is_empty() {
                queue.shrink_to(IDLE_BYTES);
            }
        }
        let all_passed_on = self.to_inner.is_empty() && self.client.sealed.is_empty();
        if self.client_ended && self.inner_ended && all_passed_on {
            Fate::Over
        } else if inwards == Fate::More || outwards == Fate::More {
            Fate::More
        } else {
            Fate::Waits
        }
    }

    fn inwards(&mut self, buffer: &mut [u8]) -> io::Result<Fate> {
        let mut left = TURN_BYTES;
        loop {
            if !self.to_inner.is_empty() {
                let taken = match (&self.inner).write(&self.to_inner) {
                    Ok(taken) => taken,
                    Err(error) => return later(error),
                };
                self.to_inner.drain(..taken);
                continue;
            }
            if self.client_ended {
                // It may be told twice.
                let _ = self.inner.shutdown(Shutdown::Write);
                return Ok(Fate::Waits);
            }
            if left == 0 {
                return Ok(Fate::More);
            }
            let read = match (&self.client.socket).read(buffer) {
                Ok(read) => read,
                Err(error) => return later(error),
            };
            left = left.saturating_sub(read);
            self.client_ended = read == 0;
            self.client.record.extend_from_slice(&buffer[..read]);
            self.open();
        }
    }

    /// Opens the records that are whole.
    fn open(&mut self) {
        let mut reply = Vec::new();
        let circumstances = Circumstances { minute: 0, has_queue: !self.client.sealed.is_empty() };
        let opened =
            self.client.link.open(&mut self.client.record, &mut self.to_inner, &mut reply, circumstances);
        self.client.sealed.extend_from_slice(&reply);
        match opened {
            Ok(opened) => {
                self.client.record.drain(..opened.consumed);
                self.client_ended |= opened.closed;
            }
            // What came before the fault is passed on. The alert goes out behind what waits, and nothing behind it (RFC 5246 §7.2.2).
            Err(_) => (self.client_ended, self.inner_ended) = (true, true),
        }
    }

    /// Tells the client that its time is up, as far as its socket takes it.
    fn close(mut self) {
        self.client.link.close_notify(&mut self.client.sealed);
        // Whoever does not read finds the connection closed without it.
        let _ = (&self.client.socket).write(&self.client.sealed);
    }

    fn outwards(&mut self, buffer: &mut [u8]) -> io::Result<Fate> {
        let mut left = TURN_BYTES;
        loop {
            if !self.client.sealed.is_empty() {
                let taken = match (&self.client.socket).write(&self.client.sealed) {
                    Ok(taken) => taken,
                    Err(error) => return later(error),
                };
                self.client.sealed.drain(..taken);
                continue;
            }
            if self.inner_ended {
                let _ = self.client.socket.shutdown(Shutdown::Write);
                return Ok(Fate::Waits);
            }
            if left == 0 {
                return Ok(Fate::More);
            }
            let read = match (&self.inner).read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Fate::Waits),
                // A successor that was killed resets it.
                read => read.unwrap_or(0),
            };
            if read == 0 {
                self.inner_ended = true;
                self.client.link.close_notify(&mut self.client.sealed);
                continue;
            }
            left = left.saturating_sub(read);
            let sealed = self.client.link.seal(&buffer[..read], &mut self.client.sealed);
            sealed.map_err(|fault| io::Error::other(fault.to_string()))?;
        }
    }
}

/// Whether an edge will tell when it is worth another try. Sockets that do not block are not interrupted.
fn later(error: io::Error) -> io::Result<Fate> {
    if error.kind() == ErrorKind::WouldBlock { Ok(Fate::Waits) } else { Err(error) }
}

const EVENTS: usize = 256;
const BUFFER_BYTES: usize = 64 * 1024;
/// What is read of a socket in one turn, about.
const TURN_BYTES: usize = 128 * 1024;
/// Room that each queue of a relay keeps while it is empty.
const IDLE_BYTES: usize = 1024;
