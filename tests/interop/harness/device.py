"""A client that is a program of its own, in whatever language, as one end of the conversation.

It is given its orders as one argument, a JSON object: `address`, `port`, `direct_tls`, `certificate` (a file), `jid`,
`password`, `topic`. It logs in, sends presence, subscribes to the topic, and says what happens as lines of JSON:
`{"online": FULL-JID, …}`, then `{"topic": …, "item": …}` for each item. It answers a chat message by another, `echo ` and the
same text. When its input ends it closes its stream and ends with 0."""

import asyncio
import contextlib
import json

from .inbox import Inbox, deadline


class Device:
    """One process."""

    def __init__(self, process, name):
        self.process = process
        self.said = Inbox(name)
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, command, server, jid, topic, password="secret", direct_tls=False, **more):
        """Starts a program with its orders, after its own arguments."""
        orders = {
            "address": "127.0.0.1",
            "port": server.port("c2s_tls" if direct_tls else "c2s"),
            "direct_tls": direct_tls,
            "certificate": str(server.certificate),
            "jid": jid,
            "password": password,
            "topic": topic,
            **more,
        }
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *map(str, command), json.dumps(orders), stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.STDOUT
        )
        return cls(process, str(command[-1]))

    async def _read(self):
        while line := await self.process.stdout.readline():
            try:
                said = json.loads(line)
            except ValueError:
                said = line.decode(errors="replace").rstrip()
            self.said.put(said)
        self.said.put({"ended": True})

    async def says(self, *keys):
        """The next thing with these keys that it says; it must not end before."""
        wanted = lambda said: isinstance(said, dict) and (said.keys() >= set(keys) or "ended" in said)  # noqa: E731
        said = await self.said.take(wanted, f"a line with {keys}")
        assert "ended" not in said, f"it ended, having said: {self.said.left()}"
        return said

    async def end(self):
        """Ends its input; it must end in good manners."""
        self.process.stdin.close()
        async with deadline("the end of the client"):
            code = await self.process.wait()
        await self._reader
        assert code == 0, f"it ended with {code}, having said: {self.said.left()}"

    async def kill(self):
        """Ends it whatever it does, if it has not ended."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        await self._reader
