"""Pushes of a real node, to push services and webhooks that decrypt and verify what comes."""

import asyncio
import base64
import hashlib
import hmac
import json
import random
import string

import pytest
from slixmpp.exceptions import IqError

from harness.api import Api
from harness.inbox import Inbox
from harness.node import script
from harness.peer import Peer
from harness.push_service import PushService
from harness.pushes import PUSH, register, request
from harness.server import Server

SETTINGS = {"push__allow_addresses": '["127.0.0.0/8"]', "push__grace_ms": 300, "push__timeout_ms": 2000}


@pytest.fixture(scope="module")
def settings():
    return SETTINGS


@pytest.fixture
async def service():
    service = await PushService.start()
    yield service
    await service.close()


async def enable(peer, subscription, node="phone", **options):
    form = subscription.form(**options)
    await request(peer, f"<enable xmlns='{PUSH}' jid='push.localhost' node='{node}'>{form}</enable>")


def web_push(subscription):
    return {"web_push": subscription.json()}


async def test_a_client_that_goes_is_woken_by_what_is_kept_for_it(api, peer, account, service):
    jid = await account()
    service.vapid = (await api.ok("GET", "/v1/push/key"))["vapid"]
    phone, sender = service.subscribe("phone"), await peer()
    client = await peer(jid)
    info = await client.plugin("xep_0030").get_info(jid=jid)
    assert PUSH in info["disco_info"]["features"]
    vapid = await request(client, "<vapid xmlns='urn:carillon:push:0'/>", "get")
    assert vapid.text == service.vapid
    await enable(client, phone, body="whole")
    # A live session takes it: nobody is woken.
    sender.chat(jid, "while you are there")
    await client.message("while you are there")
    await client.close()
    sender.chat(jid, "while you are away")
    push = await phone.next(body="while you are away")
    assert push.json["from"] == sender.bare
    assert push.json["account"] == jid
    assert push.json["node"] == "phone"
    assert push.json["type"] == "message"
    assert push.json["messages"] == 1
    assert push.headers["urgency"] == "high"
    assert int(push.headers["ttl"]) > 86_400
    assert not phone.pushes.left()
    # The next of the same conversation takes the place of what the push service may still have.
    sender.chat(jid, "again")
    again = await phone.next(body="again")
    assert again.headers["topic"] == push.headers["topic"]
    assert len(push.headers["topic"]) <= 32
    # Back again, it disables what it enabled.
    client = await peer(jid)
    await client.message("again")
    await request(client, f"<disable xmlns='{PUSH}' jid='push.localhost' node='phone'/>")
    assert (await api.ok("GET", f"/v1/push/registrations?account={jid}"))["registrations"] == []


async def test_other_app_servers_are_refused(peer, service):
    client = await peer()
    form = service.subscribe("x").form()
    with pytest.raises(IqError) as refused:
        await request(client, f"<enable xmlns='{PUSH}' jid='push.elsewhere.example' node='a'>{form}</enable>")
    assert refused.value.condition == "item-not-found"


async def test_notifications_that_are_kept_wake_and_others_do_not(api, account, service):
    jid = await account()
    phone = service.subscribe("phone")
    await register(api, jid, web_push(phone))
    await api.notify(jid, {"n": 0}, audience="connected")
    await api.notify(jid, {"n": 1}, audience="always", priority="low", ttl=90, collapse_key="score")
    push = await phone.next()
    assert push.json["type"] == "notification"
    assert push.json["payload"] == {"n": 1}
    assert (await api.trace(push.json["id"]))["state"] == "stored"
    assert push.headers["urgency"] == "low"
    assert 80 <= int(push.headers["ttl"]) <= 90
    assert "topic" in push.headers
    await api.notify(jid, {"n": 2}, audience="always", priority="high")
    push = await phone.next()
    assert push.json["payload"] == {"n": 2}
    assert push.headers["urgency"] == "high"
    assert "topic" not in push.headers


async def test_what_a_live_session_does_not_acknowledge_wakes_after_a_while(api, peer, account, service):
    phones = {}
    for plugins in (("xep_0198",), ()):
        jid = await account()
        phones[plugins] = service.subscribe(jid)
        await register(api, jid, web_push(phones[plugins]))
        client = await peer(jid, plugins=plugins)
        await api.notify(jid, {"n": 1}, audience="always")
        await client.ping()
    # One neither counts nor sends receipts: what its TCP took is known later than the apps may be woken here.
    assert (await phones[()].next()).json["payload"] == {"n": 1}
    # By then the other would have been woken, too: its session has acknowledged it.
    assert not phones[("xep_0198",)].pushes.left()


