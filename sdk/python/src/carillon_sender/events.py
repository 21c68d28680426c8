"""Events: what becomes of notifications, and what happens to rooms, as it happens."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass

from ._http import Http, is_worth_repeating
from .errors import ApiError, NoAnswer
from .types import EventType, NotificationState, NotificationView, RoomEventView

SILENCE_S = 45.0
"""The node says something every 15 seconds. A connection that is silent for so long is dead."""


@dataclass(frozen=True)
class Receipt:
    """A notification reached a state. `id` is the event's number where it can be read again: a stored notification has ended."""

    id: int | None
    notification: NotificationView


@dataclass(frozen=True)
class RoomEvent:
    """Something happened to a room. `id` is the event's number."""

    id: int | None
    room: RoomEventView


@dataclass(frozen=True)
class Gap:
    """The events between two numbers were forgotten before they could be read. `Client.notifications` says what became of them."""

    after: int
    next: int


@dataclass(frozen=True)
class Lagged:
    """So many states were lost because they were not read fast enough. None of them has a number."""

    count: int


Event = Receipt | RoomEvent | Gap | Lagged


class Events(Iterator[Event]):
    """Events without an end; a lost connection is made again and goes on behind the last event, perhaps giving one twice.

    Keep `last_id` when the event has been dealt with, and give it as `after` next time: nothing is missed in between.
    """

    def __init__(
        self,
        http: Http,
        states: Iterable[NotificationState] | None,
        after: int | None,
        types: Iterable[EventType] | None = None,
    ) -> None:
        self.last_id = after
        """The number up to which everything has been given."""
        self._http = http
        query = {
            "state": None if states is None else ",".join(states),
            "type": None if types is None else ",".join(types),
        }
        _, self._target = http.target("GET /v1/events", query=query)
        self._events = self._run()
        # The node's first words: it follows from here.
        next(self._events)

    def __next__(self) -> Event:
        while (event := next(self._events)) is None:
            pass
        return event

    def close(self) -> None:
        """Ends the connection."""
        self._events.close()

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> Generator[Event | None]:
        """What one connection after the other brings. Once there was one, only a refusal for good ends it."""
        failures, was_open = 0, False
        while True:
            wait = self._http.retry.backoff(1)
            try:
                for event in self._connection():
                    failures, was_open = 0, True
                    yield event
            except (ApiError, NoAnswer) as error:
                failures += 1
                if not is_worth_repeating(error):
                    raise
                asked = self._http.retry.wait(failures, getattr(error, "retry_after", None))
                if asked is None and not was_open:
                    raise
                wait = asked if asked is not None else self._http.retry.backoff(failures)
            time.sleep(wait)

    def _connection(self) -> Iterator[Event | None]:
        """What one connection brings: an event, or none for what only shows that it lives."""
        headers = {"accept": "text/event-stream"}
        if self.last_id is not None:
            headers["last-event-id"] = str(self.last_id)
        kind, data, id = b"", b"", None
        for line in self._http.stream(self._target, headers, SILENCE_S):
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"event":
                kind = value
            elif name == b"data":
                data = value
            elif name == b"id":
                id = int(value)
            elif not line:
                event = read(kind, data, id)
                # Known only now: a frame that was cut off does not count.
                if id is not None:
                    self.last_id = id
                yield event
                kind, data, id = b"", b"", None


def read(kind: bytes, data: bytes, id: int | None) -> Event | None:
    """An event of the stream. One that a later version of the node has is passed over."""
    if kind == b"notification":
        return Receipt(id, json.loads(data))
    if kind.startswith(b"room_"):
        return RoomEvent(id, json.loads(data))
    if kind == b"gap":
        gap = json.loads(data)
        return Gap(gap["after"], gap["next"])
    if kind == b"lagged":
        return Lagged(json.loads(data)["count"])
    return None
