"""Pushes of a real node to the Apple Push Notification service."""

import asyncio
import json
import os
import random
import signal
import ssl
import time

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from slixmpp.exceptions import IqError
from slixmpp.jid import JID

from harness.api import Api
from harness.apns import Apns
from harness.peer import Peer
from harness.pushes import PUSH, enable, of_app, register, request
from harness.receiver import Authority
from harness.server import Server, run, unique
from harness.upgrade import Upgradable

SETTINGS = {"push__grace_ms": 300, "push__timeout_ms": 5000}
ROOMS = ("xep_0030", "xep_0045")


@pytest.fixture
async def apns():
    service = await Apns.start()
    yield service
    await service.close()


@pytest.fixture
async def server(apns, tmp_path):
    server = Server(tmp_path, **SETTINGS, **apns.settings(tmp_path))
    yield server
    await asyncio.to_thread(server.end)
    log = server.log.read_text()
    assert not any(device.token in log for device in apns.devices.values()), "a token of a device is in the log"
    assert not any(token in log for token in apns.provider_tokens), "a token of the provider is in the log"


async def test_a_client_that_goes_is_woken_by_what_is_kept_for_it(api, peer, account, apns):
    jid, phone, sender = await account(), apns.device("phone"), await peer()
    client = await peer(jid)
    await enable(client, {"app": "chat", "token": phone.token, "body": "whole"})
    await client.close()
    sender.chat(jid, "while you are away")
    push = await phone.next(body="while you are away")
    assert push.json["aps"]["alert"] == {"title": sender.bare, "body": "while you are away"}
    assert push.json["aps"]["badge"] == 1
    assert push.json["aps"]["mutable-content"] == 1
    told = push.json["carillon"]
    assert (told["account"], told["node"], told["from"], told["type"]) == (jid, "phone", sender.bare, "message")
    assert push.headers["apns-priority"] == "10"
    assert push.headers["apns-push-type"] == "alert"
    assert int(push.headers["apns-expiration"]) > time.time() + 86_400
    sender.chat(jid, "again")
    again = await phone.next(body="again")
    assert again.headers["apns-collapse-id"] == push.headers["apns-collapse-id"]
    assert again.headers["apns-id"] != push.headers["apns-id"]
    listed = await api.ok("GET", f"/v1/push/registrations?account={jid}")
    assert phone.token not in json.dumps(listed)
    assert (listed["registrations"][0]["channel"], listed["registrations"][0]["service"]) == ("apns", "chat")
    client = await peer(jid)
    await client.message("again")
    await request(client, f"<disable xmlns='{PUSH}' jid='push.localhost' node='phone'/>")
    assert (await api.ok("GET", f"/v1/push/registrations?account={jid}"))["registrations"] == []


async def test_what_a_notification_wants_is_what_apns_is_told(api, account, apns):
    jid, phone = await account(), apns.device("phone")
    await register(api, jid, of_app("chat", phone))
    payload = {"title": "Goal", "body": "2:1", "n": 1}
    await api.notify(jid, payload, audience="always", priority="low", ttl=90, collapse_key="score")
    push = await phone.next()
    assert push.json["aps"]["alert"] == {"title": "Goal", "body": "2:1"}
    assert push.json["carillon"]["payload"] == payload
    assert push.headers["apns-priority"] == "1"
    assert 80 <= int(push.headers["apns-expiration"]) - time.time() <= 91
    assert "apns-collapse-id" in push.headers
    await api.notify(jid, {"n": 2}, audience="always", priority="normal")
    push = await phone.next()
    assert push.json["aps"]["alert"] == {"body": "New message"}
    assert push.headers["apns-priority"] == "5"
    assert "apns-collapse-id" not in push.headers


