"""TLS 1.3 as no library of a client speaks it: records of both ports, that of clients and that of HTTPS, one by one.

What follows the handshake is read by the node's own record layer at the port of clients, and by rustls at HTTPS.
`python -m tlssuite` has tlsfuzzer say much more; docs/tls.md has what it found.
"""

import pytest

from harness.inbox import deadline
from harness.raw import header
from harness.records import ALERT, ALERTS, CCS, CONTENT_MAX, DATA, HANDSHAKE, Records, key_update, plain

HEADER = header().encode()
# What is said at each port, and how the answer begins.
PORTS = {
    "c2s_tls": (HEADER, b"<?xml"),
    "https": (b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n", b"HTTP/1.1 200"),
}


@pytest.fixture(scope="module")
def settings():
    return {"https__port": 0, "limits__profile": "benchmark"}


@pytest.fixture(params=PORTS)
def port(request):
    return request.param


@pytest.fixture
async def connect(server, port):
    opened = []

    async def connect():
        opened.append(await Records.connect(server.port(port)))
        return opened[-1]

    async with deadline("the end of the test", 30):
        yield connect
    for one in opened:
        await one.close()


async def answers(tls, port):
    """The server goes on."""
    said, begins = PORTS[port]
    tls.say(DATA, said)
    got = b""
    while len(got) < len(begins):
        heard = await tls.hear()
        assert heard, "the server closed"
        assert heard[0] == DATA, heard
        got += heard[1]
    assert got.startswith(begins)


# ---- before and in the handshake


async def test_a_client_hello_may_come_a_byte_in_each_record(connect, port):
    tls = await connect()
    await tls.handshake(lambda record: [plain(HANDSHAKE, record[n : n + 1]) for n in range(5, len(record))])
    await answers(tls, port)


async def test_a_change_of_cipher_that_middleboxes_want_is_passed_over(connect, port):
    tls = await connect()
    await tls.handshake(before_finished=[plain(CCS, b"\1")])
    await answers(tls, port)


FIRST = {
    "no record of TLS": (b"GET / HTTP/1.1\r\n\r\n", None),
    "an unknown type": (plain(99, b"\0"), None),
    "data before the handshake": (plain(DATA, b"\0"), {"unexpected_message", "decode_error"}),
    "more than a record may have": (plain(HANDSHAKE, b"", length=CONTENT_MAX + 2049), None),
    "a handshake record without content": (plain(HANDSHAKE, b""), {"decode_error", "unexpected_message"}),
    "a message of another type": (plain(HANDSHAKE, bytes([2, 0, 0, 0])), {"unexpected_message", "decode_error"}),
    "a message longer than any": (
        plain(HANDSHAKE, b"\1\xff\xff\xff"),
        {"decode_error", "unexpected_message", "illegal_parameter"},
    ),
}


@pytest.mark.parametrize("what", FIRST)
async def test_what_is_no_hello_ends_the_connection(connect, port, what):
    record, alerts = FIRST[what]
    tls = await connect()
    tls.send(record)
    said = await tls.read()
    if said:
        assert said[0] == ALERT, said
    if alerts and port == "c2s_tls":
        assert ALERTS.get(said[6]) in alerts
    while await tls.read():
        pass


# ---- after it


async def test_records_without_data_and_with_all_the_padding_are_taken(connect, port):
    tls = await (await connect()).handshake()
    for _ in range(8):
        tls.say(DATA, b"")
    tls.say(DATA, b"", padding=CONTENT_MAX)
    said, _ = PORTS[port]
    tls.say(DATA, said[:1], padding=CONTENT_MAX - 1)
    tls.say(DATA, said[1:], padding=100)
    assert (await tls.hear())[0] == DATA


async def test_keys_are_updated_by_either_side(connect, port):
    tls = await (await connect()).handshake()
    for answered in (False, True, True, False):
        tls.update(answered)
    await answers(tls, port)


async def test_key_updates_without_end_end_the_connection(connect, port):
    if port == "https":
        pytest.skip("rustls bounds them only together with data")
    tls = await (await connect()).handshake()
    for _ in range(2000):
        tls.update(True)
    assert await tls.alert() == "unexpected_message"


async def test_a_close_is_answered(connect):
    tls = await (await connect()).handshake()
    tls.say(ALERT, b"\1\0")
    assert await tls.alert() in ("close_notify", None)


def corrupted(tls):
    record = tls.client.seal(b"x" + bytes([DATA]))
    return record[:-1] + bytes([record[-1] ^ 1])


# What is sent after the handshake, and the alert that ends the connection.
WRONG = {
    "a tag that is wrong": (lambda tls: tls.send(corrupted(tls)), {"bad_record_mac"}),
    "a record too short for a tag": (lambda tls: tls.send(plain(DATA, b"x" * 15)), {"bad_record_mac", "decode_error"}),
    "a record without content": (lambda tls: tls.send(plain(DATA, b"")), {"bad_record_mac", "decode_error"}),
    "one byte more than a record may have": (
        lambda tls: tls.say(DATA, b"x" * (CONTENT_MAX + 1)),
        {"record_overflow"},
    ),
    "more than a sealed record may have": (
        lambda tls: tls.send(plain(DATA, b"x" * (CONTENT_MAX + 257))),
        {"record_overflow"},
    ),
    "nothing but padding": (lambda tls: tls.send(tls.client.seal(bytes(32))), {"unexpected_message"}),
    "an unknown type": (lambda tls: tls.say(99, b"x"), {"unexpected_message", "decode_error"}),
    "a change of cipher, sealed": (lambda tls: tls.say(CCS, b"\1"), {"unexpected_message", "decode_error"}),
    "a change of cipher": (lambda tls: tls.send(plain(CCS, b"\1")), {"unexpected_message"}),
    "data that is not sealed": (lambda tls: tls.send(plain(HANDSHAKE, b"x")), {"unexpected_message", "bad_record_mac"}),
    "a message of the handshake without content": (
        lambda tls: tls.say(HANDSHAKE, b""),
        {"unexpected_message", "decode_error"},
    ),
    "another hello": (lambda tls: tls.say(HANDSHAKE, bytes([1, 0, 0, 0])), {"unexpected_message", "decode_error"}),
    "an update of keys that is neither": (
        lambda tls: tls.say(HANDSHAKE, bytes([24, 0, 0, 1, 2])),
        {"illegal_parameter", "decode_error"},
    ),
    "an update of keys that is too long": (
        lambda tls: tls.say(HANDSHAKE, bytes([24, 0, 0, 2, 0, 0])),
        {"decode_error", "illegal_parameter", "unexpected_message"},
    ),
    "an update of keys with a message behind it": (
        lambda tls: tls.say(HANDSHAKE, key_update(False) * 2),
        {"unexpected_message"},
    ),
    "data between the parts of a message": (
        lambda tls: (tls.say(HANDSHAKE, key_update(False)[:3]), tls.say(DATA, b"x")),
        {"unexpected_message"},
    ),
    "an alert without content": (lambda tls: tls.say(ALERT, b""), {"unexpected_message", "decode_error"}),
    "half an alert": (lambda tls: tls.say(ALERT, b"\1"), {"decode_error"}),
}


@pytest.mark.parametrize("what", WRONG)
async def test_what_is_wrong_ends_the_connection_with_an_alert(connect, port, what):
    act, alerts = WRONG[what]
    tls = await (await connect()).handshake()
    act(tls)
    # At HTTPS the alert is rustls', which may take another one, and is lost where the socket is closed with something unread.
    assert await tls.alert() in (alerts if port == "c2s_tls" else {*alerts, "bad_record_mac", None})


async def test_an_alert_that_is_fatal_ends_the_connection_without_one(connect):
    tls = await (await connect()).handshake()
    tls.say(ALERT, b"\2\x28")
    assert await tls.alert() is None


async def test_early_data_is_not_taken(connect, server):
    """No ticket says that there may be any: 0-RTT can be sent twice by whoever records it."""
    tls = await (await connect()).handshake()
    tickets = []
    while record := await tls.read():
        kind, content = tls.server.open(record)
        if kind == HANDSHAKE:
            tickets.append(content)
        if kind == HANDSHAKE and len(tickets) == 1:
            break
    # early_data (RFC 8446 §4.2.10) is extension 42 of a ticket.
    assert tickets
    assert not any(b"\0\x2a\0\4" in ticket for ticket in tickets)
