"""What befalls the node and its connections, one after the other, chosen by the seed."""

import asyncio
import collections
import contextlib
import dataclasses
import math
import signal
import time

from harness.postgres import WANTED
from harness.upgrade import PATIENCE_S

from .pace import pause
from .sleepers import FAILURES

# Processes that take over only in part, and leave the old one serving.
FAILING = (
    "ends at once",
    "hangs at once",
    "garbage",
    "refuses",
    "ends when it is ready to take over",
    "hangs when it is ready to take over",
    "ends among the sessions",
    "ends with all sessions",
    "cannot read the sessions",
    "hangs with all sessions",
)
# The moments at which a process of an upgrade is killed: any, or when neither has the store.
ANY, STORE_IS_CLOSED = "at any moment", "between READY and GO"
# How long the nodes of a cell tell each other what they have, where one has come back.
SETTLES_S = 3
# How long an upgrade takes, about, if none was made yet.
UPGRADE_S = 0.2


class Disturbed:
    """Does what befalls a campaign. What is said or done meanwhile that should not be is in the ledger."""

    def __init__(self, kinds, node, ledger, devices, random):
        # By name.
        self.kinds = kinds
        self.node = node
        self.ledger = ledger
        self.devices = devices
        self.random = random
        self.rounds = collections.Counter()
        self.restarts_s = []
        self.upgrades_s = []
        self._next = []

    async def next(self, kind=None):
        """The next fault: of this kind, or each in its turn, in an order of the seed. What it was."""
        if not self._next:
            self._next = list(self.kinds)
            self.random.shuffle(self._next)
        kind = kind or self._next.pop()
        self.rounds[kind] += 1
        detail = await self.kinds[kind](self)
        return f"{kind} ({detail})" if detail else kind

    @contextlib.contextmanager
    def disturbed(self, **times):
        """What sessions of a cell may not outlive takes its time."""
        self.ledger.disturbed_until = math.inf
        self.note(**times)
        yield
        self.note(**times)
        self.ledger.disturbed_until = time.monotonic() + SETTLES_S

    def note(self, crashes=0, restarts=0):
        """Notes what sessions may not outlive."""
        times = self.ledger.times
        self.ledger.times = dataclasses.replace(
            times, crashes=times.crashes + crashes, restarts=times.restarts + restarts
        )

    async def cut(self):
        """Clients lose their connections, and some of them lose the next one, too."""
        for _ in range(self.random.randint(1, 3)):
            for device in self.random.sample(self.devices, self.random.randint(1, len(self.devices))):
                device.interrupt()
            await pause(self.random.uniform(0.01, 0.8))

    async def database_restarts(self):
        """The server of the store is restarted in order, and is away for a while."""
        return await self._without_database(signal.SIGINT)

    async def database_crashes(self):
        """The server of the store crashes, and recovers from its log."""
        return await self._without_database(signal.SIGQUIT)

    async def database_cuts(self):
        """The server of the store ends its sessions, some of them with a commit under way."""
        name = self.node.database
        cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' AND pid <> pg_backend_pid()"
        for _ in range(self.random.randint(1, 5)):
            await asyncio.to_thread(self.node.postgres.sql, cut, name)
            await pause(self.random.uniform(0.01, 0.5))

    async def _without_database(self, how):
        away_s = self.random.uniform(0, 3)
        await asyncio.to_thread(self.node.postgres.stop, how)
        await pause(away_s)
        await asyncio.to_thread(self.node.postgres.start)
        return f"away for {away_s:.1f} s"


class Faults(Disturbed):
    """Does to a node what befalls it."""

    async def kill(self):
        """SIGKILL."""
        await self._crashes()

    async def gateway(self):
        """APNs fails in one of its ways, and SIGKILL befalls the node meanwhile."""
        how = self.random.choice(FAILURES)
        self.sleepers.apns.fail(how)
        await pause(self.random.uniform(0, 1.5))
        await self._crashes()
        await pause(self.random.uniform(0, 0.5))
        self.sleepers.apns.recover()
        return f"APNs {how}"

    def ends(self):
        """How often what was under way to a push service may have been given up: when the node ended, another process went on for it, or it did nothing."""
        return self.rounds.total() - self.rounds["cut"]

    async def stop(self):
        """SIGSTOP and SIGCONT."""
        await self.node.stop_for(self.random.uniform(0.5, 3))

    async def restart(self):
        """SIGTERM, and another start: sessions wait in the store."""
        began = time.monotonic()
        for line in await self.node.end():
            self.ledger.wrong("log", line)
        self.note(restarts=1)
        await self.node.start()
        self.restarts_s.append(time.monotonic() - began)

    async def upgrade(self):
        """A live upgrade that works."""
        before, began = self._cut(), time.monotonic()
        upgrade = self.node.begin_upgrade()
        if not await upgrade.successor() or not await upgrade.outcome():
            raise AssertionError(f"the node is gone:\n{self.node.server.log.read_text()}")
        if self.node.server.process is not upgrade.new:
            self.ledger.wrong("upgrade", "the node was not handed over")
        self._closed_nothing(before)
        self.upgrades_s.append(time.monotonic() - began)

    async def failing(self):
        """A live upgrade to a process that fails before the node is confirmed to it."""
        mode = self.random.choice(FAILING)
        before = self._cut()
        await asyncio.to_thread(self.node.server.replace_binary, mode)
        await self.node.server.fails_to_upgrade()
        await asyncio.to_thread(self.node.server.restore_binary)
        self._closed_nothing(before)
        return mode

    async def torn(self):
        """A live upgrade in which one of the processes is killed. Where none is left the node is started again."""
        moment, victim = self.random.choice((ANY, ANY, STORE_IS_CLOSED)), self.random.choice(("old", "new"))
        after_s = self.random.uniform(0, 1.2 * max(self.upgrades_s, default=UPGRADE_S))
        before = self._cut()
        upgrade = self.node.begin_upgrade()
        if not await upgrade.successor():
            raise AssertionError(f"no process takes over:\n{self.node.server.log.read_text()}")
        await (upgrade.store_is_closed() if moment is STORE_IS_CLOSED else pause(after_s))
        process = upgrade.old if victim == "old" else upgrade.new
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await asyncio.to_thread(process.wait, PATIENCE_S)
        if serves := await upgrade.outcome():
            self._closed_nothing(before)
            which = "new" if self.node.server.process is upgrade.new else "old"
        else:
            await self._crashes()
        return f"the {victim} process {moment}: {f'the {which} one goes on' if serves else 'none is left'}"

    async def _crashes(self):
        began = time.monotonic()
        for line in await self.node.kill():
            self.ledger.wrong("log", line)
        self.note(crashes=1)
        await self.node.start()
        self.restarts_s.append(time.monotonic() - began)

    def _cut(self):
        """How often each device lost a connection that it wanted."""
        return {device: device.cut for device in self.devices}

    def _closed_nothing(self, before):
        for device, cut in self._cut().items():
            if cut > before[device]:
                self.ledger.wrong("closed", f"{device.jid} lost its connection in an upgrade")


KINDS = {
    "kill": Faults.kill,
    "gateway": Faults.gateway,
    "cut": Disturbed.cut,
    "restart": Faults.restart,
    "upgrade": Faults.upgrade,
    "failing-upgrade": Faults.failing,
    "torn-upgrade": Faults.torn,
    "stop": Faults.stop,
}
if WANTED:
    KINDS |= {
        "database-restart": Disturbed.database_restarts,
        "database-crash": Disturbed.database_crashes,
        "database-cut": Disturbed.database_cuts,
    }