async def test_each_push_is_a_step_of_the_trace_of_its_notification(api, peer, account, apns, server):
    jid, sender = await account(), await peer()
    devices = {name: apns.device(name) for name in ("busy", "gone", "phone", "picky")}
    numbers = {
        name: (await register(api, jid, of_app("chat", device), node=name))["id"] for name, device in devices.items()
    }
    answers = {
        devices["busy"]: (503, "ServiceUnavailable"),
        devices["gone"]: (400, "BadDeviceToken"),
        devices["picky"]: (413, "PayloadTooLarge"),
    }
    apns.refuse = answers.get
    sent = await api.notify(jid, {"n": 1}, audience="always")

    async def pushes(wanted):
        trace = await api.eventually(f"/v1/notifications/{sent['id']}", wanted)
        assert trace["state"] == "stored", "a push is no delivery"
        for push in trace["pushes"]:
            assert push["registration"] == numbers[push["node"]]
            assert push["channel"] == "apns"
            assert trace["stored_at"] <= push["sent_at"] <= push["answered_at"]
        return {push["node"]: (push["state"], push.get("reason"), push["requests"]) for push in trace["pushes"]}

    assert await pushes(lambda trace: len(trace.get("pushes", [])) == 4) == {
        "busy": ("failed", "503: ServiceUnavailable", 1),
        "gone": ("gone", None, 1),
        "phone": ("taken", None, 1),
        "picky": ("refused", "413: PayloadTooLarge", 1),
    }
    apns.refuse = lambda device: None
    await devices["busy"].next()
    after = await pushes(lambda trace: all(push["state"] != "failed" for push in trace["pushes"]))
    assert (after["busy"], len(after)) == (("taken", None, 2), 4)
    shown = await server.command("notification", "show", sent["id"])
    assert "busy by apns: taken" in shown.stdout, shown
    # What no notification told has no trace.
    sender.chat(jid, "hi")
    await devices["phone"].next(body="hi")
    listed = await api.ok("GET", f"/v1/notifications?to={jid}")
    assert sum(1 for one in listed["notifications"] if "pushes" in one) == 0


async def test_who_is_mentioned_in_a_room_while_away_is_woken(api, peer, account, apns):
    jid, bob = await account(), await peer(plugins=ROOMS)
    apps = {only: apns.device(only) for only in ("mentions", "messages")}
    for only, device in apps.items():
        body = {"account": jid, "node": only, "wakes": [only], "shown": "whole", **of_app("chat", device)}
        made = await api.ok("POST", "/v1/push/registrations", body, status=201)
        assert made["wakes"] == [only]
    name = unique("tea")
    tea = f"{name}@rooms.localhost"
    await api.ok("PUT", f"/v1/rooms/{name}", {"title": "Tea"}, status=201)
    await api.ok("PUT", f"/v1/rooms/{name}/members/{jid}", {"affiliation": "member", "nick": "Ali Baba"})
    await bob.plugin("xep_0045").join_muc_wait(JID(tea), "Bob", timeout=10)

    def say(text):
        bob.xmpp.send_message(mto=JID(tea), mbody=text, mtype="groupchat")

    say("hello all")
    say("Ali Baba: tea is ready")
    push = await apps["mentions"].next()
    assert push.json["aps"]["alert"] == {"title": tea, "body": "Ali Baba: tea is ready"}
    assert (push.json["carillon"]["room"], push.json["carillon"]["nick"]) == (tea, "Bob")
    # Whoever is in the room hears it there.
    alice = await peer(jid, plugins=ROOMS)
    await alice.plugin("xep_0045").join_muc_wait(JID(tea), "Ali Baba", timeout=10)
    say("Ali Baba, more tea?")
    await alice.messages.take(lambda m: m.findtext("{jabber:client}body") == "Ali Baba, more tea?", "it")
    await alice.close()
    await bob.presences.take(lambda p: p.get("type") == "unavailable", "that she has left")
    say(f"@{jid.partition('@')[0]}!")
    push = await apps["mentions"].next()
    assert push.json["aps"]["alert"]["body"] == f"@{jid.partition('@')[0]}!"
    bob.chat(jid, "hi")
    await apps["messages"].next(body="hi")
    assert not any(device.pushes.left() for device in apps.values())
    client = await peer(jid)
    with pytest.raises(IqError) as refused:
        await enable(client, {"app": "chat", "token": apps["mentions"].token, "wakes": "everything"})
    assert refused.value.condition == "not-acceptable"


