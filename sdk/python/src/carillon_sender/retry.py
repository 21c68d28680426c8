"""How often, and when, a request is sent again."""

from __future__ import annotations

import random
from dataclasses import dataclass

STATUSES = frozenset({429, 502, 503, 504})
"""What says: not now."""


@dataclass(frozen=True)
class Retry:
    """When a request that is safe to send again is sent again.

    The wait before the `n`th repetition is random, up to `first_s` doubled `n - 1` times and `longest_s` at most. Where the node says
    `Retry-After`, that comes before it. A node that asks for more than `patience_s` is not waited for: its refusal is the result.
    """

    attempts: int = 4
    first_s: float = 0.5
    longest_s: float = 30.0
    patience_s: float = 60.0

    def wait(self, failures: int, retry_after: float | None) -> float | None:
        """Seconds to wait after so many failures in a row; none to give up."""
        if failures >= self.attempts or (retry_after or 0.0) > self.patience_s:
            return None
        return (retry_after or 0.0) + self.backoff(failures)

    def backoff(self, failures: int) -> float:
        """A random wait that grows with the failures. All clients of a node that was away do not come back at once."""
        most: float = min(self.longest_s, self.first_s * 2.0 ** min(failures - 1, 30))
        return random.uniform(0.0, most)
