"""Requests that cannot be done: each is answered by problem+json whose code says why, and the next one is served."""

import asyncio
import json
import socket

import httpx
import pytest

from harness.api import Api, check_problem
from harness.inbox import DEADLINE_S, deadline
from harness.peer import Peer
from harness.server import unique

SEND = "/v1/notifications"
JSON = {"content-type": "application/json"}


@pytest.fixture(autouse=True)
async def neighbour(server, account, api):
    """A session next door: there before, and at work after."""
    peer = await Peer.connect(server, await account("neighbour"), plugins=["xep_0198"])
    yield
    sent = await api.notify(peer.bare, "still here")
    await peer.notification(sent["id"])
    assert server.is_running()
    await peer.close()


BODIES = {
    "empty": ("", 400, "not-json"),
    "not JSON": ("hello", 400, "not-json"),
    "cut off": ('{"to": "al', 400, "not-json"),
    "invalid UTF-8": (b'{"to": "\xff", "payload": 1}', 400, "not-json"),
    "a comment": ('{"to": "a", /* x */ "payload": 1}', 400, "not-json"),
    "too deep": ('{"to":"a","payload":1,"x":' + "[" * 5000 + "]" * 5000 + "}", 400, "unknown-field"),
    "an array": ("[]", 400, "wrong-type"),
    "null": ("null", 400, "wrong-type"),
    "unknown field": ('{"to": "a", "payload": 1, "titel": 2}', 400, "unknown-field"),
    "field twice": ('{"to": "a", "to": "b", "payload": 1}', 400, "duplicate-field"),
    "missing target": ('{"payload": 1}', 400, "missing-field"),
    "missing payload": ('{"to": "a"}', 400, "missing-field"),
    "target of another type": ('{"to": 7, "payload": 1}', 400, "wrong-type"),
    "unknown word": ('{"to": "a", "payload": 1, "audience": "everybody"}', 400, "wrong-type"),
    "ttl of nothing": ('{"to": "a", "payload": 1, "ttl": 0}', 422, "invalid-value"),
    "ttl of years": ('{"to": "a", "payload": 1, "ttl": 99999999}', 422, "invalid-value"),
    "negative ttl": ('{"to": "a", "payload": 1, "ttl": -1}', 400, "wrong-type"),
    "long collapse key": ('{"to": "a", "payload": 1, "collapse_key": "' + "k" * 65 + '"}', 422, "invalid-value"),
    "send_at that is no time": ('{"to": "a", "payload": 1, "send_at": "tomorrow"}', 400, "wrong-type"),
    "send_at in a year": ('{"to": "a", "payload": 1, "send_at": "2099-01-01T00:00:00Z"}', 422, "invalid-value"),
    "two payloads": ('{"to": "a", "payload": 1, "payload_xml": "<x xmlns=\'u\'/>"}', 422, "invalid-value"),
    "XML that is none": ('{"to": "a", "payload_xml": "<x>"}', 422, "invalid-xml"),
    "XML that would be a stanza": (
        '{"to": "a", "payload_xml": "<message xmlns=\'jabber:client\'/>"}',
        422,
        "invalid-xml",
    ),
    "XML that breaks out": (
        '{"to": "a", "payload_xml": "<x xmlns=\'u\'/></message><message xmlns=\'jabber:client\'>"}',
        422,
        "invalid-xml",
    ),
    "invalid JID": ('{"to": "a@b@c", "payload": 1}', 422, "invalid-jid"),
    "a session as target": ('{"to": "alice@localhost/phone", "payload": 1}', 422, "invalid-jid"),
    "unknown domain": ('{"to": "a@elsewhere.example", "payload": 1}', 404, "unknown-domain"),
    "unknown device": ('{"to": "nobody-of-this-name", "payload": 1}', 404, "unknown-device"),
    "no targets": ('{"to": [], "payload": 1}', 422, "invalid-value"),
    "payload too large": ('{"to": "a", "payload": "' + "x" * 40_000 + '"}', 413, "payload-too-large"),
}


@pytest.mark.parametrize("what", BODIES)
async def test_bad_body(api, what):
    body, status, code = BODIES[what]
    content = body if isinstance(body, bytes) else body.encode()
    check_problem(await api.http.post(SEND, content=content, headers=JSON), status, code)


async def test_a_body_too_large(api):
    body = '{"to": "a", "payload": "' + "x" * 1_100_000 + '"}'
    answer = await api.http.post(SEND, content=body.encode(), headers=JSON)
    check_problem(answer, 413, "too-large")


async def test_a_body_too_large_is_refused_by_its_announcement(server):
    head = (
        f"POST {SEND} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {server.key}\r\ncontent-type: application/json\r\n"
    )
    answer = await exchange(server, (head + "content-length: 1100000\r\nexpect: 100-continue\r\n\r\n").encode())
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"code":"too-large"' in answer


