"""A node that goes on in another process, which is no child of the test."""

import asyncio
import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import stat
import subprocess
import sys

from .server import BINARY, Server

# What a process does that is given to a node as its new binary.
FAKE = pathlib.Path(__file__).with_name("fake_successor.py")
PATIENCE_S = 30


class Successor:
    """A process whose parent is another, with the verbs of a `Popen`."""

    def __init__(self, pid):
        self.pid = pid
        # By descriptor: the number may be another's when the process is gone.
        self.descriptor = os.pidfd_open(pid)
        self.returncode = None

    def poll(self):
        if self.returncode is None and select.select([self.descriptor], [], [], 0)[0]:
            self.returncode = 0
        return self.returncode

    def wait(self, timeout=None):
        if not select.select([self.descriptor], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
        self.returncode = 0
        return 0

    def send_signal(self, number):
        signal.pidfd_send_signal(self.descriptor, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def place_binary(at):
    """Puts the binary at another path. A link where it can be: it has hundreds of megabytes, and tests have one each."""
    at.unlink(missing_ok=True)
    try:
        at.hardlink_to(BINARY)
    except OSError:
        shutil.copy2(BINARY, at)


class Upgradable(Server):
    """A node with a binary of its own, in whose place another can be put."""

    def __init__(self, folder, environment=None, arguments=(), **settings):
        self.binary = pathlib.Path(folder) / "carillon"
        if not self.binary.exists():
            place_binary(self.binary)
        super().__init__(folder, environment, self.binary, arguments, **settings)

    def replace_binary(self, mode):
        """Puts a process in the place of the binary that takes over only in part."""
        self._replace_by_script(f"#!{sys.executable}\n" + FAKE.read_text().replace("MODE_OF_THE_TEST", mode))

    def add_settings(self, **settings):
        """Puts a script in the place of the binary that starts it with further settings."""
        more = " ".join(f"--set {key.replace('__', '.')}={value}" for key, value in settings.items())
        self._replace_by_script(f'#!/bin/sh\nexec "{BINARY}" "$@" {more}\n')

    def _replace_by_script(self, text):
        # A file of its own, never the one that is there: that one may be a link to the binary of all tests.
        other = self.binary.with_name("other")
        other.write_text(text)
        other.chmod(other.stat().st_mode | stat.S_IXUSR)
        other.replace(self.binary)

    def restore_binary(self):
        place_binary(self.binary)

    async def upgrade(self):
        """Has the node go on in another process, and waits until the old one is gone."""
        old = self.process
        old.send_signal(signal.SIGUSR2)
        await asyncio.to_thread(self.adopt, old)

    def adopt(self, old):
        """The process that took over from `old`."""
        code = old.wait(timeout=PATIENCE_S)
        assert code == 0, f"the old process ended with {code}:\n{self.log.read_text()}"
        ready = json.loads((self.folder / "ready.json").read_text())
        assert ready["pid"] != old.pid, self.log.read_text()
        assert {**ready, "pid": 0} == {**self.ports, "pid": 0}, "the ports are the same"
        self.ports = ready
        self.process = Successor(ready["pid"])
        # The process of node.json is found by the commands.
        assert json.loads((self.data / "node.json").read_text())["pid"] == ready["pid"]

    async def fails_to_upgrade(self):
        """Asks for an upgrade that fails; what the node says of it."""
        offset = self.log.stat().st_size
        self.process.send_signal(signal.SIGUSR2)
        for _ in range(PATIENCE_S * 50):
            lines = [line for line in self.log.read_text()[offset:].splitlines() if "not handed over" in line]
            if lines:
                assert self.is_running()
                return lines[0]
            # It does not end: this waits for its log.
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self.process.wait, timeout=0.02)
        raise AssertionError(f"the node did not say that it goes on:\n{self.log.read_text()}")
