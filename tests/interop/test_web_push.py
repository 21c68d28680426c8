"""A real node as a push service: senders' own libraries (pywebpush, web-push of Node) push to endpoints, and clients distribute what comes to applications that decrypt it.

The cases are those of the integration tests of Mozilla's autopush, as far as they are about what this server is:

| autopush | here |
|---|---|
| basic delivery, with and without a body, delivery while away | `test_a_standard_library_pushes_to_an_application`, `test_what_comes_while_the_client_is_away_waits_in_its_order` |
| TTL 0, connected and not; TTL that expires; without TTL; a TTL that is no number | `test_a_push_without_a_time_to_live_is_for_a_client_that_is_there`, `test_what_has_expired_is_not_given`, `test_what_is_wrong_with_a_push_is_said` |
| topics: replaced while away, none across subscriptions, a topic that is too long or no base64url | `test_a_newer_push_of_a_topic_replaces_an_older_one`, `test_what_is_wrong_with_a_push_is_said` |
| too large, exactly as large as may be | `test_what_is_wrong_with_a_push_is_said`, `test_the_largest_push_is_taken` |
| bad tokens | `test_what_was_not_given_out_is_no_endpoint` |
| VAPID: key of the subscription, of another, none, a token for another audience | `test_an_endpoint_for_one_sender_is_pushed_to_by_nobody_else` |
| unregister, then 410 | `test_an_endpoint_is_revoked_by_its_account_an_operator_or_a_client_whose_application_is_gone` |
| delete a message that is stored | `test_a_push_is_taken_back` |
| ack, no ack, reconnect | `test_what_is_not_acknowledged_comes_again_and_what_is_does_not` |
| several registrations of one client | `test_each_application_has_an_endpoint_of_its_own` |
"""

import asyncio
import base64
import json
import os
import random
import time
import xml.etree.ElementTree as ET

import httpx
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02
from pywebpush import WebPusher, WebPushException, webpush
from slixmpp.exceptions import IqError

from harness.api import Api
from harness.distributor import UNIFIED_PUSH, Application, Distributor
from harness.node import script
from harness.peer import Peer
from harness.ports import free_port
from harness.push_service import encoded
from harness.pushes import request
from harness.server import unique

DAY = 86_400


def settings_at(port):
    return {
        "http__port": port,
        "push__service_url": f"http://127.0.0.1:{port}",
        "push__allow_addresses": '["127.0.0.0/8"]',
        "push__grace_ms": 100,
    }


@pytest.fixture(scope="module")
def settings():
    return settings_at(free_port())


@pytest.fixture
async def distributor(peer, account):
    async def make(jid=None, *applications, plugins=("xep_0198",)):
        return await online(await peer(jid or await account(), plugins=plugins, presence=False), *applications)

    return make


async def online(peer, *applications, **options):
    """A client is available from when on it distributes pushes: those that waited come at once."""
    distributor = Distributor(peer, *applications, **options)
    await peer.available()
    return distributor


@pytest.fixture
async def web():
    async with httpx.AsyncClient(trust_env=False) as client:
        yield client


async def push(app, data, ttl=DAY, **headers):
    """Pushes with pywebpush, which encrypts; the answer."""
    pusher = WebPusher(app.subscription)
    return await asyncio.to_thread(pusher.send, data, headers, ttl)


async def push_as_it_is(web, app, body=b"", **headers):
    """Pushes a body that is not encrypted."""
    return await web.post(app.endpoint, content=body, headers={"ttl": "60", **headers})


async def trace_of(api, jid, wanted):
    """The newest notification of the account, once it is as wanted."""
    page = await api.eventually(
        f"/v1/notifications?to={jid}", lambda page: page["notifications"] and wanted(page["notifications"][0])
    )
    return page["notifications"][0]


