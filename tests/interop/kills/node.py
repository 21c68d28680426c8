"""The node of a campaign: the process that runs now, if any, and what is done to it."""

import asyncio
import contextlib
import json
import pathlib
import signal

import httpx

from harness.postgres import name_of, postgres
from harness.store import value
from harness.upgrade import PATIENCE_S, Successor, Upgradable

from .faults import KINDS, Faults
from .pace import pause, until

SETTINGS = {
    "limits__profile": "benchmark",
    "limits__pending_notifications": 100_000,
    "limits__offline_messages": 10_000,
    "notifications__receipt_wait_ms": 500,
    "light__port": 0,
    "broadcasts.per_domain_max": 1000,
}
UPGRADES = {
    # A process that hangs while it takes over is waited for so long.
    "upgrade__start_timeout_ms": 5000,
    "upgrade__pause_timeout_ms": 3000,
}
# What the node says of an upgrade that failed, as it is to.
NOT_HANDED_OVER = "not handed over"


class Node:
    """The process that runs now, if any, and how it is reached."""

    def __init__(self, folder, **settings):
        self.folder = folder
        self.settings = SETTINGS | UPGRADES | settings
        self.up = asyncio.Event()
        self.tls = None

    async def start(self):
        self.server = await asyncio.to_thread(Upgradable, self.folder, **self.settings)
        self.tls = self.tls or self.server.tls()
        self.http = client(self.server)
        self.up.set()

    def faults(self, *arguments):
        return Faults(KINDS, self, *arguments)

    def entrance(self):
        """The node for a client, and what certificate it is to have."""
        return self.server, self.tls

    @property
    def postgres(self):
        return postgres()

    @property
    def database(self):
        return name_of(self.server.store_url)

    async def kill(self):
        """Ends the process as a power cut would. What its log has that it should not."""
        self.up.clear()
        await asyncio.to_thread(self.server.kill)
        await self.http.aclose()
        return self.errors()

    def errors(self):
        log = self.server.log.read_text().splitlines()
        bad = [line for line in log if "panicked" in line or " ERROR " in line]
        return [line for line in bad if NOT_HANDED_OVER not in line]

    async def stop_for(self, seconds):
        """The process does nothing meanwhile; its sockets stay open."""
        self.server.process.send_signal(signal.SIGSTOP)
        try:
            await pause(seconds)
        finally:
            self.server.process.send_signal(signal.SIGCONT)

    async def end(self):
        """Asks the process to end. What was wrong with that and with its log."""
        self.up.clear()
        wrong = []
        try:
            await asyncio.to_thread(self.server.end, [NOT_HANDED_OVER])
        except AssertionError as error:
            wrong.append(str(error))
        await self.http.aclose()
        return wrong

    def begin_upgrade(self):
        """Asks the process to hand the node over."""
        upgrade = Upgrade(self.server)
        upgrade.old.send_signal(signal.SIGUSR2)
        return upgrade


class Upgrade:
    """An upgrade that is under way: of two processes one will serve, or none."""

    def __init__(self, server):
        self.server = server
        self.old = Successor(server.process.pid)
        self.new = None
        self._log_bytes = server.log.stat().st_size

    async def successor(self):
        """Waits until the new process is there. Whether it is."""
        if pid := await until(lambda: child(self.old.pid), PATIENCE_S):
            self.new = Successor(pid)
        return self.new is not None

    async def store_is_closed(self):
        """Waits for the moment between READY and GO, when neither process has the store, or for the end of one of them."""
        path = str(self.server.data.resolve() / "carillon.db")

        def is_closed():
            if not self.server.store_url:
                return not has_open(self.old.pid, path)
            sessions = (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            return value(self.server, sessions) == "0"

        await until(lambda: self.old.poll() is not None or is_closed(), PATIENCE_S)

    async def outcome(self):
        """Waits until one process serves, which is the server's then, or none is left. Whether one does."""
        if await until(lambda: self._present() or self._is_over(), 2 * PATIENCE_S) is None:
            raise AssertionError(f"two processes have the node:\n{self.server.log.read_text()}")
        process = self._present()
        # The first process is a child of this one; it is to leave nothing behind.
        if self.old.poll() is not None:
            self.server.process.wait()
        if process is self.new and process is not None:
            self.server.process = process
            self.server.ports = json.loads((self.server.folder / "ready.json").read_text())
        return process is not None

    def _is_over(self):
        return all(process is None or process.poll() is not None for process in (self.old, self.new))

    def _present(self):
        """The process that is known to have the node, if any."""
        if self.old.poll() is None:
            with self.server.log.open("rb") as log:
                log.seek(self._log_bytes)
                return self.old if NOT_HANDED_OVER.encode() in log.read() else None
        if self.new is None or self.new.poll() is not None:
            return None
        ready = json.loads((self.server.folder / "ready.json").read_text())
        return self.new if ready["pid"] == self.new.pid else None


def client(server, key=None):
    """Requests to a node with every right on it, by its own key or by another's of its store."""
    headers = {"authorization": f"Bearer {key or server.key}"}
    limits = httpx.Limits(max_connections=None)
    return httpx.AsyncClient(base_url=server.http, headers=headers, timeout=30, limits=limits, trust_env=False)


def child(pid):
    """A process that this one started, whichever of its threads did."""
    with contextlib.suppress(OSError):
        for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            if started := children.read_text().split():
                return int(started[0])
    return None


def has_open(pid, path):
    """Whether a process has a file open."""
    with contextlib.suppress(OSError):
        for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if str(descriptor.readlink()) == path:
                    return True
    return False
