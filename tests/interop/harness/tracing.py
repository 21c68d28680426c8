"""A trace of an account, as an inbox of its lines."""

import asyncio
import contextlib
import json

from .inbox import Inbox, deadline


class Tracing:
    """An open trace."""

    def __init__(self, inbox, reader, begun, said):
        self.inbox = inbox
        # All lines, as they came.
        self.said = said
        self.reader = reader
        self.begun = begun

    async def line(self, kind, **wanted):
        """The next line of a kind whose members are these."""

        def fits(line):
            return line["kind"] == kind and all(line.get(key.rstrip("_")) == value for key, value in wanted.items())

        return await self.inbox.take(fits, f"{kind} {wanted}")

    async def ended(self):
        """Waits for the end of the stream."""
        async with deadline("the end of the trace"):
            await asyncio.shield(self.reader)


@contextlib.asynccontextmanager
async def traced(api, account, **query):
    """A trace that is under way."""
    inbox, said = Inbox("the trace"), []
    async with api.http.stream("GET", "/v1/trace", params={"account": account, **query}, timeout=None) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"] == "application/x-ndjson"
        reader = asyncio.create_task(_read(answer, inbox, said))
        try:
            begun = await inbox.take(lambda line: line["kind"] == "begun", "the first line")
            yield Tracing(inbox, reader, begun, said)
        finally:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader


async def _read(answer, inbox, said):
    async for line in answer.aiter_lines():
        said.append(line)
        inbox.put(json.loads(line))