async def test_an_app_is_woken_by_every_message_of_rooms_that_it_names(api, peer, account, apns):
    jid, bob, device = await account(), await peer(plugins=ROOMS), apns.device("phone")
    name = unique("tea")
    rooms = {kind: f"{name}@{host}.localhost" for kind, host in (("muc", "rooms"), ("muclight", "muclight"))}
    for room in rooms.values():
        await api.ok("PUT", f"/v1/rooms/{room}", {"title": "Tea"}, status=201)
        for member, affiliation in ((bob.bare, "owner"), (jid, "member")):
            await api.call("PUT", f"/v1/rooms/{room}/members/{member}", {"affiliation": affiliation})
    await bob.plugin("xep_0045").join_muc_wait(JID(rooms["muc"]), "Bob", timeout=10)
    body = {"account": jid, "node": "phone", "shown": "whole", **of_app("chat", device)}

    def say(room, text):
        bob.xmpp.send_message(mto=JID(room), mbody=text, mtype="groupchat")

    # It has not said which: a mention wakes it, in MUC Light, too, and nothing else does.
    await api.ok("POST", "/v1/push/registrations", body, status=201)
    for room in rooms.values():
        say(room, "hello all")
        say(room, f"@{jid.partition('@')[0]}, tea is ready")
        assert (await device.next()).json["aps"]["alert"]["body"].endswith("tea is ready")
    for wrong in ("coffee@rooms.localhost", "tea@elsewhere.example", "x y"):
        await api.problem(422, "invalid-value", "POST", "/v1/push/registrations", body | {"rooms": [wrong]})
    made = await api.ok("POST", "/v1/push/registrations", body | {"rooms": list(rooms.values())}, status=201)
    assert made["rooms"] == sorted(rooms.values())
    for room in rooms.values():
        say(room, "to all")
        push = await device.next()
        assert (push.json["carillon"]["room"], push.json["aps"]["alert"]["body"]) == (room, "to all")
    # Whoever hears a room is not woken by it; by then it would have been, since what the session does not acknowledge wakes as late.
    alice = await peer(jid, plugins=ROOMS)
    await alice.plugin("xep_0045").join_muc_wait(JID(rooms["muc"]), "Alice", timeout=10)
    for room in rooms.values():
        say(room, "you are there")
        await alice.messages.take(
            lambda m, room=room: m.get("from").startswith(room) and m.findtext("{jabber:client}body") == "you are there"
        )
    await api.notify(jid, {"n": 1}, audience="always")
    assert (await device.next()).json["carillon"]["type"] == "notification"
    await alice.close()
    assert not device.pushes.left()
    # With the membership the wish goes.
    await api.ok("DELETE", f"/v1/rooms/{rooms['muc']}/members/{jid}", status=204)
    listed = await api.ok("GET", f"/v1/push/registrations?account={jid}")
    assert listed["registrations"][0]["rooms"] == [rooms["muclight"]]


