"""A cell of a campaign: nodes over one PostgreSQL, one NATS and, if they write their sessions down, one Redis, and what befalls them, one after the other, chosen by the seed."""

import asyncio
import contextlib
import pathlib
import signal
import time

from harness.cell import Cell
from harness.postgres import name_of
from harness.redis import Redis

from .faults import Disturbed
from .node import SETTINGS, client
from .pace import pause

# What the log of a node says in a fault of the engines or of the node itself, as it is to.
EXPECTED = (
    "others may have buried this node",
    "this node was buried by the others",
    "another process of this node has taken over",
    "this process cannot serve any more",
    "the store cannot be reached",
    "the store fails",
    "store read failed error=PostgreSQL: connection closed",
)
# Longer than any node is stopped: by then a device that says what it has received has said it, or has lost its connection.
RECEIPTS = {"notifications__receipt_wait_ms": 20_000}
# A node that is not heard for so long is buried by the others.
LEASE_S = 9
# How long a node that was buried may take to notice that, and to end.
ENDS_S = 30


class Nodes:
    """The nodes of a cell: devices and senders come to any that runs."""

    def __init__(self, folder, seeds, count, has_redis):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.random = seeds
        self.count = count
        self.has_redis = has_redis
        self.redis = None
        self.up = asyncio.Event()
        self.starts = 0

    async def start(self):
        settings = SETTINGS | RECEIPTS
        if self.has_redis:
            self.redis = await asyncio.to_thread(Redis)
            settings |= {"cell__redis": self.redis.url}
        self.cell = await asyncio.to_thread(Cell, self.folder, self.count, **settings)
        self.postgres = self.cell.postgres
        self.database = name_of(self.cell.url)
        # One for all: an idempotency key is that of an API key.
        self.key = self.cell.nodes[0].key
        self.clients = [client(server, self.key) for server in self.cell.nodes]
        self.tls = [server.tls() for server in self.cell.nodes]
        # Those that serve, as far as this process knows.
        self.serving = set(range(self.count))
        self.up.set()

    def faults(self, *arguments):
        return CellFaults(KINDS | REDIS_KINDS if self.has_redis else KINDS, self, *arguments)

    @property
    def http(self):
        """A node for a request."""
        return self.clients[self._any()]

    def entrance(self):
        """A node for a client, and what certificate that is to have."""
        number = self._any()
        return self.cell.nodes[number], self.tls[number]

    def _any(self):
        return self.random.choice(sorted(self.serving))

    async def kill(self):
        """Ends everything, after a failure of the campaign."""
        await self._end_engines()

    async def _end_engines(self):
        await asyncio.to_thread(self.cell.end)
        if self.redis:
            await asyncio.to_thread(self.redis.end)

    async def end(self):
        """Ends all nodes, one after the other. What was wrong with that and with their logs."""
        self.up.clear()
        wrong = []
        for number in sorted(self.serving):
            wrong += await self.leave(number)
        await self._end_engines()
        return wrong

    async def leave(self, number):
        """Asks a node to end. What was wrong with that and with its log."""
        self.serving.discard(number)
        wrong = []
        try:
            await asyncio.to_thread(self.cell.nodes[number].end, EXPECTED)
        except AssertionError as error:
            wrong.append(str(error))
        await self.clients[number].aclose()
        return wrong

    async def crash(self, number):
        """Ends a node as a power cut would. What its log has that it should not."""
        self.serving.discard(number)
        await asyncio.to_thread(self.cell.nodes[number].kill)
        await self.clients[number].aclose()
        return self.errors(number)

    async def come_back(self, number):
        """Starts a node that has ended."""
        log = self.cell.nodes[number].log
        self.starts += 1
        log.rename(log.with_name(f"log.{self.starts}"))
        server = self.cell.nodes[number] = await asyncio.to_thread(self.cell.start, number)
        self.clients[number] = client(server, self.key)
        self.tls[number] = server.tls()
        self.serving.add(number)

    def errors(self, number):
        lines = self.cell.nodes[number].log.read_text().splitlines()
        bad = (line for line in lines if "panicked" in line or " ERROR " in line)
        return [line for line in bad if not any(text in line for text in EXPECTED)]