async def test_an_app_is_told_as_much_as_it_wants(api, peer, account, service):
    jid, sender = await account(), await peer()
    apps = {shown: service.subscribe(shown) for shown in ("nothing", "sender", "whole")}
    for shown, app in apps.items():
        await register(api, jid, web_push(app), node=shown, shown=shown)
    sender.chat(jid, "secret")
    told = {shown: (await app.next()).json for shown, app in apps.items()}
    assert {shown: (push.get("from"), push.get("body")) for shown, push in told.items()} == {
        "nothing": (None, None),
        "sender": (sender.bare, None),
        "whole": (sender.bare, "secret"),
    }


async def test_random_bodies_are_decrypted_by_a_foreign_library(peer, api, account, service):
    dice = random.Random(11)
    jid, sender = await account(), await peer()
    phone = service.subscribe("phone")
    await register(api, jid, web_push(phone))
    letters = string.ascii_letters + " éß漢\U0001f514&<>\"'\\"
    for number in range(100):
        body = f"{number} " + "".join(dice.choices(letters, k=dice.randrange(1, 900)))
        sender.chat(jid, body.strip())
        assert (await phone.next()).json["body"] == body.strip()
    sender.chat(jid, "long " * 2000)
    push = await phone.next()
    assert push.json["truncated"] is True
    assert push.json["body"].startswith("long long")
    assert len(push.plaintext) <= 3993


async def test_a_thousand_random_bodies_are_decrypted_by_two_foreign_libraries(api, account, service):
    dice = random.Random(1000)
    letters = string.ascii_letters + " éß漢\U0001f514&<>\"'\\"
    apps, sent = [], {}
    for number in range(20):
        jid = await account()
        apps.append(service.subscribe(f"app{number}"))
        await register(api, jid, web_push(apps[-1]))
        sent[jid] = ["".join(dice.choices(letters, k=dice.randrange(0, 900))) for _ in range(50)]
    lines = [
        json.dumps({"to": jid, "payload": {"n": n, "text": text}, "audience": "always"})
        for jid, texts in sent.items()
        for n, text in enumerate(texts)
    ]
    ndjson = {"content-type": "application/x-ndjson"}
    await api.call("POST", "/v1/notifications/batch", content="\n".join(lines), headers=ndjson)
    async with script("ece.mjs") as ece:
        for app, texts in zip(apps, sent.values(), strict=True):
            # The one library has decrypted them when they came, the other one does now.
            pushes = [await app.next() for _ in texts]
            key = app.key.private_numbers().private_value.to_bytes(32, "big")
            for push in pushes:
                asked = {"body": push.body, "key": key, "auth": app.auth}
                answer = await ece.ask({name: base64.b64encode(value).decode() for name, value in asked.items()})
                assert base64.b64decode(answer) == push.plaintext
            assert {push.json["payload"]["n"]: push.json["payload"]["text"] for push in pushes} == dict(
                enumerate(texts)
            )
            assert not app.pushes.left()


@pytest.mark.parametrize("status", [404, 410])
async def test_an_app_that_is_gone_is_registered_no_longer_and_its_account_is_told(api, peer, account, service, status):
    jid, sender = await account(), await peer()
    phone = service.subscribe("phone")
    made = await register(api, jid, web_push(phone))
    service.answer = lambda path: status
    sender.chat(jid, "hi")
    await service.seen.take(lambda seen: seen == (phone.path, status))
    await api.eventually(f"/v1/push/registrations?account={jid}", lambda page: page["registrations"] == [])
    await api.problem(404, "unknown-registration", "GET", f"/v1/push/registrations/{made['id']}")
    client = await peer(jid)
    told = await client.messages.take(lambda m: m.find("{urn:carillon:push:0}ended") is not None, "that it has ended")
    ended = told.find("{urn:carillon:push:0}ended")
    assert (ended.get("node"), ended.get("reason"), ended.get("jid")) == ("phone", "gone", "push.localhost")
    await client.message("hi")


async def test_who_is_busy_is_asked_when_it_said_and_loses_nothing(api, peer, account, service):
    jid, sender = await account(), await peer()
    phone = service.subscribe("phone")
    made = await register(api, jid, web_push(phone))
    service.answer = lambda path: (429, {"retry-after": "2"})
    clock = asyncio.get_running_loop().time
    sender.chat(jid, "hi")
    await service.seen.take(lambda seen: seen[1] == 429)
    refused = clock()
    service.answer = lambda path: 201
    failing = await api.eventually(f"/v1/push/registrations/{made['id']}", lambda view: view["state"] == "failing")
    assert failing["failures"] == 1
    assert "429" in failing["last_error"]["error"]
    assert (await phone.next()).json["body"] == "hi"
    assert clock() - refused > 1.8
    fine = await api.eventually(f"/v1/push/registrations/{made['id']}", lambda view: view["state"] == "ok")
    assert fine["failures"] == 0
    assert "last_error" not in fine
    assert "pushed_at" in fine


