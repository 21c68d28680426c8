"""A program that wants a terminal: what it shows, and what is typed into it."""

import asyncio
import contextlib
import fcntl
import os
import re
import struct
import subprocess
import termios

from .inbox import deadline

ROWS, COLUMNS = 50, 160
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]|[\r\x0f]")


class Terminal:
    """One process."""

    def __init__(self, *command, env):
        self.shown = ""
        self._news = asyncio.Event()
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [*map(str, command)], stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True
        )
        os.close(theirs)
        asyncio.get_running_loop().add_reader(self._ours, self._read)

    def _read(self):
        try:
            data = os.read(self._ours, 65536)
        except OSError:
            # The program ended, and its terminal with it.
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._ours)
        self.shown += CONTROL.sub("", data.decode(errors="replace"))
        self._news.set()

    async def shows(self, text):
        """Waits until this was shown, and forgets what was shown up to there."""
        async with deadline(f"{text!r} on the terminal"):
            while text not in self.shown:
                self._news.clear()
                await self._news.wait()
        self.shown = self.shown.partition(text)[2]

    def type(self, line):
        os.write(self._ours, f"{line}\r".encode())

    def press(self, keys):
        """Presses keys, one after the other."""
        os.write(self._ours, keys.encode())

    async def code(self):
        """How it ended."""
        async with deadline("the end of the program"):
            return await asyncio.to_thread(self.process.wait)

    def close(self):
        """Ends it, whatever it does."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        asyncio.get_running_loop().remove_reader(self._ours)
        os.close(self._ours)