async def test_what_a_device_shows_is_in_the_words_of_its_domain(apns, tmp_path, start):
    words = {
        "domains": '["localhost"]',
        "title": '["{title}!", "From {sender}", "News"]',
        "body": '["{body}", "{messages} new for {account}"]',
    }
    templates = {f"push__templates__chat__{name}": value for name, value in words.items()}
    server = start(**SETTINGS, **apns.settings(tmp_path), **templates)
    api = Api(server)
    await api.account("alice@localhost")
    await api.account("bob@localhost")
    devices = {shown: apns.device(shown) for shown in ("nothing", "sender", "whole")}
    for shown, device in devices.items():
        await register(api, "alice@localhost", of_app("chat", device), node=shown, shown=shown)
    bob = await Peer.connect(server, "bob@localhost")
    bob.chat("alice@localhost", "hi")
    shown = {name: (await device.next()).json["aps"]["alert"] for name, device in devices.items()}
    assert shown == {
        "nothing": {"title": "News", "body": "1 new for alice@localhost"},
        "sender": {"title": "From bob@localhost", "body": "1 new for alice@localhost"},
        "whole": {"title": "From bob@localhost", "body": "hi"},
    }
    await api.notify("alice@localhost", {"title": "Goal", "body": "2:1"}, audience="always")
    assert (await devices["whole"].next()).json["aps"]["alert"] == {"title": "Goal!", "body": "2:1"}
    # What the domain's administrators set holds instead, at once: of APNs its own. What is said is text, whatever is in it.
    said = '"}{sender}\\ \U0001f514'
    await api.ok("PUT", "/v1/push/templates", {"body": ["{body}"], "apns": {"title": ["Bob"], "body": ["> {body}"]}})
    bob.chat("alice@localhost", said)
    push = await devices["whole"].next(body=f"> {said}")
    assert push.json["aps"]["alert"] == {"title": "Bob", "body": f"> {said}"}
    set_ = await server.command("push", "set-templates", "--title", "{sender}", "--body", "News")
    assert set_.returncode == 0, set_.stderr
    bob.chat("alice@localhost", "again")
    push = await devices["whole"].next(body="News")
    assert push.json["aps"]["alert"] == {"title": "bob@localhost", "body": "News"}
    await api.ok("DELETE", "/v1/push/templates", status=204)
    bob.chat("alice@localhost", "as before")
    push = await devices["whole"].next(body="as before")
    assert push.json["aps"]["alert"] == {"title": "From bob@localhost", "body": "as before"}
    await bob.close()
    await api.aclose()
    wrong = await asyncio.to_thread(
        run, "config", "check", "--set", "push.templates.chat.title={sendr}", "--data-dir", str(tmp_path)
    )
    assert wrong.returncode != 0
    assert "there is no {sendr}; there are {account}, {sender}" in wrong.stderr + wrong.stdout
    await asyncio.to_thread(server.end)


async def test_an_app_is_told_as_much_as_it_wants(api, peer, account, apns):
    jid, sender = await account(), await peer()
    apps = {shown: apns.device(shown) for shown in ("nothing", "sender", "whole")}
    for shown, device in apps.items():
        await register(api, jid, of_app("chat", device), node=shown, shown=shown)
    sender.chat(jid, "secret")
    alerts = {shown: (await device.next()).json["aps"]["alert"] for shown, device in apps.items()}
    assert alerts == {
        "nothing": {"body": "New message"},
        "sender": {"title": sender.bare, "body": "New message"},
        "whole": {"title": sender.bare, "body": "secret"},
    }
    sender.chat(jid, "long \U0001f514" * 2000)
    push = await apps["whole"].next()
    assert push.json["carillon"]["truncated"] is True
    assert push.json["aps"]["alert"]["body"].startswith("long \U0001f514long")


@pytest.mark.parametrize(
    ("status", "reason"), [(410, "Unregistered"), (400, "BadDeviceToken"), (400, "DeviceTokenNotForTopic")]
)
async def test_an_app_that_is_gone_is_registered_no_longer_and_its_account_is_told(
    api, peer, account, apns, status, reason
):
    jid, phone, sender = await account(), apns.device("phone"), await peer()
    await register(api, jid, of_app("chat", phone))
    known = {"timestamp": int(time.time() * 1000) + 1000} if status == 410 else {}
    apns.refuse = lambda device: (status, reason, known)
    sender.chat(jid, "hi")
    await apns.seen.take(lambda seen: seen[1] == status)
    await api.eventually(f"/v1/push/registrations?account={jid}", lambda page: page["registrations"] == [])
    client = await peer(jid)
    told = await client.messages.take(lambda m: m.find("{urn:carillon:push:0}ended") is not None, "that it has ended")
    assert told.find("{urn:carillon:push:0}ended").get("node") == "phone"


