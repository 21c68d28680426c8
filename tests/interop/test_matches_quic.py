"""Real-time matches over QUIC (RFC 9000) and its datagrams (RFC 9221), with aioquic."""

import asyncio
import os
import socket

import pytest
from aioquic.buffer import Buffer
from aioquic.quic.connection import QuicConnection
from aioquic.quic.packet import QuicPacketType, pull_quic_header
from test_matches import matched

from harness.api import Api
from harness.inbox import deadline
from harness.matches import (
    CLOCK,
    ENDED,
    OUTCOME,
    PAUSE,
    PING,
    PONG,
    SEAT,
    TICK,
    WELCOME,
    Player,
    encoded,
    stamp,
    varint,
)
from harness.quic import DATAGRAM, LOCAL, STREAM, QuicPlayer, configuration
from harness.server import unique
from harness.upgrade import Upgradable

AWAY = 0


@pytest.fixture(scope="module")
def settings():
    return {"shards": 2, "matches__quic_port": 0}


@pytest.fixture
async def players(server):
    """Opens connections of players over QUIC."""
    opened = []

    async def connect(**options):
        opened.append(await QuicPlayer.connect(server, **options))
        return opened[-1]

    yield connect
    for player in opened:
        await player.close()


@pytest.fixture
async def queue(api):
    """Declares a queue of a name of its own; its path."""

    async def declare(**config):
        path = f"/v1/matchmaking/{unique('queue')}"
        await api.ok("PUT", path, {"seats": 2, "tick_rate": 20, **config}, status=201)
        return path

    return declare


async def joined(players, seatings, **options):
    """Players in their seats, whose clock runs."""
    seated = [await players(**options) for _ in seatings]
    for player, seating in zip(seated, seatings, strict=True):
        player.join(seating["token"])
        await player.until(WELCOME)
    for player in seated:
        assert (await player.until(CLOCK)).payload[0] == 1
    return seated


async def ticks(player, count, acknowledges=True):
    """The next ticks, so many without a gap, and how each came first."""
    wanted = range(player.next, player.next + count)
    while not all(tick in player.ticks for tick in wanted):
        _, frame = await player.frame()
        assert frame is not None, player.protocol.ended
        if frame.kind == TICK and acknowledges:
            have = max(player.ticks)
            lacks = sum(
                1 << behind for behind in range(32) if have - 1 - behind not in player.ticks and have > behind + 1
            )
            player.input(have + 3, b"x", ack=have, missing=lacks)
    player.next += count
    return {tick: player.ticks[tick][1] for tick in wanted}


async def test_two_players_find_each_other_and_play_by_datagrams(api, queue, players):
    path = await queue()
    one, other = await joined(players, await matched(api, path))
    in_time = 0
    have = 0
    for tick in range(3, 23):
        one.input(tick, f"a{tick}".encode(), ack=have)
        other.input(tick, f"b{tick}".encode(), ack=have)
        for player in (one, other):
            inputs, _ = (await player.until(TICK, tick)).inputs()
            for seat, input in inputs.items():
                assert input in [f"{'ab'[seat]}{sent}".encode() for sent in range(3, tick + 1)]
            in_time += inputs == {0: f"a{tick}".encode(), 1: f"b{tick}".encode()}
        have = tick
    assert in_time > 10
    word = stamp()
    one.datagram(encoded(PING, payload=word))
    while (answer := await one.frame())[1].kind != PONG:
        pass
    assert (answer[0], answer[1].payload) == (DATAGRAM, word)
    assert await api.figure("quic_connections") >= 2
    assert await api.figure('quic_datagrams_total{result="out"}') > 20


async def test_ticks_come_by_datagrams_and_those_that_are_acknowledged_once(api, queue, players):
    one, other = await joined(players, await matched(api, await queue()))
    await ticks(other, 3)
    seen = await ticks(one, 30)
    assert list(seen.values()).count(DATAGRAM) >= 25
    assert await api.figure('match_inputs_total{result="in_time"}') > 0


async def test_a_player_over_quic_plays_with_one_over_tls(api, server, queue, players):
    seatings = await matched(api, await queue())
    one, other = await players(), await Player.over_tls(server)
    for player, seating in zip((one, other), seatings, strict=True):
        player.join(seating["token"])
    tick = (await other.until(TICK, 3)).tick
    one.input(tick + 10, b"by quic", ack=tick)
    other.input(tick + 10, b"by tls")
    for player in (one, other):
        assert (await player.until(TICK, tick + 10)).inputs()[0] == {0: b"by quic", 1: b"by tls"}
    await other.close()