async def test_the_problem_names_the_member(api):
    body = {"to": ["a", "b@c@d"], "payload": 1}
    unknown, invalid = (await api.ok("POST", SEND, body, status=207))["results"]
    assert unknown["error"]["code"] == "unknown-device"
    assert (invalid["error"]["code"], invalid["error"]["pointer"]) == ("invalid-jid", "/to/1")
    body = {"to": "a", "payload": 1, "titel": 1}
    assert (await api.problem(400, "unknown-field", "POST", SEND, body))["pointer"] == "/titel"


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/xml"])
async def test_wrong_content_type(api, kind):
    headers = {"content-type": kind} if kind else {}
    answer = await api.http.post(SEND, content=b'{"to": "a", "payload": 1}', headers=headers)
    check_problem(answer, 415, "wrong-content-type")


async def test_a_batch_wants_ndjson(api):
    answer = await api.http.post(SEND + "/batch", content=b"{}\n", headers=JSON)
    check_problem(answer, 415, "wrong-content-type")


async def test_a_line_too_long_is_that_lines_problem(api, account):
    jid = await account()
    lines = ['{"to":"' + jid + '","payload":"' + "x" * 100_000 + '"}', '{"to":"' + jid + '","payload":1}']
    answer = await api.http.post(
        SEND + "/batch", content="\n".join(lines), headers={"content-type": "application/x-ndjson"}
    )
    results = [line for line in answer.text.splitlines()]
    assert '"code":"too-large"' in results[0]
    assert '"state":"stored"' in results[1]


UNKNOWN = [
    ("GET", "/v1/devices/nobody", None, "unknown-device"),
    ("DELETE", "/v1/devices/nobody", None, "unknown-device"),
    ("PUT", "/v1/devices/nobody/subscriptions/nothing", None, "unknown-device"),
    ("GET", "/v1/topics/nothing", None, "unknown-topic"),
    ("DELETE", "/v1/topics/nothing", None, "unknown-topic"),
    ("POST", "/v1/topics/nothing/items", {"payload": 1}, "unknown-topic"),
    ("GET", "/v1/topics/nothing/items", None, "unknown-topic"),
    ("GET", "/v1/notifications/01KAG8X4RZ5T9V7Q2M3N6P8W0Y", None, "unknown-notification"),
    ("DELETE", "/v1/notifications/01KAG8X4RZ5T9V7Q2M3N6P8W0Y", None, "unknown-notification"),
    ("DELETE", "/v1/admin/accounts/nobody", None, "unknown-account"),
    ("GET", "/v1/admin/domains/elsewhere.example", None, "unknown-domain"),
    ("GET", "/v1/topics?domain=elsewhere.example", None, "unknown-domain"),
    ("DELETE", "/v1/admin/keys/999999", None, "unknown-key-id"),
    ("GET", "/v1/nothing", None, "unknown-route"),
    ("GET", "/v1/topics/a/b/c/d", None, "unknown-route"),
    ("GET", "/console/../../etc/passwd", None, "unknown-route"),
]


@pytest.mark.parametrize(("method", "path", "body", "code"), UNKNOWN, ids=[f"{u[0]} {u[1]}" for u in UNKNOWN])
async def test_what_is_not_there(api, method, path, body, code):
    await api.problem(404, code, method, path, body)


async def test_a_topic_that_exists_and_a_device_that_does_not_follow_it(api, account):
    topic, id = unique("news"), (await account()).partition("@")[0]
    await api.ok("PUT", f"/v1/topics/{topic}", {}, status=201)
    await api.problem(404, "unknown-topic", "PUT", f"/v1/devices/{id}/subscriptions/{topic}x")
    await api.problem(404, "not-subscribed", "DELETE", f"/v1/devices/{id}/subscriptions/{topic}")
    await api.problem(404, "unknown-item", "DELETE", f"/v1/topics/{topic}/items/none")


async def test_what_is_there_already(api, account):
    jid = await account()
    await api.problem(409, "already-exists", "POST", "/v1/admin/accounts", {"jid": jid, "password": "x"})
    await api.problem(409, "already-exists", "POST", "/v1/devices", {"id": jid.partition("@")[0]})


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v1/topics?what=1", "unknown-parameter"),
        ("/v1/topics?limit=0", "invalid-parameter"),
        ("/v1/topics?limit=x", "invalid-parameter"),
        ("/v1/notifications/short", "invalid-parameter"),
    ],
)
async def test_bad_parameter(api, path, code):
    await api.problem(400, code, "GET", path)


async def test_bad_header(api):
    body = {"to": "a", "payload": 1}
    await api.problem(400, "invalid-header", "POST", SEND, body, headers={"idempotency-key": "a b"})


async def test_wrong_method(api):
    answer = await api.call("PATCH", SEND)
    check_problem(answer, 405, "wrong-method")
    assert answer.headers["allow"].split(",") == ["POST", "GET", "HEAD"]