# Half a minute alone, most of it registrations; it has deadlines of its own.
@pytest.mark.timeout(320)
async def test_ten_thousand_apps_that_are_gone_end_in_a_few_writes(api, apns):
    """As after a restore of a backup: all tokens are of no app any more. Commits are counted, those included that claim what is to be pushed."""
    jids, apps_each, room = [f"gone{number}@localhost" for number in range(500)], 20, asyncio.Semaphore(16)

    async def made(jid):
        async with room:
            await api.account(jid)
            for number in range(apps_each):
                app = {"app": {"name": "chat", "token": os.urandom(32).hex()}}
                await register(api, jid, app, node=f"phone {number}", shown="nothing")

    async with asyncio.timeout(180):
        await asyncio.gather(*(made(jid) for jid in jids))
    apns.refuse = lambda device: (410, "Unregistered", {"timestamp": int(time.time() * 1000) + 60_000})
    before = await api.figure("store_commits_total")
    lines = "".join(json.dumps({"to": jid, "payload": {"n": 1}, "audience": "always"}) + "\n" for jid in jids)
    ndjson = {"content-type": "application/x-ndjson"}
    await api.call("POST", "/v1/notifications/batch", content=lines, headers=ndjson)
    async with asyncio.timeout(120):
        while (await api.ok("GET", "/v1/push/registrations?limit=1"))["registrations"]:
            await apns.seen.take()
    commits = await api.figure("store_commits_total") - before
    assert await api.figure('push_requests_total{result="gone"}') == len(jids) * apps_each
    told = await api.ok("GET", f"/v1/notifications?to={jids[0]}&state=stored&limit=100")
    assert len(told["notifications"]) == 1 + apps_each, "its account hears of each of them"
    assert commits <= 200, f"{commits} commits"


async def test_what_apns_knew_before_an_app_was_registered_does_not_end_that(api, peer, account, apns):
    jid, phone, sender = await account(), apns.device("phone"), await peer()
    made = await register(api, jid, of_app("chat", phone))
    apns.refuse = lambda device: (410, "Unregistered", {"timestamp": int(time.time() * 1000) - 60_000})
    sender.chat(jid, "hi")
    await apns.seen.take(lambda seen: seen[1] == 410)
    failing = await api.eventually(f"/v1/push/registrations/{made['id']}", lambda view: view["state"] == "failing")
    assert failing["last_error"]["error"] == "410: Unregistered"
    apns.refuse = lambda device: None
    await phone.next(body="hi")


async def test_a_token_of_the_provider_that_has_expired_is_renewed_once(api, peer, account, apns):
    jid, sender = await account(), await peer()
    devices = [apns.device(f"d{number}") for number in range(15)]
    for number, device in enumerate(devices):
        await register(api, jid, of_app("chat", device), node=f"d{number}")
    sender.chat(jid, "one")
    for device in devices:
        await device.next(body="one")
    assert len(apns.provider_tokens) == 1, "it is used again"
    apns.expired = set(apns.provider_tokens)
    sender.chat(jid, "two")
    for device in devices:
        await device.next(body="two")
    assert len(apns.provider_tokens) == 2, "all use the same new one"
    # It is not renewed again so soon: that is a failure, which is tried again.
    apns.expired = set(apns.provider_tokens)
    sender.chat(jid, "three")
    page = f"/v1/push/registrations?account={jid}"
    await api.eventually(page, lambda page: all(view["state"] == "failing" for view in page["registrations"]))
    assert len(apns.provider_tokens) == 2
    apns.expired = set()
    for device in devices:
        await device.next(body="three")


async def test_who_is_busy_is_asked_when_it_said_and_loses_nothing(api, peer, account, apns):
    jid, phone, sender = await account(), apns.device("phone"), await peer()
    made = await register(api, jid, of_app("chat", phone))
    apns.refuse = lambda device: (429, "TooManyRequests", {}, {"retry-after": "3"})
    sender.chat(jid, "hi")
    await apns.seen.take(lambda seen: seen[1] == 429)
    refused = time.monotonic()
    apns.refuse = lambda device: None
    failing = await api.eventually(f"/v1/push/registrations/{made['id']}", lambda view: view["state"] == "failing")
    assert failing["last_error"]["error"] == "429: TooManyRequests"
    push = await phone.next(body="hi")
    assert push.at - refused > 2.8
    await api.eventually(f"/v1/push/registrations/{made['id']}", lambda view: view["state"] == "ok")


