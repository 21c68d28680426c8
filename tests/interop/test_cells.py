"""Several cells behind a front: each device is in one and is found there, what is for all reaches all, a cell that is away holds up nobody
else, and devices move without anything being lost or given twice."""

import asyncio
import contextlib
import datetime
import json
import random

import httpx
import pytest

from harness.front import front
from harness.inbox import Inbox
from harness.peer import JSON, NOTIFICATION, Peer

DEVICES = 300
# What a request says while the front is down, or is another process by now.
AWAY = (httpx.HTTPError, RuntimeError)
PUBSUB = "{http://jabber.org/protocol/pubsub#event}event"


def payload(message):
    return json.loads(message.findtext(f".//{JSON}"))


async def one_in_each(world, cells=("a", "b")):
    """Enrols devices until each cell has one; their ids and secrets by cell."""
    found = {}
    for n in range(100):
        cell, secret = await world.enrol(f"first{n}")
        found.setdefault(cell, (f"first{n}", secret))
        if len(found) == len(cells):
            return found
    raise AssertionError(f"100 devices are in {sorted(found)} alone")


async def is_item(peer, n):
    message = await peer.messages.take(lambda m: m.find(PUBSUB) is not None and payload(m) == {"n": n}, f"item {n}")
    return message.find(PUBSUB)[0][0].get("id")


async def test_each_device_is_in_one_cell_and_what_is_sent_finds_it(tmp_path):
    async with front(tmp_path, "a", "b") as world:
        api = world.api
        found = await one_in_each(world)
        for cell, (id, _) in found.items():
            endpoint = await world.endpoint(id)
            assert (endpoint["cell"], endpoint["jid"]) == (cell, f"{id}@localhost")
            assert endpoint["endpoints"]["c2s_port"] == world.cells[cell].port("c2s")
            other = "b" if cell == "a" else "a"
            await world.apis[cell].ok("GET", f"/v1/devices/{id}")
            await world.apis[other].problem(404, "unknown-device", "GET", f"/v1/devices/{id}")
        (a, a_secret), (b, b_secret) = found["a"], found["b"]
        # Whoever connects to another cell than its own is not known there.
        stranger = Peer(world.cells["b"], f"{a}@localhost", password=a_secret)
        assert "not-authorized" in await stranger.failed_login()
        stranger._stop()
        in_a, in_b = await world.connect(a, a_secret), await world.connect(b, b_secret)

        body = {"to": [a, b, "nobody"], "payload": {"n": 1}}
        sent = await api.ok("POST", "/v1/notifications", body, status=207, headers={"idempotency-key": "one"})
        ids = [result.get("id") for result in sent["results"]]
        assert [result.get("error", {}).get("code") for result in sent["results"]] == [None, None, "unknown-device"]
        again = await api.ok("POST", "/v1/notifications", body, headers={"idempotency-key": "one"})
        assert [result.get("id") for result in again["results"]] == ids
        for peer, id in ((in_a, ids[0]), (in_b, ids[1])):
            assert payload(await peer.notification(id)) == {"n": 1}
            trace = await api.eventually(f"/v1/notifications/{id}", lambda seen: seen["state"] == "acknowledged")
            assert trace["to"] == peer.bare
        lines = "".join(json.dumps({"to": to, "payload": {"n": 2}}) + "\n" for to in (a, b))
        batch = await api.call(
            "POST", "/v1/notifications/batch", content=lines, headers={"content-type": "application/x-ndjson"}
        )
        for peer, line in zip((in_a, in_b), batch.text.splitlines(), strict=True):
            await peer.notification(json.loads(line)["id"])

        await api.ok("PUT", "/v1/topics/news", {"title": "News"}, status=201)
        for id in (a, b):
            await api.ok("PUT", f"/v1/devices/{id}/subscriptions/news", status=201)
        published = await api.ok("POST", "/v1/topics/news/items", {"payload": {"n": 3}}, status=202)
        assert published["cells"] == {"a": "taken", "b": "taken"}
        assert [await is_item(peer, 3) for peer in (in_a, in_b)] == [published["id"]] * 2

        path = "/v1/domains/localhost/notifications"
        broadcast = await api.ok("POST", path, {"payload": {"n": 4}, "ttl": 600}, status=202)
        for peer in (in_a, in_b):
            assert payload(await peer.notification(broadcast["id"])) == {"n": 4}
        seen = await api.eventually(f"{path}/{broadcast['id']}", lambda seen: seen["acknowledged"] == 2)
        assert {cell: figures["acknowledged"] for cell, figures in seen["cells"].items()} == {"a": 1, "b": 1}
        ended = await api.ok("DELETE", f"{path}/{broadcast['id']}")
        assert {figures["state"] for figures in ended["cells"].values()} == {"aborted"}

        await api.problem(409, "not-at-front", "GET", "/v1/rooms")
        await world.apis["a"].problem(409, "no-front", "GET", "/v1/cells")
        listed = await api.ok("GET", "/v1/cells")
        assert world.cells["a"].key not in json.dumps(listed)
        await api.ok("DELETE", f"/v1/devices/{a}", status=204)
        await api.problem(404, "unknown-device", "GET", f"/v1/devices/{a}/endpoint")
        for peer in (in_a, in_b):
            await peer.close()


