"""A program of Node that answers lines by lines."""

import asyncio
import contextlib
import json
import os
import pathlib

from .inbox import deadline

SCRIPTS = pathlib.Path(__file__).parent.parent / "js"
NODE = os.environ.get("NODE", "node")
# More than the longest line.
LINE_MAX = 1 << 20


class Script:
    """A script of `js/`."""

    def __init__(self, process):
        self.process = process

    async def read(self):
        async with deadline("an answer of Node"):
            line = await self.process.stdout.readline()
        assert line, "the script has ended"
        return json.loads(line)

    async def ask(self, question):
        self.process.stdin.write(json.dumps(question).encode() + b"\n")
        return await self.read()


@contextlib.asynccontextmanager
async def script(name, **environment):
    """Runs a script, which ends with its input."""
    process = await asyncio.create_subprocess_exec(
        NODE,
        str(SCRIPTS / name),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | environment,
        limit=LINE_MAX,
    )
    yield Script(process)
    process.stdin.close()
    async with deadline(f"the end of {name}"):
        assert await process.wait() == 0
