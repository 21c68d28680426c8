"""The client."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterable, Iterator
from typing import Any, Unpack

from ._http import Http, encode, new_key
from .errors import ApiError, NoAnswer
from .events import Events
from .retry import STATUSES, Retry
from .types import (
    BatchLine,
    DeviceView,
    EndpointView,
    Enrolled,
    EventType,
    InvitationBody,
    InvitationCreated,
    InvitationView,
    ItemBody,
    ItemView,
    LinkChange,
    LinkOptions,
    LinkView,
    NotificationBody,
    NotificationOptions,
    NotificationState,
    NotificationView,
    OwnKey,
    PresenceView,
    Published,
    Rotated,
    SendResponse,
    SubscriptionView,
    Time,
    TopicConfig,
    TopicView,
    Validated,
)

LINES_MAX = 500
"""Notifications in one request of `Client.send_many`."""
BYTES_MAX = 1 << 20


class Client:
    """A node, or a cell of them, with an API key. Threads may share one.

    `domain` is the domain to act in, for a key of the whole node. `timeout_s` bounds the wait for a connection and for each part of an answer.
    `retry` says how often requests that are safe to repeat are repeated. `page_size` is how much of a list is asked for at once. `ssl_context` decides whom to trust.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        domain: str | None = None,
        timeout_s: float = 10.0,
        retry: Retry | None = None,
        page_size: int = 1000,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._page_size = page_size
        self._http = Http(url, key, domain, timeout_s, retry or Retry(), ssl_context)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def own_key(self) -> OwnKey:
        """What the API key may do, and where."""
        return self._http.call("GET /v1/key")

    # Notifications

    def send(
        self, to: str | list[str], *, idempotency_key: str | None = None, **options: Unpack[NotificationOptions]
    ) -> SendResponse:
        """Sends a notification to a device, or to up to 1,000 of them.

        With one target a refusal is an `ApiError`. With a list each target has its own result: look for `error` in `results`. A key of your own
        (`idempotency_key`) makes it safe to call this again within 24 hours, also from another process.
        """
        body = {"to": to, **options}
        return self._http.call("POST /v1/notifications", body=body, idempotency_key=idempotency_key or new_key())

    def send_many(
        self, notifications: Iterable[NotificationBody], *, idempotency_key: str | None = None
    ) -> Iterator[BatchLine]:
        """Sends any number of notifications, each to one target; what became of each, in their order, as it becomes known.

        They travel by the hundred. One that is refused has `error` and does not affect the others. With a key of your own the same
        notifications in the same order may be sent again, as a whole or in part: those that were done are not done again.
        """
        key = idempotency_key or new_key()
        before = 0
        for number, lines in enumerate(_requests(notifications)):
            for result in self._send_lines(lines, f"{key}-{number}"):
                result["line"] += before
                yield result
            before += len(lines)

    def _send_lines(self, lines: list[bytes], key: str) -> list[BatchLine]:
        method, target = self._http.target("POST /v1/notifications/batch")
        headers = {"content-type": "application/x-ndjson", "idempotency-key": key}
        results: list[BatchLine] | None = None

        def once() -> None:
            nonlocal results
            results = None
            answer = self._http.exchange(method, target, b"".join(lines), headers, fresh=False)
            if answer.count(b"\n") < len(lines):
                raise NoAnswer("the answer to a batch ended before its last line")
            results = [json.loads(line) for line in answer.splitlines()]
            # Under its key the whole may be sent again: what was done is not done twice.
            for problem in (result.get("error") for result in results):
                if problem and problem["status"] in STATUSES:
                    raise ApiError(problem["status"], problem, None)

        try:
            self._http.repeat(once)
        except ApiError:
            # It is about a line, and the last attempt has told of all of them.
            if results is None:
                raise
        assert results is not None
        return results

    def notification(self, id: str) -> NotificationView:
        """What became of a notification: its trace."""
        return self._http.call("GET /v1/notifications/{id}", path={"id": id})

    def notifications(
        self,
        *,
        to: str | None = None,
        states: Iterable[NotificationState] | None = None,
        key: int | None = None,
        after: Time | None = None,
        before: Time | None = None,
    ) -> Iterator[NotificationView]:
        """Notifications, newest first."""
        state = None if states is None else ",".join(states)
        query = {"to": to, "state": state, "key": key, "after": after, "before": before}
        return self._pages("GET /v1/notifications", "notifications", "cursor", query=query)

    def cancel(self, id: str) -> NotificationView:
        """Cancels a notification that no device was given; else an `ApiError` with the code `too-late`."""
        return self._http.call("DELETE /v1/notifications/{id}", path={"id": id})

    def events(
        self,
        *,
        states: Iterable[NotificationState] | None = None,
        types: Iterable[EventType] | None = None,
        after: int | None = None,
    ) -> Events:
        """Events as they happen: from when this returns, or all behind an event's number. Threads may not share them.

        Those of notifications, or of `types`; `states` are of notifications.
        """
        return Events(self._http, states, after, types)

    def presence(self, accounts: list[str]) -> list[PresenceView]:
        """Who of up to 1,000 accounts is connected, and which notifications reach them."""
        answer = self._http.call("POST /v1/presence", body={"accounts": accounts}, safe=True)
        return answer["presence"]

    # Topics

    def topics(self) -> Iterator[TopicView]:
        """All topics, by name."""
        return self._pages("GET /v1/topics", "topics")

    def topic(self, name: str) -> TopicView:
        """A topic and its figures."""
        return self._http.call("GET /v1/topics/{topic}", path={"topic": name})

    def create_topic(self, name: str, **config: Unpack[TopicConfig]) -> TopicView:
        """Creates a topic, or leaves one as it is that has all of this. Another is an `ApiError` with the code `already-exists`."""
        return self._http.call("PUT /v1/topics/{topic}", path={"topic": name}, body=config)

    def update_topic(self, name: str, **changes: Unpack[TopicConfig]) -> TopicView:
        """Changes what is named; what is `None` gets its default."""
        return self._http.call("PATCH /v1/topics/{topic}", path={"topic": name}, body=changes)

    def delete_topic(self, name: str) -> None:
        """Removes a topic with its items and subscriptions."""
        self._http.call("DELETE /v1/topics/{topic}", path={"topic": name})

    def subscribers(self, topic: str) -> Iterator[str]:
        """The bare JIDs of those who follow a topic."""
        return self._pages("GET /v1/topics/{topic}/subscribers", "subscribers", path={"topic": topic})

    def publish(self, topic: str, *, idempotency_key: str | None = None, **item: Unpack[ItemBody]) -> Published:
        """Publishes an item to everyone who follows a topic."""
        path, key = {"topic": topic}, idempotency_key or new_key()
        return self._http.call("POST /v1/topics/{topic}/items", path=path, body=item, idempotency_key=key)

    def items(self, topic: str, *, id: str | None = None, limit: int | None = None) -> list[ItemView]:
        """The newest items that a topic keeps, or the one of an id."""
        query = {"id": id, "limit": limit}
        return self._http.call("GET /v1/topics/{topic}/items", path={"topic": topic}, query=query)["items"]

    def retract(self, topic: str, id: str) -> None:
        """Retracts an item."""
        self._http.call("DELETE /v1/topics/{topic}/items/{id}", path={"topic": topic, "id": id})

    # Devices

    def devices(self) -> Iterator[DeviceView]:
        """All devices, by id."""
        return self._pages("GET /v1/devices", "devices")

    def device(self, id: str) -> DeviceView:
        """A device."""
        return self._http.call("GET /v1/devices/{id}", path={"id": id})

    def endpoint(self, id: str) -> EndpointView:
        """Where a device connects; behind a front, where its cell is."""
        return self._http.call("GET /v1/devices/{id}/endpoint", path={"id": id})

    def enrol(self, id: str | None = None, *, secret: str | None = None) -> Enrolled:
        """Enrols a device; the node makes what is left out. Not repeated: an answer that is lost has the secret in it."""
        return self._http.call("POST /v1/devices", body={"id": id, "secret": secret})

    def delete_device(self, id: str) -> None:
        """Removes a device with all that waits for it."""
        self._http.call("DELETE /v1/devices/{id}", path={"id": id})

    def rotate_secret(self, id: str, *, secret: str | None = None, keep_sessions: bool = False) -> Rotated:
        """Gives a device another secret. Not repeated, as `enrol`."""
        body = {"secret": secret, "keep_sessions": keep_sessions}
        return self._http.call("POST /v1/devices/{id}/rotate", path={"id": id}, body=body)

    def validate_secret(self, id: str, secret: str) -> Validated:
        """Whether a device could log in with a secret."""
        return self._http.call("POST /v1/devices/{id}/validate", path={"id": id}, body={"secret": secret}, safe=True)

    def disable_device(self, id: str) -> None:
        """Keeps a device from logging in, and ends its sessions. What is sent to it waits."""
        self._http.call("POST /v1/devices/{id}/disable", path={"id": id}, safe=True)

    def enable_device(self, id: str) -> None:
        """Lets a device log in again."""
        self._http.call("POST /v1/devices/{id}/enable", path={"id": id}, safe=True)

    def subscriptions(self, id: str) -> list[str]:
        """The topics that a device follows."""
        return self._http.call("GET /v1/devices/{id}/subscriptions", path={"id": id})["topics"]

    def subscribe(self, id: str, topic: str) -> SubscriptionView:
        """Has a device follow a topic."""
        path = {"id": id, "topic": topic}
        return self._http.call("PUT /v1/devices/{id}/subscriptions/{topic}", path=path)

    def unsubscribe(self, id: str, topic: str) -> None:
        """Has a device follow a topic no longer."""
        self._http.call("DELETE /v1/devices/{id}/subscriptions/{topic}", path={"id": id, "topic": topic})

    # Invitations and links

    def invitations(self) -> Iterator[InvitationView]:
        """All invitations, newest first."""
        return self._pages("GET /v1/invitations", "invitations")

    def create_invitation(self, **invitation: Unpack[InvitationBody]) -> InvitationCreated:
        """Makes an invitation. Not repeated: an answer that is lost has the token in it."""
        return self._http.call("POST /v1/invitations", body=invitation)

    def delete_invitation(self, id: int) -> None:
        """Revokes an invitation."""
        self._http.call("DELETE /v1/invitations/{id}", path={"id": id})

    def links(self, *, search: str | None = None) -> Iterator[LinkView]:
        """Short links, newest first: all, or those whose code or URL has a text in it."""
        return self._pages("GET /v1/links", "links", query={"search": search})

    def create_link(self, url: str, **options: Unpack[LinkOptions]) -> LinkView:
        """Shortens a URL. The same URL gives the same link."""
        return self._http.call("POST /v1/links", body={"url": url, **options}, safe=True)

    def link(self, code: str) -> LinkView:
        """A short link."""
        return self._http.call("GET /v1/links/{code}", path={"code": code})

    def update_link(self, code: str, **changes: Unpack[LinkChange]) -> LinkView:
        """Changes what is named of a link."""
        return self._http.call("PATCH /v1/links/{code}", path={"code": code}, body=changes)

    def delete_link(self, code: str) -> None:
        """Takes a link down."""
        self._http.call("DELETE /v1/links/{code}", path={"code": code})

    def _pages(
        self,
        operation: str,
        member: str,
        cursor: str = "after",
        *,
        path: dict[str, Any] | None = None,
        query: dict[str, Any] | None = None,
    ) -> Iterator[Any]:
        """What all pages of a list have; each is asked for when it is needed."""
        query = dict(query or {}, limit=self._page_size)
        while True:
            page = self._http.call(operation, path=path, query=query)
            yield from page[member]
            if (following := page.get("next")) is None:
                return
            query[cursor] = following


def _requests(notifications: Iterable[NotificationBody]) -> Iterator[list[bytes]]:
    """The lines of one request after the other; the same notifications always fall into the same requests."""
    lines: list[bytes] = []
    size = 0
    for notification in notifications:
        line = encode(notification) + b"\n"
        if lines and (len(lines) == LINES_MAX or size + len(line) > BYTES_MAX):
            yield lines
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    if lines:
        yield lines