async def registered(api, account, apns, count):
    """Devices of as many accounts."""
    devices = {}
    for number in range(count):
        jid = await account()
        devices[jid] = apns.device(f"d{number}")
        await register(api, jid, of_app("chat", devices[jid]))
    return devices


async def test_a_connection_that_goes_away_in_the_middle_loses_and_doubles_nothing(api, peer, account, apns):
    sender, devices = await peer(), await registered(api, account, apns, 40)
    first, second = list(devices)[:20], list(devices)[20:]
    apns.goes_on.clear()
    for jid in first:
        sender.chat(jid, "one")
    for _ in first:
        await apns.began.take()
    apns.go_away()
    for jid in second:
        sender.chat(jid, "one")
    await api.figure_is("push_held", lambda held: held == 40)
    apns.goes_on.set()
    for device in devices.values():
        await device.next(body="one")
    await api.figure_is('push_requests_total{result="taken"}', lambda taken: taken == 40)
    assert not any(device.pushes.left() for device in devices.values())
    assert apns.connections == 2


async def test_many_share_a_connection_and_one_that_is_slow_holds_up_no_other(api, peer, account, apns):
    sender, devices = await peer(), await registered(api, account, apns, 80)
    slow = next(iter(devices.values()))
    answer = apns.answer
    apns.answer = lambda request: None if slow.token in request.path else answer(request)
    apns.goes_on.clear()
    for jid in devices:
        sender.chat(jid, "hi")
    for _ in devices:
        await apns.began.take()
    # More than it has threads for.
    assert apns.open_max >= 80
    apns.goes_on.set()
    began = time.monotonic()
    for device in devices.values():
        if device is not slow:
            await device.next(body="hi")
    assert time.monotonic() - began < 3
    assert apns.connections == 1
    apns.answer = answer
    await slow.next(body="hi")
    assert apns.connections == 1, "a request that is slow is no reason to leave the connection"


async def test_a_connection_that_is_dead_is_left(api, peer, account, apns):
    jid, phone, sender = await account(), apns.device("phone"), await peer()
    await register(api, jid, of_app("chat", phone))
    sender.chat(jid, "one")
    await phone.next(body="one")
    apns.freeze()
    sender.chat(jid, "two")
    await phone.next(body="two")
    assert apns.connections == 2


async def test_a_key_is_rotated_while_the_node_runs(api, peer, account, apns, server, tmp_path):
    jid, phone, sender = await account(), apns.device("phone"), await peer()
    made = await register(api, jid, of_app("chat", phone))
    sender.chat(jid, "one")
    await phone.next(body="one")
    apns.key = ec.generate_private_key(ec.SECP256R1())
    sender.chat(jid, "two")
    failing = await api.eventually(f"/v1/push/registrations/{made['id']}", lambda view: view["state"] == "failing")
    assert failing["last_error"]["error"] == "403: InvalidProviderToken"
    apns.key_file(tmp_path)
    server.process.send_signal(signal.SIGHUP)
    await phone.next(body="two")


async def test_registrations_are_checked(api, peer, account, apns):
    jid, phone = await account(), apns.device("phone")
    client = await peer(jid)
    for fields, condition in [
        ({"app": "other", "token": phone.token}, "item-not-found"),
        ({"app": "chat", "token": "no hex"}, "not-acceptable"),
        ({"app": "chat"}, "not-acceptable"),
    ]:
        with pytest.raises(IqError) as refused:
            await enable(client, fields)
        assert refused.value.condition == condition
    good = {"account": jid, "node": "a", **of_app("chat", phone)}

    async def refused_at(pointer, **more):
        problem = await api.problem(422, "invalid-value", "POST", "/v1/push/registrations", {**good, **more})
        assert problem["pointer"] == pointer, problem

    await refused_at("/app/name", app={"name": "other", "token": phone.token})
    await refused_at("/app/token", app={"name": "chat", "token": "abc"})
    await refused_at("/web_push", webhook={"url": "https://a.example/"})