class CellFaults(Disturbed):
    """Does to a cell what befalls it."""

    async def kill(self):
        """SIGKILL of a node, which is away for a while."""
        number, began = self._victim(), time.monotonic()
        with self.disturbed(crashes=1):
            self._logged(await self.node.crash(number))
            await pause(self.random.uniform(0, LEASE_S))
            await self.node.come_back(number)
        self.restarts_s.append(time.monotonic() - began)

    async def leave(self):
        """SIGTERM of a node, which is away for a while."""
        number, began = self._victim(), time.monotonic()
        with self.disturbed(restarts=1):
            self._logged(await self.node.leave(number))
            await pause(self.random.uniform(0, 3))
            await self.node.come_back(number)
        self.restarts_s.append(time.monotonic() - began)

    async def stop(self):
        """SIGSTOP and SIGCONT of a node, within its lease."""
        number = self._victim()
        seconds = self.random.choice((0.006, self.random.uniform(0.5, 3)))
        with self.disturbed(crashes=1):
            await self._stopped(number, seconds)
        return f"for {seconds:.3f} s"

    async def bury(self):
        """SIGSTOP of a node, until the others have buried it: it ends when it goes on."""
        number = self._victim()
        process = self.node.cell.nodes[number].process
        with self.disturbed(crashes=1):
            self.node.serving.discard(number)
            await self._stopped(number, LEASE_S + self.random.uniform(2, 4))
            code = await asyncio.to_thread(process.wait, ENDS_S)
            if code != 1:
                self.ledger.wrong("log", f"a buried node ended with {code}")
            self._logged(self.node.errors(number))
            await self.node.clients[number].aclose()
            await self.node.come_back(number)

    async def bus_away(self):
        """The bus is restarted, and away for a while."""
        return await self._away(self.node.cell.nats)

    async def bus_stalls(self):
        """The bus does nothing for a while."""
        return await self._stalled(self.node.cell.nats)

    async def redis_away(self):
        """The store of the sessions is killed, is away for a while, and has forgotten everything."""
        return await self._away(self.node.redis)

    async def redis_stalls(self):
        """The store of the sessions does nothing for a while."""
        return await self._stalled(self.node.redis)

    async def cut_off(self):
        """One node cannot reach the database."""
        number, away_s = self._victim(), self.random.uniform(0.5, 8)
        with self.disturbed(crashes=1):
            await asyncio.to_thread(self.node.cell.cut_off, number)
            await pause(away_s)
            self.node.cell.reconnect(number)
        return f"for {away_s:.1f} s"

    async def _away(self, engine):
        away_s = self.random.uniform(0, 3)
        with self.disturbed(crashes=1):
            await asyncio.to_thread(engine.stop)
            await pause(away_s)
            await asyncio.to_thread(engine.start)
        return f"away for {away_s:.1f} s"

    async def _stalled(self, engine):
        stalls_s = self.random.uniform(0.1, 4)
        with self.disturbed(crashes=1):
            engine.pause()
            await pause(stalls_s)
            engine.go_on()
        return f"for {stalls_s:.1f} s"

    def _victim(self):
        return self.random.choice(sorted(self.node.serving))

    def _logged(self, lines):
        for line in lines:
            self.ledger.wrong("log", line)

    async def _stopped(self, number, seconds):
        process = self.node.cell.nodes[number].process
        process.send_signal(signal.SIGSTOP)
        try:
            await pause(seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)


KINDS = {
    "kill": CellFaults.kill,
    "cut": Disturbed.cut,
    "leave": CellFaults.leave,
    "stop": CellFaults.stop,
    "bury": CellFaults.bury,
    "bus-restart": CellFaults.bus_away,
    "bus-stall": CellFaults.bus_stalls,
    "cut-off": CellFaults.cut_off,
    "database-restart": Disturbed.database_restarts,
    "database-crash": Disturbed.database_crashes,
    "database-cut": Disturbed.database_cuts,
}
REDIS_KINDS = {
    "redis-restart": CellFaults.redis_away,
    "redis-stall": CellFaults.redis_stalls,
}