async def test_a_standard_library_pushes_to_an_application(api, distributor, web):
    phone = await distributor()
    app = await phone.register(Application("org.example.app"))
    answer = await push(app, "Grüße \U0001f375".encode(), urgency="high")
    assert answer.status_code == 201, answer.text
    assert answer.headers["ttl"] == str(DAY)
    assert answer.headers["location"].startswith(app.endpoint.rpartition("/push/")[0] + "/push/messages/")
    assert (await app.next()).decode() == "Grüße \U0001f375"
    trace = await trace_of(api, phone.peer.bare, lambda trace: trace["state"] == "acknowledged")
    assert (trace["priority"], trace["audience"]) == ("high", "always")
    # One without a body wakes the application.
    assert (await push_as_it_is(web, app)).status_code == 201
    assert await app.next_as_it_came() == b""
    # With the subject of the sender, as applications servers do it.
    vapid = Vapid02()
    vapid.generate_keys()
    claims = {"sub": "mailto:a@example.org"}
    await asyncio.to_thread(webpush, app.subscription, "again", vapid_private_key=vapid, vapid_claims=claims, ttl=60)
    assert await app.next() == b"again"
    known = await web.get(app.endpoint)
    assert known.json() == {"unifiedpush": {"version": 1}}


async def test_the_library_of_node_pushes_to_an_application(start):
    """By HTTPS, which is all that it speaks."""
    port = free_port()
    settings = {"https__port": port, "push__service_url": f"https://localhost:{port}"}
    server = start(**settings)
    api, jid = Api(server), f"{unique('phone')}@localhost"
    await api.account(jid)
    phone = await online(await Peer.connect(server, jid, plugins=("xep_0198",), presence=False))
    async with script("web-push.mjs", NODE_EXTRA_CA_CERTS=str(server.certificate)) as node:
        own = await node.read()
        vapid = {"subject": "mailto:a@example.org"} | own
        app = await phone.register(Application("org.example.app"), vapid=own["publicKey"])

        async def push(data, **options):
            payload = None if data is None else base64.b64encode(data).decode()
            options = {"TTL": 60, "vapidDetails": vapid, "contentEncoding": "aes128gcm", **options}
            return await node.ask({"subscription": app.subscription, "payload": payload, "options": options})

        answer = await push("Grüße \U0001f375".encode(), urgency="high", topic="news")
        assert answer["status"] == 201, answer
        assert answer["headers"]["location"].startswith(f"https://localhost:{port}/push/messages/")
        assert await app.next() == "Grüße \U0001f375".encode()
        dice = random.Random(7)
        for size in (0, 1, 100, 3993):
            data = dice.randbytes(size)
            assert (await push(data))["status"] == 201
            assert await app.next() == data
        assert (await push(None))["status"] == 201
        assert await app.next_as_it_came() == b""
        # It asks for a receipt, and is told where it is.
        answer = await push(b"and then", headers={"Prefer": "respond-async"})
        assert (answer["status"], 'rel="urn:ietf:params:push:receipt"' in answer["headers"]["link"]) == (202, True)
        assert await app.next() == b"and then"
        # Another sender, one whose token is for longer than it may be, and one that pushes too much are refused.
        async with script("web-push.mjs") as stranger:
            theirs = {"subject": "mailto:b@example.org"} | await stranger.read()
        assert (await push(b"x", vapidDetails=theirs))["status"] == 403
        assert (await push(dice.randbytes(4100)))["status"] == 413
        assert not app.pushes.left()
    await api.aclose()


async def test_each_application_has_an_endpoint_of_its_own(distributor):
    phone = await distributor()
    apps = [await phone.register(Application(f"app{n % 3}", instance=f"{n // 3}")) for n in range(6)]
    assert len({app.endpoint for app in apps}) == 6
    for n, app in enumerate(apps):
        assert (await push(app, f"for {n}")).status_code == 201
    for n, app in enumerate(apps):
        assert await app.next() == f"for {n}".encode()
    # Another client of the account is given nothing of it.
    desk = await distributor(phone.peer.bare)
    await push(apps[0], "still for the phone")
    assert await apps[0].next() == b"still for the phone"
    await desk.peer.ping()
    assert not desk.unknown.left()
    # Asked again, an endpoint stays, and expires later.
    before = (apps[0].endpoint, apps[0].expiration)
    await phone.register(apps[0])
    assert apps[0].endpoint == before[0]
    assert apps[0].expiration > before[1]