async def test_a_cell_that_is_away_delays_its_own_devices_and_nobody_else(tmp_path):
    async with front(tmp_path, "a", "b") as world:
        api = world.api
        found = await one_in_each(world)
        (a, a_secret), (b, b_secret) = found["a"], found["b"]
        await api.ok("PUT", "/v1/topics/news", {"title": "News"}, status=201)
        for id in (a, b):
            await api.ok("PUT", f"/v1/devices/{id}/subscriptions/news", status=201)
        in_b = await world.connect(b, b_secret)
        world.cells["a"].kill()
        ids = [(await api.notify(a, {"n": n}))["id"] for n in range(5)]
        assert {(await api.trace(id))["held_for"] for id in ids} == {"a"}
        await api.ok("DELETE", f"/v1/notifications/{ids.pop()}")
        sent = await api.notify(b, {"n": 9})
        await in_b.notification(sent["id"])
        published = await api.ok("POST", "/v1/topics/news/items", {"payload": {"n": 7}}, status=202)
        assert published["cells"] == {"a": "held", "b": "taken"}
        assert await is_item(in_b, 7) == published["id"]
        away = await world.shown("a")
        assert (away["state"], away["held"]) == ("away", 5)
        assert (await world.server.command("cells", "status")).returncode == 1
        assert await api.figure('front_cell_away{cell="a"}') == 1
        # Devices that come now are given to the cell that is there.
        assert {(await world.enrol(f"late{n}"))[0] for n in range(10)} == {"b"}
        await api.problem(503, "cell-away", "GET", f"/v1/devices/{a}")

        world.start_cell("a")
        await world.until("a", lambda seen: seen["held"] == 0)
        in_a = await world.connect(a, a_secret)
        assert await is_item(in_a, 7) == published["id"]
        got = [(await in_a.message(type="headline")).get("id") for _ in ids]
        assert got == ids
        last = await api.notify(a, {"n": 10})
        assert (await in_a.message(type="headline")).get("id") == last["id"]
        assert (await world.shown("a"))["state"] == "up"
        for peer in (in_a, in_b):
            await peer.close()


class Client:
    """A device that comes back whenever it is thrown out, and what it was given."""

    def __init__(self, world, id, secret):
        self.id, self.got = id, Inbox(id)
        self._task = asyncio.create_task(self._run(world, secret))

    async def _run(self, world, secret):
        while True:
            # It may not log in yet, or the front is down.
            with contextlib.suppress(AssertionError, *AWAY):
                await world.is_up.wait()
                peer = await world.connect(self.id, secret)
                for message in peer.messages.left():
                    self._take(message)
                peer.messages.put = self._take
                try:
                    await peer.until_gone()
                finally:
                    if peer.xmpp.transport:
                        peer.xmpp.transport.abort()
                    peer._stop()

    def _take(self, message):
        if message.get("type") == "headline" and message.find(NOTIFICATION) is not None:
            self.got.put(message.get("id"))

    async def end(self):
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task


async def load(world, ids, accepted, stop):
    """Sends to devices at random, each request until it is accepted, whatever becomes of the front."""
    while not stop.is_set():
        to, key = random.choice(ids), f"key-{random.getrandbits(64):x}"
        while True:
            try:
                body = {"to": to, "payload": {"to": to}, "ttl": 3600}
                answer = await world.api.call("POST", "/v1/notifications", body, headers={"idempotency-key": key})
            except AWAY:
                await world.is_up.wait()
                continue
            if answer.status_code == 202:
                accepted.append((to, answer.json()["id"]))
                break
            assert answer.status_code in (409, 503), answer.text