async def test_a_service_that_hangs_holds_up_no_other(api, peer, account, service):
    slow = await PushService.start()
    try:
        slow.goes_on.clear()
        stuck, sender = await account(), await peer()
        for number in range(12):
            await register(api, stuck, web_push(slow.subscribe(f"s{number}")), node=f"s{number}")
        sender.chat(stuck, "waits")
        await api.figure_is("push_held", lambda held: held >= 12)
        jid = await account()
        phone = service.subscribe("phone")
        await register(api, jid, web_push(phone))
        clock = asyncio.get_running_loop().time
        for number in range(10):
            began = clock()
            sender.chat(jid, f"n{number}")
            await phone.next(body=f"n{number}")
            assert clock() - began < 1.5
        # After its time a request is over, and the push service is left alone for a while; then nothing is lost.
        await api.figure_is("push_services_closed", lambda closed: closed == 1)
        slow.goes_on.set()
        for subscription in slow.subscriptions.values():
            await subscription.pushes.take(seconds=60)
    finally:
        await slow.close()


async def test_a_webhook_is_told_and_can_verify_who_tells(api, peer, account):
    requests = Inbox("the webhook")

    async def serve(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:] if line)}
        requests.put((headers, await reader.readexactly(int(headers["content-length"]))))
        writer.write(b"HTTP/1.1 204 x\r\nconnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
        jid, sender = await account(), await peer()
        body = {"account": jid, "node": "hook", "webhook": {"url": url}}
        made = await api.ok("POST", "/v1/push/registrations", body, status=201)
        sender.chat(jid, "hi")
        headers, body = await requests.take()
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(made["secret"].removeprefix("whsec_"))
        expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == expected
        assert sender.bare.encode() in body
        assert b'"body"' not in body


async def test_registrations_are_checked(api, account, service):
    jid = await account()
    phone = service.subscribe("phone")
    good = {"account": jid, "node": "a", "web_push": phone.json()}

    async def refused(code, status=422, **more):
        await api.problem(status, code, "POST", "/v1/push/registrations", {**good, **more})

    bad_point = {"p256dh": "B" + "A" * 86, "auth": phone.keys["auth"]}
    await refused("invalid-value", web_push={"endpoint": phone.endpoint, "keys": bad_point})
    await refused("invalid-value", web_push={"endpoint": phone.endpoint, "keys": {**phone.keys, "auth": "AAAA"}})
    await refused("invalid-value", web_push={"endpoint": "http://10.0.0.1/", "keys": phone.keys})
    await refused("invalid-value", node="")
    await refused("invalid-value", web_push=None)
    await refused("unknown-account", 404, account="nobody-at-all")


async def test_every_push_comes_though_the_node_is_killed(tmp_path):
    """The node is killed in the middle of sending, again and again; every app is told of every message, at least once."""
    service = await PushService.start()
    dice = random.Random(5)
    settings = {name.replace("__", "."): value for name, value in SETTINGS.items()}
    apps, expected = {}, {}
    try:
        for life in range(4):
            server = Server(tmp_path, **settings)
            api = Api(server)
            if life == 0:
                await api.account("bob@localhost")
                for number in range(20):
                    jid = f"u{number}@localhost"
                    await api.account(jid)
                    apps[jid] = service.subscribe(f"u{number}")
                    await register(api, jid, web_push(apps[jid]))
            bob = await Peer.connect(server, "bob@localhost")
            service.answer = lambda path, life=life: 503 if life == 1 and dice.random() < 0.5 else 201
            for jid in apps:
                bob.chat(jid, f"life {life}")
                expected[jid] = f"life {life}"
            # What it was answered before is kept.
            await bob.ping()
            count = service.count + dice.randrange(1, 10)
            if life < 3:
                while service.count < count:
                    await service.seen.take()
                server.kill()
            else:
                for jid, app in apps.items():
                    await app.pushes.take(lambda push, jid=jid: push.json["body"] == expected[jid], seconds=60)
            await api.aclose()
            await bob.close()
        server.end()
    finally:
        await service.close()