async def test_what_comes_while_the_client_is_away_waits_in_its_order(api, distributor, account):
    jid = await account()
    phone = await distributor(f"{jid}/phone")
    app = await phone.register(Application("app"))
    await phone.peer.close()
    for n in range(120):
        assert (await push(app, f"{n}")).status_code == 201
    await push(app, "urgent", urgency="high")
    await push(app, "when there is time", urgency="very-low")
    desk = await distributor(f"{jid}/desk")
    await desk.peer.ping()
    phone = await distributor(f"{jid}/phone", app)
    assert await app.next() == b"urgent"
    for n in range(120):
        assert await app.next() == f"{n}".encode()
    assert await app.next() == b"when there is time"
    await api.eventually(
        f"/v1/notifications?to={jid}&limit=200",
        lambda page: {trace["state"] for trace in page["notifications"]} == {"acknowledged"},
    )
    await desk.peer.ping()
    assert not desk.unknown.left()


async def test_a_push_without_a_time_to_live_is_for_a_client_that_is_there(api, distributor):
    phone = await distributor()
    app = await phone.register(Application("app"))
    answer = await push(app, "now", ttl=0)
    assert (answer.status_code, answer.headers["ttl"]) == (201, "0")
    assert await app.next() == b"now"
    await trace_of(api, phone.peer.bare, lambda trace: trace["state"] == "acknowledged")
    jid = phone.peer.bare
    await phone.peer.close()
    assert (await push(app, "lost", ttl=0)).status_code == 201
    assert (await trace_of(api, jid, lambda trace: trace["state"] == "dropped"))["reason"] == "not-connected"


async def test_what_has_expired_is_not_given(api, distributor, account):
    jid = await account()
    phone = await distributor(f"{jid}/phone", plugins=())
    app = await phone.register(Application("app"))
    await phone.peer.close()
    assert (await push(app, "short", ttl=1)).status_code == 201
    assert (await push(app, "long", ttl=60)).status_code == 201
    answer = await push(app, "longest", ttl=10**12)
    assert answer.headers["ttl"] == str(30 * DAY), "nothing is kept longer"
    await api.eventually(
        f"/v1/notifications?to={jid}",
        lambda page: [trace["state"] for trace in page["notifications"]] == ["stored", "stored", "expired"],
    )
    await distributor(f"{jid}/phone", app, plugins=())
    assert [await app.next(), await app.next()] == [b"long", b"longest"]


async def test_a_newer_push_of_a_topic_replaces_an_older_one(distributor, account):
    jid = await account()
    phone = await distributor(f"{jid}/phone", plugins=())
    app, other = await phone.register(Application("app")), await phone.register(Application("other"))
    await phone.peer.close()
    for data in ("first", "second"):
        await push(app, data, topic="score")
    await push(other, "of another subscription", topic="score")
    await push(app, "of another topic", topic="news_-1")
    await distributor(f"{jid}/phone", app, other, plugins=())
    assert [await app.next(), await app.next()] == [b"second", b"of another topic"]
    assert await other.next() == b"of another subscription"


async def test_what_is_wrong_with_a_push_is_said(distributor, web):
    phone = await distributor()
    app = await phone.register(Application("app"))
    for headers in (
        {"ttl": ""},
        {"ttl": "-1"},
        {"ttl": "soon"},
        {"urgency": "now"},
        {"topic": "a" * 33},
        {"topic": "a b"},
        {"topic": ""},
    ):
        answer = await push_as_it_is(web, app, b"x", **headers)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid-header"), headers
    answer = await web.post(app.endpoint, content=b"x")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid-header")
    for size in (4097, 16_000):
        answer = await push_as_it_is(web, app, b"x" * size)
        assert (answer.status_code, answer.json()["code"]) == (413, "payload-too-large")

    async def chunks():
        for _ in range(5):
            yield b"x" * 1000

    answer = await web.post(app.endpoint, content=chunks(), headers={"ttl": "60"})
    assert answer.status_code == 413, "its length was not announced"
    # Of what is much too large no more is read, and the connection ends.
    async with httpx.AsyncClient(trust_env=False) as once:
        answer = await push_as_it_is(once, app, b"x" * 100_000)
        assert (answer.status_code, answer.json()["code"]) == (413, "payload-too-large")
    assert (await web.put(app.endpoint, content=b"x", headers={"ttl": "60"})).status_code == 405
    await push_as_it_is(web, app, b"after all that")
    assert await app.next_as_it_came() == b"after all that"


async def test_the_largest_push_is_taken(distributor, web):
    phone = await distributor()
    app = await phone.register(Application("app"))
    body = os.urandom(4096)
    assert (await push_as_it_is(web, app, body)).status_code == 201
    assert await app.next_as_it_came() == body
    # What pywebpush makes of the largest text that fits (RFC 8291 §4).
    text = os.urandom(3993)
    assert (await push(app, text)).status_code == 201
    assert await app.next() == text


