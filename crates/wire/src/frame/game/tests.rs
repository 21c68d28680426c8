use super::*;

const WELCOME: Welcome = Welcome {
    seat: 1,
    seats: 4,
    present: 0b11,
    mode: Mode::Lockstep,
    runs: true,
    tick_rate: 15,
    input_delay: 2,
    input_bytes_max: 64,
    hold_ms: 30_000,
    seed: 0x0123_4567_89ab_cdef,
};

fn header() -> Header {
    Header { tick: 3600, ack: 3602, missing: 0x8000_0001 }
}

fn inputs() -> Vec<u8> {
    let mut out = Vec::new();
    let inputs: [&[u8]; 3] = [b"", b"abc", b"0123456789"];
    TickInputs::put(&mut out, 0b1101, 0b0010, inputs.into_iter());
    out
}

fn client_frames() -> Vec<Vec<u8>> {
    let written = |frame: ClientFrame<'_>| {
        let mut out = Vec::new();
        frame.write(&mut out);
        assert_eq!(ClientFrame::read(&out), Ok(frame));
        out
    };
    let mut input = Vec::new();
    ClientFrame::write_inputs(&mut input, header(), [&b"new"[..], b"", b"older"]);
    vec![
        written(ClientFrame::Join { have: 70_000, token: b"abc" }),
        input,
        written(ClientFrame::Hash { tick: 300, hash: 0xdead_beef }),
        written(ClientFrame::Ping { stamp: b"12345678" }),
        written(ClientFrame::Pause),
        written(ClientFrame::Continue),
        written(ClientFrame::Forfeit),
        written(ClientFrame::Outcome { tick: 3600, outcome: b"{\"winner\":1}" }),
        written(ClientFrame::Snapshot { tick: 300, offset: 1900, total: 1904, part: b"rest" }),
    ]
}

fn server_frames() -> Vec<Vec<u8>> {
    let written = |frame: ServerFrame<'_>| {
        let mut out = Vec::new();
        frame.write(&mut out);
        assert_eq!(ServerFrame::read(&out), Ok(frame));
        out
    };
    let mut tick = Vec::new();
    ServerFrame::write_tick(&mut tick, header(), &inputs());
    vec![
        written(ServerFrame::Welcome { header: Header::at(9), welcome: WELCOME }),
        tick,
        written(ServerFrame::Seat { tick: 7, seat: 3, state: SeatState::Away }),
        written(ServerFrame::Desync { tick: 7, minority: 1 << 63, hash: 5 }),
        written(ServerFrame::Pong { stamp: b"x" }),
        written(ServerFrame::Clock { tick: 7, runs: false, seat: Some(2) }),
        written(ServerFrame::Clock { tick: 7, runs: true, seat: None }),
        written(ServerFrame::Ended { tick: 9, reason: EndReason::Forfeit, seats: 0b1, outcome: b"{}" }),
        written(ServerFrame::Error { code: ErrorCode::BadToken, text: b"no" }),
        written(ServerFrame::Update { header: header(), update: b"xyz" }),
        written(ServerFrame::Snapshot { header: header(), snapshot: b"state" }),
        written(ServerFrame::Wanted { tick: 300, whole: true }),
    ]
}

#[test]
fn what_is_written_is_read() {
    let frames = client_frames();
    let ClientFrame::Input { header: read, inputs } = ClientFrame::read(&frames[1]).unwrap() else {
        panic!("not an input")
    };
    assert_eq!(read, header());
    assert_eq!(inputs.iter().collect::<Vec<_>>(), [&b"new"[..], b"", b"older"]);

    let frames = server_frames();
    let ServerFrame::Tick { header: read, inputs } = ServerFrame::read(&frames[1]).unwrap() else {
        panic!("not a tick")
    };
    assert_eq!((read, inputs.given, inputs.repeated), (header(), 0b1101, 0b0010));
    let mut each = Vec::new();
    inputs.each(|seat, input| each.push((seat, input.to_vec())));
    assert_eq!(each, [(0, b"".to_vec()), (2, b"abc".to_vec()), (3, b"0123456789".to_vec())]);
}

