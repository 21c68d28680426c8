"""Real-time matches: players who find each other over HTTP, and play over TLS and over WebSockets."""

import asyncio
import base64

import pytest

from harness.api import Api
from harness.inbox import deadline
from harness.matches import (
    CLOCK,
    CONTINUE,
    DESYNC,
    ENDED,
    FORFEIT,
    HASH,
    OUTCOME,
    PAUSE,
    PING,
    PONG,
    SEAT,
    SNAPSHOT,
    TICK,
    WANTED,
    WELCOME,
    Player,
    encoded,
    stamp,
    varint,
)
from harness.raw import Raw
from harness.server import unique
from harness.websocket import TEXT, frame

AWAY, HERE, LEFT = 0, 1, 2


@pytest.fixture(scope="module")
def settings():
    return {"shards": 2}


@pytest.fixture
async def players(server):
    """Opens connections of players; over TLS where it is not said otherwise."""
    opened = []

    async def connect(over="tls"):
        opened.append(await (Player.over_tls if over == "tls" else Player.over_websocket)(server))
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


async def enter(api, path, account=None, **more):
    account = account or unique("player")
    return await api.ok("POST", path, {"id": f"t-{account}", "account": account, **more}, status=201)


async def matched(api, path, seats=2):
    """The seatings of a new match, by seat."""
    tickets = [await enter(api, path) for _ in range(seats)]
    assert [ticket["state"] for ticket in tickets] == ["waiting"] * (seats - 1) + ["matched"]
    async with deadline("a match that the node takes"):
        while True:
            found = [await api.ok("GET", f"{path}/{ticket['id']}") for ticket in tickets]
            seatings = [ticket["seating"] for ticket in found if ticket["state"] == "matched"]
            # A shard that is late takes none for a while: then the tickets wait again.
            if len(seatings) == seats and len({seating["match"] for seating in seatings}) == 1:
                break
    seatings.sort(key=lambda seating: seating["seat"])
    assert [seating["seat"] for seating in seatings] == list(range(seats))
    return seatings


async def joined(players, seatings, over=("tls", "websocket")):
    """Players in their seats, whose clock runs."""
    seated = [await players(over[at % len(over)]) for at in range(len(seatings))]
    for player, seating in zip(seated, seatings, strict=True):
        player.join(seating["token"])
        await player.until(WELCOME)
    for player in seated:
        assert (await player.until(CLOCK)).payload[0] == 1
    return seated


async def test_two_players_find_each_other_and_play_over_tls_and_over_a_websocket(api, queue, players):
    path = await queue()
    one, other = await joined(players, await matched(api, path))
    in_time = 0
    for tick in range(3, 23):
        one.input(tick, f"a{tick}".encode())
        other.input(tick, f"b{tick}".encode())
        for player in (one, other):
            inputs, _ = (await player.until(TICK, tick)).inputs()
            # A busy machine may close the tick before both inputs are there: then they are in a later one, and none is made up.
            for seat, input in inputs.items():
                assert input in [f"{'ab'[seat]}{sent}".encode() for sent in range(3, tick + 1)]
            in_time += inputs == {0: f"a{tick}".encode(), 1: f"b{tick}".encode()}
    assert in_time > 10
    word = stamp()
    one.send(encoded(PING, payload=word))
    assert (await one.until(PONG)).payload == word
    shown = await api.ok("GET", path)
    assert (shown["waiting"], shown["matches"], shown["made"]) == (0, 1, 1)


async def test_an_input_that_comes_late_is_in_the_next_tick_for_all(api, queue, players):
    one, other = await joined(players, await matched(api, await queue()))
    closed = (await one.until(TICK, 5)).tick
    one.input(closed - 2, b"late")
    for player in (one, other):
        while True:
            frame = await player.until(TICK)
            inputs, repeated = frame.inputs()
            if inputs:
                break
        assert (inputs, repeated) == ({0: b"late"}, {1})
        assert frame.tick > closed
        assert (await player.until(TICK)).inputs() == ({}, {0, 1})