async def test_random_bodies_are_decrypted(distributor):
    phone = await distributor()
    app = await phone.register(Application("app"))
    for size in range(1, 2001, 40):
        data = os.urandom(size)
        assert (await push(app, data, ttl=60)).status_code == 201
        assert await app.next() == data


async def test_what_was_not_given_out_is_no_endpoint(distributor, web):
    phone = await distributor()
    app = await phone.register(Application("app"))
    base, _, token = app.endpoint.rpartition("/")
    altered = token[:-1] + ("A" if token[-1] != "A" else "E")
    message = (await push_as_it_is(web, app)).headers["location"].rpartition("/")[2]
    for wrong in ("x", altered, token + "AAAA", token[4:], message, "%00", "a" * 5000):
        answer = await web.post(f"{base}/{wrong}", content=b"x", headers={"ttl": "60"})
        assert answer.status_code == 404, wrong
        assert answer.json()["code"] == "unknown-endpoint"


async def test_an_endpoint_for_one_sender_is_pushed_to_by_nobody_else(distributor, web, api):
    phone = await distributor()
    own, other = Vapid02(), Vapid02()
    own.generate_keys()
    other.generate_keys()
    app = await phone.register(Application("app"), vapid=encoded(public(own)))

    async def push_by(vapid, **claims):
        claims = {"sub": "mailto:a@example.org", **claims}
        data = {"vapid_private_key": vapid, "vapid_claims": claims, "ttl": 60}
        return await asyncio.to_thread(webpush, app.subscription, "mine", **data)

    async def is_refused(status, *arguments, **claims):
        with pytest.raises(WebPushException) as refused:
            await push_by(*arguments, **claims)
        assert refused.value.response.status_code == status

    await push_by(own)
    assert await app.next() == b"mine"
    answer = await push(app, "nobody's")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "vapid")
    await is_refused(403, other)
    await is_refused(403, own, aud="https://elsewhere.example")
    await is_refused(403, own, exp=int(time.time()) + 3 * DAY)
    assert await api.figure('web_push_messages_total{result="unauthorized"}') == 4
    # Asked for without a sender it is another endpoint, and the one before is gone.
    before = app.endpoint
    await phone.register(app)
    assert app.endpoint != before
    assert (await web.post(before, headers={"ttl": "60"})).status_code == 410
    assert (await push(app, "anybody's")).status_code == 201
    assert await app.next() == b"anybody's"


def public(vapid):
    return vapid.public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


async def test_an_endpoint_is_revoked_by_its_account_an_operator_or_a_client_whose_application_is_gone(
    api, distributor, server, keys, account
):
    phone = await distributor()
    apps = [await phone.register(Application(f"app{n}")) for n in range(3)]
    jid = phone.peer.bare
    page = await api.ok("GET", f"/v1/push/endpoints?account={jid}")
    assert {(view["account"], view["resource"]) for view in page["endpoints"]} == {
        (jid, phone.peer.xmpp.boundjid.resource)
    }
    assert not any(app.endpoint.rpartition("/")[2] in json.dumps(page) for app in apps), "URLs are told to nobody else"
    ids = {view["application"]: view["id"] for view in page["endpoints"]}
    listed = await server.command("push", "endpoints", "--account", jid, "--json")
    assert {view["id"] for view in json.loads(listed.stdout)} == set(ids.values())
    assert {view["id"] for view in await phone.endpoints()} == set(ids.values())
    # Keys of another domain do not reach them.
    stranger = await keys("enrol", domain=await domain(api))
    await stranger.problem(404, "unknown-endpoint", "DELETE", f"/v1/push/endpoints/{ids[apps[0].name]}")
    await api.ok("DELETE", f"/v1/push/endpoints/{ids[apps[0].name]}", status=204)
    await phone.peer.plugin("xep_0199").ping("localhost")
    await request(phone.peer, f"<revoke xmlns='urn:carillon:push:0' id='{ids[apps[1].name]}'/>")
    phone.forget(apps[2])
    assert (await push(apps[2], "nobody is there")).status_code == 201
    await phone.unknown.take()
    await phone.peer.ping()
    for app in apps:
        await until_gone(app)
    assert await phone.endpoints() == []
    other = await distributor(await account())
    assert await other.endpoints() == []


