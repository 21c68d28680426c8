//! A player of a real-time match, without I/O: it speaks `carillon-match/1` ([`carillon_wire::frame::game`]).
//!
//! Bytes go in and come out; what happened is told by events. A player whose connection was lost goes on with the same value: it knows up
//! to which tick it has everything, and joins again with the same token.

#![deny(clippy::indexing_slicing, clippy::string_slice, clippy::unwrap_used)]

use std::collections::{BTreeMap, VecDeque};

use carillon_wire::frame::game::{
    ClientFrame, EndReason, ErrorCode, Header, Malformed, Mode, SERVER_BYTES_MAX, SeatState, ServerFrame,
    Welcome, cut, framed,
};

/// A player of a match.
#[derive(Debug, Default)]
pub struct Player {
    /// What the server has said of the match.
    welcome: Option<Welcome>,
    /// The beginning of a frame whose rest has not arrived.
    rest: Vec<u8>,
    /// The last tick of which this one and all before were seen.
    have: u32,
    /// Ticks that came before one that is missing: datagrams overtake each other, and the stream.
    early: BTreeMap<u32, Vec<u8>>,
    /// What it tells the server that it has.
    got: Header,
    /// For how many ticks ahead an input is sent beyond the next.
    further: u32,
    /// Inputs that the server has not acknowledged, the oldest first.
    unacknowledged: VecDeque<(u32, Vec<u8>)>,
    last_sent: u32,
    /// A hash of all ticks so far: two players of a match with the same ticks have the same.
    state: u32,
}

/// Something that happened in a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchEvent {
    /// The seat is taken, and ticks follow.
    Joined(Welcome),
    /// A tick was closed.
    Tick {
        /// Its number.
        tick: u32,
        /// Whether the input that this player sent for it is in it.
        has_own: bool,
        /// Whether it came in order.
        in_order: bool,
    },
    /// The state after a tick came, in place of the ticks up to it.
    Snapshot(u32),
    /// The server wants to have the state after a tick, or its hash.
    Wanted {
        /// The tick.
        tick: u32,
        /// Whether it wants the state itself.
        whole: bool,
    },
    /// A seat is taken or empty.
    Seat(u8, SeatState),
    /// The clock runs, or stands.
    Clock(bool),
    /// Players have different states after a tick.
    Desync {
        /// The tick.
        tick: u32,
        /// The seats that differ.
        minority: u64,
    },
    /// A ping was answered.
    Pong,
    /// The match is over.
    Ended(EndReason),
    /// The server ends the connection because of this.
    Refused(ErrorCode),
}

impl Player {
    /// Takes the seat of a token, or takes it again.
    pub fn join(&mut self, token: &str, out: &mut Vec<u8>) {
        self.rest = Vec::new();
        let have = self.have;
        framed(out, |out| ClientFrame::Join { have, token: token.as_bytes() }.write(out));
    }

    /// Sends inputs for so many ticks ahead, 1 for the next.
    pub fn set_ahead(&mut self, ahead: u32) {
        self.further = ahead.saturating_sub(1);
    }

    /// Sends an input for the next tick for which none was sent. Returns the tick.
    pub fn send(&mut self, input: &[u8], out: &mut Vec<u8>) -> u32 {
        let tick = (self.have + self.further).max(self.last_sent) + 1;
        self.last_sent = tick;
        self.unacknowledged.push_back((tick, input.to_vec()));
        let header = Header { tick, ..self.got };
        // Only what follows the last acknowledgement, without a gap: inputs of a frame are of consecutive ticks.
        let mut expected = tick;
        let newest_first = self.unacknowledged.iter().rev().map_while(|(of, input)| {
            let is_next = *of == expected;
            expected = expected.saturating_sub(1);
            is_next.then_some(input.as_slice())
        });
        let newest_first = newest_first.take(RESENT_MAX);
        framed(out, |out| ClientFrame::write_inputs(out, header, newest_first));
        tick
    }

    /// Tells the state after the last tick.
    pub fn tell_state(&self, out: &mut Vec<u8>) {
        let frame = ClientFrame::Hash { tick: self.have, hash: self.state };
        framed(out, |out| frame.write(out));
    }

    /// Says that the game is over, and what came of it.
    pub fn finish(&self, outcome: &[u8], out: &mut Vec<u8>) {
        framed(out, |out| ClientFrame::Outcome { tick: self.have, outcome }.write(out));
    }

