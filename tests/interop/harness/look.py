"""The pause between two looks at what a test waits for."""

import asyncio

# Without a pause a test that waits would take the processor from what it waits for, and from the test beside it.
PAUSE_S = 0.02


async def again():
    """Returns when it is time to look once more."""
    await asyncio.sleep(PAUSE_S)