async def test_what_is_lost_comes_with_the_next_datagram(api, queue, players):
    seatings = await matched(api, await queue())
    one, _ = await joined(players, seatings)
    await ticks(one, 5)
    one.lose(2)
    assert list((await ticks(one, 20)).values()).count(DATAGRAM) >= 17


async def test_what_is_lost_for_long_comes_by_the_stream(api, queue, players):
    one, _ = await joined(players, await matched(api, await queue()))
    await ticks(one, 5)
    # Half a second of ticks, and what the transport sends meanwhile.
    one.lose(15)
    assert STREAM in (await ticks(one, 40)).values()


async def test_who_never_acknowledges_is_given_all_by_the_stream(api, queue, players):
    one, _ = await joined(players, await matched(api, await queue()))
    by_stream = set()
    while len(by_stream) < 20:
        by, frame = await one.frame()
        if frame.kind == TICK and by == STREAM:
            by_stream.add(frame.tick)
    assert sorted(by_stream) == list(range(min(by_stream), max(by_stream) + 1))


async def test_without_datagrams_all_comes_by_the_stream(api, queue, players):
    one, _ = await joined(players, await matched(api, await queue()), datagrams=False)
    assert set((await ticks(one, 10, acknowledges=False)).values()) == {STREAM}


async def test_a_tick_that_is_too_long_for_a_datagram_comes_by_the_stream(api, queue, players):
    seatings = await matched(api, await queue(seats=4, input_bytes_max=400), seats=4)
    seated = await joined(players, seatings)
    tick = (await seated[0].until(TICK)).tick
    for at, player in enumerate(seated):
        player.input(tick + 8, bytes([at]) * 400, ack=tick)
    while True:
        by, frame = await seated[0].frame()
        if frame.kind == TICK and len(frame.inputs()[0]) > 2:
            break
    assert (by, len(frame.payload) > 1200) == (STREAM, True)
    await ticks(seated[0], 20)


async def test_relayed_inputs_are_passed_on_whatever_is_lost(api, queue, players):
    one, other = await joined(players, await matched(api, await queue(mode="relay")))
    for number in range(1, 11):
        one.input(number, f"a{number}".encode())
    # The last of them, with nothing behind that would bring it.
    other.lose(3)
    one.input(11, b"last")
    seen = {}
    while len(seen) < 11:
        _, frame = await other.frame()
        if frame.kind == TICK:
            seen[frame.tick] = frame.inputs()[0][0]
    assert seen == {**{number: f"a{number}".encode() for number in range(1, 11)}, 11: b"last"}


async def test_who_is_cut_comes_back_with_the_same_token(api, queue, players):
    seatings = await matched(api, await queue())
    one, other = await joined(players, seatings)
    have = (await other.until(TICK, 5)).tick
    other.cut()
    back = await players()
    back.join(seatings[1]["token"], have=have)
    assert (await back.until(WELCOME)).tick == have
    await ticks(back, 20)
    # A second connection with the token takes the seat from the first.
    again = await players()
    again.join(seatings[1]["token"], have=have)
    assert await back.refused() == "replaced"
    await again.until(TICK, have + 30)
    await one.until(TICK, have + 30)


async def test_a_player_whose_address_changes_goes_on(api, queue, players):
    one, other = await joined(players, await matched(api, await queue()))
    for _ in range(3):
        await ticks(one, 5)
        await one.move()
        await ticks(one, 10)
    # Nobody noticed.
    other.protocol.frames.put_nowait((None, None))
    kinds = set()
    while (frame := (await other.frame())[1]) is not None:
        kinds.add(frame.kind)
    assert SEAT not in kinds


async def test_a_client_that_closes_has_left_at_once(api, queue, players):
    one, other = await joined(players, await matched(api, await queue()))
    other.protocol.close()
    assert tuple((await one.until(SEAT)).payload) == (1, AWAY)


@pytest.mark.parametrize("token", ["", "x", "A" * 100])
async def test_a_wrong_token_is_refused(players, token):
    player = await players()
    player.join(token)
    assert await player.refused() == "bad-token"