async def test_all_players_see_the_same_ticks(api, queue, players):
    seatings = await matched(api, await queue(seats=4, tick_rate=30), seats=4)
    seated = await joined(players, seatings)
    seen = []
    for at, player in enumerate(seated):
        for tick in range(2, 33):
            player.input(tick, bytes([at, tick]))
    for player in seated:
        ticks = {}
        while len(ticks) < 40:
            seen_frame = await player.until(TICK)
            ticks[seen_frame.tick] = seen_frame.payload
        seen.append([ticks[tick] for tick in range(1, 41)])
    assert seen[0] == seen[1] == seen[2] == seen[3]
    state = await api.ok("GET", f"/v1/matches/{seatings[0]['match']}")
    assert [seat["state"] for seat in state["seats"]] == ["here"] * 4
    assert state["running"] is True
    assert state["tick"] >= 40


@pytest.mark.parametrize("over", ["tls", "websocket"])
async def test_who_is_cut_comes_back_with_the_same_token_and_has_every_tick(api, queue, players, over):
    seatings = await matched(api, await queue())
    one, other = await joined(players, seatings, over=("tls", over))
    have = (await other.until(TICK, 5)).tick
    other.cut()
    away = await one.until(SEAT)
    assert tuple(away.payload) == (1, AWAY)
    last = (await one.until(TICK)).tick
    one.input(last + 20, b"meanwhile")
    await one.until(TICK, last + 25)
    back = await players(over)
    back.join(seatings[1]["token"], have=have)
    welcome = await back.until(WELCOME)
    assert welcome.tick == have
    ticks = [await back.until(TICK) for _ in range(last + 25 - have)]
    assert [frame.tick for frame in ticks] == list(range(have + 1, last + 26))
    assert ticks[last + 20 - have - 1].inputs()[0] == {0: b"meanwhile"}
    assert tuple((await one.until(SEAT)).payload) == (1, HERE)
    # A second connection with the token takes the seat from the first.
    again = await players(over)
    again.join(seatings[1]["token"], have=have)
    assert await back.refused() == "replaced"
    await again.until(TICK, last + 30)


async def test_a_token_is_for_its_match_and_seat_and_time(api, queue, players):
    path = await queue(join_ms=1000)
    seatings, others = await matched(api, path), await matched(api, path)

    async def refused(token, have=0):
        player = await players()
        player.join(token, have)
        return await player.refused()

    token = seatings[0]["token"]
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    for at in (16, 24, len(raw) - 1):
        forged = bytearray(raw)
        forged[at] ^= 1
        assert await refused(base64.urlsafe_b64encode(forged).decode().rstrip("=")) == "bad-token"
    # The proof of another match does not serve.
    foreign = base64.urlsafe_b64decode(others[0]["token"] + "=" * (-len(others[0]["token"]) % 4))
    mixed = base64.urlsafe_b64encode(raw[:25] + foreign[25:]).decode().rstrip("=")
    assert await refused(mixed) == "bad-token"
    for nothing in ("", "x", "!" * 55, "A" * 255):
        assert await refused(nothing) == "bad-token"
    # Nobody came to these matches: they are over, and so are their tokens.
    async with deadline("the end of both matches"):
        while (await api.ok("GET", path))["matches"]:
            pass
    assert await refused(token) == "no-match"


async def test_a_token_expires_unless_it_was_used(api, queue, players):
    seatings = await matched(api, await queue(seats=3, join_ms=1500), seats=3)
    seated = []
    for seating in seatings[:2]:
        player = await players()
        player.join(seating["token"])
        await player.until(WELCOME)
        seated.append(player)
    left = await seated[0].until(SEAT, 0)
    while tuple(left.payload) != (2, LEFT):
        left = await seated[0].until(SEAT, 0)
    late = await players()
    late.join(seatings[2]["token"])
    assert await late.refused() == "left"
    have = (await seated[1].until(TICK)).tick
    seated[1].cut()
    back = await players()
    back.join(seatings[1]["token"], have)
    await back.until(TICK, have + 1)


