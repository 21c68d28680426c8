"""Subscribers that speak no XMPP."""

import asyncio
import json
import time

import pytest

from harness.inbox import deadline
from harness.light import OPENING, Light
from harness.server import Server, unique


@pytest.fixture(scope="module")
def settings():
    return {"light__port": 0, "light__subscriptions": 3, "limits__out_queue_bytes": "16KiB"}


@pytest.fixture
async def light(server):
    """Opens connections."""
    open_connections = []

    async def connect(opened=True, **options):
        light = await (Light.open if opened else Light.connect)(server, **options)
        open_connections.append(light)
        return light

    yield connect
    for connection in open_connections:
        connection.close()


@pytest.fixture
async def topic(api):
    """Makes a topic of a name of its own."""

    async def make(**config):
        name = unique("topic")
        await api.ok("PUT", f"/v1/topics/{name}", config)
        return name

    return make


async def publish(api, topic, id, payload):
    await api.ok("POST", f"/v1/topics/{topic}/items", {"id": id, "payload": payload})


async def test_the_greeting_has_the_time_and_a_token(light):
    one, other = await light(), await light()
    assert list(one.greeting) == ["timestamp", "token"]
    assert abs(one.greeting["timestamp"] / 1000 - time.time()) < 60
    assert len(one.greeting["token"]) > 16
    assert one.greeting["token"] != other.greeting["token"]
    await one.ping()


async def test_an_item_reaches_light_and_xmpp_followers(api, light, raw, topic, account):
    name = await topic()
    lights = [await light() for _ in range(20)]
    for one in lights:
        await one.subscribe(name)
    jid = await account()
    xmpp = await raw.logged_in(jid)
    subscribe = (
        "<iq type='set' id='s' to='pubsub.localhost'><pubsub xmlns='http://jabber.org/protocol/pubsub'>"
        f"<subscribe node='{name}' jid='{jid}'/></pubsub></iq>"
    )
    assert (await xmpp.ask(subscribe, "s")).get("type") == "result"
    await publish(api, name, "i1", {"sky": 'clear <&"é'})
    for one in lights:
        event = await one.event()
        assert event == {"topic": name, "event": "publish", "message_id": "i1", "data": {"sky": 'clear <&"é'}}
    message = await xmpp.until(lambda e: e.find(".//{*}item") is not None)
    assert message.find(".//{*}item").get("id") == "i1"
    assert json.loads(message.findtext(".//{urn:xmpp:json:0}json")) == {"sky": 'clear <&"é'}


async def test_xml_comes_as_a_text(light, raw, account):
    jid = await account()
    xmpp = await raw.logged_in(jid)
    name = unique("topic")
    publish = (
        "<iq type='set' id='p' to='pubsub.localhost'><pubsub xmlns='http://jabber.org/protocol/pubsub'>"
        f"<publish node='{name}'><item id='x'>{{}}</item></publish></pubsub></iq>"
    )
    follower = await light()
    for payload, data in [
        ("<a xmlns='urn:a'>1</a>", "<a xmlns='urn:a'>1</a>"),
        ("<json xmlns='urn:xmpp:json:0'>[1]</json>", [1]),
        ("<json xmlns='urn:xmpp:json:0'>1},{</json>", "1},{"),
    ]:
        answer = await xmpp.ask(publish.format(payload), "p")
        assert answer.get("type") == "result"
        follower.ask("subscribe", name)
        assert await follower.frame() == "ACK"
        event = await follower.event()
        assert event == {"topic": name, "event": "last", "message_id": "x", "data": data}
        follower.ask("unsubscribe", name)
        assert await follower.frame() == "ACK"


async def test_the_last_item_follows_the_acknowledgement(api, light, topic):
    name = await topic()
    await publish(api, name, "i1", 1)
    follower = await light()
    await follower.subscribe(name)
    assert await follower.event() == {"topic": name, "event": "last", "message_id": "i1", "data": 1}
    await follower.subscribe(name)
    await follower.ping()
    follower.ask("unsubscribe", name)
    assert await follower.frame() == "ACK"
    await publish(api, name, "i2", 2)
    await follower.ping()
    never = await topic(send_last_published_item="never")
    await publish(api, never, "i3", 3)
    await follower.subscribe(never)
    await follower.ping()


async def test_what_else_happens_on_a_topic(api, light, topic):
    name = await topic()
    follower = await light()
    await follower.subscribe(name)
    await publish(api, name, "i1", 1)
    await api.ok("DELETE", f"/v1/topics/{name}/items/i1")
    await api.ok("DELETE", f"/v1/topics/{name}")
    events = [await follower.event() for _ in range(3)]
    assert [e["event"] for e in events] == ["publish", "retract", "delete"]
    closing = await topic()
    await follower.subscribe(closing)
    await api.ok("PATCH", f"/v1/topics/{closing}", {"access_model": "whitelist"})
    assert (await follower.event())["event"] == "closed"
    await publish(api, closing, "secret", 1)
    await follower.ping()


async def test_refusals_go_on(light, topic):
    follower = await light()
    closed = await topic(access_model="whitelist")
    for name, code in [("nowhere", "topic-not-found"), ("", "topic-not-found"), (closed, "topic-closed")]:
        follower.ask("subscribe", name)
        await follower.error(code)
    follower.ask("unsubscribe", "nowhere")
    await follower.error("not-subscribed")
    for _ in range(3):
        await follower.subscribe(await topic())
    follower.ask("subscribe", await topic())
    await follower.error("too-many-subscriptions")
    await follower.ping()


