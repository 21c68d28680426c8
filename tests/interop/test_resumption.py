"""Resumption (XEP-0198 §5): a session outlives its connection."""

import asyncio

import pytest

from harness.inbox import Inbox, deadline
from harness.peer import CLIENT, JSON
from harness.websocket import OPEN, TEXT, RawWebSocket, frame, request

SM = "{urn:xmpp:sm:3}"
ENABLE = "<enable xmlns='urn:xmpp:sm:3' resume='true'/>"


@pytest.fixture(scope="module")
def settings():
    return {"websocket__tls": "true"}


def body(element):
    return element.findtext(CLIENT + "body")


async def resumable(raw, user, resource="raw"):
    """A bound session that can be resumed, and the key of it."""
    stream = await raw.logged_in(user, resource=resource, presence=False)
    stream.send(ENABLE)
    enabled = await stream.until(lambda e: e.tag == SM + "enabled")
    assert enabled.get("resume") == "true"
    stream.send("<presence/>")
    await stream.until(lambda e: e.tag == CLIENT + "presence")
    return stream, enabled.get("id")


async def unbound(raw, user):
    """A client that has proved who it is, and has no session."""
    stream = await raw.secured()
    await stream.authenticate(user.partition("@")[0])
    return stream


async def resume(stream, key, h):
    stream.send(f"<resume xmlns='urn:xmpp:sm:3' previd='{key}' h='{h}'/>")
    return await stream.element()


async def test_slixmpp_comes_back_to_its_session(peer, api):
    alice, bob = await peer(), await peer(plugins=["xep_0198"])
    resumed = Inbox("resumptions")
    bob.xmpp.add_event_handler("session_resumed", resumed.put)
    jid = bob.jid
    alice.chat(bob.bare, "before")
    await bob.message("before")
    bob.xmpp.transport.abort()
    await bob.disconnected()
    alice.chat(bob.bare, "between")
    await alice.ping()
    sessions = (await api.ok("GET", f"/v1/admin/sessions?account={bob.bare}"))["sessions"]
    told = [(s["jid"], s["address"], s["presence"], s["state"]) for s in sessions]
    assert told == [(jid, "127.0.0.1", "available", "parked")]
    assert [(s["transport"], s["tls"]) for s in sessions] == [("tcp", True)], "those of its last connection"
    bob.reconnect()
    await resumed.take(what="the resumption")
    assert bob.jid == jid
    await bob.message("between")
    bob.chat(alice.bare, "after")
    await alice.message("after")
    # Shards publish their figures some times per second.
    await api.eventually("/v1/admin/status", lambda seen: seen["parked"] == 0)


async def test_what_was_not_acknowledged_is_sent_again_in_order(peer, raw, api, account):
    alice, user = await peer(), await account("bob")
    stream, key = await resumable(raw, user)
    alice.chat(user, "one")
    first = await stream.until(lambda e: body(e) == "one")
    notified = await api.ok(
        "POST", "/v1/notifications", {"to": user, "payload": 2, "audience": "connected"}, status=202
    )
    await stream.until(lambda e: e.get("id") == notified["id"])
    # Its presence, and one message of the two.
    stream.reset()
    alice.chat(user, "three")
    await alice.ping()
    kept = await api.ok("POST", "/v1/notifications", {"to": user, "payload": 4}, status=202)
    back = await unbound(raw, user)
    resumed = await resume(back, key, 2)
    assert (resumed.tag, resumed.get("previd"), resumed.get("h")) == (SM + "resumed", key, "1")
    again = await back.element()
    assert (again.get("id"), again.findtext(JSON)) == (notified["id"], "2")
    assert first.get("id") is not None
    seen = [await back.until(lambda e: e.tag == CLIENT + "message") for _ in range(2)]
    assert body(seen[0]) == "three"
    assert seen[1].get("id") == kept["id"]
    back.send("<a xmlns='urn:xmpp:sm:3' h='5'/>")
    await back.ping()
    async with deadline("both acknowledged"):
        for id in (notified["id"], kept["id"]):
            while (await api.ok("GET", f"/v1/notifications/{id}"))["state"] != "acknowledged":
                await back.ping()


async def test_a_live_session_is_taken_over(raw, account):
    user = await account()
    stream, key = await resumable(raw, user)
    back = await unbound(raw, user)
    resumed = await resume(back, key, 1)
    assert resumed.tag == SM + "resumed"
    await stream.stream_error("conflict")
    await back.ping()


async def test_a_session_is_its_accounts_own(raw, account):
    _, key = await resumable(raw, await account())
    stranger = await account()
    other = await unbound(raw, stranger)
    failed = await resume(other, key, 0)
    assert failed.tag == SM + "failed"
    assert failed[0].tag.endswith("}item-not-found")


async def test_a_session_moves_from_tcp_to_websocket(server, peer, raw, account):
    user = await account()
    stream, key = await resumable(raw, user)
    stream.reset()
    port = server.port("websocket")
    streams = await asyncio.open_connection("127.0.0.1", port, ssl=server.tls(), server_hostname="localhost")
    socket = RawWebSocket(*streams)
    socket.send(request())
    await socket.response()
    socket.send(frame(TEXT, OPEN))
    for _ in range(2):
        await socket.element()
    await socket.authenticate(user.partition("@")[0])
    socket.send(frame(TEXT, OPEN))
    for _ in range(2):
        await socket.element()
    socket.send(frame(TEXT, f"<resume xmlns='urn:xmpp:sm:3' previd='{key}' h='1'/>"))
    assert (await socket.element()).tag == SM + "resumed"
    alice = await peer()
    alice.chat(user, "over the other transport")
    assert body(await socket.element()) == "over the other transport"
    await socket.close()