async def domain(api):
    name = unique("other") + ".example"
    await api.ok("PUT", f"/v1/admin/domains/{name}", {}, status=201)
    return name


async def until_gone(app):
    """What was told by XMPP is committed a little later."""
    async with asyncio.timeout(20):
        while (answer := await push(app, "x", ttl=0)).status_code != 410:
            pass
    assert answer.json()["code"] == "endpoint-gone"


async def test_an_account_has_so_many_endpoints(start):
    server = start(**settings_at(free_port()), push__endpoints_per_account=2)
    api = Api(server)
    jid = unique("user") + "@localhost"
    await api.account(jid)
    peer = await Peer.connect(server, jid)
    phone = Distributor(peer)
    for n in (0, 1, 0):
        await phone.register(Application(f"app{n}"))
    with pytest.raises(IqError) as refused:
        await phone.register(Application("one more"))
    assert refused.value.condition == "resource-constraint"
    await peer.close()
    await api.aclose()
    server.end()


async def test_a_push_is_taken_back(api, distributor, account, web):
    jid = await account()
    phone = await distributor(f"{jid}/phone")
    app = await phone.register(Application("app"))
    await phone.peer.close()
    first, second = [(await push(app, data)).headers["location"] for data in ("first", "second")]
    assert (await web.delete(first)).status_code == 204
    assert (await web.delete(first)).status_code == 204, "it is as the sender wants it"
    assert (await web.delete(first[:-1])).status_code == 404
    phone = await distributor(f"{jid}/phone", app)
    assert await app.next() == b"second"
    await trace_of(api, jid, lambda trace: trace["state"] == "acknowledged")
    assert (await web.delete(second)).status_code == 404


async def test_a_sender_that_wants_a_receipt_is_told_when_the_client_has_acknowledged(distributor, account, web):
    jid = await account()
    phone = await distributor(f"{jid}/phone")
    app = await phone.register(Application("app"))
    await phone.peer.close()
    answer = await push(app, "hello", prefer="respond-async")
    assert answer.status_code == 202, answer.text
    assert answer.headers["preference-applied"] == "respond-async"
    receipt = httpx.Response(202, headers=answer.headers).links["urn:ietf:params:push:receipt"]["url"]
    assert receipt == answer.headers["location"]
    # Nobody has it: whoever does not wait is told so at once, and others wait until the client is back.
    assert (await web.get(receipt, headers={"prefer": "wait=0"})).status_code == 202
    waiting = [asyncio.create_task(web.get(receipt, headers={"prefer": "wait=60"}, timeout=70)) for _ in range(2)]
    phone = await distributor(f"{jid}/phone", app)
    assert await app.next() == b"hello"
    assert [got.status_code for got in await asyncio.gather(*waiting)] == [204, 204]
    # It stays so; one that is taken back will not be acknowledged any more, and neither will one that nobody is there for.
    assert (await web.get(receipt)).status_code == 204
    await phone.peer.close()
    taken_back = (await push(app, "never", prefer="respond-async")).headers["location"]
    waits = asyncio.create_task(web.get(taken_back, timeout=70))
    assert (await web.delete(taken_back)).status_code == 204
    assert (await waits).status_code == 410
    gone = (await push(app, "now or never", ttl=0, prefer="respond-async")).headers["location"]
    assert (await web.get(gone)).status_code == 410
    assert (await web.get(gone, headers={"prefer": "wait=soon"})).status_code == 400
    assert (await web.get(receipt[:-2])).status_code == 404


async def test_what_is_not_acknowledged_comes_again_and_what_is_does_not(api, server, account):
    jid = await account()
    peer = await Peer.connect(server, f"{jid}/phone", presence=False)
    phone = await online(peer, answers=False)
    app = await phone.register(Application("app"))
    await push(app, "once more")
    assert await app.next() == b"once more"
    # The client is lost before it said that it has it.
    await peer.drop()
    peer = await Peer.connect(server, f"{jid}/phone", presence=False)
    await online(peer, app)
    assert await app.next() == b"once more"
    await trace_of(api, jid, lambda trace: trace.get("acknowledged_by") == "receipt")
    await peer.close()
    peer = await Peer.connect(server, f"{jid}/phone", presence=False)
    await online(peer, app)
    await push(app, "next")
    assert await app.next() == b"next"
    await peer.close()


