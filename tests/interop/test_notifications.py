"""Notifications: from a provider's request to the device that has it, and everything that may become of one between."""

import asyncio
import datetime
import json

import pytest

from harness.api import check_problem
from harness.peer import JSON, NOTIFICATION
from harness.raw import CLIENT
from harness.server import unique

RECEIPTS = ["xep_0184"]
SM = ["xep_0198"]


@pytest.fixture(scope="module")
def settings():
    # How long a client has for its receipt before the socket's word counts.
    return {"notifications__receipt_wait_ms": 1500}


def payload(message):
    return json.loads(message.findtext(JSON))


def soon(seconds):
    return (datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)).isoformat()


@pytest.mark.parametrize(
    ("plugins", "by"),
    [(SM, "stream-management"), (RECEIPTS, "receipt"), ([], "socket")],
    ids=["0198", "0184", "socket"],
)
async def test_from_request_to_acknowledgement(peer, api, plugins, by):
    device = await peer(plugins=plugins)
    async with api.events() as events:
        sent = await api.notify(device.bare, {"text": "é & <b>"}, priority="high", collapse_key="k", ttl=60)
        message = await device.notification(sent["id"])
        assert payload(message) == {"text": "é & <b>"}
        assert (message.get("from"), message.get("type")) == ("push.localhost", "headline")
        head = message.find(NOTIFICATION)
        assert (head.get("priority"), head.get("collapse-key")) == ("high", "k")
        lifetime = [datetime.datetime.fromisoformat(head.get(name)) for name in ("sent", "expires")]
        assert lifetime[1] - lifetime[0] == datetime.timedelta(seconds=60)
        receipt = await events.state(sent["id"], "acknowledged")
    assert receipt["acknowledged_by"] == by
    assert receipt["to"] == device.bare
    assert await api.trace(sent["id"]) == receipt
    assert receipt["accepted_at"] <= receipt["sent_at"] <= receipt["acknowledged_at"]


async def test_kept_for_a_device_that_is_away(peer, account, api):
    jid = await account()
    async with api.events() as events:
        sent = await api.notify(jid, "later")
        assert sent["state"] == "stored"
        assert (await api.trace(sent["id"]))["state"] == "stored"
        assert (await api.ok("GET", f"/v1/devices/{jid.partition('@')[0]}"))["pending"] == 1
        device = await peer(jid, plugins=SM)
        assert payload(await device.notification(sent["id"])) == "later"
        await events.state(sent["id"], "acknowledged")
    # The count is the store's, and the receipt does not wait for it.
    await api.eventually(f"/v1/devices/{jid.partition('@')[0]}", lambda device: device["pending"] == 0)
    await device.close()
    again = await peer(jid)
    await again.ping()
    assert not again.messages.left()


async def test_not_acknowledged_is_not_delivered(raw, peer, account, api):
    jid = await account()
    deaf = await raw.logged_in(jid)
    deaf.send("<enable xmlns='urn:xmpp:sm:3'/>")
    await deaf.until(lambda e: e.tag == "{urn:xmpp:sm:3}enabled")
    sent = await api.notify(jid, "hear me")
    await deaf.until(lambda e: e.get("id") == sent["id"])
    deaf.reset()
    device = await peer(jid, plugins=SM)
    async with api.events() as events:
        assert payload(await device.notification(sent["id"])) == "hear me"
        if (await api.trace(sent["id"]))["state"] != "acknowledged":
            await events.state(sent["id"], "acknowledged")


async def test_every_session_of_a_device_gets_it(peer, account, api):
    jid = await account()
    phone, desk = await peer(f"{jid}/phone", plugins=SM), await peer(f"{jid}/desk", plugins=SM)
    sent = await api.notify(jid, 1)
    await phone.notification(sent["id"])
    await desk.notification(sent["id"])


async def test_audiences(peer, account, api):
    jid = await account()

    async def outcome(audience):
        sent = await api.notify(jid, audience, audience=audience)
        return sent["state"], sent.get("reason")

    assert await outcome("active") == ("dropped", "not-connected")
    assert await outcome("connected") == ("dropped", "not-connected")
    device = await peer(jid, plugins=SM, presence=False)
    assert await outcome("connected") == ("dropped", "not-connected")
    await device.available(pshow="xa")
    assert await outcome("active") == ("dropped", "not-active")
    assert await outcome("connected") == ("sent", None)
    assert payload(await device.message(type="headline")) == "connected"
    device.xmpp.send_presence()
    await device.ping()
    assert await outcome("active") == ("sent", None)
    assert payload(await device.message(type="headline")) == "active"


