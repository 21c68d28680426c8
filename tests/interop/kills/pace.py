"""The clock of a load: senders have a rate, devices wait before they connect again, and faults come at moments of a run."""

import asyncio
import contextlib
import dataclasses
import time

# How often a condition is looked at.
LOOK_S = 0.0005


@dataclasses.dataclass(frozen=True)
class Times:
    """How often the node has crashed, and how often it was restarted in order."""

    crashes: int = 0
    restarts: int = 0


async def pause(seconds):
    """Lets time pass."""
    await asyncio.sleep(seconds)


async def pause_unless(stopped, seconds):
    """Lets time pass, but no longer than until the load is stopped."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stopped.wait(), seconds)


async def until(condition, seconds):
    """What a condition is as soon as it is true, looked at very often whatever the load of this process; None after so long."""
    return await asyncio.to_thread(_until, condition, seconds)


def _until(condition, seconds):
    ends = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > ends:
            return None
        time.sleep(LOOK_S)
    return found
