"""What befalls the process: it is stopped, a shard dies, it has no descriptors left, is talked to by thousands that never finish a word. SIGKILL
and SIGSTOP under load: ``kills``. Clocks: ``test_clock.py``; disks: ``test_disks.py``."""

import asyncio
import contextlib
import errno
import os
import random
import resource
import socket
import ssl
import struct
import time

import pytest

from harness.api import Api
from harness.faults import Faults
from harness.inbox import deadline
from harness.raw import CLIENT, STARTTLS, Raw, header
from harness.server import Server
from harness.websocket import request
from kills.campaign import Campaign
from kills.report import table

ENABLE = "<enable xmlns='urn:xmpp:sm:3'/>"
SLOW = 3000
NO_DESCRIPTOR = "no descriptor for a new connection"


async def test_a_process_that_is_stopped_and_goes_on_loses_nothing(tmp_path):
    """SIGSTOP and SIGCONT under load. Pings are due every second: who was not heard in time comes again."""
    campaign = Campaign(tmp_path, 1, clients=60, rate=60, ping__idle_ms=1000, ping__wait_ms=1000)
    await campaign.run(3, "stop")
    assert not campaign.ledger.violations, table(campaign)
    assert campaign.ledger.notifications


async def test_a_shard_that_dies_ends_the_process_and_loses_nothing(tmp_path):
    """No other shard serves its accounts: the process says so, ends by itself with a failure, and its successor has what was accepted."""
    faults = Faults(tmp_path)
    server = Server(tmp_path, environment=faults.environment, drain__timeout_ms=1000)
    api = Api(server)
    names = [f"u{n}" for n in range(8)]
    for name in names:
        await api.account(f"{name}@localhost")
    sessions = [await Raw.logged_in(server, name) for name in names[:4]]
    accepted = {name: (await api.notify(name, 1))["id"] for name in names[4:]}
    faults.set(shard_clock_errno=errno.EINVAL)
    code = await asyncio.to_thread(server.process.wait, 20)
    log = server.log.read_text()
    assert code == 1, log
    assert faults.met == 1
    for said in ("a shard has died of a fault", "the node ends, to be started again by whoever watches it"):
        assert said in log, log
    assert not (server.data / "node.json").exists(), "it ended in order"
    for session in sessions:
        await session.close()
    await api.aclose()
    server = Server(tmp_path)
    for name, id in accepted.items():
        session = await Raw.logged_in(server, name)
        assert (await session.until(lambda e: e.tag == CLIENT + "message")).get("id") == id
        await session.close()
    server.end()


@pytest.fixture
async def started(tmp_path):
    """Starts a node of the test's own, and its API."""
    async with contextlib.AsyncExitStack() as stack:

        def start(expected=(), **settings):
            server = Server(tmp_path, **settings)
            stack.callback(server.end, expected)
            api = Api(server)
            stack.push_async_callback(api.aclose)
            return server, api

        yield start


async def test_a_process_without_descriptors_serves_those_it_has(started):
    """Its limit falls to what is open: sessions and requests go on, nothing is lost, and newcomers get in when there is room."""
    server, api = started(expected=[NO_DESCRIPTOR])
    for name in ("alice", "bob", "carol"):
        await api.account(f"{name}@localhost")
    alice, bob = await Raw.logged_in(server, "alice"), await Raw.logged_in(server, "bob", presence=False)
    bob.send(ENABLE)
    await bob.available()
    pid = server.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    opened = len(os.listdir(f"/proc/{pid}/fd"))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (opened, before[1]))
    crowd = [await asyncio.open_connection("127.0.0.1", server.port(port)) for port in ("c2s", "c2s_tls") * 20]
    sent = []
    for n in range(20):
        sent.append((await api.notify("bob", n))["id"])
        alice.send(f"<message type='chat' to='carol@localhost'><body>{n}</body></message>")
    await alice.ping()
    got = [(await bob.until(lambda e: e.tag == CLIENT + "message")).get("id") for _ in sent]
    assert got == sent
    for _, writer in crowd:
        writer.close()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    carol = await Raw.logged_in(server, "carol")
    bodies = [(await carol.until(lambda e: e.tag == CLIENT + "message")).findtext(CLIENT + "body") for _ in range(20)]
    assert bodies == [str(n) for n in range(20)]
    refused = await api.figure('connections_refused_total{reason="descriptors"}')
    assert refused > 0
    assert 0 < server.log.read_text().count(NO_DESCRIPTOR) <= 2 * 2, "said once for each listener of a shard"
    for stream in (alice, bob, carol):
        await stream.close()