async def test_bad_frames_end_the_connection_and_harm_nobody_else(api, queue, players):
    seatings = await matched(api, await queue())
    one, other = await joined(players, seatings)
    wrong = {
        "too long": (varint(3000) + b"x", "too-long"),
        "no kind": (encoded(99), "malformed"),
        "no number": (b"\xff" * 11, "malformed"),
        "not shortest": (b"\x81\x00x", "malformed"),
        "an empty frame": (b"\x00", "malformed"),
        "no inputs": (encoded(2, 5, ack=5), "malformed"),
        "an input that is too long": (encoded(2, 5, varint(65) + b"x" * 65, ack=5), "too-long"),
        "a tick far ahead": (encoded(2, 100_000, varint(1) + b"x", ack=100_000), "too-far"),
        "a second join": (encoded(1, 0, seatings[1]["token"].encode()), "malformed"),
    }
    for over in ("tls", "websocket"):
        for data, code in wrong.values():
            other = await players(over)
            other.join(seatings[1]["token"])
            await other.until(WELCOME)
            other.send(data)
            assert await other.refused() == code
    first = await players()
    first.send(encoded(PING, payload=b"x"))
    assert await first.refused() == "not-joined"
    tick = (await one.until(TICK)).tick
    one.input(tick + 30, b"still here")
    assert (await one.until(TICK, tick + 30)).inputs()[0] == {0: b"still here"}


async def test_a_text_message_is_refused_where_frames_are_binary(server):
    player = await Player.over_websocket(server)
    player.writer.write(frame(TEXT, "hello"))
    assert await player.some() == b""
    await player.close()


async def test_a_flood_from_one_seat_slows_nobody_else(api, queue, players):
    seatings = await matched(api, await queue(tick_rate=30))
    one, other = await joined(players, seatings)
    # A message of a WebSocket has 16 KiB at most.
    for _ in range(20):
        other.send(encoded(PING, payload=b"flood") * 1000)
    start = (await one.until(TICK)).tick
    loop = asyncio.get_running_loop()
    began = loop.time()
    await one.until(TICK, start + 60)
    # Two seconds of ticks; a machine that has much to do may stretch them.
    assert loop.time() - began < 6
    assert await api.figure("match_players") >= 2


async def test_inputs_are_passed_on_in_one_order_where_that_is_wanted(api, queue, players):
    seatings = await matched(api, await queue(mode="relay"))
    one, other = await joined(players, seatings)
    for number in range(1, 11):
        one.input(number, f"a{number}".encode())
        other.input(number, f"b{number}".encode())
    seen = []
    for player in (one, other):
        frames = [await player.until(TICK) for _ in range(20)]
        seen.append([(frame.tick, frame.inputs()[0]) for frame in frames])
    assert seen[0] == seen[1]
    assert [tick for tick, _ in seen[0]] == list(range(1, 21))
    for seat, letter in ((0, "a"), (1, "b")):
        own = [inputs[seat] for _, inputs in seen[0] if seat in inputs]
        assert own == [f"{letter}{number}".encode() for number in range(1, 11)]


async def test_a_player_stops_the_clock_and_lets_it_run(api, queue, players):
    one, other = await joined(players, await matched(api, await queue()))
    one.send(encoded(PAUSE))
    stopped = await other.until(CLOCK)
    assert tuple(stopped.payload) == (0, 0)
    one.send(encoded(CONTINUE))
    running = await other.until(CLOCK)
    assert (tuple(running.payload), running.tick) == ((1, 0), stopped.tick)


async def test_the_result_is_what_most_say_and_the_ticket_tells_it(api, queue, players):
    path = await queue()
    seatings = await matched(api, path)
    one, other = await joined(players, seatings)
    for player in (one, other):
        player.send(encoded(OUTCOME, 10, b'{"winner":0}', ack=10))
    for player in (one, other):
        ended = await player.until(ENDED)
        assert (ended.payload[0], ended.payload[1], ended.payload[2:]) == (0, 0b11, b'{"winner":0}')
        assert await player.frame() is None
    account = seatings[0]["accounts"][0].partition("@")[0]
    ticket = await api.eventually(f"{path}/t-{account}", lambda ticket: ticket["state"] == "ended")
    result = ticket["result"]
    assert (result["reason"], result["seats"]) == ("finished", [0, 1])
    assert base64.b64decode(result["outcome"]) == b'{"winner":0}'
    await api.problem(404, "unknown-match", "GET", f"/v1/matches/{result['match']}")


