"""A node whose processes the test keeps an eye on: those of upgrades, which are no children of the test."""

import asyncio
import json
import os
import pathlib
import select
import signal
import socket
import struct
import subprocess

from .server import BINARY, END_S, Server


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


class Contained(Server):
    """A node that is PID 1 of a PID namespace, as in a container."""

    COMMAND = ("unshare", "--pid", "--fork", "--mount-proc")

    @classmethod
    def why_not(cls):
        """Why this machine does not let the tests have PID namespaces; nothing if it does."""
        tried = subprocess.run([*cls.COMMAND, "true"], capture_output=True, text=True, check=False)
        return tried.stderr.strip() if tried.returncode else ""

    def __init__(self, folder, **settings):
        start = pathlib.Path(folder) / "start"
        start.write_text(f'#!/bin/sh\nexec {" ".join(self.COMMAND)} "{BINARY}" "$@"\n')
        start.chmod(0o755)
        super().__init__(folder, None, start, **settings)
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.init = Process(int(children[0]))

    def _check_pid(self):
        assert self.ports["pid"] == 1

    def close(self):
        # With PID 1 all others of the namespace end.
        self.init.close()
        self.process.wait(END_S)


class Manager:
    """A service manager: the socket that NOTIFY_SOCKET names, and what each process said there."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind(str(path))
        self.socket.settimeout(END_S)

    async def told(self):
        """The next notification: its process and its lines."""
        return await asyncio.to_thread(self._told)

    def _told(self):
        credentials = struct.Struct("3i")
        text, ancillary, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(credentials.size))
        [(_, _, who)] = ancillary
        return credentials.unpack(who)[0], text.decode().splitlines()

    def close(self):
        self.socket.close()
