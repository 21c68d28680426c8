"""Messages of durable queues of JetStream become notifications and items, as if they had come by HTTP."""

import asyncio
import json

import pytest

from harness.api import Api
from harness.jetstream import JetStream
from harness.nats import Nats
from harness.peer import CLIENT
from harness.raw import Raw
from harness.server import Server, unique

QUEUE = "orders"
ITEM = "{http://jabber.org/protocol/pubsub#event}item"


def intake(nats, stream="ORDERS", queue=QUEUE, **more):
    """The settings of a queue."""
    settings = {"url": nats.url, "stream": stream, "sender": "backend", **more}
    return {f"intake__queues__{queue}__{key}": value for key, value in settings.items()}


async def make_sender(server, scopes=("send", "topics"), name="backend"):
    api = Api(server)
    await api.ok("POST", "/v1/admin/keys", {"name": name, "scopes": list(scopes)}, status=201)
    return api


@pytest.fixture(scope="module")
def nats():
    nats = Nats(jetstream=True)
    yield nats
    nats.end()


@pytest.fixture(scope="module")
def stream(nats):
    with JetStream(nats) as stream:
        stream.stream("ORDERS", "orders.>")
        yield stream


@pytest.fixture(scope="module")
def settings(nats, stream):
    return intake(nats)


@pytest.fixture
async def api(server):
    api = Api(server)
    keys = await api.ok("GET", "/v1/admin/keys")
    if not any(key["name"] == "backend" for key in keys["keys"]):
        await make_sender(server)
    yield api
    await api.aclose()


@pytest.fixture
async def device(server, api):
    """A client that is there, and its JID."""
    name = unique("device")
    await api.account(f"{name}@localhost")
    raw = await Raw.logged_in(server, name)
    raw.bare = f"{name}@localhost"
    yield raw
    await raw.close()


async def hears(raw, wanted):
    """The next notification, which carries this."""
    heard = await raw.until(lambda e: e.tag == CLIENT + "message" and e.get("from") == "push.localhost")
    assert wanted in "".join(heard.itertext())
    return heard


async def settled(api, queue=QUEUE, **wanted):
    """The queue, once nothing of it is left and its counts are as wanted."""
    return await api.eventually(
        f"/v1/queues/{queue}",
        lambda seen: seen["in_flight"] == 0 and all(seen[name] == count for name, count in wanted.items()),
    )


async def count(api, queue=QUEUE):
    return await api.ok("GET", f"/v1/queues/{queue}")


async def test_each_form_of_a_message_reaches_its_device(api, device, stream):
    before = (await count(api))["accepted"]
    body = {"to": device.bare, "payload": {"n": "plain"}}
    stream.publish("orders.new", body)
    heard = await hears(device, '"plain"')
    trace = await api.eventually(f"/v1/notifications/{heard.get('id')}", lambda seen: seen["state"] == "acknowledged")
    assert trace["to"] == device.bare
    event = {"specversion": "1.0", "id": unique("event"), "source": "/shop", "type": "order"}
    stream.publish("orders.new", {**event, "data": {"to": device.bare, "payload": {"n": "structured"}}})
    await hears(device, '"structured"')
    attributes = {f"ce_{name}": value for name, value in {**event, "id": unique("event")}.items()}
    stream.publish("orders.new", {"to": device.bare, "payload": {"n": "binary"}}, **attributes)
    await hears(device, '"binary"')
    lines = "\n".join(json.dumps({"to": device.bare, "payload": {"line": n}}) for n in range(3))
    stream.publish("orders.new", lines.encode(), content_type="application/x-ndjson")
    for n in range(3):
        await hears(device, f'"line":{n}')
    stream.publish("orders.new", {"to": device.bare, "audience": "active", "payload": {"n": "active"}})
    await hears(device, '"active"')
    await settled(api, accepted=before + 5)
    # What was done is forgotten, as soon as NATS has read that it was.
    async with asyncio.timeout(20):
        while await asyncio.to_thread(stream.messages, "ORDERS"):
            pass


async def test_an_item_is_published(api, device, stream):
    topic = unique("news")
    await api.ok("PUT", f"/v1/topics/{topic}", {}, status=201)
    follow = (
        f"<iq type='set' id='s' to='pubsub.localhost'><pubsub xmlns='http://jabber.org/protocol/pubsub'>"
        f"<subscribe node='{topic}' jid='{device.bare}'/></pubsub></iq>"
    )
    assert (await device.ask(follow, "s")).get("type") == "result"
    stream.publish("orders.news", {"topic": topic, "id": "first", "payload": {"n": 1}})
    await device.until(lambda e: "first" in [item.get("id") for item in e.iter(ITEM)])


async def test_order_is_that_of_the_queue(api, device, stream):
    stream.publish_all("orders.new", [{"to": device.bare, "payload": {"n": n}} for n in range(200)])
    for n in range(200):
        await hears(device, f'"n":{n}')