async def test_who_gives_up_loses(api, queue, players):
    one, other = await joined(players, await matched(api, await queue()))
    other.send(encoded(FORFEIT))
    for player in (one, other):
        ended = await player.until(ENDED)
        assert (ended.payload[0], ended.payload[1]) == (1, 0b01)


async def test_one_who_computed_something_else_is_named(api, queue, players):
    seatings = await matched(api, await queue(seats=3), seats=3)
    seated = await joined(players, seatings)
    for at, player in enumerate(seated):
        await player.until(TICK, 5)
        word = (7 if at == 1 else 5).to_bytes(4, "little")
        player.send(encoded(HASH, 5, word, ack=5))
    for player in seated:
        desync = await player.until(DESYNC)
        assert (desync.tick, desync.payload[0]) == (5, 0b010)
    assert (await api.ok("GET", f"/v1/matches/{seatings[0]['match']}"))["desyncs"] == 1


async def test_who_comes_late_is_given_a_state_that_most_have_and_the_ticks_since(start):
    # Ticks of about ten bytes each: of a second there is nothing left after some seconds.
    server = start(matches__log_bytes=4096)
    api = Api(server)
    path = "/v1/matchmaking/late"
    await api.ok("PUT", path, {"seats": 3, "tick_rate": 60, "snapshot_ticks": 30}, status=201)
    seatings = await matched(api, path, seats=3)
    one, other, away = [await Player.over_tls(server) for _ in range(3)]
    seated = [one, other, away]
    for player, seating in zip(seated, seatings, strict=True):
        player.join(seating["token"])
        await player.until(WELCOME)
    away.cut()
    # The state of this game is that tick, many times: longer than a frame of a client.
    liar = 30
    last = 0
    while last < 600:
        wanted = await one.until(WANTED)
        last = wanted.tick
        state = last.to_bytes(4, "little") * 1000
        one.answer(wanted, state, sent=b"a lie" if last == liar else None)
        other.answer(await other.until(WANTED, last), state)
    await api.figure_is('match_states_total{result="taken"}', lambda count: count >= 10)
    back = await Player.over_websocket(server)
    back.join(seatings[2]["token"], have=1)
    assert (await back.until(WELCOME)).tick == 1
    snapshot = await back.frame()
    assert (snapshot.kind, snapshot.payload) == (SNAPSHOT, snapshot.tick.to_bytes(4, "little") * 1000)
    assert snapshot.tick > 300
    ticks = [(await back.until(TICK)).tick for _ in range(20)]
    assert ticks == list(range(snapshot.tick + 1, snapshot.tick + 21))
    for player in (*seated, back):
        await player.close()
    await api.aclose()
    await asyncio.to_thread(server.end)


async def test_spectators_see_what_happened_some_time_ago(api, queue, players):
    path = await queue(spectators=2, spectator_delay_ms=500)
    seatings = await matched(api, path)
    one, _ = await joined(players, seatings)
    name = seatings[0]["match"]
    one.input(5, b"five")
    await one.until(TICK, 30)
    watching = await api.ok("POST", f"/v1/matches/{name}/spectators", status=201)
    spectators = [await players(over) for over in ("tls", "websocket")]
    for spectator in spectators:
        spectator.join(watching["token"])
        welcome = await spectator.until(WELCOME)
        assert tuple(welcome.payload[:2]) == (255, 2)
    third = await players()
    third.join(watching["token"])
    assert await third.refused() == "no-match"
    for spectator in spectators:
        ticks = [await spectator.until(TICK) for _ in range(40)]
        assert [frame.tick for frame in ticks] == list(range(1, 41))
        assert ticks[4].inputs()[0] == {0: b"five"}
        # Ten ticks are half a second.
        assert (await api.ok("GET", f"/v1/matches/{name}"))["tick"] >= 50
    assert (await api.ok("GET", f"/v1/matches/{name}"))["spectators"] == 2
    await api.figure_is("match_spectators", lambda count: count >= 2)
    word = stamp()
    spectators[0].send(encoded(PING, payload=word))
    assert (await spectators[0].until(PONG)).payload == word
    # They take no part.
    spectators[0].input(100, b"x")
    assert await spectators[0].refused() == "malformed"
    one.send(encoded(FORFEIT))
    ended = await spectators[1].until(ENDED)
    assert (ended.payload[0], ended.payload[1]) == (1, 0b10)
    assert await spectators[1].frame() is None