async def test_what_was_taken_outlives_a_node_that_is_killed(start):
    port = free_port()
    server = start(**settings_at(port))
    api = Api(server)
    jid = unique("user") + "@localhost"
    await api.account(jid)
    peer = await Peer.connect(server, f"{jid}/phone")
    app = await Distributor(peer).register(Application("app"))
    await peer.close()
    taken = []

    async def send(n):
        # What was not answered is not known to have been taken.
        with_status = await asyncio.gather(push(app, f"{n}"), return_exceptions=True)
        if getattr(with_status[0], "status_code", None) == 201:
            taken.append(f"{n}".encode())

    sending = [asyncio.create_task(send(n)) for n in range(60)]
    while len(taken) < 20:
        await asyncio.wait(sending, return_when=asyncio.FIRST_COMPLETED, timeout=0.05)
    server.kill()
    await asyncio.gather(*sending)
    await api.aclose()
    server = start(**settings_at(port))
    # The endpoint is as it was.
    assert (await push(app, "after")).status_code == 201
    peer = await Peer.connect(server, f"{jid}/phone", presence=False)
    await online(peer, app)
    came = []
    while b"after" not in came:
        came.append(await app.next())
    assert set(taken) <= set(came)
    assert len(came) == len(set(came)), "nothing comes twice"
    await peer.close()
    server.end()


async def test_senders_are_told_to_wait_by_the_quota_of_a_domain(api, server, web):
    name = await domain(api)
    jid = f"{unique('user')}@{name}"
    await api.account(jid)
    peer = await Peer.connect(server, jid)
    phone = Distributor(peer)
    iq = peer.xmpp.make_iq_set(ito=f"push.{name}")
    app = Application("app")
    iq.append(ET.Element(f"{{{UNIFIED_PUSH}}}register", {"application": app.name, "instance": app.instance}))
    answer = await iq.send(timeout=10)
    app.endpoint = answer.xml.find(f"{{{UNIFIED_PUSH}}}registered").get("endpoint")
    assert phone.applications == {}
    await api.ok("PATCH", f"/v1/admin/domains/{name}", {"requests_per_second": 1})
    answers = [await push_as_it_is(web, app, ttl="0") for _ in range(3)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert refused, [answer.status_code for answer in answers]
    assert int(refused[0].headers["retry-after"]) >= 1
    await peer.close()


async def test_one_account_is_woken_by_an_endpoint_of_another_client(api, distributor, peer, account):
    """The node is both sides: its gateway pushes to its own endpoint, encrypted by it and decrypted by the application."""
    phone = await distributor()
    app = await phone.register(Application("org.example.chat"))
    jid, sender = await account(), await peer()
    body = {"account": jid, "node": "phone", "shown": "whole", "web_push": app.subscription}
    await api.ok("POST", "/v1/push/registrations", body, status=201)
    sender.chat(jid, "wake up")
    told = json.loads(await app.next())
    assert (told["type"], told["from"], told["body"]) == ("message", sender.bare, "wake up")


async def test_an_account_that_pushes_to_itself_does_so_once(api, distributor):
    phone = await distributor()
    app = await phone.register(Application("app"))
    jid = phone.peer.bare
    body = {"account": jid, "node": "phone", "shown": "whole", "web_push": app.subscription}
    await api.ok("POST", "/v1/push/registrations", body, status=201)
    await phone.peer.close()
    # It would wake itself for ever.
    assert (await push(app, "x")).status_code == 201
    assert await api.figure("push_held") == 0
    page = await api.ok("GET", f"/v1/notifications?to={jid}")
    assert [trace["state"] for trace in page["notifications"]] == ["stored"]


async def test_there_are_no_endpoints_unless_they_are_wanted(start):
    server = start()
    api = Api(server)
    jid = unique("user") + "@localhost"
    await api.account(jid)
    peer = await Peer.connect(server, jid)
    with pytest.raises(IqError) as refused:
        await Distributor(peer).register(Application("app"))
    assert refused.value.condition == "service-unavailable"
    answer = await api.call("POST", "/push/abc", headers={"ttl": "0"})
    assert answer.status_code == 404
    await peer.close()
    await api.aclose()
    server.end()
