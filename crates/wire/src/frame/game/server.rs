//! What the server sends.

use super::{Header, INPUT_BYTES_MAX, Malformed, SEATS_MAX, end, take_bytes, varint};

/// A frame of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFrame<'a> {
    /// The seat is taken. What follows are the ticks from `header.tick` + 1 on.
    Welcome {
        /// Up to which tick the client has everything.
        header: Header,
        /// What it must know of the match.
        welcome: Welcome,
    },
    /// What happened in a tick. In the mode `relay` the ticks number what came, in the order that all see.
    Tick {
        /// The tick, and what the server has of the inputs of this seat.
        header: Header,
        /// The inputs of the seats.
        inputs: TickInputs<'a>,
    },
    /// A seat is taken or empty.
    Seat {
        /// The last tick before.
        tick: u32,
        /// The seat.
        seat: u8,
        /// What it is now.
        state: SeatState,
    },
    /// Not all clients computed the same state after a tick.
    Desync {
        /// The tick.
        tick: u32,
        /// The seats that are in the minority. If no state has a majority, all that said one.
        minority: u64,
        /// The hash of the majority; 0 if there is none.
        hash: u32,
    },
    /// The answer to a ping.
    Pong {
        /// Its stamp.
        stamp: &'a [u8],
    },
    /// The clock stands, or runs again.
    Clock {
        /// The last tick before.
        tick: u32,
        /// Whether it runs.
        runs: bool,
        /// Whose wish that is; none for the server's own.
        seat: Option<u8>,
    },
    /// The match is over. The connection is closed.
    Ended {
        /// The last tick.
        tick: u32,
        /// Why.
        reason: EndReason,
        /// The seats that were still there.
        seats: u64,
        /// What most clients say came of it; empty if they do not say.
        outcome: &'a [u8],
    },
    /// The client did something that it may not. The connection is closed.
    Error {
        /// What.
        code: ErrorCode,
        /// The same for people.
        text: &'a [u8],
    },
    /// What a module made of a tick, in the mode `authoritative`: in place of the inputs.
    Update {
        /// The tick, and what the server has of the inputs of this seat.
        header: Header,
        /// What the module says to this seat.
        update: &'a [u8],
    },
    /// The whole state of the game after a tick, for a client that lacks what was before.
    Snapshot {
        /// The tick, and what the server has of the inputs of this seat.
        header: Header,
        /// The state, as the game writes it.
        snapshot: &'a [u8],
    },
    /// The server wants to have the state of the game after a tick, for those who come late.
    Wanted {
        /// The tick: the last that the client was given.
        tick: u32,
        /// Whether this client sends the state itself; else only its hash.
        whole: bool,
    },
}

/// What a client must know of its match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Its own seat, counted from 0; 255 for a spectator.
    pub seat: u8,
    /// How many seats there are.
    pub seats: u8,
    /// The seats that are taken now.
    pub present: u64,
    /// How ticks are made.
    pub mode: Mode,
    /// Whether the clock runs.
    pub runs: bool,
    /// Ticks per second.
    pub tick_rate: u8,
    /// For how many ticks ahead an input should be sent.
    pub input_delay: u8,
    /// Bytes of the longest input.
    pub input_bytes_max: u16,
    /// How long a seat is held whose connection is lost, in milliseconds.
    pub hold_ms: u32,
    /// A number for the random decisions of the game, the same for all seats.
    pub seed: u64,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $number:literal $word:literal $variant:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$of])* $variant,)+ }

        impl $name {
            /// Its number in frames.
            pub fn number(self) -> u8 {
                match self { $($name::$variant => $number,)+ }
            }

            /// The one with this number in frames.
            pub fn of(number: u32) -> Option<$name> {
                match number { $($number => Some($name::$variant),)+ _ => None }
            }

            /// Its name in logs and documents.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }
        }
    };
}

words! {
    /// How the ticks of a match are made.
    Mode {
        /// Inputs are passed on as they come, in one order.
        0 "relay" Relay,
        /// The server closes a tick at its time, whoever has sent an input for it.
        1 "lockstep" Lockstep,
        /// The server closes a tick at its time, and a module says what comes of it.
        2 "authoritative" Authoritative,
    }
}

words! {
    /// What a seat is.
    SeatState {
        /// Its connection is lost, or was never there, and it is held.
        0 "away" Away,
        /// Its player is there.
        1 "here" Here,
        /// Its player has left for good.
        2 "left" Left,
    }
}

words! {
    /// Why a match is over.
    EndReason {
        /// Most of those who play say what came of it.
        0 "finished" Finished,
        /// Of all seats one is left at most.
        1 "forfeit" Forfeit,
        /// Its time is over.
        2 "duration" Duration,
        /// Too few of its players came.
        3 "not-joined" NotJoined,
        /// An operator, or the shutdown of the node.
        4 "shutdown" Shutdown,
        /// The module that decides it failed.
        5 "module" Module,
    }
}

