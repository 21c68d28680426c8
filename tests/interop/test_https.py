"""The HTTP APIs with TLS of their own, beside the port without it."""

import asyncio
import contextlib
import json
import signal
import socket
import ssl
import subprocess
import warnings

import httpx
import pytest

from harness.inbox import deadline
from harness.server import run
from harness.upgrade import Upgradable


@pytest.fixture
def node(tmp_path):
    server = Upgradable(tmp_path, https__port=0, http__connections_max=8)
    yield server
    server.end()


class Https:
    """A connection on which requests are sent one after the other."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, server, context=None):
        context = context or server.tls()
        return cls(
            *await asyncio.open_connection("127.0.0.1", server.port("https"), ssl=context, server_hostname="localhost")
        )

    async def ask(self, server, method, path, body=None):
        text = "" if body is None else json.dumps(body)
        self.writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()
        )
        async with deadline(f"{method} {path}"):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
            return int(head.split()[1]), await self.reader.readexactly(length)

    async def close(self):
        self.writer.close()
        await self.writer.wait_closed()


async def certificate_of(server):
    connection = await Https.open(server)
    shown = connection.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    await connection.close()
    return shown


async def test_requests_are_answered_one_after_the_other(node):
    context = node.tls()
    context.set_alpn_protocols(["http/1.1"])
    connection = await Https.open(node, context)
    secured = connection.writer.get_extra_info("ssl_object")
    assert (secured.version(), secured.selected_alpn_protocol()) == ("TLSv1.3", "http/1.1")
    assert await connection.ask(node, "GET", "/readyz") == (200, b"ready\n")
    status, _ = await connection.ask(node, "PUT", "/v1/topics/news", {})
    assert status == 201
    status, answer = await connection.ask(node, "POST", "/v1/topics/news/items", {"id": "1", "payload": {"n": 1}})
    assert status == 202, answer
    await connection.close()


def curl(server, *arguments):
    """What curl prints, which speaks HTTP/2 where the server does."""
    at = f"localhost:{server.port('https')}:127.0.0.1"
    command = ["curl", "--silent", "--show-error", "--http2", "--cacert", str(server.certificate), "--resolve", at]
    headers = ["-H", f"authorization: Bearer {server.key}", "-H", "content-type: application/json"]
    done = subprocess.run([*command, *headers, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_http_2_is_spoken_where_a_client_offers_it(node):
    at = f"https://localhost:{node.port('https')}"
    assert curl(node, "-w", " %{http_version}", f"{at}/readyz") == "ready\n 2"
    assert curl(node, "-w", " %{http_code}", "-X", "PUT", "-d", "{}", f"{at}/v1/topics/second").endswith(" 201")
    # Many at a time, over one connection.
    count = 200
    urls = ["-o", "/dev/null", f"{at}/v1/topics/second"] * count
    many = curl(node, "--parallel", "--parallel-max", "50", "-w", "%{http_code} %{num_connects}\n", *urls)
    answers = [line.split() for line in many.splitlines()]
    assert [code for code, _ in answers] == ["200"] * count
    assert sum(int(connects) for _, connects in answers) < 8


# A request in HPACK (RFC 7541): GET, /, https, localhost.
REQUEST = b"\x82\x84\x87\x41\x09localhost"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


async def spoken(node, *sent):
    """What a client of HTTP/2 that sends this is sent, until the node closes the connection."""
    context = node.tls()
    context.set_alpn_protocols(["h2"])
    port = node.port("https")
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    received = b""

    async def read():
        nonlocal received
        with contextlib.suppress(ConnectionError):
            while more := await reader.read(65536):
                received += more

    reading = asyncio.create_task(read())
    with contextlib.suppress(ConnectionError):
        for one in sent:
            if reading.done():
                break
            writer.write(one)
            await writer.drain()
    async with deadline("the end of the connection"):
        await reading
    writer.close()
    return received


def goaway(received):
    """The code of the GOAWAY among frames (RFC 9113 §6.8); none where it was lost, because the client had not stopped sending."""
    while len(received) >= 9:
        length, kind = int.from_bytes(received[:3], "big"), received[3]
        if kind == 7:
            return int.from_bytes(received[13:17], "big")
        received = received[9 + length :]
    return None


async def test_who_misuses_http_2_is_hung_up_on(node):
    settings = frame(4, 0, 0)
    # Requests that are taken back at once, again and again (CVE-2023-44487).
    taken_back = [frame(1, 5, 1 + 2 * n, REQUEST) + frame(3, 0, 1 + 2 * n, (8).to_bytes(4, "big")) for n in range(5000)]
    enhance_your_calm = 11
    assert goaway(await spoken(node, PREFACE, settings, *taken_back)) in (enhance_your_calm, None)
    # A head without end, in frames of their own (CONTINUATION).
    endless = [frame(1, 1, 1, REQUEST)] + [frame(9, 0, 1, b"\x00\x01a\x7f\x81\x01" + b"b" * 256) for _ in range(1000)]
    assert goaway(await spoken(node, PREFACE, settings, *endless)) != 0
    # Something else than HTTP/2.
    assert await spoken(node, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") == b""
    assert curl(node, f"https://localhost:{node.port('https')}/readyz") == "ready\n"


async def test_tls_1_2_is_spoken_and_older_ones_are_refused(node):
    context = node.tls()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    connection = await Https.open(node, context)
    assert connection.writer.get_extra_info("ssl_object").version() == "TLSv1.2"
    assert (await connection.ask(node, "GET", "/healthz"))[0] == 200
    await connection.close()
    old = node.tls()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError):
        await Https.open(node, old)


async def test_who_speaks_no_tls_or_falls_silent_holds_no_one_up(node):
    plain = socket.create_connection(("127.0.0.1", node.port("https")))
    plain.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    plain.settimeout(10)
    answer = plain.recv(4096)
    assert not answer.startswith(b"HTTP/"), answer
    plain.close()
    # The others hold half of the connections that there may be, and say nothing.
    silent = [socket.create_connection(("127.0.0.1", node.port("https"))) for _ in range(4)]
    connection = await Https.open(node)
    assert (await connection.ask(node, "GET", "/readyz"))[0] == 200
    await connection.close()
    for one in silent:
        one.close()


async def test_it_goes_on_over_a_live_upgrade(node):
    port, before = node.port("https"), await certificate_of(node)
    await node.upgrade()
    assert node.port("https") == port
    assert await certificate_of(node) == before


async def test_a_renewed_certificate_is_shown_from_the_next_connection_on(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        made = Upgradable(folder)
        made.end()
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"

    def install(folder):
        key.write_bytes((folder / "data" / "self-signed.key").read_bytes())
        certificate.write_bytes((folder / "data" / "self-signed.crt").read_bytes())

    install(first)
    (tmp_path / "node").mkdir()
    node = Upgradable(tmp_path / "node", https__port=0, tls__certificate=certificate, tls__key=key)

    async def shown():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cafile=certificate)
        connection = await Https.open(node, context)
        shown = connection.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return connection, shown

    old, before = await shown()
    install(second)
    node.process.send_signal(signal.SIGHUP)
    async with deadline("the reload"):
        while "reloaded" not in node.log.read_text():
            await asyncio.to_thread(node.process.poll)
    new, after = await shown()
    assert before != after
    assert (await old.ask(node, "GET", "/readyz"))[0] == 200
    assert (await new.ask(node, "GET", "/readyz"))[0] == 200
    await old.close()
    await new.close()
    node.end()


def test_a_port_that_another_listener_has_is_refused():
    done = run("config", "check", "--set", "http.port=8080", "--set", "https.port=8080")
    assert done.returncode != 0
    assert "port 8080 is that of http.port already" in done.stdout + done.stderr


async def test_a_port_of_its_own_says_how_the_node_is_and_nothing_else(tmp_path):
    node = Upgradable(
        tmp_path,
        health__port=0,
        http__metrics_key="true",
        http__connections_max=1,
        links__hosts='["go.example=localhost"]',
    )

    async def ask(path, host="localhost"):
        reader, writer = await asyncio.open_connection("127.0.0.1", node.port("health"))
        # The key is of no use here, and does no harm.
        head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {node.key}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        async with deadline(path):
            answer = await reader.read()
        writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), body

    # It answers while others have all connections that they may have.
    busy = socket.create_connection(("127.0.0.1", node.port("http")))
    waiting = socket.create_connection(("127.0.0.1", node.port("http")))
    assert await ask("/readyz") == (200, b"ready\n")
    busy.close()
    waiting.close()
    for _ in range(2):
        assert await ask("/healthz") == (200, b"ok\n")
        assert await ask("/readyz") == (200, b"ready\n")
        status, figures = await ask("/metrics")
        assert status == 200
        assert b"carillon_sessions 0" in figures
        for path in ("/v1/topics", "/console", "/docs", "/"):
            assert (await ask(path))[0] == 404, path
        assert (await ask("/", host="go.example"))[0] == 404
        port = node.port("health")
        await node.upgrade()
        assert node.port("health") == port
    node.end()


KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    """An authority of its own, and the certificates that it signed."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        folder.mkdir()
        self.certificate = folder / "authority.pem"
        self.key = folder / "authority.key"
        made = ("-keyout", self.key, "-out", self.certificate, "-subj", f"/CN={name}")
        openssl("req", "-x509", *KEY, "-days", 2, *made)

    def client(self, name, san):
        """A certificate and its key in one file."""
        folder = self.folder
        key, request, signed, extensions = (folder / f"{name}.{kind}" for kind in ("key", "csr", "crt", "ext"))
        openssl("req", "-new", *KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        extensions.write_text(f"subjectAltName={san}\nextendedKeyUsage=clientAuth\n")
        by = ("-CA", self.certificate, "-CAkey", self.key, "-set_serial", len(list(folder.iterdir())))
        openssl("x509", "-req", "-days", 2, "-in", request, *by, "-extfile", extensions, "-out", signed)
        both = folder / f"{name}.pem"
        both.write_text(key.read_text() + signed.read_text())
        return both


class Sender:
    """Requests with a key and, if it has one, a certificate."""

    def __init__(self, node, key, certificate=None):
        self.node, self.key = node, key
        self.context = node.tls()
        if certificate:
            self.context.load_cert_chain(certificate)

    async def ask(self, path="/v1/key"):
        connection = await Https.open(self.node, self.context)
        status, body = await connection.ask(self, "GET", path)
        await connection.close()
        return status, json.loads(body) if body.startswith(b"{") else body


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_key_is_of_use_only_with_the_certificate_that_it_is_bound_to(tmp_path, version):
    ours, theirs = Authority(tmp_path / "ours", "Ours"), Authority(tmp_path / "theirs", "Theirs")
    shop = ours.client("shop", "DNS:Shop.example.org,URI:spiffe://example.org/shop")
    other, stranger = ours.client("other", "DNS:other.example.org"), theirs.client("shop", "DNS:shop.example.org")
    (tmp_path / "node").mkdir()
    node = Upgradable(tmp_path / "node", https__port=0, https__client_ca=ours.certificate)

    def created(*certificates):
        names = ",".join(certificates)
        made = run("key", "create", "shop", "--scope", "send", "--certificate", names, "--data-dir", str(node.data))
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    def sender(key, certificate=None):
        made = Sender(node, key, certificate)
        made.context.maximum_version = version
        return made

    by_san, by_name = created("dns:nowhere.example", "dns:shop.example.org"), created("cn:shop")
    for key in (by_san, by_name):
        status, body = await sender(key, shop).ask()
        assert (status, body["name"]) == (200, "shop")
        status, body = await sender(key, other).ask()
        assert (status, body["code"]) == (403, "other-certificate")
        assert "dns:other.example.org" in body["detail"]
        status, body = await sender(key).ask()
        assert (status, body["code"]) == (403, "other-certificate")
    # Over the port without TLS nobody shows anything.
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{node.http}/v1/key", headers={"authorization": f"Bearer {by_san}"})
    assert (answer.status_code, answer.json()["code"]) == (403, "other-certificate")
    # Keys that are bound to none need none, and a certificate of another authority is none at all.
    assert (await sender(node.key).ask("/readyz"))[0] == 200
    assert (await sender(node.key, shop).ask("/readyz"))[0] == 200
    with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
        await sender(by_san, stranger).ask()
    await node.upgrade()
    assert (await sender(by_san, shop).ask())[0] == 200
    node.end()


async def test_every_client_shows_a_certificate_where_that_is_wanted(tmp_path):
    ours = Authority(tmp_path / "ours", "Ours")
    shop = ours.client("shop", "DNS:shop.example.org")
    (tmp_path / "node").mkdir()
    required = {"https__client_ca": ours.certificate, "https__client_required": "true"}
    node = Upgradable(tmp_path / "node", https__port=0, **required)
    assert (await Sender(node, node.key, shop).ask("/readyz"))[0] == 200
    with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
        await Sender(node, node.key).ask("/readyz")
    # A ticket from a port that asks for no certificate is of no use on this one.
    context = node.tls()
    with socket.create_connection(("127.0.0.1", node.port("c2s_tls"))) as plain:
        secured = context.wrap_socket(plain, server_hostname="localhost", do_handshake_on_connect=True)
        secured.sendall(
            b"<stream:stream to='localhost' version='1.0' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
        )
        secured.recv(4096)
        session = secured.session
        secured.close()
    with socket.create_connection(("127.0.0.1", node.port("https"))) as plain:
        plain.settimeout(10)
        assert answered(context, plain, session) == b""
    node.end()


def answered(context, plain, session):
    """What comes of a request with this ticket; nothing where it is not taken."""
    with contextlib.suppress(ssl.SSLError, ConnectionError):
        secured = context.wrap_socket(plain, server_hostname="localhost", session=session)
        secured.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return secured.recv(4096)
    return b""


def test_authorities_that_cannot_be_read_are_named(tmp_path):
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("no certificate")
    ports = [f"{listener}.port=0" for listener in ("c2s", "c2s_tls", "websocket", "http", "https")]
    settings = [word for setting in (*ports, f"https.client_ca={nothing}") for word in ("--set", setting)]
    done = run("serve", "--set", f"data_dir={tmp_path / 'data'}", *settings)
    assert done.returncode != 0
    assert str(nothing) in done.stdout + done.stderr