async def test_the_token_of_another_match_is_refused(api, queue, players):
    path = await queue(join_ms=1000)
    token = (await matched(api, path))[0]["token"]
    async with deadline("the end of the match"):
        while (await api.ok("GET", path))["matches"]:
            pass
    player = await players()
    player.join(token)
    assert await player.refused() == "no-match"


async def test_bad_datagrams_end_the_connection_and_harm_nobody_else(api, queue, players):
    seatings = await matched(api, await queue())
    one, _ = await joined(players, seatings)
    ping = encoded(PING, payload=b"x")
    wrong = {
        "a frame that is too long": (varint(3000) + b"x", "too-long"),
        "no whole frame": (ping[:-1], "malformed"),
        "a frame and a piece": (ping + ping[:-1], "malformed"),
        "no kind": (encoded(99), "malformed"),
        "one that must not be lost": (encoded(PAUSE), "malformed"),
        "an outcome": (encoded(OUTCOME, 10, b"won", ack=10), "malformed"),
        "an input that is too long": (encoded(2, 5, varint(65) + b"x" * 65, ack=5), "too-long"),
        "a tick far ahead": (encoded(2, 100_000, varint(1) + b"x", ack=100_000), "too-far"),
    }
    for data, code in wrong.values():
        other = await players()
        other.join(seatings[1]["token"])
        await other.until(WELCOME)
        other.datagram(data)
        assert await other.refused() == code
    await ticks(one, 5)


async def test_a_datagram_before_the_seat_is_taken_is_lost(api, queue, players):
    seatings = await matched(api, await queue())
    player = await players()
    player.datagram(encoded(PING, payload=b"early"))
    player.datagram(b"\xff" * 20)
    player.join(seatings[0]["token"])
    await player.until(WELCOME)


async def test_a_flood_from_one_seat_slows_nobody_else(api, queue, players):
    one, other = await joined(players, await matched(api, await queue(tick_rate=30)))
    start = (await one.until(TICK)).tick
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(200):
        other.datagram(encoded(PING, payload=b"flood") * 100)
        if number % 20 == 0:
            await one.frame()
    while (await one.until(TICK)).tick < start + 60:
        pass
    # Two seconds of ticks; a machine that has much to do may stretch them.
    assert loop.time() - began < 6
    assert await api.figure('quic_datagrams_total{result="dropped"}') > 0


async def test_the_result_is_told_and_then_the_connection_ends(api, queue, players):
    seated = await joined(players, await matched(api, await queue()))
    for player in seated:
        player.send(encoded(OUTCOME, 10, b"won", ack=10))
    for player in seated:
        assert (await player.until(ENDED)).payload[2:] == b"won"
        assert await player.frame() == (None, None)
        assert player.protocol.ended.error_code == 0


@pytest.mark.parametrize("alpn", ["h3", None])
async def test_another_protocol_is_refused(server, alpn):
    with pytest.raises((ConnectionError, AssertionError)):
        await QuicPlayer.connect(server, alpn=alpn)


def first_packet(server):
    """The first packet of a client that says nothing else."""
    connection = QuicConnection(configuration=configuration(server))
    connection.connect((LOCAL, server.port("quic")), now=0)
    ((packet, _),) = connection.datagrams_to_send(now=0)
    return packet


