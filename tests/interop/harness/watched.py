"""A node whose processes the test keeps an eye on: those of upgrades, which are no children of the test."""

import json
import os
import select
import signal

from .server import END_S, Server


class Process:
    """A process that may not be a child of this one; known by a descriptor, so that no other is ever meant."""

    def __init__(self, pid):
        self.pid = pid
        self._fd = os.pidfd_open(pid)

    def send(self, number):
        signal.pidfd_send_signal(self._fd, number)

    def has_ended(self, timeout=0):
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(timeout * 1000))

    def close(self):
        """Ends it if it has not."""
        if not self.has_ended():
            self.send(signal.SIGKILL)
            self.has_ended(END_S)
        os.close(self._fd)


def present(server):
    """The process that has the node."""
    return json.loads((server.data / "node.json").read_text())["pid"]


class Watched(Server):
    """A node whose process may be another one than was started. Every process is noted, and ended by `close`."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.processes = {self.process.pid: Process(self.process.pid)}

    def note(self):
        """Notes the process that has the node now."""
        pid = present(self)
        if pid not in self.processes:
            self.processes[pid] = Process(pid)
        return self.processes[pid]

    async def upgrade(self, *arguments):
        """Runs `carillon upgrade` for it."""
        done = await self.command("upgrade", *arguments)
        self.note()
        return done

    def terminate(self):
        """Asks the process that has the node to end, and waits for all processes that it was in."""
        self.note().send(signal.SIGTERM)
        for process in self.processes.values():
            assert process.has_ended(END_S), f"process {process.pid} did not end:\n{self.log.read_text()}"

    def close(self):
        for process in self.processes.values():
            process.close()
        self.process.wait()