    /// Processes bytes of the stream.
    ///
    /// # Errors
    /// The server sent something that is no frame of the protocol.
    pub fn receive(&mut self, bytes: &[u8], events: &mut Vec<MatchEvent>) -> Result<(), Malformed> {
        let mut rest = std::mem::take(&mut self.rest);
        let whole = if rest.is_empty() {
            bytes
        } else {
            rest.extend_from_slice(bytes);
            &rest
        };
        let mut left = whole;
        while let Some((frame, behind)) = cut(left, SERVER_BYTES_MAX)? {
            left = behind;
            self.frame(frame, events)?;
        }
        self.rest = left.to_vec();
        Ok(())
    }

    /// Processes a datagram: whole frames.
    ///
    /// # Errors
    /// The server sent something that is none.
    pub fn receive_datagram(&mut self, bytes: &[u8], events: &mut Vec<MatchEvent>) -> Result<(), Malformed> {
        let mut left = bytes;
        while !left.is_empty() {
            let (frame, behind) = cut(left, SERVER_BYTES_MAX)?.ok_or(Malformed::Short)?;
            left = behind;
            self.frame(frame, events)?;
        }
        Ok(())
    }

    /// The last tick up to which it has everything.
    pub fn have(&self) -> u32 {
        self.have
    }

    /// What the server has said of the match.
    pub fn welcome(&self) -> Option<&Welcome> {
        self.welcome.as_ref()
    }

    /// A tick that was seen is passed over, and one that is early waits for those before it.
    fn frame(&mut self, frame: &[u8], events: &mut Vec<MatchEvent>) -> Result<(), Malformed> {
        if let ServerFrame::Tick { header, .. } = ServerFrame::read(frame)? {
            if header.tick <= self.have {
                return Ok(());
            }
            self.got.acknowledge(header.tick);
            if header.tick > self.have + 1 {
                if header.tick - self.have <= EARLY_MAX {
                    self.early.insert(header.tick, frame.to_vec());
                }
                return Ok(());
            }
        }
        events.push(self.event(frame)?);
        while let Some(entry) = self.early.first_entry().filter(|entry| *entry.key() <= self.have + 1) {
            let (tick, frame) = entry.remove_entry();
            if tick == self.have + 1 {
                events.push(self.event(&frame)?);
            }
        }
        Ok(())
    }

    fn event(&mut self, frame: &[u8]) -> Result<MatchEvent, Malformed> {
        Ok(match ServerFrame::read(frame)? {
            ServerFrame::Welcome { welcome, .. } => {
                self.welcome = Some(welcome);
                MatchEvent::Joined(welcome)
            }
            ServerFrame::Tick { header, inputs } => {
                let in_order = header.tick == self.have + 1;
                self.have = self.have.max(header.tick);
                self.state = mixed(self.state, header.tick);
                inputs.each(|seat, input| {
                    self.state = mixed(self.state, seat.into());
                    input.iter().for_each(|byte| self.state = mixed(self.state, (*byte).into()));
                });
                let own = self.welcome.map_or(0, |welcome| 1 << welcome.seat);
                // One that came late may be in a later tick, in whose time it was not there.
                let is_relay = self.welcome.is_some_and(|welcome| welcome.mode == Mode::Relay);
                let has_own = inputs.given & own != 0 && (is_relay || header.acknowledges(header.tick));
                self.unacknowledged.retain(|(tick, _)| *tick > header.tick && !header.acknowledges(*tick));
                MatchEvent::Tick { tick: header.tick, has_own, in_order }
            }
            ServerFrame::Seat { seat, state, .. } => MatchEvent::Seat(seat, state),
            ServerFrame::Desync { tick, minority, .. } => MatchEvent::Desync { tick, minority },
            ServerFrame::Pong { .. } => MatchEvent::Pong,
            ServerFrame::Clock { runs, .. } => MatchEvent::Clock(runs),
            ServerFrame::Ended { reason, .. } => MatchEvent::Ended(reason),
            ServerFrame::Error { code, .. } => MatchEvent::Refused(code),
            ServerFrame::Update { header, update } => {
                let in_order = header.tick == self.have + 1;
                self.take_all(header, update);
                MatchEvent::Tick { tick: header.tick, has_own: header.acknowledges(header.tick), in_order }
            }
            ServerFrame::Wanted { tick, whole } => MatchEvent::Wanted { tick, whole },
            ServerFrame::Snapshot { header, snapshot } => {
                self.take_all(header, snapshot);
                MatchEvent::Snapshot(header.tick)
            }
        })
    }

    /// Takes what is about all of a tick.
    fn take_all(&mut self, header: Header, bytes: &[u8]) {
        self.have = self.have.max(header.tick);
        self.state =
            bytes.iter().fold(mixed(self.state, header.tick), |state, byte| mixed(state, (*byte).into()));
        self.unacknowledged.retain(|(tick, _)| *tick > header.tick && !header.acknowledges(*tick));
    }
}