#[test]
fn a_frame_that_is_cut_short_or_too_long_is_refused_and_never_panics() {
    for frame in client_frames() {
        for len in 0..frame.len() {
            // What has a payload of any length may be shorter; that is all that may be read of a part.
            let open_ended = matches!(frame[0], 1 | 2 | 4 | 8 | 9);
            let read = ClientFrame::read(&frame[..len]);
            assert!(read.is_err() || open_ended, "{frame:?} of {len}: {read:?}");
        }
    }
    for frame in server_frames() {
        for len in 0..frame.len() {
            let open_ended = matches!(frame[0], 20 | 22..=25);
            let read = ServerFrame::read(&frame[..len]);
            assert!(read.is_err() || open_ended, "{frame:?} of {len}: {read:?}");
        }
    }
    let mut long = client_frames().remove(2);
    long.push(0);
    assert_eq!(ClientFrame::read(&long), Err(Malformed::Excess));
    assert_eq!(ClientFrame::read(&[10, 0, 0, 0]), Err(Malformed::Kind(10)));
}

#[test]
fn a_stream_is_cut_wherever_it_is_divided() {
    let mut stream = Vec::new();
    let frames = client_frames();
    for frame in &frames {
        framed(&mut stream, |out| out.extend_from_slice(frame));
    }
    framed(&mut stream, |out| out.resize(out.len() + 300, 7));
    let (mut rest, mut seen) = (&stream[..], 0);
    while let Some((frame, behind)) = cut(rest, CLIENT_BYTES_MAX).unwrap() {
        for len in 0..rest.len() - behind.len() {
            assert_eq!(cut(&rest[..len], CLIENT_BYTES_MAX), Ok(None));
        }
        match frames.get(seen) {
            Some(expected) => assert_eq!(frame, expected),
            None => assert_eq!(frame, [7; 300]),
        }
        (rest, seen) = (behind, seen + 1);
    }
    assert_eq!((rest.len(), seen), (0, frames.len() + 1));
}

#[test]
fn lengths_are_bounded_before_anything_is_kept() {
    let mut stream = Vec::new();
    put_varint(&mut stream, CLIENT_BYTES_MAX as u64 + 1);
    assert_eq!(cut(&stream, CLIENT_BYTES_MAX), Err(Malformed::TooLong));
    // Ten bytes that say nothing but that more follows.
    assert_eq!(cut(&[0xff; 10], CLIENT_BYTES_MAX), Err(Malformed::Number));
    assert_eq!(cut(&[0xff; 9], CLIENT_BYTES_MAX), Ok(None));
    // 1, in two bytes.
    assert_eq!(cut(&[0x81, 0x00, 5], CLIENT_BYTES_MAX), Err(Malformed::Number));
    let mut input = Vec::new();
    ClientFrame::write_inputs(&mut input, Header::at(100), [&[0; INPUT_BYTES_MAX + 1][..]]);
    assert_eq!(ClientFrame::read(&input), Err(Malformed::TooLong));
    let mut many = Vec::new();
    ClientFrame::write_inputs(&mut many, Header::at(100), [&b""[..]; INPUTS_MAX + 1]);
    assert_eq!(ClientFrame::read(&many), Err(Malformed::Value));
    // There is no tick before the first.
    let mut early = Vec::new();
    ClientFrame::write_inputs(&mut early, Header::at(1), [&b""[..]; 2]);
    assert_eq!(ClientFrame::read(&early), Err(Malformed::Value));
}

#[test]
fn a_part_of_a_state_is_within_it() {
    let read = |offset, total, part: &[u8]| {
        let mut out = Vec::new();
        ClientFrame::Snapshot { tick: 1, offset, total, part }.write(&mut out);
        ClientFrame::read(&out).map(drop)
    };
    assert_eq!(read(8, 10, b"ab"), Ok(()));
    assert_eq!(read(9, 10, b"ab"), Err(Malformed::Value));
    assert_eq!(read(0, SNAPSHOT_BYTES_MAX as u32 + 1, b"ab"), Err(Malformed::TooLong));
    assert_eq!(read(u32::MAX, 10, b"ab"), Err(Malformed::Value));
    assert_eq!(state_hash(b"foobar"), 0xbf9c_f968);
}