async def test_nobody_watches_where_that_is_not_wanted(api, queue, players):
    seatings = await matched(api, await queue())
    await joined(players, seatings)
    name = seatings[0]["match"]
    await api.problem(404, "unknown-match", "POST", f"/v1/matches/{name}/spectators")
    problem = await api.problem(
        422, "invalid-value", "PUT", "/v1/matchmaking/x", {"seats": 2, "mode": "relay", "spectators": 1}
    )
    assert problem["pointer"] == "/spectators"
    problem = await api.problem(
        422, "invalid-value", "PUT", "/v1/matchmaking/x", {"seats": 2, "mode": "relay", "snapshot_ticks": 10}
    )
    assert problem["pointer"] == "/snapshot_ticks"


async def test_what_was_played_is_read_while_it_is_played_and_afterwards(api, server, queue, players):
    seatings = await matched(api, await queue())
    one, other = await joined(players, seatings)
    name = seatings[0]["match"]
    one.input(3, b"abc")
    frames = [await other.until(TICK) for _ in range(10)]
    running = await api.ok("GET", f"/v1/matches/{name}/replay")
    assert (running["from"], running["accounts"]) == (1, seatings[0]["accounts"])
    assert running["tick"] >= 10
    assert "result" not in running
    for player in (one, other):
        player.send(encoded(OUTCOME, 10, b"a draw", ack=10))
    await other.until(ENDED)
    over = await api.ok("GET", f"/v1/matches/{name}/replay")
    assert over["result"]["reason"] == "finished"
    assert base64.b64decode(over["frames"]).startswith(base64.b64decode(running["frames"]))
    printed = await server.command("match", "replay", name)
    assert printed.returncode == 0, printed.stderr
    lines = printed.stdout.splitlines()
    assert "# finished a draw" in lines
    ticks = [line for line in lines if not line.startswith("#")]
    assert len(ticks) == over["tick"]
    for seen, line in zip(frames, ticks, strict=False):
        inputs, repeated = seen.inputs()
        seats = {seat: data.hex() for seat, data in inputs.items()} | dict.fromkeys(repeated, "*")
        assert line.split() == [str(seen.tick), *(f"{seat}={seats[seat]}" for seat in sorted(seats))]
    await api.problem(404, "unknown-match", "GET", f"/v1/matches/{'0' * 32}/replay")


async def test_an_operator_ends_a_match(api, queue, players):
    seatings = await matched(api, await queue())
    seated = await joined(players, seatings)
    await api.ok("DELETE", f"/v1/matches/{seatings[0]['match']}")
    for player in seated:
        assert (await player.until(ENDED)).payload[0] == 4


async def test_tickets_wait_widen_expire_and_are_withdrawn(api, queue):
    path = await queue(rating={"initial": 10, "per_second": 100, "max": 60}, wait_max_ms=2000)
    await enter(api, path, "low", rating=0)
    again = await api.ok("POST", path, {"id": "t-low", "account": "low", "rating": 0}, status=200)
    assert again["state"] == "waiting"
    await api.problem(409, "already-exists", "POST", path, {"id": "t-low", "account": "low", "rating": 1})
    await api.problem(409, "account-queued", "POST", path, {"id": "other", "account": "low"})
    assert (await enter(api, path, "high", rating=61))["state"] == "waiting"
    assert (await enter(api, path, "near", rating=-50))["state"] == "waiting"
    # After half a second the window of the first is wide enough for the third, and never for the second.
    ticket = await api.eventually(f"{path}/t-low", lambda ticket: ticket["state"] == "matched")
    assert ticket["seating"]["accounts"] == ["low@localhost", "near@localhost"]
    assert 390 <= ticket["seating"]["waited_ms"] < 2000
    await api.problem(409, "ticket-matched", "DELETE", f"{path}/t-low")
    await api.eventually(f"{path}/t-high", lambda ticket: ticket["state"] == "expired")
    await enter(api, path, "gone")
    await api.ok("DELETE", f"{path}/t-gone", status=204)
    await api.problem(404, "unknown-ticket", "GET", f"{path}/t-gone")