/// FNV-1a of one more value.
fn mixed(state: u32, value: u32) -> u32 {
    (state ^ value).wrapping_mul(0x0100_0193).rotate_left(5)
}

/// Ticks that wait at most for one that is missing.
const EARLY_MAX: u32 = 1024;
/// How many inputs a frame repeats at most.
const RESENT_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_wire::frame::game::{CLIENT_BYTES_MAX, TickInputs};

    fn tick(number: u32, acknowledged: u32, given: u64) -> Vec<u8> {
        let mut inputs = Vec::new();
        let sent = [&b"x"[..]; 2];
        TickInputs::put(
            &mut inputs,
            given,
            !given & 0b11,
            sent.iter().copied().take(given.count_ones() as usize),
        );
        let mut out = Vec::new();
        let header = Header { tick: number, ack: acknowledged, missing: 0 };
        framed(&mut out, |out| ServerFrame::write_tick(out, header, &inputs));
        out
    }

    #[test]
    fn inputs_are_repeated_until_they_are_acknowledged() {
        let (mut player, mut events) = (Player::default(), Vec::new());
        let sent = |player: &mut Player, input: &[u8]| {
            let mut out = Vec::new();
            let tick = player.send(input, &mut out);
            let (frame, rest) = cut(&out, CLIENT_BYTES_MAX).unwrap().unwrap();
            assert!(rest.is_empty());
            let Ok(ClientFrame::Input { header, inputs }) = ClientFrame::read(frame) else { panic!() };
            assert_eq!(header.tick, tick);
            (tick, inputs.iter().map(<[u8]>::to_vec).collect::<Vec<_>>())
        };
        assert_eq!(sent(&mut player, b"a"), (1, vec![b"a".to_vec()]));
        assert_eq!(sent(&mut player, b"b"), (2, vec![b"b".to_vec(), b"a".to_vec()]));
        player.receive(&tick(1, 1, 0b11), &mut events).unwrap();
        assert_eq!(sent(&mut player, b"c"), (3, vec![b"c".to_vec(), b"b".to_vec()]));
        player.receive(&tick(2, 3, 0b11), &mut events).unwrap();
        player.receive(&tick(3, 3, 0b10), &mut events).unwrap();
        assert_eq!(player.have(), 3);
        assert_eq!(sent(&mut player, b"d"), (4, vec![b"d".to_vec()]));
    }

    #[test]
    fn ticks_of_datagrams_are_seen_once_and_in_order_however_they_come() {
        let all: Vec<_> = (1..=5).map(|number| tick(number, 0, 0b11)).collect();
        let (mut player, mut plain) = (Player::default(), Player::default());
        let (mut events, mut others) = (Vec::new(), Vec::new());
        plain.receive(&all.concat(), &mut others).unwrap();
        // The fourth overtakes, the third comes by the stream, and some come twice.
        player.receive_datagram(&all[0], &mut events).unwrap();
        player.receive_datagram(&[all[3].clone(), all[1].clone()].concat(), &mut events).unwrap();
        assert_eq!(events.len(), 2);
        let mut out = Vec::new();
        player.send(b"x", &mut out);
        let (frame, _) = cut(&out, CLIENT_BYTES_MAX).unwrap().unwrap();
        let Ok(ClientFrame::Input { header, .. }) = ClientFrame::read(frame) else { panic!() };
        assert_eq!((header.ack, header.missing & 0b111), (4, 0b001));
        player.receive(&all[2], &mut events).unwrap();
        player.receive_datagram(&[all[4].clone(), all[2].clone()].concat(), &mut events).unwrap();
        assert_eq!((&events, player.state, player.have()), (&others, plain.state, 5));
        assert_eq!(player.receive_datagram(&all[4][..5], &mut events), Err(Malformed::Short));
    }

    #[test]
    fn ticks_cut_anywhere_are_seen_once_and_in_order() {
        let stream = [tick(1, 0, 0b01), tick(2, 0, 0b10), tick(3, 0, 0b11)].concat();
        let mut states = Vec::new();
        for at in 0..stream.len() {
            let (mut player, mut events) = (Player::default(), Vec::new());
            player.receive(&stream[..at], &mut events).unwrap();
            player.receive(&stream[at..], &mut events).unwrap();
            assert_eq!(events.len(), 3);
            assert!(events.iter().all(|event| matches!(event, MatchEvent::Tick { in_order: true, .. })));
            states.push(player.state);
        }
        states.dedup();
        assert_eq!(states.len(), 1);
    }
}