async def test_passwords_that_are_none(api):
    for password in ("", "\u0007", "\ufff9"):
        await api.problem(
            422, "invalid-secret", "POST", "/v1/admin/accounts", {"jid": unique("user"), "password": password}
        )


async def test_names_of_topics_may_be_anything_that_is_text(api):
    for name in ("a/b", "ü ber", "100%", "?&=#", "' OR 1=1 --", "../.."):
        path = "/v1/topics/" + "".join(f"%{byte:02X}" for byte in f"{unique('t')} {name}".encode())
        created = await api.ok("PUT", path, {}, status=201)
        assert created["name"].endswith(name)
    await api.problem(400, "invalid-parameter", "PUT", "/v1/topics/a%00b", {})


async def exchange(server, data):
    """Sends bytes to the HTTP port; what comes back until the end, or nothing when it ends with a reset."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port("http"))
    writer.write(data)
    try:
        async with deadline("the end of the answer"):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def post(key, length, path=SEND):
    return (
        f"POST {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {key}\r\n"
        f"content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    ).encode()


async def read_answer(reader):
    """The status of an answer, and the code of its problem."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
    body = await reader.readexactly(length)
    return int(head.split()[1]), json.loads(body).get("code") if head.find("json") > 0 else None


@pytest.mark.parametrize("why", ["unknown-key", "missing-scope", "unknown-route"])
async def test_a_refusal_before_the_body_keeps_the_connection(server, keys, account, why):
    """The body of a request is sent when its answer is there; further requests follow on the same connection."""
    key, path, status = {
        "unknown-key": ("crl_" + "a" * 43, SEND, 401),
        "missing-scope": ((await keys("topics")).key, SEND, 403),
        "unknown-route": (server.key, "/v1/nothing", 404),
    }[why]
    body = json.dumps({"to": await account(), "payload": "x" * 30_000}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port("http"))
    async with deadline("answers"):
        for _ in range(3):
            writer.write(post(key, len(body), path))
            assert await read_answer(reader) == (status, why)
            writer.write(body)
        writer.write(post(server.key, len(body)) + body)
        assert (await read_answer(reader))[0] == 202
    writer.close()


async def test_a_refusal_reaches_whoever_sends_a_large_body_before_it_reads(server):
    """The connection ends with the answer, which is not lost by a reset."""
    body = b"x" * 4_000_000
    with socket.create_connection(("127.0.0.1", server.port("http")), timeout=DEADLINE_S) as client:
        await asyncio.to_thread(client.sendall, post("crl_" + "a" * 43, len(body)) + body)
        answer = b""
        while part := await asyncio.to_thread(client.recv, 65536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"connection: close\r\n" in answer.lower()


@pytest.mark.parametrize(
    "data",
    [
        b"hello\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: a\r\nbad header\r\n\r\n",
        b"POST /v1/notifications HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
    ids=["no HTTP", "version", "header", "length", "TLS"],
)
async def test_what_is_no_http_is_refused(server, data):
    answer = await exchange(server, data)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ") or answer.startswith(b"HTTP/1.1 505 ")


async def test_a_header_of_megabytes_is_refused(server):
    answer = await exchange(server, b"GET /healthz HTTP/1.1\r\nhost: a\r\nx: " + b"y" * 2_000_000)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431 ")


async def test_two_lengths_are_no_length(server):
    """Request smuggling: what is ambiguous is refused."""
    key = f"authorization: Bearer {server.key}\r\n".encode()
    for fields in (
        b"content-length: 2\r\ncontent-length: 20\r\n",
        b"content-length: 2\r\ntransfer-encoding: chunked\r\n",
    ):
        head = b"POST /v1/notifications HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\n"
        answer = await exchange(server, head + key + fields + b"\r\n{}GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"200 OK" not in answer


async def test_a_body_that_breaks_off(server, api):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port("http"))
    writer.write(
        f"POST {SEND} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {server.key}\r\n"
        'content-type: application/json\r\ncontent-length: 500\r\n\r\n{"to":'.encode()
    )
    writer.write_eof()
    async with asyncio.timeout(20):
        await reader.read()
    writer.close()
    await api.ok("GET", "/v1/key")


async def test_a_request_dropped_in_the_middle_of_a_batch(server, api, account):
    jid = await account()

    async def body():
        yield b'{"to":"' + jid.encode() + b'","payload":1}\n{"to":"'
        raise ConnectionError("the sender is gone")

    lost = Api(server)
    with pytest.raises((httpx.HTTPError, ConnectionError)):
        await lost.http.post(SEND + "/batch", content=body(), headers={"content-type": "application/x-ndjson"})
    await lost.aclose()
    # The line that was whole was taken.
    await api.eventually(f"/v1/devices/{jid.partition('@')[0]}", lambda device: device["pending"] == 1)
