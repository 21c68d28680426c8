"""Disks that are too slow or full: of the event log, and of the store. What needs them is bounded and said, the rest goes on."""

import asyncio
import contextlib
import os
import re
import subprocess

import pytest

from harness.api import Api, check_problem
from harness.follower import Follower
from harness.inbox import deadline
from harness.peer import CLIENT, Peer
from harness.server import run, unique

EVENT_LOG = {
    "event_log__enabled": "true",
    "event_log__memory_bytes": "1MiB",
    "event_log__events": '["publish", "item"]',
}


class Busy:
    """A node whose event log gets a line for each item that a crowd is given."""

    def __init__(self, server, api, topic, crowd):
        self.server = server
        self.api = api
        self.topic = topic
        self.crowd = crowd
        self.published = []

    @classmethod
    async def start(cls, server):
        api, topic = Api(server), unique("busy")
        await api.ok("PUT", f"/v1/topics/{topic}", {}, status=201)
        jids = [f"{unique('busy')}@localhost" for _ in range(30)]
        for jid in jids:
            await api.account(jid)
        return cls(server, api, topic, [await Follower.of(api, server, jid, topic) for jid in jids])

    async def until(self, figure, wanted):
        """Publishes until a figure is as wanted; everybody is given every item all the same."""
        async with deadline(f"{figure} as wanted", 60):
            while not wanted(await self.api.figure(figure)):
                await self.publish(20)
                assert await self.api.figure("event_log_held_bytes") <= 2**20

    async def publish(self, count):
        for _ in range(count):
            id = f"item-{len(self.published)}"
            await self.api.ok("POST", f"/v1/topics/{self.topic}/items", {"id": id, "payload": 0}, status=202)
            self.published.append(id)
        for one in self.crowd:
            await one.got(lambda items: items == self.published, "every item")

    async def close(self):
        for one in self.crowd:
            await one.close()
        await self.api.aclose()


async def test_a_full_disk_of_the_event_log_slows_nobody_and_what_is_lost_is_said(disk, start, tmp_path):
    small_disk = disk(tmp_path / "disk", "1m")
    server = start(event_log__path=small_disk, **EVENT_LOG)
    busy = await Busy.start(server)
    await busy.until("event_log_dropped_total", lambda n: n > 0)
    assert await busy.api.figure("event_log_failures_total") > 0
    # Somebody makes room: nothing need be told to the node.
    await asyncio.to_thread(subprocess.run, ["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    await busy.api.figure_is("event_log_held_bytes", lambda n: n == 0)
    dropped = await busy.api.figure("event_log_dropped_total")
    lines = await busy.api.figure("event_log_lines_total")
    await busy.publish(1)
    await busy.api.figure_is("event_log_lines_total", lambda n: n >= lines + 1 + len(busy.crowd))
    assert await busy.api.figure("event_log_dropped_total") == dropped
    await busy.close()
    server.end(expected=["the event log"])
    log = server.log.read_text()
    assert "the event log loses events" in log
    assert "the event log is written again" in log
    # The log itself says what is missing, and it is what was counted.
    found = await asyncio.to_thread(run, "events", "verify", str(small_disk))
    missing = [int(n) for n in re.findall(r"(\d+) missing before", found.stdout)]
    assert sum(missing) == dropped, found.stdout
    assert len(found.stdout.splitlines()) == len(missing) + 1, found.stdout


async def test_a_slow_disk_of_the_event_log_slows_nobody_and_loses_nothing(start, tmp_path):
    folder = tmp_path / "events"
    folder.mkdir()
    # A pipe is a disk that takes nothing for as long as nobody reads it.
    os.mkfifo(folder / "events.jsonl")
    pipe = os.open(folder / "events.jsonl", os.O_RDONLY | os.O_NONBLOCK)
    server = start(event_log__path=folder, **EVENT_LOG)
    busy = await Busy.start(server)
    await busy.until("event_log_spilled_bytes_total", lambda n: n > 2**20)
    os.set_blocking(pipe, True)
    with os.fdopen(pipe, "rb") as reading:
        reader = asyncio.create_task(asyncio.to_thread(reading.read))
        await busy.api.figure_is("event_log_held_bytes", lambda n: n == 0)
        assert await busy.api.figure("event_log_dropped_total") == 0
        await busy.close()
        await asyncio.to_thread(server.end)
        async with deadline("the end of the pipe"):
            lines = await reader
    whole = tmp_path / "whole.jsonl"
    whole.write_bytes(lines)
    found = await asyncio.to_thread(run, "events", "verify", str(whole))
    assert found.returncode == 0, found.stdout
    items = lines.count(b'"kind":"item"')
    assert items == len(busy.published) * len(busy.crowd)
    assert not list(folder.glob("spill-*"))


def fill(folder):
    """Takes all the room there is; the file that has it."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return filler


@pytest.mark.embedded
async def test_a_full_disk_of_the_store_refuses_what_is_to_be_kept_and_the_rest_goes_on(disk, start, tmp_path):
    server = start(data_dir=disk(tmp_path / "data", "16m"))
    async with contextlib.AsyncExitStack() as stack:
        api = Api(server)
        stack.push_async_callback(api.aclose)
        for name in ("away", "one", "other"):
            await api.account(f"{name}@localhost")
        one = await Peer.connect(server, "one@localhost", plugins=["xep_0198"])
        stack.push_async_callback(one.close)
        kept = [(await api.notify("away@localhost", "before"))["id"]]

        filler = fill(server.data)
        # What the store's files have in hand may take some more.
        async with deadline("the store to be full", 60):
            while True:
                body = {"to": "away@localhost", "payload": "x" * 1000}
                answer = await api.call("POST", "/v1/notifications", body)
                if answer.status_code != 202:
                    break
                kept.append(answer.json()["id"])
        check_problem(answer, 503, "unavailable")
        await api.problem(503, "unavailable", "POST", "/v1/admin/accounts", {"jid": "new", "password": "secret"})
        await api.problem(503, "unavailable", "PUT", "/v1/topics/new", {})
        # Who is here goes on, who has an account comes in, what need not be kept arrives.
        other = await Peer.connect(server, "other@localhost")
        stack.push_async_callback(other.close)
        other.chat("one@localhost", "in spite of all")
        await one.messages.take(lambda m: m.findtext(CLIENT + "body") == "in spite of all", "the chat")
        sent = await api.notify("one@localhost", "now", audience="connected")
        await one.notification(sent["id"])

        # Somebody makes room: nothing need be told to the node.
        filler.unlink()
        kept.append((await api.notify("away@localhost", "after"))["id"])
        await api.account("new@localhost")
    # What was accepted is there, whatever becomes of the process.
    server.kill()
    log = server.log.read_text()
    assert 1 <= log.count("store write failed") + log.count("store commit failed") <= 10, log
    assert "the store is written again" in log
    server = start()
    away = await Peer.connect(server, "away@localhost", plugins=["xep_0198"])
    assert [await away.notification(id) for id in kept]
    await away.ping()
    assert not away.messages.left()
    await away.close()
    server.end()
