"""The clock of a load: senders have a rate, devices wait before they connect again, and faults come at moments of a run."""

import asyncio
import contextlib


async def pause(seconds):
    """Lets time pass."""
    await asyncio.sleep(seconds)


async def pause_unless(stopped, seconds):
    """Lets time pass, but no longer than until the load is stopped."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stopped.wait(), seconds)