async def answers(server, packet, seconds=0.5):
    """What comes back for one packet from an address that says nothing else."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as raw:
        raw.setblocking(False)
        raw.connect((LOCAL, server.port("quic")))
        await loop.sock_sendall(raw, packet)
        seen = []
        while True:
            try:
                async with asyncio.timeout(seconds):
                    seen.append(await loop.sock_recv(raw, 65536))
            except TimeoutError:
                return seen


async def test_an_address_is_proved_before_anything_is_kept(api, server):
    before = await api.figure("quic_accepted_total")
    retries = await api.figure("quic_retries_total")
    packet = first_packet(server)
    assert len(packet) >= 1200
    (retry,) = await answers(server, packet)
    header = pull_quic_header(Buffer(data=retry), host_cid_length=8)
    assert header.packet_type == QuicPacketType.RETRY
    # Three times what came is what RFC 9000 §8.1 allows.
    assert len(retry) < len(packet) / 4
    async with deadline("the figures"):
        while await api.figure("quic_retries_total") == retries:
            pass
    assert await api.figure("quic_accepted_total") == before


async def test_an_unknown_version_is_answered_by_the_known_ones(server):
    packet = bytearray(first_packet(server))
    packet[1:5] = b"\x0a\x1a\x2a\x3a"
    (answer,) = await answers(server, bytes(packet))
    header = pull_quic_header(Buffer(data=answer), host_cid_length=8)
    assert header.packet_type == QuicPacketType.VERSION_NEGOTIATION
    assert 1 in header.supported_versions
    assert len(answer) < 100
    # A packet that is too short for a connection is answered by nothing: it would be a reflector.
    assert await answers(server, bytes(packet[:600])) == []


async def test_what_is_no_packet_is_answered_by_nothing_longer(api, server, queue, players):
    for length in (1, 5, 8, 21, 60, 1200):
        for first in (0x00, 0x40, 0x80, 0xC0, 0xFF):
            packet = bytes([first]) + os.urandom(length - 1)
            seen = await answers(server, packet, seconds=0.02)
            assert sum(map(len, seen)) <= len(packet)
    await joined(players, await matched(api, await queue()))


async def test_a_retry_token_is_good_for_its_address_alone(api, server):
    config = configuration(server)
    connection = QuicConnection(configuration=config)
    connection.connect((LOCAL, server.port("quic")), now=0)
    ((packet, _),) = connection.datagrams_to_send(now=0)
    (retry,) = await answers(server, packet)
    before = await api.figure("quic_accepted_total")
    connection.receive_datagram(retry, (LOCAL, server.port("quic")), now=0.1)
    ((with_token, _),) = connection.datagrams_to_send(now=0.1)
    # It is sent from another port than that of the first packet.
    seen = await answers(server, with_token)
    assert sum(map(len, seen)) <= 3 * len(with_token)
    assert await api.figure("quic_accepted_total") == before


async def test_a_node_that_ends_says_so(start):
    server = start(matches__quic_port=0)
    api = Api(server)
    await api.ok("PUT", "/v1/matchmaking/duel", {"seats": 2}, status=201)
    seated = []
    for seating in await matched(api, "/v1/matchmaking/duel"):
        player = await QuicPlayer.connect(server)
        player.join(seating["token"])
        await player.until(WELCOME)
        seated.append(player)
    await asyncio.to_thread(server.end)
    for player in seated:
        assert (await player.until(ENDED)).payload[0] == 4
        assert await player.frame() == (None, None)
        # The client may have read it all before, and then nothing is left to say.
        assert player.protocol.ended.error_code in (0, 14)
        await player.close()
    await api.aclose()


async def test_a_live_upgrade_ends_the_match_and_the_new_process_takes_players(tmp_path):
    server = Upgradable(tmp_path, matches__quic_port=0)
    api = Api(server)
    seated = []
    try:
        await api.ok("PUT", "/v1/matchmaking/duel", {"seats": 2}, status=201)
        for seating in await matched(api, "/v1/matchmaking/duel"):
            seated.append(await QuicPlayer.connect(server))
            seated[-1].join(seating["token"])
            await seated[-1].until(WELCOME)
        port = server.port("quic")
        await server.upgrade()
        for player in seated:
            assert (await player.until(ENDED)).payload[0] == 4
            assert await player.frame() == (None, None)
            # The node closes it when the client has acknowledged the last frame, or when it stops waiting for that.
            assert player.protocol.ended.error_code in (0, 14)
        assert server.port("quic") == port
        await api.ok("PUT", "/v1/matchmaking/again", {"seats": 2}, status=201)
        for seating in await matched(api, "/v1/matchmaking/again"):
            seated.append(await QuicPlayer.connect(server))
            seated[-1].join(seating["token"])
            await seated[-1].until(WELCOME)
        await ticks(seated[-1], 10)
    finally:
        for player in seated:
            await player.close()
        await api.aclose()
        await asyncio.to_thread(server.end, ["not handed over"])


async def test_connections_are_counted_with_the_others(start):
    server = start(matches__quic_port=0, limits__connections_per_address=3)
    seated = [await QuicPlayer.connect(server) for _ in range(3)]
    with pytest.raises((ConnectionError, AssertionError)):
        await QuicPlayer.connect(server)
    for player in seated:
        await player.close()
