"""WebSockets that break the rules (RFC 6455 §7.4.1, RFC 7395)."""

import asyncio

import pytest

from harness.peer import Peer
from harness.websocket import (
    BINARY,
    CLOSE,
    FRAMING,
    OPEN,
    PING,
    PONG,
    SASL,
    TEXT,
    RawWebSocket,
    frame,
    request,
)

STREAM_ERRORS = "{urn:ietf:params:xml:ns:xmpp-streams}"


@pytest.fixture(autouse=True)
async def neighbour(server, account):
    """A session next door: there before, and at work after."""
    peer = await Peer.connect(server, await account("neighbour"))
    yield
    await peer.ping()
    assert server.is_running()
    await peer.close()


@pytest.fixture
async def socket(server):
    opened = []

    async def open(how):
        opened.append(await getattr(RawWebSocket, how)(server))
        return opened[-1]

    yield open
    for one in opened:
        await one.close()


REQUESTS = {
    "no subprotocol": (request(protocol=None), 400),
    "another subprotocol": (request(protocol="chat, mqtt"), 400),
    "wrong path": (request(path="/"), 404),
    "no upgrade": (request(upgrade=None, connection="close"), 426),
    "another version": (request(sec_websocket_version="8"), 426),
    "no key": (request(sec_websocket_key=None), 400),
    "key that is none": (request(sec_websocket_key="hello"), 400),
    "no host": (request(host=None), 400),
    "another method": (request().replace("GET", "POST", 1), 405),
    "not HTTP": ("hello\r\n\r\n", 400),
    "too large": (request(x_padding="y" * 10_000), 431),
}


@pytest.mark.parametrize("what", REQUESTS)
async def test_bad_request(socket, what):
    text, expected = REQUESTS[what]
    connection = await socket("connect")
    connection.send(text)
    status, _ = await connection.response()
    assert status == expected


async def test_one_of_several_subprotocols_is_chosen(socket):
    connection = await socket("connect")
    connection.send(request(protocol="chat, xmpp"))
    status, fields = await connection.response()
    assert (status, fields["sec-websocket-protocol"]) == (101, "xmpp")


FRAMES = {
    "binary": (frame(BINARY, OPEN), 1003),
    "not masked": (frame(TEXT, OPEN, masked=False), 1002),
    "unknown opcode": (frame(3, OPEN), 1002),
    "continuation of nothing": (frame(0, OPEN), 1002),
    "reserved bits": (bytes([0xC1]) + frame(TEXT, OPEN)[1:], 1002),
    "fragmented ping": (frame(PING, "x", fin=False), 1002),
    "long ping": (frame(PING, "x" * 126), 1002),
    "invalid UTF-8": (frame(TEXT, b"<open a='\xff'/>"), 1007),
    "a promise of much": (frame(TEXT, "<open", length=1 << 40), 1009),
    "close with half a code": (frame(CLOSE, b"\x03"), 1002),
}


@pytest.mark.parametrize("what", FRAMES)
async def test_bad_frame(socket, what):
    data, code = FRAMES[what]
    connection = await socket("upgraded")
    connection.send(data)
    assert await connection.close_code() == code


async def test_oversized_message_before_authentication(socket):
    connection = await socket("upgraded")
    connection.send(frame(TEXT, "<open " + " " * 20_000))
    # A stream error of RFC 6120, or a close code of RFC 6455: both say so.
    opcode, data = await connection.frame()
    if opcode == TEXT and data.startswith(b"<open"):
        # RFC 6120 §4.9.1.2: the server's own header comes before the error.
        opcode, data = await connection.frame()
    assert (opcode == TEXT and b"policy-violation" in data) or data[:2] == (1009).to_bytes(2)


async def test_oversized_message_in_many_fragments(socket):
    connection = await socket("upgraded")
    connection.send(frame(TEXT, "<open", fin=False))
    for _ in range(30):
        connection.send(frame(0, " " * 1000, fin=False))
    async with asyncio.timeout(3):
        assert await connection.close_code() == 1009


async def test_ping_is_answered_between_fragments(socket):
    connection = await socket("upgraded")
    half = len(OPEN) // 2
    connection.send(frame(TEXT, OPEN[:half], fin=False) + frame(PING, "are you there?") + frame(0, OPEN[half:]))
    assert await connection.frame() == (PONG, b"are you there?")
    assert (await connection.element()).tag == FRAMING + "open"


async def test_a_close_frame_is_answered(socket):
    connection = await socket("opened")
    connection.send(frame(CLOSE, b"\x03\xe8"))
    assert await connection.close_code() == 1000


async def error_of(connection):
    """The condition of the stream error, after which the stream and the connection end."""
    element = await connection.element()
    while not element.tag.endswith("}error"):
        element = await connection.element()
    assert (await connection.element()).tag == FRAMING + "close"
    await connection.close_code()
    return element[0].tag.removeprefix(STREAM_ERRORS)


MESSAGES = {
    "not well-formed": ("<message xmlns='jabber:client'>", "not-well-formed"),
    "two stanzas in one message": ("<a xmlns='jabber:client'/><b xmlns='jabber:client'/>", "not-well-formed"),
    "comment": ("<!-- x --><presence xmlns='jabber:client'/>", "restricted-xml"),
    "the header of TCP": (
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>",
        "not-well-formed",
    ),
    "stanza before authentication": ("<presence xmlns='jabber:client'/>", "not-authorized"),
}


@pytest.mark.parametrize("what", MESSAGES)
async def test_bad_message(socket, what):
    text, condition = MESSAGES[what]
    connection = await socket("opened")
    connection.send(frame(TEXT, text))
    assert await error_of(connection) == condition


async def test_unknown_domain(socket):
    connection = await socket("upgraded")
    connection.send(frame(TEXT, OPEN.replace("localhost", "elsewhere.example")))
    assert await error_of(connection) == "host-unknown"


async def test_something_else_than_open(socket):
    connection = await socket("upgraded")
    connection.send(frame(TEXT, "<hello xmlns='urn:example:hello'/>"))
    assert await error_of(connection) in ("invalid-namespace", "not-authorized", "bad-format")


async def test_wrong_password_and_no_plain_without_tls(socket, account):
    user = (await account()).partition("@")[0]
    connection = await socket("opened")
    answer = await connection.authenticate(user)
    # PLAIN is not offered without TLS.
    assert answer.tag == SASL + "failure"
    assert answer[0].tag == SASL + "invalid-mechanism"


async def test_a_cut_connection(socket):
    connection = await socket("opened")
    connection.send(frame(TEXT, "<presence xmlns='jabber:client'/>")[:10])
    connection.writer.transport.abort()
