"""Waiting for what is to come, never for time to pass."""

import asyncio
import contextlib

# Long enough for a busy machine; nothing in a passing run comes near it.
DEADLINE_S = 20


@contextlib.asynccontextmanager
async def deadline(what, seconds=DEADLINE_S):
    """Fails with what was waited for when it takes too long."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise AssertionError(f"not within {seconds} s: {what}") from None


class Inbox:
    """What came in and nobody took yet, in order."""

    def __init__(self, owner):
        self._owner = owner
        self._items = []
        self._news = asyncio.Event()

    def put(self, item):
        self._items.append(item)
        self._news.set()

    async def take(self, wanted=lambda item: True, what="anything", seconds=DEADLINE_S):
        """The first item that is wanted, among those here and those to come."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    for i, item in enumerate(self._items):
                        if wanted(item):
                            return self._items.pop(i)
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            here = "".join(f"\n  {item}" for item in self._items) or " nothing"
            raise AssertionError(f"{self._owner} waited for {what}; there was:{here}") from None

    def left(self, wanted=lambda item: True):
        """What is here and wanted, without waiting."""
        return [item for item in self._items if wanted(item)]