async def test_a_node_where_nobody_registered_asks_its_store_for_nothing(api, peer, account):
    jid, sender = await account(), await peer()
    began, before = time.monotonic(), await api.figure("push_looks_total")
    for number in range(60):
        sender.chat(jid, f"kept {number}")
        await sender.ping()
        await api.figure("push_looks_total")
    looks, took = await api.figure("push_looks_total") - before, time.monotonic() - began
    assert looks <= 1 + took / 5, f"{looks} in {took} s"


async def test_by_tls_with_a_certificate_of_its_own(tmp_path, start):
    authority = Authority(tmp_path)
    tls = authority.context("127.0.0.1")
    tls.set_alpn_protocols(["h2"])
    tls.load_verify_locations(cafile=authority.file)
    tls.verify_mode = ssl.CERT_REQUIRED
    authority.context("sender.example")
    apns = await Apns.start(with_tokens=False, tls=tls)
    settings = apns.settings(tmp_path, key_file="", certificate_file=tmp_path / "sender.example.pem")
    server = start(**SETTINGS, webhooks__ca_file=authority.file, **settings)
    api = Api(server)
    try:
        await api.account("alice@localhost")
        phone = apns.device("phone")
        await register(api, "alice@localhost", of_app("chat", phone))
        await api.notify("alice@localhost", {"n": 1}, audience="always")
        assert (await phone.next()).json["carillon"]["payload"] == {"n": 1}
    finally:
        await api.aclose()
        await asyncio.to_thread(server.end)
        await apns.close()


async def test_every_push_comes_though_the_node_is_killed(apns, tmp_path):
    """The node is killed in the middle of sending, again and again; every app is told of every message, and of few of them twice."""
    dice, devices, doubled = random.Random(5), {}, 0
    for life in range(4):
        server = Server(tmp_path, **SETTINGS, **apns.settings(tmp_path))
        api = Api(server)
        if life == 0:
            await api.account("bob@localhost")
            for number in range(30):
                jid = f"u{number}@localhost"
                await api.account(jid)
                devices[jid] = apns.device(f"u{number}")
                await register(api, jid, of_app("chat", devices[jid]))
        bob = await Peer.connect(server, "bob@localhost")
        for jid in devices:
            bob.chat(jid, f"life {life}")
        # What it was answered before is kept.
        await bob.ping()
        count = apns.count + dice.randrange(1, 20)
        if life < 3:
            while apns.count < count:
                await apns.seen.take()
            server.kill()
        else:
            for device in devices.values():
                await device.next(body="life 3")
        await api.aclose()
        await bob.close()
    await asyncio.to_thread(server.end)
    for device in devices.values():
        ids = [push.headers["apns-id"] for push in device.pushes.left()]
        doubled += len(ids) - len(set(ids))
    # At most those that were under way at each of three kills.
    assert doubled <= 3 * 30, doubled


async def test_what_is_under_way_when_an_upgrade_fails_is_sent_again_at_once(apns, tmp_path):
    """Nobody waits for the end of a claim that was given up when the node began to leave its process."""
    server = Upgradable(tmp_path, upgrade__start_timeout_ms=2000, **SETTINGS, **apns.settings(tmp_path))
    api, jid, phone = Api(server), "alice@localhost", apns.device("phone")
    for name in (jid, "bob@localhost"):
        await api.account(name)
    await register(api, jid, of_app("chat", phone))
    apns.goes_on.clear()
    bob = await Peer.connect(server, "bob@localhost", plugins=["xep_0198"])
    bob.chat(jid, "one")
    await apns.began.take()
    server.replace_binary("hangs with all sessions")
    await server.fails_to_upgrade()
    await apns.began.take()
    apns.goes_on.set()
    await phone.next(body="one")
    await bob.close()
    await api.aclose()
    await asyncio.to_thread(server.end, ["not handed over"])