async def test_a_newer_one_with_the_same_key_takes_the_place_of_the_older(peer, account, api):
    jid = await account()
    async with api.events() as events:
        older = await api.notify(jid, 1, collapse_key="score")
        other = await api.notify(jid, "other", collapse_key="weather")
        newer = await api.notify(jid, 2, collapse_key="score")
        await events.state(older["id"], "replaced")
    assert (await api.trace(older["id"]))["state"] == "replaced"
    device = await peer(jid, plugins=SM)
    await device.notification(other["id"])
    assert payload(await device.notification(newer["id"])) == 2
    await device.ping()
    assert not device.messages.left()


async def test_one_expires(peer, account, api):
    jid = await account()
    async with api.events() as events:
        short = await api.notify(jid, "short", ttl=1)
        long = await api.notify(jid, "long", ttl=3600)
        expired = await events.state(short["id"], "expired")
    assert expired["ended_at"] >= expired["accepted_at"]
    device = await peer(jid, plugins=SM)
    await device.notification(long["id"])
    await device.ping()
    assert not device.messages.left()


async def test_what_matters_most_comes_first(peer, account, api):
    jid = await account()
    wanted = {}
    for i, priority in enumerate(["low", "normal", "high", "low", "normal", "high"]):
        wanted[i] = (await api.notify(jid, i, priority=priority))["id"]
    device = await peer(jid, plugins=SM)
    got = [payload(await device.message(type="headline")) for _ in wanted]
    assert got == [2, 5, 1, 4, 0, 3]


async def test_the_same_request_again_is_the_same_notification(peer, account, api):
    jid = await account()
    key = {"idempotency-key": unique("key")}
    body = {"to": jid, "payload": "once"}
    first = await api.call("POST", "/v1/notifications", body, headers=key)
    again = await api.call("POST", "/v1/notifications", body, headers=key)
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    await api.problem(
        422, "idempotency-mismatch", "POST", "/v1/notifications", {"to": jid, "payload": "twice"}, headers=key
    )
    device = await peer(jid, plugins=SM)
    assert payload(await device.message(type="headline")) == "once"
    await device.ping()
    assert not device.messages.left()


async def test_to_many_at_once(peer, account, api):
    here, away = await peer(plugins=SM), await account()
    nobody = f"{unique('nobody')}@localhost"
    body = {"to": [here.bare, away, nobody], "payload": "all"}
    answer = await api.ok("POST", "/v1/notifications", body, status=207)
    states = [(result["to"], result.get("state"), result.get("error", {}).get("code")) for result in answer["results"]]
    assert states[1:] == [(away, "stored", None), (nobody, None, "unknown-device")]
    assert states[0][0] == here.bare
    await here.notification(answer["results"][0]["id"])


async def test_a_batch_is_answered_line_by_line(peer, api):
    device = await peer(plugins=SM)
    lines = [
        {"to": device.bare, "payload": 1},
        {"to": f"{unique('nobody')}@localhost", "payload": 2},
        {"to": device.bare, "payload": 3, "wrong": True},
        {"to": device.bare, "payload": 4},
    ]
    body = "\n".join(json.dumps(line) for line in lines) + "\nno json\n"
    answer = await api.http.post(
        "/v1/notifications/batch", content=body, headers={"content-type": "application/x-ndjson"}
    )
    assert answer.status_code == 200
    results = [json.loads(line) for line in answer.text.splitlines()]
    assert [result["line"] for result in results] == [1, 2, 3, 4, 5]
    assert [result.get("error", {}).get("code") for result in results] == [
        None,
        "unknown-device",
        "unknown-field",
        None,
        "not-json",
    ]
    for i, result in ((1, results[0]), (4, results[3])):
        assert payload(await device.notification(result["id"])) == i


async def test_a_batch_is_answered_while_it_is_sent(peer, api):
    """A stream without end: the answer to a line does not wait for the next."""
    device = await peer(plugins=SM)
    answered = asyncio.Event()

    async def body():
        yield json.dumps({"to": device.bare, "payload": "first"}).encode() + b"\n"
        await answered.wait()
        yield json.dumps({"to": device.bare, "payload": "second"}).encode() + b"\n"

    # An HTTP/1.1 client of its own: httpx reads the answer only when it has sent the request.
    host, port = "127.0.0.1", api.server.port("http")
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(
        f"POST /v1/notifications/batch HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {api.key}\r\n"
        "content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n".encode()
    )
    async with asyncio.timeout(20):
        lines = body()
        for expected in ("first", "second"):
            line = await anext(lines)
            writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            answered.set()
            await reader.readuntil(b'"state":')
            assert payload(await device.message(type="headline")) == expected
        writer.write(b"0\r\n\r\n")
        await reader.read()
    writer.close()