async def test_a_party_is_in_one_match(api, queue, players):
    path = await queue(seats=4, party_max=3)
    names = [unique("party") for _ in range(6)]
    problem = await api.problem(422, "invalid-value", "POST", path, {"account": names[0], "party": names[1:4]})
    assert problem["pointer"] == "/party"
    problem = await api.problem(422, "invalid-value", "POST", path, {"account": names[0], "party": names[:1]})
    assert problem["pointer"] == "/party"
    three = await enter(api, path, names[0], party=names[1:3])
    assert (three["state"], three["party"]) == ("waiting", [f"{name}@localhost" for name in names[1:3]])
    await api.problem(409, "account-queued", "POST", path, {"account": names[2]})
    # Two do not fit, one does.
    assert (await enter(api, path, names[3], party=names[4:5]))["state"] == "waiting"
    one = await enter(api, path, names[5])
    three = await api.eventually(f"{path}/t-{names[0]}", lambda ticket: ticket["state"] == "matched")
    seating = three["seating"]
    assert seating["accounts"] == [f"{name}@localhost" for name in (*names[:3], names[5])]
    assert [(seat["seat"], seat["account"]) for seat in seating["party"]] == [
        (1, f"{names[1]}@localhost"),
        (2, f"{names[2]}@localhost"),
    ]
    one = await api.eventually(f"{path}/t-{names[5]}", lambda ticket: ticket["state"] == "matched")
    assert (one["seating"]["match"], one["seating"]["seat"]) == (seating["match"], 3)
    for seat, token in enumerate((seating["token"], *(of["token"] for of in seating["party"]))):
        player = await players()
        player.join(token)
        assert (await player.until(WELCOME)).payload[0] == seat


async def test_what_must_be_alike_keeps_apart(api, queue):
    path = await queue()
    await enter(api, path, "europe", alike={"region": "eu"})
    assert (await enter(api, path, "america", alike={"region": "us"}))["state"] == "waiting"
    assert (await enter(api, path, "europe2", alike={"region": "eu"}))["state"] == "matched"


async def test_bad_requests_are_told_what_is_wrong(api, keys, queue):
    path = await queue()
    await api.problem(404, "unknown-match-queue", "POST", "/v1/matchmaking/none", {"account": "a"})
    await api.problem(409, "already-exists", "PUT", path, {"seats": 3, "tick_rate": 20})
    await api.ok("PUT", path, {"seats": 2, "tick_rate": 20}, status=200)
    for wrong, pointer in (({"seats": 1}, "/seats"), ({"seats": 65}, "/seats"), ({"seats": 2, "mode": "x"}, "/mode")):
        problem = await api.problem(422, "invalid-value", "PUT", f"{path}x", wrong)
        assert problem["pointer"] == pointer
    await api.problem(422, "invalid-value", "POST", path, {"account": "a@elsewhere.example"})
    await api.problem(404, "unknown-match", "GET", "/v1/matches/x")
    other = await keys("send")
    await other.problem(403, "missing-scope", "GET", path)
    own = await keys("matches")
    assert (await own.ok("GET", path))["config"]["tick_rate"] == 20


async def test_many_tickets_make_matches_of_all(api, queue):
    path = await queue(seats=4)
    names = [unique("many") for _ in range(200)]
    await asyncio.gather(*(enter(api, path, name) for name in names))
    tickets = [await api.ok("GET", f"{path}/t-{name}") for name in names]
    seats = {}
    for ticket in tickets:
        assert ticket["state"] == "matched"
        seats.setdefault(ticket["seating"]["match"], set()).add(ticket["seating"]["seat"])
    assert len(seats) == 50
    assert all(taken == {0, 1, 2, 3} for taken in seats.values())


async def test_a_node_that_ends_tells_its_players(start):
    server = start()
    api = Api(server)
    path = "/v1/matchmaking/duel"
    await api.ok("PUT", path, {"seats": 2})
    seatings = await matched(api, path)
    seated = []
    for seating in seatings:
        player = await Player.over_tls(server)
        player.join(seating["token"])
        await player.until(WELCOME)
        seated.append(player)
    await api.aclose()
    ending = asyncio.create_task(asyncio.to_thread(server.end))
    for player in seated:
        assert (await player.until(ENDED)).payload[0] == 4
        assert await player.frame() is None
    await ending


