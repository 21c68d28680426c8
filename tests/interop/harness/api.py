"""The HTTP API."""

import asyncio
import contextlib
import json

import httpx

from . import look
from .inbox import DEADLINE_S, Inbox, deadline


class Api:
    """Requests with one key."""

    def __init__(self, server, key=None):
        self.server = server
        self.key = server.key if key is None else key
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        self.http = httpx.AsyncClient(base_url=server.http, headers=headers, timeout=DEADLINE_S, trust_env=False)

    async def aclose(self):
        await self.http.aclose()

    async def call(self, method, path, body=None, **options):
        if body is not None:
            options["json"] = body
        return await self.http.request(method, path, **options)

    async def ok(self, method, path, body=None, status=None, **options):
        """The JSON of an answer that must be a success."""
        answer = await self.call(method, path, body, **options)
        expected = answer.is_success if status is None else answer.status_code == status
        assert expected, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    async def problem(self, status, code, method, path, body=None, **options):
        """The problem of an answer that must be one."""
        answer = await self.call(method, path, body, **options)
        return check_problem(answer, status, code)

    async def account(self, jid, password="secret"):
        await self.ok("POST", "/v1/admin/accounts", {"jid": jid, "password": password}, status=201)

    async def notify(self, to, payload=None, **more):
        body = {"to": to, "payload": {"n": 1} if payload is None else payload, **more}
        return await self.ok("POST", "/v1/notifications", body, status=202)

    async def trace(self, id):
        return await self.ok("GET", f"/v1/notifications/{id}")

    async def eventually(self, path, wanted):
        """Reads until what is read is wanted: for figures that follow what they count."""
        async with deadline(f"{path} as wanted"):
            while not wanted(seen := await self.ok("GET", path)):
                await look.again()
            return seen

    async def figure(self, name):
        """What `/metrics` says of a name, with its labels where it has any; `carillon_` may be left out."""
        answer = await self.call("GET", "/metrics")
        assert answer.status_code == 200, answer.text
        lines = (line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
        return next((float(value) for key, value in lines if key in (name, f"carillon_{name}")), 0.0)

    async def figure_is(self, name, wanted):
        """Reads a figure until it is as wanted: figures follow what they count."""
        async with deadline(f"{name} as wanted"):
            while not wanted(seen := await self.figure(name)):
                await look.again()
            return seen

    @contextlib.asynccontextmanager
    async def events(self, last_id=None, **query):
        """Receipts from now on, or after an event, as an inbox."""
        inbox = Inbox("the event stream")
        headers = {} if last_id is None else {"Last-Event-ID": last_id}
        async with self.http.stream("GET", "/v1/events", params=query, headers=headers, timeout=None) as answer:
            assert answer.status_code == 200, await answer.aread()
            assert answer.headers["content-type"].startswith("text/event-stream")
            reader = asyncio.create_task(_read_events(answer, inbox))
            try:
                yield Events(inbox, reader)
            finally:
                reader.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await reader


class Events:
    """An open event stream."""

    def __init__(self, inbox, reader):
        self.inbox = inbox
        self.reader = reader
        self.last_id = None

    async def state(self, id, state):
        """The receipt that says that a notification is in a state."""
        what = f"notification {id} {state}"
        wanted = await self.inbox.take(lambda event: event[1]["id"] == id and event[1]["state"] == state, what)
        self.last_id = wanted[0]
        return wanted[1]

    async def next(self):
        """The next receipt."""
        self.last_id, receipt = await self.inbox.take(lambda _: True, "a receipt")
        return receipt

    async def ended(self):
        """Waits for the server to end the stream."""
        async with deadline("the end of the event stream"):
            await asyncio.shield(self.reader)


async def _read_events(answer, inbox):
    kind, data, id = None, [], None
    async for line in answer.aiter_lines():
        if line.startswith("event:"):
            kind = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].strip())
        elif line.startswith("id:"):
            id = line[3:].strip()
        elif not line and data:
            event = json.loads("\n".join(data))
            assert kind == event.get("type", "notification"), (kind, event)
            inbox.put((id, event))
            kind, data = None, []


def check_problem(answer, status, code):
    """That an answer is problem+json (RFC 9457) of this code."""
    assert answer.status_code == status, f"{answer.status_code} {answer.text}"
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["code"] == code, problem
    assert problem["status"] == status
    assert problem["type"] == f"urn:carillon:problem:{code}"
    assert problem["title"]
    assert problem["detail"]
    return problem