async def test_taken_back_before_it_was_given(peer, account, api):
    jid = await account()
    async with api.events() as events:
        sent = await api.notify(jid, "oops")
        cancelled = await api.ok("DELETE", f"/v1/notifications/{sent['id']}", status=200)
        assert cancelled["state"] == "cancelled"
        await events.state(sent["id"], "cancelled")
    device = await peer(jid, plugins=SM)
    await device.ping()
    assert not device.messages.left()


async def test_too_late_to_take_it_back(peer, api):
    device = await peer(plugins=SM)
    async with api.events() as events:
        sent = await api.notify(device.bare, "gone")
        await events.state(sent["id"], "acknowledged")
    answer = await api.call("DELETE", f"/v1/notifications/{sent['id']}")
    assert check_problem(answer, 409, "too-late")["state"] == "acknowledged"


async def test_a_rehearsal_sends_nothing(peer, account, api):
    device = await peer(plugins=SM)
    answer = await api.notify(device.bare, "not really", dry_run=True)
    assert answer["dry_run"] is True
    assert "id" not in answer
    await api.problem(
        404, "unknown-device", "POST", "/v1/notifications", {"to": unique("nobody"), "payload": 1, "dry_run": True}
    )
    await device.ping()
    assert not device.messages.left()


async def test_later_means_later(peer, api):
    device = await peer(plugins=SM)
    async with api.events() as events:
        sent = await api.notify(device.bare, "now it is time", send_at=soon(1))
        assert sent["state"] == "scheduled"
        await device.ping()
        assert not device.messages.left()
        assert payload(await device.notification(sent["id"])) == "now it is time"
        receipt = await events.state(sent["id"], "acknowledged")
    assert receipt["send_at"] <= receipt["sent_at"]


async def test_taken_back_before_it_was_time(api, account):
    jid = await account()
    sent = await api.notify(jid, "never", send_at=soon(600))
    assert sent["state"] == "scheduled"
    cancelled = await api.ok("DELETE", f"/v1/notifications/{sent['id']}", status=200)
    assert cancelled["state"] == "cancelled"


async def test_xml_of_ones_own(peer, api):
    device = await peer(plugins=SM)
    xml = "<alarm xmlns='urn:example:alarm' level='3'>fire &amp; smoke</alarm>"
    sent = await api.ok("POST", "/v1/notifications", {"to": device.bare, "payload_xml": xml}, status=202)
    alarm = (await device.notification(sent["id"])).find("{urn:example:alarm}alarm")
    assert (alarm.get("level"), alarm.text) == ("3", "fire & smoke")


async def test_five_hundred_wait_and_come_in_order(peer, account, api):
    jid = await account()
    body = "".join(json.dumps({"to": jid, "payload": i}) + "\n" for i in range(500))
    answer = await api.http.post(
        "/v1/notifications/batch", content=body, headers={"content-type": "application/x-ndjson"}
    )
    assert [json.loads(line)["state"] for line in answer.text.splitlines()] == ["stored"] * 500
    device = await peer(jid, plugins=SM)
    assert [payload(await device.message(type="headline")) for _ in range(500)] == list(range(500))


async def test_events_can_be_chosen_by_state(peer, api):
    device = await peer(plugins=SM)
    async with api.events(state="acknowledged") as events:
        sent = await api.notify(device.bare, 1)
        event = (await events.inbox.take(lambda event: event[1]["id"] == sent["id"], "a receipt"))[1]
        assert event["state"] == "acknowledged"
    await api.problem(400, "invalid-parameter", "GET", "/v1/events?state=what")


async def test_nobody_but_the_service_is_the_service(peer, api):
    """What a client says to be a notification comes from the client."""
    alice, mallory = await peer(), await peer()
    mallory.send(
        f"<message from='push.localhost' to='{alice.bare}' type='chat' id='x'>"
        "<notification xmlns='urn:carillon:notification:0'/><body>forged</body></message>"
    )
    assert (await alice.message("forged")).get("from") == mallory.jid
    mallory.send("<message id='m' to='push.localhost'><body>hello?</body></message>")
    error = await mallory.message(id="m", type="error")
    assert error.find(CLIENT + "error") is not None