#[test]
fn numbers_of_all_sizes_survive() {
    for number in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), 1 << 62, u64::MAX] {
        let mut out = Vec::new();
        put_varint(&mut out, number);
        let mut input = &out[..];
        assert_eq!(take_varint(&mut input), Ok(number));
        assert!(input.is_empty());
    }
    for number in [0, 1, -1, 63, -64, i64::from(u32::MAX), -i64::from(u32::MAX)] {
        assert_eq!(varint::unzigzag(varint::zigzag(number)), number);
    }
}

#[test]
fn acknowledgements_say_which_ticks_are_there() {
    let mut header = Header::default();
    for tick in [1, 2, 4, 40, 39, 7] {
        header.acknowledge(tick);
    }
    assert_eq!(header.ack, 40);
    for (tick, is_there) in
        [(40, true), (39, true), (38, false), (7, false), (8, false), (4, false), (41, false)]
    {
        assert_eq!(header.acknowledges(tick), is_there, "{tick}");
    }
    let mut near = Header::default();
    for tick in [1, 2, 4] {
        near.acknowledge(tick);
    }
    assert!(near.acknowledges(1) && near.acknowledges(2) && !near.acknowledges(3) && near.acknowledges(4));
    assert!(!near.acknowledges(0));
}

#[test]
fn a_tick_of_four_players_fits_forty_bytes() {
    let mut inputs = Vec::new();
    TickInputs::put(&mut inputs, 0b1111, 0, [&[0; 7][..]; 4].into_iter());
    let mut out = Vec::new();
    let header = Header { tick: 3600, ack: 3602, missing: 0 };
    framed(&mut out, |out| ServerFrame::write_tick(out, header, &inputs));
    assert!(out.len() <= 40, "{} bytes", out.len());
}

/// Frames that the clients of `sdk/` have to write and read alike: side, bytes, name, and what is in it.
const VECTORS: &str = include_str!("vectors.txt");

fn vectors(side: &'static str) -> impl Iterator<Item = (Vec<u8>, &'static str, &'static str)> {
    let lines = VECTORS.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(move |line| line.strip_prefix(side)?.strip_prefix(' ')).map(|line| {
        let (bytes, rest) = line.split_once(' ').unwrap();
        let (name, fields) = rest.split_once(' ').unwrap_or((rest, ""));
        (from_hex(bytes), name, fields)
    })
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().as_chunks::<2>().0;
    digits.iter().map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn field<'a>(fields: &'a str, name: &str) -> &'a str {
    fields.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('=')).unwrap()
}

fn number(fields: &str, name: &str) -> u32 {
    field(fields, name).parse().unwrap()
}

#[test]
fn the_vectors_of_clients_are_written() {
    for (bytes, name, fields) in vectors("client") {
        let (mut out, bytes_of) = (Vec::new(), |name: &str| from_hex(field(fields, name)));
        match name {
            "join" => {
                ClientFrame::Join { have: number(fields, "have"), token: &bytes_of("token") }.write(&mut out);
            }
            "inputs" => {
                let [tick, ack, missing] = ["tick", "ack", "missing"].map(|name| number(fields, name));
                let inputs: Vec<_> = field(fields, "inputs").split(',').map(from_hex).collect();
                let inputs = inputs.iter().map(Vec::as_slice);
                ClientFrame::write_inputs(&mut out, Header { tick, ack, missing }, inputs);
            }
            "hash" => {
                ClientFrame::Hash { tick: number(fields, "tick"), hash: number(fields, "hash") }
                    .write(&mut out);
            }
            "ping" => ClientFrame::Ping { stamp: &bytes_of("stamp") }.write(&mut out),
            "pause" => ClientFrame::Pause.write(&mut out),
            "continue" => ClientFrame::Continue.write(&mut out),
            "forfeit" => ClientFrame::Forfeit.write(&mut out),
            "outcome" => {
                ClientFrame::Outcome { tick: number(fields, "tick"), outcome: &bytes_of("outcome") }
                    .write(&mut out);
            }
            "snapshot" => {
                let [tick, offset, total] = ["tick", "offset", "total"].map(|name| number(fields, name));
                ClientFrame::Snapshot { tick, offset, total, part: &bytes_of("part") }.write(&mut out);
            }
            other => panic!("{other}"),
        }
        let mut written = Vec::new();
        framed(&mut written, |frame| frame.extend_from_slice(&out));
        assert_eq!(hex(&written), hex(&bytes), "{name}");
        assert!(ClientFrame::read(&out).is_ok(), "{name}");
    }
    assert!(vectors("client").count() > 8);
}