words! {
    /// What a client may not do.
    ErrorCode {
        /// The bytes are no frame of this protocol.
        1 "malformed" Malformed,
        /// A frame or an input is longer than it may be.
        2 "too-long" TooLong,
        /// The token is not one of this match, seat and account.
        3 "bad-token" BadToken,
        /// The token has expired, and was not used before.
        4 "expired-token" ExpiredToken,
        /// There is no such match, or it is over.
        5 "no-match" NoMatch,
        /// The seat is not there any more: its player has left.
        6 "left" Left,
        /// Another connection has taken the seat with the same token.
        7 "replaced" Replaced,
        /// The first frame must join.
        8 "not-joined" NotJoined,
        /// An input is for a tick that is too far ahead.
        9 "too-far" TooFar,
        /// What the client has is older than what the server still has.
        10 "too-old" TooOld,
        /// The client sent nothing for too long.
        11 "idle" Idle,
        /// The client reads too slowly.
        12 "too-slow" TooSlow,
        /// The match is on another node.
        13 "elsewhere" Elsewhere,
        /// The node shuts down.
        14 "shutdown" Shutdown,
    }
}

/// The inputs of the seats in one tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickInputs<'a> {
    /// The seats that sent an input.
    pub given: u64,
    /// The seats that sent none, whose last input counts once more.
    pub repeated: u64,
    /// The inputs of the seats of `given`, with their lengths.
    bytes: &'a [u8],
}

