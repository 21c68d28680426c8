"""Matches that a module decides: the example with two squares, versions that come while a match is played, and modules that fail."""

import os
import subprocess

import pytest

from harness.api import Api
from harness.inbox import deadline
from harness.matches import (
    CLOCK,
    ENDED,
    OUTCOME,
    SNAPSHOT,
    UPDATE,
    WELCOME,
    Player,
    encoded,
)
from harness.server import ROOT, unique

EXAMPLES = ROOT / "examples/modules"
ZIG = f"{ROOT}/target/interop/modules/bin/python -m ziglang"

# The state is a sum of all inputs; x is a trap, l a loop without end, o the end. An update says the sum and the version.
SUMS = """
#include "carillon_hooks.h"

static uint8_t inputs[4096];
static struct { uint32_t sum, version; } game = { 0, VERSION };

CARILLON_HOOK(match_tick) {
    int size = carillon_field(CARILLON_INPUTS, inputs, sizeof inputs);
    for (int at = 0; at + 3 <= size; at += 3 + (inputs[at + 1] | inputs[at + 2] << 8)) {
        uint8_t first = inputs[at + 3];
        if (inputs[at] != CARILLON_GIVEN) continue;
        if (first == 'x') __builtin_trap();
        if (first == 'l') for (volatile int i = 0;; i++) {}
        if (first == 'o') {
            carillon_output(CARILLON_OUT_OUTCOME, &game, sizeof game);
            return CARILLON_OVER;
        }
        game.sum += first - '0';
    }
    carillon_output(CARILLON_OUT_UPDATE, &game, sizeof game);
    return CARILLON_GOES_ON;
}
CARILLON_HOOK(match_save) {
    carillon_output(CARILLON_OUT_STATE, &game.sum, sizeof game.sum);
    return 0;
}
CARILLON_HOOK(match_load) {
    carillon_field(CARILLON_STATE, &game.sum, sizeof game.sum);
    return REFUSES;
}
"""