async def test_a_key_of_its_own_is_known_again_over_http_too(api, server, device, stream):
    before = await count(api)
    body = json.dumps({"to": device.bare, "payload": {"n": "once"}}).encode()
    key = unique("key")
    stream.publish("orders.new", body, Idempotency_Key=key)
    await hears(device, '"once"')
    stream.publish("orders.new", body, Idempotency_Key=key)
    await settled(api, accepted=before["accepted"] + 2, repeated=before["repeated"] + 1)
    event = {"specversion": "1.0", "id": unique("event"), "source": "/shop", "type": "order"}
    for _ in range(2):
        stream.publish("orders.new", {**event, "data": {"to": device.bare, "payload": {"n": "event"}}})
    await hears(device, '"event"')
    await settled(api, accepted=before["accepted"] + 4, repeated=before["repeated"] + 2)
    stream.publish("orders.new", {"to": device.bare, "payload": {"n": "last"}})
    await hears(device, '"last"')


POISON = [
    (b"", {}, "not-json"),
    (b"{", {}, "not-json"),
    (b"\xff\xfe", {}, "not-json"),
    (b"[]", {}, "wrong-type"),
    (b'{"payload":1}', {}, "missing-field"),
    (b'{"to":"nobody","payload":1,"colour":"red"}', {}, "unknown-field"),
    (b'{"to":"nobody","payload":1}', {}, "unknown-device"),
    (b'{"to":"nobody@elsewhere.example","payload":1}', {}, "unknown-domain"),
    (b'{"topic":"no-such-topic","payload":1}', {}, "unknown-topic"),
    (b'{"to":["nobody","nobody2"],"payload":1}', {}, "unknown-device"),
    (b"<a/>", {"content_type": "text/xml"}, "wrong-content-type"),
    (b'{"specversion":"0.3","id":"1","source":"s","type":"t","data":{}}', {}, "invalid-value"),
    (b'{"to":"nobody","payload":1}', {"Idempotency_Key": "x y"}, "invalid-header"),
]


async def test_poison_becomes_dead_letters_with_their_reasons(api, server, stream):
    before = await count(api)
    for body, headers, _ in POISON:
        stream.publish("orders.poison", body, **headers)
    after = await api.eventually(
        f"/v1/queues/{QUEUE}",
        lambda seen: (
            sum(seen["refused"].values()) == sum(before["refused"].values()) + len(POISON) and seen["in_flight"] == 0
        ),
    )
    assert after["state"] == "pulling"
    dead = (await api.ok("GET", f"/v1/queues/{QUEUE}/dead"))["dead"][-len(POISON) :]
    assert sorted((letter["code"], letter["body"]) for letter in dead) == sorted(
        (code, body.decode(errors="replace")) for body, _, code in POISON
    )
    assert all(letter["id"].startswith("ORDERS/") and letter["detail"] for letter in dead)
    assert stream.messages("ORDERS") == 0
    shown = await server.command("queue", "peek", QUEUE)
    assert shown.returncode == 0, shown.stderr
    assert "unknown-device" in shown.stdout
    for arguments in [(), (QUEUE,)]:
        status = await server.command("queue", "status", *arguments)
        assert (status.returncode, status.stderr) == (0, "")
        assert QUEUE in status.stdout
        assert "pulling" in status.stdout


async def test_dead_letters_are_sent_again(api, server, stream):
    name = unique("late")
    # One of two is there: it is not sent to twice.
    other = unique("there")
    await api.account(f"{other}@localhost")
    there = await Raw.logged_in(server, other)
    stream.publish("orders.new", {"to": [other, name], "payload": {"n": "again"}})
    await hears(there, '"again"')
    await api.eventually(f"/v1/queues/{QUEUE}/dead", lambda seen: name in str(seen["dead"]))
    await api.account(f"{name}@localhost")
    late = await Raw.logged_in(server, name)
    before = await count(api)
    redriven = await server.command("queue", "redrive", QUEUE, "--max", "1000", "--yes")
    assert redriven.returncode == 0, redriven.stderr
    await hears(late, '"again"')
    await settled(api, accepted=before["accepted"] + 1)
    stream.publish("orders.new", {"to": other, "payload": {"n": "last"}})
    await hears(there, '"last"')
    await there.close()
    await late.close()


async def test_what_is_wrong_is_said(nats, stream, tmp_path):
    server = Server(tmp_path, **intake(nats, stream="MISSING"))
    api = Api(server)
    try:
        seen = await api.eventually(f"/v1/queues/{QUEUE}", lambda seen: seen["state"] == "wrong")
        assert "no API key called backend" in seen["why"]
        await make_sender(server)
        seen = await api.eventually(f"/v1/queues/{QUEUE}", lambda seen: "no stream MISSING" in seen.get("why", ""))
        assert seen["state"] == "wrong"
        ready = await api.call("GET", "/readyz")
        assert (ready.status_code, ready.text.startswith("ready; ")) == (200, True)
        assert "no stream MISSING" in ready.text
        listed = await server.command("queue", "status")
        assert listed.returncode == 1
        assert "no stream MISSING" in listed.stderr
    finally:
        await api.aclose()
        server.end()
