"""The system's clock jumps while the node runs; the monotonic clock goes on as it is."""

import datetime
import json
import os
import pathlib
import struct
import subprocess
import xml.etree.ElementTree as ET

import pytest
from test_fast import SASL2, first_login, redeem

from harness.api import Api
from harness.raw import CLIENT, Raw
from harness.server import Server

SOURCE = pathlib.Path(__file__).parent / "harness/clock.c"
HOUR_S = 3600
DAY_S = 24 * HOUR_S
JSON = "{urn:xmpp:json:0}json"


class Clock:
    """The clock that a node sees."""

    def __init__(self, library, file):
        self.environment = {"LD_PRELOAD": str(library), "CARILLON_TEST_CLOCK": str(file)}
        self.offset_s = 0
        self._file = file
        self.jump(0)

    def jump(self, seconds):
        self.offset_s += seconds
        # The node has mapped the file: it is changed in place, all bytes at once.
        file = os.open(self._file, os.O_WRONLY | os.O_CREAT)
        os.pwrite(file, struct.pack("=q", self.offset_s), 0)
        os.close(file)

    def now(self, plus=0):
        return datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=self.offset_s + plus)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """What puts itself before the system's clock."""
    made = tmp_path_factory.mktemp("clock") / "clock.so"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", made, SOURCE], check=True)
    return made


@pytest.fixture
async def node(tmp_path, library):
    """A node with a clock of its own: its server, its API, the clock."""
    clock = Clock(library, tmp_path / "clock")
    server = Server(
        tmp_path, clock.environment, notifications__ttl_max_ms="30d", ping__idle_ms="1s", ping__wait_ms="10s"
    )
    api = Api(server)
    for name in ("alice", "bob"):
        await api.account(f"{name}@localhost")
    yield server, api, clock
    await api.aclose()
    server.end()


def is_notification(element):
    return element.tag == CLIENT + "message" and element.find(JSON) is not None


async def payloads(stream, count):
    return [json.loads((await stream.until(is_notification)).findtext(JSON)) for _ in range(count)]


async def seen_by(api, clock):
    """The node's own idea of now, from an answer of it."""
    accepted = (await api.notify("bob", "what time is it", audience="active"))["id"]
    return datetime.datetime.fromisoformat((await api.trace(accepted))["accepted_at"])


async def pinged(stream):
    """Waits for a ping of the server, which its monotonic clock brings about, and answers it."""
    ping = await stream.until(lambda e: e.find("{urn:xmpp:ping}ping") is not None)
    stream.send(f"<iq type='result' id='{ping.get('id')}' to='localhost'/>")
    await stream.ping()


@pytest.mark.parametrize("seconds", [HOUR_S, -HOUR_S], ids=["forward", "back"])
async def test_sessions_and_deliveries_go_on_whatever_the_clock_does(node, seconds):
    server, api, clock = node
    alice = await Raw.logged_in(server, "alice")
    await api.notify("alice", 0)
    clock.jump(seconds)
    assert abs(await seen_by(api, clock) - clock.now()) < datetime.timedelta(minutes=1)
    await api.notify("alice", 1)
    assert await payloads(alice, 2) == [0, 1]
    await pinged(alice)
    clock.jump(-seconds)
    await api.notify("alice", 2)
    assert await payloads(alice, 1) == [2]
    await pinged(alice)
    await alice.close()


async def test_what_expired_in_an_hour_that_was_skipped_is_not_delivered(node):
    server, api, clock = node
    short, long = [await api.notify("alice", name, ttl=ttl) for name, ttl in (("short", 1800), ("long", 7200))]
    due = await api.notify("bob", "due", send_at=clock.now(1800).isoformat())
    bob = await Raw.logged_in(server, "bob")
    clock.jump(HOUR_S)
    assert await payloads(bob, 1) == ["due"]
    await api.eventually(f"/v1/notifications/{short['id']}", lambda trace: trace["state"] == "expired")
    alice = await Raw.logged_in(server, "alice")
    assert await payloads(alice, 1) == ["long"]
    assert (await api.trace(long["id"]))["state"] != "expired"
    assert (await api.trace(due["id"]))["state"] in ("sent", "acknowledged")
    for stream in (alice, bob):
        await stream.close()


async def test_nothing_is_lost_and_order_holds_in_an_hour_that_comes_twice(node):
    """What waits for a device comes in the order in which it was stored, whatever the clock said."""
    server, api, clock = node
    sent = [(await api.notify("alice", n))["id"] for n in range(3)]
    clock.jump(-HOUR_S)
    sent += [(await api.notify("alice", n))["id"] for n in range(3, 6)]
    later = await api.notify("bob", "later", send_at=clock.now(2).isoformat())
    bob = await Raw.logged_in(server, "bob")
    assert await payloads(bob, 1) == ["later"]
    alice = await Raw.logged_in(server, "alice")
    assert await payloads(alice, 6) == [0, 1, 2, 3, 4, 5]
    await api.notify("alice", 6)
    assert await payloads(alice, 1) == [6]
    listed = (await api.ok("GET", "/v1/notifications?to=alice&limit=100"))["notifications"]
    assert {one["id"] for one in listed} > set(sent)
    assert (await api.trace(later["id"]))["state"] in ("sent", "acknowledged")
    for stream in (alice, bob):
        await stream.close()


async def test_chat_messages_kept_before_and_after_a_jump_back_come_in_their_order(node):
    server, _, clock = node
    bob = await Raw.logged_in(server, "bob")
    for n in range(6):
        if n == 3:
            clock.jump(-HOUR_S)
        bob.send(f"<message type='chat' to='alice@localhost'><body>{n}</body></message>")
        await bob.ping()
    alice = await Raw.logged_in(server, "alice")
    messages = [await alice.until(lambda e: e.tag == CLIENT + "message") for _ in range(6)]
    assert [message.findtext(CLIENT + "body") for message in messages] == [str(n) for n in range(6)]
    for stream in (alice, bob):
        await stream.close()


async def test_a_request_is_safe_to_repeat_over_jumps(node):
    _, api, clock = node
    ids = set()
    for jump in (0, -HOUR_S, 2 * HOUR_S):
        clock.jump(jump)
        body = {"to": "alice", "payload": 1}
        answer = await api.ok("POST", "/v1/notifications", body, status=202, headers={"idempotency-key": "k"})
        ids.add(answer["id"])
    assert len(ids) == 1


async def test_tokens_last_as_long_as_the_clock_says(node):
    server, _, clock = node
    given = clock.now().timestamp()
    token = await first_login(server, "alice")

    async def attempt(count):
        stream = await Raw.secured(server)
        stream.send(redeem("alice", token, count=count))
        answer = await stream.element()
        await stream.close()
        return answer

    for count, jump in enumerate((HOUR_S, -2 * HOUR_S), 1):
        clock.jump(jump)
        answer = await attempt(count)
        assert answer.tag == SASL2 + "success", ET.tostring(answer)
    # A token is of an epoch, a quarter of the 21 days, and is over with the third one after it; another epoch later it is forgotten.
    epoch = 21 * DAY_S // 4
    expires = (given // epoch + 4) * epoch
    clock.jump(int(expires - clock.now().timestamp()) + HOUR_S)
    answer = await attempt(3)
    assert answer.tag == SASL2 + "failure", ET.tostring(answer)
    assert answer.find("{urn:ietf:params:xml:ns:xmpp-sasl}credentials-expired") is not None, ET.tostring(answer)
    await (await Raw.logged_in(server, "alice")).close()
