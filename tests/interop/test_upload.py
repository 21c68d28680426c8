"""HTTP file upload (XEP-0363), as slixmpp does it."""

import asyncio
import contextlib
import io
import urllib.parse

import httpx
import pytest
from slixmpp.exceptions import IqError

from harness import look
from harness.api import Api
from harness.inbox import deadline
from harness.peer import Peer
from harness.ports import free_port
from harness.server import unique

PLUGINS = ("xep_0128", "xep_0363")
UPLOAD = "{urn:xmpp:http:upload:0}"
SERVICE = "upload.localhost"
TEXT = "Grüße \U0001f375\n".encode() * 1000
SIZE = len(TEXT)


class Node:
    """A node to which files are uploaded, at a host that is another than that of the API."""

    def __init__(self, start, **settings):
        self.start = start
        port = free_port()
        self.settings = {
            "http__port": port,
            "upload__url": f"http://localhost:{port}",
            "upload__file_bytes": 100_000,
            # Of three files, each of which costs 4,096 bytes beside its own.
            "upload__account_bytes": 250_000 + 3 * 4096,
            "upload__sweep_ms": 100,
            **settings,
        }
        self.begin()

    def begin(self):
        self.server = self.start(**self.settings)

    def contents(self):
        """The files that are in the folder, by what is in them."""
        found = []
        for path in self.server.data.glob("uploads/*/*"):
            # It may be removed at this moment.
            with contextlib.suppress(FileNotFoundError):
                found.append(path.read_bytes())
        return found

    async def until(self, wanted, what):
        async with deadline(what):
            while not await asyncio.to_thread(wanted):
                await look.again()


@pytest.fixture
async def node(start):
    nodes = []

    def make(**settings):
        nodes.append(Node(start, **settings))
        return nodes[-1]

    yield make
    for node in nodes:
        if node.server.is_running():
            node.server.end()


@pytest.fixture
async def web():
    async with httpx.AsyncClient(trust_env=False) as client:
        yield client


@pytest.fixture
async def client():
    """Makes an account of a node, and a client that is logged in to it."""
    peers = []

    async def client(node):
        api = Api(node.server)
        jid = f"{unique('user')}@localhost"
        await api.account(jid)
        await api.aclose()
        peers.append(await Peer.connect(node.server, f"{jid}/r", plugins=PLUGINS))
        return peers[-1]

    yield client
    for peer in peers:
        await peer.close()


async def slot(peer, size=SIZE, name="a.txt", kind="text/plain"):
    """The URL of a slot, and the headers with which a file is put there."""
    async with deadline("a slot"):
        answer = await peer.plugin("xep_0363").request_slot(SERVICE, name, size, kind)
    put, get = answer.xml.find(f".//{UPLOAD}put"), answer.xml.find(f".//{UPLOAD}get")
    headers = {header.get("name"): header.text for header in put}
    assert put.get("url") == get.get("url")
    return get.get("url"), {**headers, "content-type": kind}


async def refused(peer, **options):
    """The error that a request for a slot is answered with."""
    with pytest.raises(IqError) as error:
        await slot(peer, **options)
    return error.value.iq["error"]


async def test_a_file_goes_from_one_client_to_another(node, client, web):
    node = node()
    alice = await client(node)
    async with deadline("the upload"):
        url = await alice.plugin("xep_0363").upload_file(
            "très cool.txt", input_file=io.BytesIO(TEXT), size=SIZE, content_type="text/plain"
        )
    assert urllib.parse.unquote(url).endswith("/très cool.txt")
    got = await web.get(url)
    assert (got.status_code, got.content) == (200, TEXT)
    assert got.headers["content-type"] == "text/plain"
    assert got.headers["content-disposition"].startswith("attachment;")
    assert "sandbox" in got.headers["content-security-policy"]
    part = await web.get(url, headers={"range": "bytes=-10"})
    assert (part.status_code, part.content) == (206, TEXT[-10:])
    again = await web.get(url, headers={"if-none-match": got.headers["etag"]})
    assert again.status_code == 304
    assert node.contents() == [TEXT]


async def test_the_service_says_how_large_a_file_may_be(node, client):
    node = node()
    alice = await client(node)
    async with deadline("the service"):
        info = await alice.plugin("xep_0363").find_upload_service()
    assert info["from"] == SERVICE
    form = info["disco_info"]["form"]
    assert form.get_values()["max-file-size"] == "100000"
    error = await refused(alice, size=100_001)
    assert (error["condition"], error["type"]) == ("not-acceptable", "modify")
    assert error.xml.findtext(f"{UPLOAD}file-too-large/{UPLOAD}max-file-size") == "100000"


async def test_an_account_has_so_much_room(node, client, web):
    node = node(upload__slot_ms=60_000)
    alice, bob = await client(node), await client(node)
    for _ in range(2):
        url, headers = await slot(alice, size=100_000)
        put = await web.put(url, content=b"x" * 100_000, headers=headers)
        assert put.status_code == 201, put.text
    error = await refused(alice, size=50_001)
    assert (error["condition"], error["type"]) == ("resource-constraint", "wait")
    assert error.xml.find(f"{UPLOAD}retry").get("stamp").endswith("Z")
    await slot(alice, size=50_000)
    await slot(bob, size=100_000)
    # What an operator deletes gives its room back.
    deleted = await web.delete(url, headers={"authorization": f"Bearer {node.server.key}"})
    assert deleted.status_code == 204
    await slot(alice, size=100_000)
    assert (await web.get(url)).status_code == 404
    await node.until(lambda: len(node.contents()) == 1, "its contents are removed")