async def waiting(api, id):
    """The ids of what waits for a device in a cell."""
    found, after = [], ""
    while True:
        part = await api.ok("GET", f"/v1/admin/accounts/{id}@localhost/transfer{after}")
        found += [notification["id"] for notification in part["notifications"]]
        if not part["next"]:
            return found
        after = f"?after={part['next']}"


@pytest.mark.timeout(240)
async def test_a_cell_is_drained_under_load_and_the_front_is_killed_meanwhile(tmp_path):
    async with front(tmp_path, "a") as world:
        await world.api.ok("PUT", "/v1/topics/news", {"title": "News"}, status=201)
        secrets = {f"d{n}": (await world.enrol(f"d{n}"))[1] for n in range(DEVICES)}
        ids, few = list(secrets), [f"d{n}" for n in range(0, DEVICES, 30)]
        for id in few:
            await world.api.ok("PUT", f"/v1/devices/{id}/subscriptions/news", status=201)
        await world.add("b")
        await world.api.ok("PUT", "/v1/topics/news", {"title": "News"})
        path = "/v1/domains/localhost/notifications"
        broadcast = await world.api.ok("POST", path, {"payload": {"n": 0}, "ttl": 3600}, status=202)
        clients = [Client(world, id, secrets[id]) for id in few]
        await world.api.eventually(f"{path}/{broadcast['id']}", lambda seen: seen["acknowledged"] == len(few))
        accepted, stop = [], asyncio.Event()
        senders = [asyncio.create_task(load(world, ids, accepted, stop)) for _ in range(4)]
        drained = await world.server.command("cells", "drain", "a", "--rate", "60", "--yes")
        assert drained.returncode == 0, drained.stderr
        await world.until("a", lambda seen: seen["devices"] < DEVICES * 3 // 4, 60)
        world.kill_front()
        await world.api.aclose()
        world.start()
        assert (await world.shown("a"))["devices"] > 0, "it was not killed in the middle"
        await world.server.command("cells", "pause", "a")
        await world.moved()
        assert (await world.shown("a"))["devices"] > 0
        await world.server.command("cells", "resume", "a")
        await world.until("a", lambda seen: seen["devices"] == 0 and seen["held"] == 0, 90)
        await world.moved()
        stop.set()
        await asyncio.gather(*senders)
        await world.until("b", lambda seen: seen["held"] == 0)
        assert len({id for _, id in accepted}) == len(accepted) > DEVICES

        # Each device has what was sent to it, once: on its way or in its hands.
        for client in clients:
            wanted = {id for to, id in accepted if to == client.id} | {broadcast["id"]}
            for one in wanted:
                await client.got.take(one.__eq__, one)
            assert client.got.left() == [], "given twice"
            await client.end()
        topics = await world.apis["b"].ok("GET", f"/v1/devices/{few[0]}/subscriptions")
        assert topics["topics"] == ["news"]
        for id in set(ids) - set(few):
            there = await waiting(world.apis["b"], id)
            assert len(set(there)) == len(there)
            assert set(there) == {n for to, n in accepted if to == id}, id
        assert (await world.apis["a"].ok("GET", "/v1/devices"))["devices"] == []
        gone = await world.server.command("cells", "delete", "a", "--yes")
        assert gone.returncode == 0, gone.stderr


async def test_one_device_is_moved_and_one_that_was_disabled_stays_disabled(tmp_path):
    async with front(tmp_path, "a", "b") as world:
        api = world.api
        found = await one_in_each(world)
        id, secret = found["a"]
        waits = await api.notify(id, {"n": 1})
        soon = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)).isoformat()
        later = await api.notify(id, {"n": 2}, send_at=soon)
        moved = await world.server.command("cells", "move", id, "b")
        assert moved.returncode == 0, moved.stderr
        await api.eventually(f"/v1/devices/{id}/endpoint", lambda seen: seen["cell"] == "b" and "moving" not in seen)
        peer = await world.connect(id, secret)
        await peer.notification(waits["id"])
        await peer.close()
        assert (await world.apis["b"].trace(later["id"]))["state"] == "scheduled"
        again = await world.server.command("cells", "move", id, "b")
        assert again.returncode == 1
        other, _ = found["b"]
        await api.ok("POST", f"/v1/devices/{other}/disable", status=204)
        await api.ok("POST", "/v1/moves", {"device": other, "to": "a"}, status=202)
        await api.eventually(f"/v1/devices/{other}/endpoint", lambda seen: seen["cell"] == "a" and "moving" not in seen)
        assert (await api.ok("GET", f"/v1/devices/{other}"))["state"] == "disabled"