BAD = [
    (b"ping\0", "bad-json"),
    (b"\0", "bad-json"),
    (b'{"action":\0', "bad-json"),
    (b"\xff\xfe\0", "bad-utf8"),
    (b"[]\0", "bad-request"),
    (b'{"action":"subscribe"}\0', "bad-request"),
    (b'{"action":"subscribe","data":7}\0', "bad-request"),
    (b'{"action":"dance","data":"t"}\0', "unknown-action"),
    (b"x" * 4097 + b"\0", "frame-too-large"),
    (b"x" * 100_000, "frame-too-large"),
]


@pytest.mark.parametrize(("data", "code"), BAD, ids=range(len(BAD)))
async def test_violations_end_one_connection_and_no_other(api, light, topic, data, code):
    name = await topic()
    bad, good = await light(), await light()
    await bad.subscribe(name)
    await good.subscribe(name)
    bad.send(data)
    await bad.ended(code)
    await publish(api, name, "i1", 1)
    assert (await good.event())["message_id"] == "i1"


@pytest.mark.parametrize("opening", [b"PING\0", b"<regular-socket>\0", b"GET / HTTP/1.1\r\n\r\n\0", b"\0"])
async def test_bad_openings(light, opening):
    stranger = await light(opened=False)
    stranger.send(opening)
    await stranger.ended("bad-opening")


async def test_byte_by_byte(light, topic):
    name = await topic()
    slow = await light(opened=False)
    for byte in OPENING + b'PING\0{"action":"subscribe","data":"' + name.encode() + b'"}\0PING\0':
        slow.send(bytes([byte]))
        await slow.writer.drain()
    assert [(await slow.frame())[:6] for _ in range(4)] == ['{"time', "PONG", "ACK", "PONG"]


async def test_a_slow_reader_is_closed_and_harms_nobody(api, light, topic):
    name = await topic()
    slow, good = await light(receive_bytes=4096), await light()
    await slow.subscribe(name)
    await good.subscribe(name)
    slow.writer.transport.pause_reading()
    overflows = (await api.ok("GET", "/v1/admin/status"))["overflows"]
    for n in range(1000):
        await publish(api, name, f"i{n}", "x" * 30_000)
        assert (await good.event())["message_id"] == f"i{n}"
        if (await api.ok("GET", "/v1/admin/status"))["light_errors"].get("slow-reader"):
            break
    else:
        raise AssertionError("the slow reader was never found out")
    assert (await api.ok("GET", "/v1/admin/status"))["overflows"] == overflows + 1
    slow.writer.transport.resume_reading()
    async with deadline("the last words of a slow connection"):
        last = (await slow.reader.read())[-200:]
    assert last.split(b"\x01")[-2].startswith(b'{"error":"slow-reader"'), last


async def test_sessions_are_counted(api, light):
    # Those of the tests before are on their way out.
    await api.eventually("/v1/admin/status", lambda s: s["light_sessions"] == 0 and s["sessions"] == 0)
    follower, _stranger = await light(), await light(opened=False)
    await api.eventually("/v1/admin/status", lambda s: s["light_sessions"] == 1 and s["sessions"] == 0)
    assert "\ncarillon_light_sessions 1\n" in (await api.call("GET", "/metrics")).text
    follower.close()
    await api.eventually("/v1/admin/status", lambda s: s["light_sessions"] == 0)


async def test_many_subscribe_at_once(api, server, topic):
    name = await topic()
    await publish(api, name, "i0", 0)
    followers = await asyncio.gather(*(Light.open(server) for _ in range(400)))
    for follower in followers:
        follower.ask("subscribe", name)
    for follower in followers:
        assert await follower.frame() == "ACK"
        assert (await follower.event())["event"] == "last"
    await publish(api, name, "i1", 1)
    for follower in followers:
        assert (await follower.event())["message_id"] == "i1"
        follower.close()


async def test_room_is_bounded(tmp_path):
    server = Server(tmp_path, **{"light.port": 0, "limits.connections_per_address": 2})
    others = [await Light.open(server) for _ in range(2)]
    third = await Light.connect(server)
    assert (await third.error("busy"))["retry_after"] > 0
    for light in (*others, third):
        light.close()
    server.end()


async def test_patience_is_bounded(tmp_path):
    server = Server(tmp_path, **{"light.port": 0, "timeouts.auth_ms": 2000, "light.idle_timeout_ms": 400})
    mute, quiet = await Light.connect(server), await Light.open(server)
    await mute.ended("opening-timeout")
    await quiet.ended("idle-timeout")
    server.end()


async def test_tls_and_the_end_of_the_server(tmp_path):
    server = Server(tmp_path, **{"light.port": 0, "light.tls": "true"})
    follower = await Light.open(server, tls=server.tls())
    await follower.ping()
    ending = asyncio.create_task(asyncio.to_thread(server.end))
    await follower.error("shutdown")
    follower.close()
    await ending


async def test_without_the_setting_there_is_no_port(tmp_path):
    server = Server(tmp_path)
    assert server.port("light") is None
    server.end()