async def test_only_what_the_slot_is_for_is_taken(node, client, web):
    node = node()
    alice = await client(node)
    url, headers = await slot(alice)
    for body, changed, status in [
        (TEXT + b"x", {}, 413),
        (TEXT[1:], {}, 400),
        (TEXT, {"content-type": "text/html"}, 415),
        (TEXT, {"Authorization": "Bearer x"}, 403),
    ]:
        answer = await web.put(url, content=body, headers={**headers, **changed})
        assert answer.status_code == status, answer.text
    assert (await web.get(url)).status_code == 404
    first = await web.put(url, content=TEXT, headers=headers)
    second = await web.put(url, content=TEXT[::-1], headers=headers)
    assert (first.status_code, second.status_code) == (201, 409)
    assert (await web.get(url)).content == TEXT
    assert node.contents() == [TEXT]


async def test_slots_and_files_expire(node, client, web):
    node = node(upload__slot_ms=1000, upload__kept_ms=1000)
    alice = await client(node)
    late, with_late = await slot(alice, size=100_000)
    url, headers = await slot(alice)
    assert (await web.put(url, content=TEXT, headers=headers)).status_code == 201

    async def until(status, ask):
        async with deadline(status):
            while (answer := await ask()).status_code != status:
                pass
            return answer

    await until(404, lambda: web.get(url))
    await until(403, lambda: web.put(late, content=b"x" * 100_000, headers=with_late))
    await node.until(lambda: node.contents() == [], "the contents are removed")
    async with deadline("their room is there again"):
        for _ in range(2):
            while True:
                try:
                    await slot(alice, size=100_000)
                    break
                except IqError:
                    pass


async def test_files_go_with_their_account(node, client, web):
    node = node()
    alice = await client(node)
    url, headers = await slot(alice)
    assert (await web.put(url, content=TEXT, headers=headers)).status_code == 201
    other, with_other = await slot(alice)
    api = Api(node.server)
    await api.ok("DELETE", f"/v1/admin/accounts/{alice.xmpp.boundjid.bare}")
    await api.aclose()
    assert (await web.get(url)).status_code == 404
    assert (await web.put(other, content=TEXT, headers=with_other)).status_code == 404
    await node.until(lambda: node.contents() == [], "the contents are removed")


async def half(node, url, headers):
    """A connection on which half of a file was put, and is in the folder."""
    path = urllib.parse.urlsplit(url)
    reader, writer = await asyncio.open_connection("127.0.0.1", path.port)
    head = [f"PUT {path.path} HTTP/1.1", f"Host: {path.netloc}", f"Content-Length: {SIZE}"]
    head += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join([*head, "", ""]).encode() + TEXT[: SIZE // 2])
    await writer.drain()
    sent = SIZE // 2
    await node.until(lambda: sent in [len(file) for file in node.contents()], "half of it is in the folder")
    return reader, writer


async def test_of_a_client_that_goes_away_nothing_is_left(node, client, web):
    node = node()
    alice = await client(node)
    url, headers = await slot(alice)
    _, writer = await half(node, url, headers)
    writer.transport.abort()
    await node.until(lambda: node.contents() == [], "it is removed")
    assert (await web.get(url)).status_code == 404
    assert (await web.put(url, content=TEXT, headers=headers)).status_code == 201
    assert (await web.get(url)).content == TEXT


async def test_a_crash_in_the_middle_leaves_nothing_that_counts(node, client, web):
    node = node(upload__put_ms=5000)
    alice = await client(node)
    whole, with_whole = await slot(alice)
    assert (await web.put(whole, content=TEXT, headers=with_whole)).status_code == 201
    await node.until(lambda: node.contents() == [TEXT], "the first file")
    url, headers = await slot(alice)
    _, writer = await half(node, url, headers)
    node.server.kill()
    writer.close()
    node.begin()
    # What was acknowledged is there; of the other there is nothing, and its slot can be used.
    assert (await web.get(whole)).content == TEXT
    assert (await web.get(url)).status_code == 404
    assert (await web.put(url, content=TEXT, headers=headers)).status_code == 201
    assert (await web.get(url)).content == TEXT
    await node.until(lambda: node.contents() == [TEXT, TEXT], "the half is removed")


async def test_the_api_is_not_at_the_host_of_files(node, web):
    node = node()
    port = node.settings["http__port"]
    headers = {"authorization": f"Bearer {node.server.key}"}
    assert (await web.get(f"http://127.0.0.1:{port}/v1/topics", headers=headers)).status_code == 200
    assert (await web.get(f"http://localhost:{port}/v1/topics", headers=headers)).status_code == 404


async def test_without_a_url_nothing_is_uploaded(start):
    server = start()
    api = Api(server)
    jid = f"{unique('user')}@localhost"
    await api.account(jid)
    await api.aclose()
    alice = await Peer.connect(server, jid, plugins=PLUGINS)
    async with deadline("the service"):
        assert await alice.plugin("xep_0363").find_upload_service() is None
    await alice.close()
    server.end()