async def test_without_matches_nothing_of_them_is_offered(start):
    server = start(matches__max=0)
    api = Api(server)
    await api.problem(409, "no-matches", "PUT", "/v1/matchmaking/duel", {"seats": 2})
    with pytest.raises((OSError, AssertionError)):
        await Player.over_tls(server)
    with pytest.raises(AssertionError):
        await Player.over_websocket(server)
    await api.aclose()
    await asyncio.to_thread(server.end)


MATCHES = "{urn:carillon:matches:0}"
TICKET = "<ticket xmlns='urn:carillon:matches:0' rating='100'><alike name='region'>eu</alike></ticket>"


@pytest.fixture
async def sessions(server, api):
    """Logs accounts in, each new."""
    opened = []

    async def log_in():
        name = unique("player")
        await api.account(f"{name}@localhost")
        opened.append(await Raw.logged_in(server, name))
        opened[-1].bare = f"{name}@localhost"
        return opened[-1]

    yield log_in
    for raw in opened:
        await raw.close()


async def ask(raw, queue, kind, payload):
    """What a queue answers: its type, and the first element of the answer."""
    id = unique("iq")
    raw.send(f"<iq type='{kind}' id='{id}' to='{queue}@matches.localhost'>{payload}</iq>")
    answer = await raw.until(lambda element: element.get("id") == id)
    return answer.get("type"), next(iter(answer), None)


async def test_players_enter_tickets_by_xmpp_and_are_told_of_their_match(api, queue, players, sessions):
    path = await queue(open=True)
    name = path.rsplit("/", 1)[1]
    one, other = await sessions(), await sessions()
    kind, ticket = await ask(one, name, "set", TICKET)
    assert (kind, ticket.get("state"), ticket.get("rating")) == ("result", "waiting", "100")
    # Over HTTP it is the ticket of that account; entered again, it is the same.
    assert (await api.ok("GET", f"{path}/{ticket.get('id')}"))["account"] == one.bare
    assert (await ask(one, name, "set", TICKET))[1].get("id") == ticket.get("id")
    # It is withdrawn, and entered anew.
    assert (await ask(one, name, "set", "<cancel xmlns='urn:carillon:matches:0'/>"))[0] == "result"
    kind, refusal = await ask(one, name, "get", "<ticket xmlns='urn:carillon:matches:0'/>")
    assert kind == "error"
    assert refusal[0].tag.endswith("}item-not-found")
    await ask(one, name, "set", TICKET)
    kind, mine = await ask(other, name, "set", TICKET)
    told = await one.until(lambda element: element.get("type") == "headline")
    assert told.get("from") == f"{name}@matches.localhost"
    assert kind == "result"
    assert mine.get("state") == told[0].get("state") == "matched"
    seatings = [element.find(f"{MATCHES}seating") for element in (told[0], mine)]
    accounts = [[account.get("jid") for account in seating] for seating in seatings]
    assert accounts == [[one.bare, other.bare]] * 2
    seated = [{"token": seating.get("token"), "seat": int(seating.get("seat"))} for seating in seatings]
    await joined(players, sorted(seated, key=lambda seating: seating["seat"]))


async def test_a_queue_that_is_not_open_takes_no_tickets_of_players_and_shows_them_their_own(api, queue, sessions):
    path = await queue(party_max=2)
    name = path.rsplit("/", 1)[1]
    one, other = await sessions(), await sessions()
    kind, refusal = await ask(one, name, "set", TICKET)
    assert kind == "error"
    assert refusal[0].tag.endswith("}forbidden")
    await enter(api, path, one.bare, party=[other.bare])
    seatings = []
    async with deadline("a match that the node takes"):
        while len(seatings) < 2:
            views = [
                (await ask(raw, name, "get", "<ticket xmlns='urn:carillon:matches:0'/>"))[1] for raw in (one, other)
            ]
            seatings = [view.find(f"{MATCHES}seating") for view in views if view.get("state") == "matched"]
    assert [seating.get("seat") for seating in seatings] == ["0", "1"]
    assert seatings[0].get("token") != seatings[1].get("token")