/// What is in a frame of the server, as the vectors write it.
fn shown(frame: &ServerFrame<'_>) -> (&'static str, String) {
    let at = |header: &Header| format!("tick={} ack={} missing={} ", header.tick, header.ack, header.missing);
    let only = |tick: &u32| at(&Header::at(*tick));
    match frame {
        ServerFrame::Welcome { header, welcome } => {
            let Welcome { seat, seats, present, mode, runs, tick_rate, .. } = welcome;
            let (mode, runs) = (mode.number(), u8::from(*runs));
            let Welcome { input_delay, input_bytes_max, hold_ms, seed, .. } = welcome;
            let first = format!("seat={seat} seats={seats} mode={mode} runs={runs} tick_rate={tick_rate} ");
            let rest = format!(
                "input_delay={input_delay} present={present} input_bytes_max={input_bytes_max} hold_ms={hold_ms} seed={seed}"
            );
            ("welcome", at(header) + &first + &rest)
        }
        ServerFrame::Tick { header, inputs } => {
            let mut each = Vec::new();
            inputs.each(|seat, input| each.push(format!("{seat}:{}", hex(input))));
            let (given, repeated) = (inputs.given, inputs.repeated);
            let rest = format!("given={given} repeated={repeated} inputs={}", each.join(","));
            ("tick", at(header) + &rest)
        }
        ServerFrame::Seat { tick, seat, state } => {
            ("seat", only(tick) + &format!("seat={seat} state={}", state.number()))
        }
        ServerFrame::Desync { tick, minority, hash } => {
            ("desync", only(tick) + &format!("minority={minority} hash={hash}"))
        }
        ServerFrame::Pong { stamp } => ("pong", only(&0) + &format!("stamp={}", hex(stamp))),
        ServerFrame::Clock { tick, runs, seat } => {
            let rest = format!("runs={} seat={}", u8::from(*runs), seat.unwrap_or(255));
            ("clock", only(tick) + &rest)
        }
        ServerFrame::Ended { tick, reason, seats, outcome } => {
            let rest = format!("reason={} seats={seats} outcome={}", reason.number(), hex(outcome));
            ("ended", only(tick) + &rest)
        }
        ServerFrame::Error { code, text } => {
            ("error", only(&0) + &format!("code={} text={}", code.number(), hex(text)))
        }
        ServerFrame::Update { header, update } => ("update", at(header) + &format!("update={}", hex(update))),
        ServerFrame::Snapshot { header, snapshot } => {
            ("snapshot", at(header) + &format!("snapshot={}", hex(snapshot)))
        }
        ServerFrame::Wanted { tick, whole } => {
            ("wanted", only(tick) + &format!("whole={}", u8::from(*whole)))
        }
    }
}

#[test]
fn the_vectors_of_the_server_are_read() {
    for (bytes, name, fields) in vectors("server") {
        let (frame, rest) = cut(&bytes, SERVER_BYTES_MAX).unwrap().unwrap();
        assert!(rest.is_empty());
        assert_eq!(shown(&ServerFrame::read(frame).unwrap()), (name, fields.to_owned()));
    }
    for (bytes, name, _) in vectors("bad") {
        let read =
            cut(&bytes, SERVER_BYTES_MAX).and_then(|cut| ServerFrame::read(cut.unwrap().0).map(|_| ()));
        assert!(read.is_err(), "{name}");
    }
    assert!(vectors("server").count() > 8 && vectors("bad").count() > 8);
}