@pytest.fixture(scope="module")
def settings():
    return {"shards": 2}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compiles a module for matches; its file."""
    folder = tmp_path_factory.mktemp("matches")
    zig = os.environ.get("ZIG", ZIG).split()
    flags = ["-target", "wasm32-freestanding", "-O2", "-nostdlib", "-Wl,--no-entry", "-Wl,-z,stack-size=65536"]

    def build(name, source, *more):
        into = folder / f"{name}.wasm"
        command = [*zig, "cc", *flags, "-I", EXAMPLES / "include", *more, "-o", into, source]
        subprocess.run(command, check=True, timeout=300, capture_output=True)
        return into

    (folder / "sums.c").write_text(SUMS)

    def sums(version, refuses=0):
        name = f"sums{version}{refuses}"
        return build(name, folder / "sums.c", f"-DVERSION={version}", f"-DREFUSES={refuses}")

    return {
        "squares": build("squares", EXAMPLES / "squares/squares.c"),
        "sums": [sums(1), sums(2), sums(3, refuses=1)],
    }


async def activate(server, name, file):
    """Pushes a module and activates it; its version."""
    pushed = await server.command("module", "push", str(file), "--name", name)
    assert pushed.returncode == 0, pushed.stderr
    done = await server.command("module", "activate", pushed.stdout.strip())
    assert done.returncode == 0, done.stderr
    return pushed.stdout.strip()


@pytest.fixture
async def sums(server, compiled):
    """A module of sums of a name of its own, of its first version."""
    name = unique("sums").lower()
    await activate(server, name, compiled["sums"][0])
    yield name
    await server.command("module", "deactivate", name, "--yes")


async def seated(api, server, **config):
    """Players in the seats of a new match that a module decides, and its name."""
    path = f"/v1/matchmaking/{unique('queue')}"
    config = {"seats": 2, "tick_rate": 20, "mode": "authoritative", **config}
    await api.ok("PUT", path, config, status=201)
    accounts = [unique("player") for _ in range(config["seats"])]
    for account in accounts:
        await api.ok("POST", path, {"id": account, "account": account}, status=201)
    players = []
    for account in accounts:
        ticket = await api.eventually(f"{path}/{account}", lambda ticket: ticket["state"] == "matched")
        seating = ticket["seating"]
        player = await Player.over_tls(server)
        player.token, player.match, player.seat = seating["token"], seating["match"], seating["seat"]
        player.join(player.token)
        welcome = await player.until(WELCOME)
        assert welcome.payload[2] == 2
        players.append(player)
    for player in players:
        assert (await player.until(CLOCK)).payload[0] == 1
    return sorted(players, key=lambda player: player.seat)


def game(frame):
    """Sum and version in an update."""
    return int.from_bytes(frame.payload[:4], "little"), int.from_bytes(frame.payload[4:8], "little")


async def until_sum(player, wanted):
    """The first update whose sum is that; its version."""
    async with deadline("an update"):
        while True:
            total, version = game(await player.until(UPDATE))
            assert total <= wanted
            if total == wanted:
                return version


async def close(*players):
    for player in players:
        await player.close()


def places(frame):
    """Where the squares are, who is it, and the points, as the example writes them."""
    words = [int.from_bytes(frame.payload[at : at + 2], "little") for at in (0, 2, 4, 6)]
    return [(words[0], words[1]), (words[2], words[3])], frame.payload[8], list(frame.payload[10:12])


def toward(own, other):
    """The direction from a place to another."""
    return bytes((b > a + 6) - (b < a - 6) & 0xFF for a, b in zip(own, other, strict=True))


async def test_two_squares_chase_each_other_and_the_server_decides_who_wins(api, server, compiled):
    await activate(server, "squares", compiled["squares"])
    one, other = await seated(api, server, module="squares", tick_rate=60, input_delay=1)
    async with deadline("the end of the game"):
        while True:
            frame = await one.frame()
            assert frame is not None
            if frame.kind == ENDED:
                break
            if frame.kind != UPDATE:
                continue
            squares, it, points = places(frame)
            assert max(points) <= 5
            # Who is it runs after the other, who stands.
            chaser = (one, other)[it]
            chaser.input(frame.tick + 2, toward(squares[it], squares[1 - it]))
            (one, other)[1 - it].input(frame.tick + 2, b"\0\0")
    assert frame.payload[0] == 0
    assert frame.payload[2:] in (b'{"winner":0}', b'{"winner":1}')
    assert (await other.until(ENDED)).payload == frame.payload
    await close(one, other)


async def test_who_comes_back_is_given_the_state(api, server, sums):
    one, other = await seated(api, server, module=sums)
    one.input(5, b"3")
    await until_sum(other, 3)
    other.cut()
    tick = (await one.until(UPDATE)).tick
    one.input(tick + 5, b"4")
    await until_sum(one, 7)
    back = await Player.over_websocket(server)
    back.join(other.token)
    assert (await back.until(WELCOME)).tick == 0
    snapshot = await back.frame()
    while snapshot.kind not in (UPDATE, SNAPSHOT):
        snapshot = await back.frame()
    assert (snapshot.kind, snapshot.payload) == (SNAPSHOT, (7).to_bytes(4, "little"))
    following = await back.until(UPDATE)
    assert (following.tick, game(following)) == (snapshot.tick + 1, (7, 1))
    await api.figure_is("match_snapshots_total", lambda count: count >= 1)
    # What players say came of it means nothing.
    for player in (one, back):
        player.send(encoded(OUTCOME, 10, b"I won", ack=10))
    one.input((await one.until(UPDATE)).tick + 3, b"o")
    ended = await back.until(ENDED)
    assert (ended.payload[0], int.from_bytes(ended.payload[2:6], "little")) == (0, 7)
    await close(one, back)


async def test_a_version_is_changed_between_two_ticks(api, server, compiled, sums):
    one, other = await seated(api, server, module=sums)
    one.input(5, b"5")
    assert await until_sum(one, 5) == 1
    before = (await one.until(UPDATE)).tick
    version = await activate(server, sums, compiled["sums"][1])
    async with deadline("the other version"):
        ticks = [before]
        while game(frame := await one.until(UPDATE)) != (5, 2):
            assert game(frame) == (5, 1)
            ticks.append(frame.tick)
    ticks.append(frame.tick)
    assert ticks == list(range(before, before + len(ticks)))
    state = await api.ok("GET", f"/v1/matches/{one.match}")
    name, _, digits = state["module"].partition("@")
    assert (name, state["mode"]) == (sums, "authoritative")
    assert digits.startswith(version.partition("@")[2])
    await api.figure_is("match_module_swaps_total", lambda count: count >= 1)
    # One that does not take the state leaves the match to the version before it.
    await activate(server, sums, compiled["sums"][2])
    last = (await one.until(UPDATE)).tick
    one.input(last + 4, b"1")
    assert await until_sum(one, 6) == 2
    async with deadline("the line that says so"):
        while "does not take over a match" not in (await server.command("module", "logs", sums)).stdout:
            pass
    # New matches are decided by what is activated.
    young = await seated(api, server, module=sums)
    young[0].input(5, b"2")
    assert await until_sum(young[0], 2) == 3
    await close(one, other, *young)


@pytest.mark.parametrize("fault", [b"x", b"l"])
async def test_a_module_that_fails_goes_on_from_what_was_saved_and_harms_no_other_match(api, server, sums, fault):
    one, other = await seated(api, server, module=sums)
    healthy = await seated(api, server, module=sums)
    one.input(5, b"3")
    await until_sum(one, 3)
    tick = (await one.until(UPDATE, 45)).tick
    one.input(tick + 3, fault)
    for player in (one, other):
        snapshot = await player.until(SNAPSHOT)
        assert snapshot.payload == (3).to_bytes(4, "little")
    one.input(snapshot.tick + 3, b"1")
    await until_sum(one, 4)
    # It fails again and again: it is over. The other match has every tick.
    for ahead in (2, 4):
        one.input((await one.until(UPDATE)).tick + ahead, fault)
        if ahead == 2:
            await one.until(SNAPSHOT)
    assert (await other.until(ENDED)).payload[0] == 5
    first = (await healthy[0].until(UPDATE)).tick
    ticks = [(await healthy[0].until(UPDATE)).tick for _ in range(20)]
    assert ticks == list(range(first + 1, first + 21))
    kind = "trap" if fault == b"x" else "fuel"
    await api.figure_is(f'match_module_failures_total{{failure="{kind}"}}', lambda count: count >= 3)
    await close(one, other, *healthy)


async def test_a_queue_ends_matches_whose_module_fails_where_that_is_wanted(api, server, sums):
    one, other = await seated(api, server, module=sums, on_module_failure="end")
    one.input(5, b"x")
    for player in (one, other):
        assert (await player.until(ENDED)).payload[0] == 5
    await close(one, other)


async def test_a_queue_names_a_module_that_decides_matches(api, server, sums):
    path = f"/v1/matchmaking/{unique('queue')}"
    wrong = {"seats": 2, "mode": "authoritative"}
    for body in (wrong, {"seats": 2, "module": sums}):
        problem = await api.problem(422, "invalid-value", "PUT", path, body)
        assert problem["pointer"] == "/module"
    problem = await api.problem(
        422, "invalid-value", "PUT", path, {**wrong, "module": sums, "on_module_failure": "weep"}
    )
    assert problem["pointer"] == "/on_module_failure"
    await api.problem(404, "unknown-module", "PUT", path, {**wrong, "module": "none"})
    await api.ok("PUT", path, {**wrong, "module": sums}, status=201)
    assert (await api.ok("GET", path))["config"]["on_module_failure"] == "restore"


async def test_tickets_wait_while_their_module_is_not_active_and_matches_go_on(api, server, sums):
    one, other = await seated(api, server, module=sums)
    path = f"/v1/matchmaking/{unique('queue')}"
    await api.ok("PUT", path, {"seats": 2, "mode": "authoritative", "module": sums}, status=201)
    assert (await server.command("module", "deactivate", sums, "--yes")).returncode == 0
    for account in ("a", "b"):
        await api.ok("POST", path, {"id": account, "account": unique(account)}, status=201)
    one.input((await one.until(UPDATE)).tick + 3, b"7")
    await until_sum(one, 7)
    await api.eventually(f"{path}/a", lambda ticket: ticket["state"] == "waiting")
    await close(one, other)


async def test_a_node_has_so_many_of_them(start, compiled):
    server = start(shards=1, matches__authoritative_max=1)
    api = Api(server)
    name = "sums"
    await activate(server, name, compiled["sums"][0])
    one, other = await seated(api, server, module=name)
    path = "/v1/matchmaking/more"
    await api.ok("PUT", path, {"seats": 2, "mode": "authoritative", "module": name}, status=201)
    for account in ("a", "b"):
        await api.ok("POST", path, {"id": account, "account": account}, status=201)
    await api.eventually(f"{path}/a", lambda ticket: ticket["state"] == "waiting")
    await api.figure_is("matches_authoritative", lambda count: count == 1)
    await api.figure_is("matches_refused_total", lambda count: count >= 1)
    one.send(encoded(7))
    assert (await other.until(ENDED)).payload[0] == 1
    await api.eventually(f"{path}/a", lambda ticket: ticket["state"] == "matched")
    await close(one, other)
    await api.aclose()
    server.end()
