"""Pushes of a real node to Firebase Cloud Messaging."""

import asyncio
import json
import random
import time

import pytest

from harness.api import Api
from harness.fcm import Fcm, error
from harness.peer import Peer
from harness.pushes import enable, of_app, register
from harness.server import Server

SETTINGS = {"push__grace_ms": 300, "push__timeout_ms": 5000}


@pytest.fixture
async def fcm():
    service = await Fcm.start()
    yield service
    await service.close()


@pytest.fixture
async def server(fcm, tmp_path):
    server = Server(tmp_path, **SETTINGS, **fcm.settings(tmp_path))
    yield server
    await asyncio.to_thread(server.end)
    log = server.log.read_text()
    assert not any(secret in log for secret in [*fcm.devices, *fcm.granted]), "a token is in the log"


async def test_a_client_that_goes_is_woken_by_what_is_kept_for_it(api, peer, account, fcm):
    jid, phone, sender = await account(), fcm.device("phone"), await peer()
    client = await peer(jid)
    await enable(client, {"app": "droid", "token": phone.token, "body": "whole"})
    await client.close()
    sender.chat(jid, "while you are away")
    push = await phone.next(body="while you are away")
    assert (push.told["account"], push.told["from"], push.told["messages"]) == (jid, sender.bare, 1)
    android = push.message["android"]
    assert (android["priority"], android["ttl"]) == ("HIGH", "2419200s")
    sender.chat(jid, "again")
    again = await phone.next(body="again")
    assert again.message["android"]["collapse_key"] == android["collapse_key"]
    listed = await api.ok("GET", f"/v1/push/registrations?account={jid}")
    assert phone.token not in json.dumps(listed)
    assert (listed["registrations"][0]["channel"], listed["registrations"][0]["service"]) == ("fcm", "droid")
    assert len(fcm.granted) == 1, "access is used again"


async def test_what_a_notification_wants_is_what_fcm_is_told(api, account, fcm):
    jid, phone = await account(), fcm.device("phone")
    await register(api, jid, of_app("droid", phone))
    await api.notify(jid, {"n": 1}, audience="always", priority="low", ttl=90, collapse_key="score")
    push = await phone.next()
    assert push.told["payload"] == {"n": 1}
    android = push.message["android"]
    assert android["priority"] == "NORMAL"
    assert 80 <= int(android["ttl"].removesuffix("s")) <= 90
    assert "collapse_key" in android
    await api.notify(jid, {"n": 2}, audience="always", priority="high")
    push = await phone.next()
    assert push.message["android"]["priority"] == "HIGH"
    assert "collapse_key" not in push.message["android"]


@pytest.mark.parametrize(
    "refusal",
    [error(404, "NOT_FOUND", "UNREGISTERED"), error(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "message.token")],
    ids=["unregistered", "invalid token"],
)
async def test_an_app_that_is_gone_is_registered_no_longer_and_its_account_is_told(api, peer, account, fcm, refusal):
    jid, phone, sender = await account(), fcm.device("phone"), await peer()
    await register(api, jid, of_app("droid", phone))
    fcm.refuse = lambda token: refusal
    sender.chat(jid, "hi")
    await api.eventually(f"/v1/push/registrations?account={jid}", lambda page: page["registrations"] == [])
    client = await peer(jid)
    told = await client.messages.take(lambda m: m.find("{urn:carillon:push:0}ended") is not None, "that it has ended")
    assert told.find("{urn:carillon:push:0}ended").get("node") == "phone"


async def test_what_is_wrong_with_a_push_does_not_end_the_registration(api, peer, account, fcm):
    jid, phone, sender = await account(), fcm.device("phone"), await peer()
    made = await register(api, jid, of_app("droid", phone))
    fcm.refuse = lambda token: error(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "message.data")
    sender.chat(jid, "given up")
    failing = await api.eventually(f"/v1/push/registrations/{made['id']}", lambda view: view["state"] == "failing")
    assert failing["last_error"]["error"] == "400 INVALID_ARGUMENT"
    fcm.refuse = lambda token: None
    sender.chat(jid, "taken")
    await phone.next(body="taken")


async def test_access_is_renewed_when_it_ends_and_asked_for_once_by_all(api, peer, account, fcm):
    jid, sender = await account(), await peer()
    devices = [fcm.device(f"d{number}") for number in range(15)]
    for number, device in enumerate(devices):
        await register(api, jid, of_app("droid", device), node=f"d{number}")
    for body in ("one", "two"):
        sender.chat(jid, body)
        for device in devices:
            await device.next(body=body)
        # It ends before its time.
        fcm.good.clear()
    assert len(fcm.granted) == 2
    # None is granted: what waits is tried again.
    fcm.refuse_access = lambda: (503, {"error": "temporarily_unavailable"})
    sender.chat(jid, "three")
    page = f"/v1/push/registrations?account={jid}"
    listed = await api.eventually(page, lambda page: all(view["state"] == "failing" for view in page["registrations"]))
    assert listed["registrations"][0]["last_error"]["error"] == "no access: 503 temporarily_unavailable"
    fcm.refuse_access = lambda: None
    for device in devices:
        await device.next(body="three")


@pytest.mark.parametrize("status", [429, 503])
async def test_who_is_busy_is_asked_when_it_said_and_loses_nothing(api, peer, account, fcm, status):
    jid, phone, sender = await account(), fcm.device("phone"), await peer()
    await register(api, jid, of_app("droid", phone))
    fcm.refuse = lambda token: error(status, "UNAVAILABLE", headers={"retry-after": "3"})
    sender.chat(jid, "hi")
    await fcm.seen.take(lambda seen: seen[1] == status)
    refused = time.monotonic()
    fcm.refuse = lambda token: None
    await phone.next(body="hi")
    assert time.monotonic() - refused > 2.8


async def test_every_push_comes_though_the_node_is_killed(fcm, tmp_path):
    dice, devices = random.Random(7), {}
    for life in range(3):
        server = Server(tmp_path, **SETTINGS, **fcm.settings(tmp_path))
        api = Api(server)
        if life == 0:
            await api.account("bob@localhost")
            for number in range(20):
                jid = f"u{number}@localhost"
                await api.account(jid)
                devices[jid] = fcm.device(f"u{number}")
                await register(api, jid, of_app("droid", devices[jid]))
        bob = await Peer.connect(server, "bob@localhost")
        for jid in devices:
            bob.chat(jid, f"life {life}")
        # What it was answered before is kept.
        await bob.ping()
        count = fcm.count + dice.randrange(1, 15)
        if life < 2:
            while fcm.count < count:
                await fcm.seen.take()
            server.kill()
        else:
            for device in devices.values():
                await device.next(body="life 2")
        await api.aclose()
        await bob.close()
    await asyncio.to_thread(server.end)
