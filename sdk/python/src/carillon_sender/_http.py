"""Requests and their repetition."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from .errors import ApiError, NoAnswer
from .retry import STATUSES, Retry

NO_ANSWER = (OSError, http.client.HTTPException)


class Http:
    """Connections to a node, which are kept between requests. Threads may share it."""

    def __init__(
        self,
        url: str,
        key: str,
        domain: str | None,
        timeout_s: float,
        retry: Retry,
        ssl_context: ssl.SSLContext | None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"not an HTTP URL: {url!r}")
        self._host, self._port = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._ssl = (ssl_context or ssl.create_default_context()) if parts.scheme == "https" else None
        self._headers = {"authorization": f"Bearer {key}", "user-agent": "carillon-sender-python"}
        self._domain = domain
        self.timeout_s = timeout_s
        self.retry = retry
        self._idle: list[http.client.HTTPConnection] = []

    def close(self) -> None:
        """Closes the connections that wait for a request."""
        while self._idle:
            self._idle.pop().close()

    def call(
        self,
        operation: str,
        *,
        path: dict[str, Any] | None = None,
        query: dict[str, Any] | None = None,
        body: Any = None,
        safe: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Does an operation, such as `GET /v1/topics/{topic}`: what the node answered, or its error.

        It is repeated where it has an idempotency key or is `safe`, which all but POST are unless said otherwise.
        """
        method, target = self.target(operation, path, query)
        headers = {} if idempotency_key is None else {"idempotency-key": idempotency_key}
        if body is not None:
            patch = method == "PATCH"
            headers["content-type"] = "application/merge-patch+json" if patch else "application/json"
        data = None if body is None else encode(body)
        repeats = (method != "POST" or idempotency_key is not None) if safe is None else safe
        is_repeated = False

        def once() -> Any:
            nonlocal is_repeated
            again, is_repeated = is_repeated, True
            try:
                answer = self.exchange(method, target, data, headers, fresh=not repeats)
            except ApiError as error:
                # The answer to the first DELETE was lost, and it was done.
                if again and method == "DELETE" and error.status == 404:
                    return None
                raise
            return json.loads(answer) if answer else None

        return self.repeat(once) if repeats else once()

    def repeat(self, once: Callable[[], Any]) -> Any:
        """Does something until it succeeds, is refused for good, or has failed too often."""
        for failures in range(1, self.retry.attempts + 1):
            try:
                return once()
            except (ApiError, NoAnswer) as error:
                asked = error.retry_after if isinstance(error, ApiError) else None
                wait = self.retry.wait(failures, asked) if is_worth_repeating(error) else None
                if wait is None:
                    raise
            time.sleep(wait)
        raise AssertionError("the last failure is raised")

    def exchange(self, method: str, target: str, data: bytes | None, headers: dict[str, str], *, fresh: bool) -> bytes:
        """One request and its answer. A fresh connection cannot have been closed by the node since the request before."""
        try:
            connection = self.connect() if fresh else self._idle.pop()
        except IndexError:
            connection = self.connect()
        try:
            connection.request(method, target, data, {**self._headers, **headers})
            answer = connection.getresponse()
            text = answer.read()
        except NO_ANSWER as error:
            connection.close()
            raise NoAnswer(f"{method} {target}: {error or type(error).__name__}") from error
        if answer.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        check(answer, text)
        return text

    def stream(self, target: str, headers: dict[str, str], silence_s: float) -> Iterator[bytes]:
        """The lines of an answer that goes on, without their ends. One that is silent for too long has no answer."""
        connection = self.connect()
        connection.timeout = silence_s
        try:
            connection.request("GET", target, None, {**self._headers, **headers})
            answer = connection.getresponse()
            if answer.status != 200:
                check(answer, answer.read())
            while line := answer.readline():
                yield line.rstrip(b"\r\n")
        except NO_ANSWER as error:
            raise NoAnswer(f"GET {target}: {error or type(error).__name__}") from error
        finally:
            connection.close()

    def connect(self) -> http.client.HTTPConnection:
        """A connection that is made with its first request."""
        if self._ssl:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self.timeout_s, context=self._ssl)
        return http.client.HTTPConnection(self._host, self._port, timeout=self.timeout_s)

    def target(
        self, operation: str, path: dict[str, Any] | None = None, query: dict[str, Any] | None = None
    ) -> tuple[str, str]:
        """Method and request target of an operation."""
        method, template = operation.split(" ")
        filled = re.sub(r"\{(\w+)\}", lambda found: quote(str((path or {})[found[1]]), safe=""), template)
        given = {name: text(value) for name, value in (query or {}).items() if value is not None}
        if self._domain is not None and not template.startswith(("/v1/notifications/{id}", "/v1/key")):
            given["domain"] = self._domain
        return method, self._prefix + filled + ("?" + urlencode(given) if given else "")


def is_worth_repeating(error: ApiError | NoAnswer) -> bool:
    """Whether what failed may succeed later. `in-progress`: the first attempt is still being worked on."""
    return isinstance(error, NoAnswer) or error.status in STATUSES or error.code == "in-progress"


def check(answer: http.client.HTTPResponse, body: bytes) -> None:
    """Raises what the node says is wrong."""
    if 200 <= answer.status < 300:
        return
    try:
        problem = json.loads(body)
        problem["code"], problem["detail"]
    except (ValueError, KeyError, TypeError):
        # A proxy answered.
        detail = body[:200].decode(errors="replace")
        problem = {"type": "about:blank", "code": "", "title": answer.reason, "status": answer.status, "detail": detail}
    try:
        retry_after = float(answer.headers["retry-after"])
    except (TypeError, ValueError):
        retry_after = None
    raise ApiError(answer.status, problem, retry_after)


def new_key() -> str:
    """An idempotency key that nobody else has."""
    return str(uuid.uuid4())


def encode(body: Any) -> bytes:
    """JSON, with times as the node reads them."""
    return json.dumps(body, default=text, separators=(",", ":")).encode()


def text(value: Any) -> str:
    """A value as it stands in JSON or in a query."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError(f"a time without a time zone: {value}")
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, str | int):
        return str(value)
    raise TypeError(f"not JSON: {value!r}")