impl<'a> TickInputs<'a> {
    /// Appends the inputs of a tick, as a frame has them. `inputs` are those of the seats in `given`, in their order.
    pub fn put<'b>(
        out: &mut Vec<u8>,
        given: u64,
        repeated: u64,
        inputs: impl Iterator<Item = &'b [u8]> + Clone,
    ) {
        varint::put(out, given);
        varint::put(out, repeated);
        let length = inputs.clone().next().map_or(0, <[u8]>::len);
        let is_even = inputs.clone().all(|input| input.len() == length);
        // One length for all where they have the same; 0 says that each has its own.
        varint::put(out, if is_even { length as u64 + 1 } else { 0 });
        for input in inputs {
            if !is_even {
                varint::put(out, input.len() as u64);
            }
            out.extend_from_slice(input);
        }
    }

    fn take(mut input: &'a [u8]) -> Result<TickInputs<'a>, Malformed> {
        let given = varint::take(&mut input)?;
        let repeated = varint::take(&mut input)?;
        if given & repeated != 0 {
            return Err(Malformed::Value);
        }
        let inputs = TickInputs { given, repeated, bytes: input };
        let rest = inputs.walk(|_, _| {})?;
        end(rest)?;
        Ok(inputs)
    }

    /// Gives each seat that sent an input, and the input.
    pub fn each(&self, mut with: impl FnMut(u8, &'a [u8])) {
        // It was checked when it was read.
        let _ = self.walk(&mut with);
    }

    fn walk(&self, mut with: impl FnMut(u8, &'a [u8])) -> Result<&'a [u8], Malformed> {
        let mut rest = self.bytes;
        let even = varint::take_u32(&mut rest)? as usize;
        for seat in 0..SEATS_MAX as u8 {
            if self.given & 1 << seat == 0 {
                continue;
            }
            let length = match even {
                0 => varint::take_u32(&mut rest)? as usize,
                even => even - 1,
            };
            if length > INPUT_BYTES_MAX {
                return Err(Malformed::TooLong);
            }
            with(seat, take_bytes(&mut rest, length)?);
        }
        Ok(rest)
    }
}

const WELCOME: u8 = 16;
const TICK: u8 = 17;
const SEAT: u8 = 18;
const DESYNC: u8 = 19;
const PONG: u8 = 20;
const CLOCK: u8 = 21;
const ENDED: u8 = 22;
const ERROR: u8 = 23;
const UPDATE: u8 = 24;
const SNAPSHOT: u8 = 25;
const WANTED: u8 = 26;

impl<'a> ServerFrame<'a> {
    /// Appends the frame, without its length.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            ServerFrame::Welcome { header, welcome } => {
                header.put(out, WELCOME);
                welcome.put(out);
            }
            ServerFrame::Tick { header, inputs } => {
                header.put(out, TICK);
                varint::put(out, inputs.given);
                varint::put(out, inputs.repeated);
                out.extend_from_slice(inputs.bytes);
            }
            ServerFrame::Seat { tick, seat, state } => {
                Header::at(*tick).put(out, SEAT);
                out.extend_from_slice(&[*seat, state.number()]);
            }
            ServerFrame::Desync { tick, minority, hash } => {
                Header::at(*tick).put(out, DESYNC);
                varint::put(out, *minority);
                out.extend_from_slice(&hash.to_le_bytes());
            }
            ServerFrame::Pong { stamp } => {
                Header::default().put(out, PONG);
                out.extend_from_slice(stamp);
            }
            ServerFrame::Clock { tick, runs, seat } => {
                Header::at(*tick).put(out, CLOCK);
                out.extend_from_slice(&[u8::from(*runs), seat.map_or(NOBODY, |seat| seat)]);
            }
            ServerFrame::Ended { tick, reason, seats, outcome } => {
                Header::at(*tick).put(out, ENDED);
                out.push(reason.number());
                varint::put(out, *seats);
                out.extend_from_slice(outcome);
            }
            ServerFrame::Error { code, text } => {
                Header::default().put(out, ERROR);
                out.push(code.number());
                out.extend_from_slice(text);
            }
            ServerFrame::Update { header, update } => {
                header.put(out, UPDATE);
                out.extend_from_slice(update);
            }
            ServerFrame::Snapshot { header, snapshot } => {
                header.put(out, SNAPSHOT);
                out.extend_from_slice(snapshot);
            }
            ServerFrame::Wanted { tick, whole } => {
                Header::at(*tick).put(out, WANTED);
                out.push(u8::from(*whole));
            }
        }
    }

    /// Appends the frame of a tick whose inputs were written before, by [`TickInputs::put`].
    pub fn write_tick(out: &mut Vec<u8>, header: Header, inputs: &[u8]) {
        header.put(out, TICK);
        out.extend_from_slice(inputs);
    }

    /// Reads a frame, without its length.
    ///
    /// # Errors
    /// Why it is none.
    pub fn read(mut input: &'a [u8]) -> Result<ServerFrame<'a>, Malformed> {
        let (kind, header) = Header::take(&mut input)?;
        let tick = header.tick;
        let byte =
            |input: &mut &[u8]| take_bytes(input, 1).map(|bytes| bytes.first().copied().unwrap_or_default());
        let frame = match u8::try_from(kind) {
            Ok(WELCOME) => {
                let welcome = Welcome::take(&mut input)?;
                end(input)?;
                ServerFrame::Welcome { header, welcome }
            }
            Ok(TICK) => ServerFrame::Tick { header, inputs: TickInputs::take(input)? },
            Ok(SEAT) => {
                let seat = byte(&mut input)?;
                let state = SeatState::of(byte(&mut input)?.into()).ok_or(Malformed::Value)?;
                end(input)?;
                ServerFrame::Seat { tick, seat, state }
            }
            Ok(DESYNC) => {
                let minority = varint::take(&mut input)?;
                let hash = take_bytes(&mut input, 4)?.try_into().map_or(0, u32::from_le_bytes);
                end(input)?;
                ServerFrame::Desync { tick, minority, hash }
            }
            Ok(PONG) => ServerFrame::Pong { stamp: input },
            Ok(CLOCK) => {
                let runs = match byte(&mut input)? {
                    0 => false,
                    1 => true,
                    _ => return Err(Malformed::Value),
                };
                let seat = Some(byte(&mut input)?).filter(|seat| *seat != NOBODY);
                end(input)?;
                ServerFrame::Clock { tick, runs, seat }
            }
            Ok(ENDED) => {
                let reason = EndReason::of(byte(&mut input)?.into()).ok_or(Malformed::Value)?;
                let seats = varint::take(&mut input)?;
                ServerFrame::Ended { tick, reason, seats, outcome: input }
            }
            Ok(ERROR) => {
                let code = ErrorCode::of(byte(&mut input)?.into()).ok_or(Malformed::Value)?;
                ServerFrame::Error { code, text: input }
            }
            Ok(UPDATE) => ServerFrame::Update { header, update: input },
            Ok(SNAPSHOT) => ServerFrame::Snapshot { header, snapshot: input },
            Ok(WANTED) => {
                let whole = match byte(&mut input)? {
                    0 => false,
                    1 => true,
                    _ => return Err(Malformed::Value),
                };
                end(input)?;
                ServerFrame::Wanted { tick, whole }
            }
            _ => return Err(Malformed::Kind(kind)),
        };
        Ok(frame)
    }
}

/// Stands for no seat.
const NOBODY: u8 = 0xff;

impl Welcome {
    fn put(&self, out: &mut Vec<u8>) {
        let Welcome { seat, seats, present, mode, runs, tick_rate, input_delay, .. } = self;
        out.extend_from_slice(&[*seat, *seats, mode.number(), u8::from(*runs), *tick_rate, *input_delay]);
        varint::put(out, *present);
        varint::put(out, self.input_bytes_max.into());
        varint::put(out, self.hold_ms.into());
        out.extend_from_slice(&self.seed.to_le_bytes());
    }

    fn take(input: &mut &[u8]) -> Result<Welcome, Malformed> {
        let &[seat, seats, mode, runs, tick_rate, input_delay] = take_bytes(input, 6)? else {
            return Err(Malformed::Short);
        };
        let present = varint::take(input)?;
        let input_bytes_max = u16::try_from(varint::take(input)?).map_err(|_| Malformed::Number)?;
        let hold_ms = varint::take_u32(input)?;
        let seed = take_bytes(input, 8)?.try_into().map_or(0, u64::from_le_bytes);
        let mode = Mode::of(mode.into()).ok_or(Malformed::Value)?;
        let is_seat = seat < seats || seat == NOBODY;
        if runs > 1 || usize::from(seats) > SEATS_MAX || !is_seat || tick_rate == 0 {
            return Err(Malformed::Value);
        }
        let runs = runs == 1;
        Ok(Welcome {
            seat,
            seats,
            present,
            mode,
            runs,
            tick_rate,
            input_delay,
            input_bytes_max,
            hold_ms,
            seed,
        })
    }
}
