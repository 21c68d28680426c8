"""A command of the binary that runs until it is interrupted, and the lines that it prints."""

import asyncio
import json
import os
import signal

from .inbox import DEADLINE_S, Inbox, deadline
from .server import BINARY


class Program:
    """A command under way. Only ever ends the process that it started."""

    @classmethod
    async def open(cls, *arguments, input=None, environment=None):
        """Starts a command of the binary."""
        return await cls._start([str(BINARY), *arguments], input, None, environment)

    @classmethod
    async def shell(cls, command, folder, environment):
        """Types a command into a shell; the shell becomes the command, so that a signal reaches it."""
        words = command if command.startswith("curl") else f"exec {command}"
        return await cls._start(["bash", "-euo", "pipefail", "-c", words], None, folder, environment)

    @classmethod
    async def _start(cls, command, input, folder, environment):
        program = cls()
        program.process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE if input is not None else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            # A shell has what it runs in the background ignore Ctrl-C, and all that this starts in turn.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        if input is not None:
            program.process.stdin.write(input.encode())
            program.process.stdin.close()
        program.lines = Inbox(" ".join(command))
        program.errors = []
        program._readers = [
            asyncio.create_task(_read(program.process.stdout, program.lines.put)),
            asyncio.create_task(_read(program.process.stderr, program.errors.append)),
        ]
        return program

    async def line(self, *words, seconds=DEADLINE_S):
        """The next line that has all of these words."""
        wanted = f"a line with {words}"
        return await self.lines.take(lambda line: all(word in line for word in words), wanted, seconds)

    async def event(self, name, **members):
        """The next line of JSON that tells this event."""

        def wanted(line):
            event = json.loads(line)
            return event["event"] == name and all(event.get(key) == value for key, value in members.items())

        return json.loads(await self.lines.take(wanted, f"{name} {members}"))

    async def interrupt(self):
        """Presses Ctrl-C; the exit code."""
        self.process.send_signal(signal.SIGINT)
        return await self.ended()

    async def ended(self):
        """Waits for the end; the exit code."""
        async with deadline(f"the end of the command; it said {self.errors}"):
            await self.process.wait()
            await asyncio.gather(*self._readers)
        return self.process.returncode

    async def close(self):
        """Ends it if a test did not."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await asyncio.gather(*self._readers)


async def _read(stream, take):
    async for line in stream:
        take(line.decode().rstrip("\n"))