class Handshake:
    """A client's side of a TLS handshake on a socket, byte by byte."""

    def __init__(self, server, reader, writer):
        self.reader, self.writer = reader, writer
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = server.tls().wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def flight(self):
        """What is to be sent next; nothing when the handshake is done."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.outgoing.read()

    async def answered(self):
        self.incoming.write(await self.reader.read(65536))


def reset(writer):
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def break_off(server, port, chance):
    """Breaks a handshake off: at any byte of either flight, in order or by a reset, with bytes that are wrong or without."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port(port))
    if port == "c2s":
        stream = Raw(server, reader, writer)
        await stream.begin()
        stream.send(STARTTLS)
        await stream.element()
    handshake = Handshake(server, reader, writer)
    flight = handshake.flight()
    if chance.random() < 0.5:
        writer.write(flight)
        await handshake.answered()
        flight = handshake.flight()
    flight = bytearray(flight[: chance.randrange(len(flight))])
    if flight and chance.random() < 0.5:
        flight[chance.randrange(len(flight))] ^= 1 << chance.randrange(8)
    writer.write(flight)
    if chance.random() < 0.5:
        reset(writer)
        return
    writer.write_eof()
    # An alert, or nothing, and the end.
    with contextlib.suppress(ConnectionError):
        async with deadline("the end of the connection"):
            await reader.read()
    writer.close()


async def test_handshakes_that_fail_leave_nothing_behind(started):
    server, api = started()
    await api.account("alice@localhost")
    alice = await Raw.logged_in(server, "alice")
    chance = random.Random(1)
    for _ in range(10):
        async with asyncio.TaskGroup() as group:
            for port in ("c2s", "c2s_tls") * 20:
                group.create_task(break_off(server, port, chance))
        # Somebody who does it right is served meanwhile.
        await (await Raw.logged_in(server, "alice", resource="other")).close()
    await alice.ping()
    await api.figure_is("handshakes_in_flight", lambda n: n == 0)
    await api.figure_is("connections", lambda n: n == 1)
    await alice.close()


class Slow:
    """A connection that sends a byte from time to time and never comes to an end."""

    def __init__(self, port, reader, writer, text):
        self.port, self.reader, self.writer, self.text = port, reader, writer, text
        self.sent = 0

    def drip(self):
        if not self.writer.transport.is_closing():
            self.writer.write(self.text[self.sent : self.sent + 1])
            self.sent += 1


async def test_thousands_of_slow_connections_are_ended_and_nobody_else_notices(started):
    """A byte at a time on three ports: none becomes a session, each has its time, and those who know what they want are served."""
    server, api = started(limits__profile="benchmark", timeouts__auth_ms="6s")
    for name in ("alice", "bob"):
        await api.account(f"{name}@localhost")
    alice = await Raw.logged_in(server, "alice")
    memory = await api.figure("process_resident_memory_bytes")
    hello = Handshake(server, None, None).flight()
    texts = {
        "c2s": header(extra=" " * 5000).encode(),
        "c2s_tls": hello,
        "websocket": request(x_padding="y" * 5000).encode(),
    }
    slow = []
    for n in range(SLOW):
        port = list(texts)[n % 3]
        slow.append(Slow(port, *await asyncio.open_connection("127.0.0.1", server.port(port)), texts[port]))
    ends = asyncio.gather(*(one.reader.read() for one in slow), return_exceptions=True)
    slowest = rounds = 0
    async with deadline("the end of them all", 60):
        while not ends.done():
            rounds += 1
            for one in slow:
                one.drip()
            began = time.monotonic()
            id = (await api.notify("alice", rounds))["id"]
            await alice.until(lambda e, id=id: e.get("id") == id)
            bob = await Raw.logged_in(server, "bob")
            await bob.close()
            slowest = max(slowest, time.monotonic() - began)
    assert rounds > 3
    assert slowest < 5, "a notification and a login take no longer than on any busy machine"
    assert await api.figure("process_resident_memory_bytes") - memory < 100 * 2**20
    await api.figure_is("connections", lambda n: n == 1)
    for one in slow:
        one.writer.close()
    await alice.close()
