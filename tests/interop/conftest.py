"""Fixtures: a server for each module, and clients that end with their test."""

import subprocess

import pytest

from harness.api import Api
from harness.peer import Peer
from harness.postgres import WANTED
from harness.raw import Raw
from harness.server import Server, unique


def pytest_collection_modifyitems(items):
    """Marks tests of cells, whose nodes watch each other by their clocks, as `alone`; skips tests of the embedded store's file on another store."""
    for item in items:
        if item.path.name.startswith("test_cell"):
            item.add_marker(pytest.mark.alone)
    if WANTED:
        skip = pytest.mark.skip(reason="it is about the file of the embedded store")
        for item in items:
            if item.get_closest_marker("embedded"):
                item.add_marker(skip)


@pytest.fixture(scope="module")
def settings():
    """What a module wants to be set otherwise; `__` stands for a dot. Overridden by the module."""
    return {}


@pytest.fixture(scope="module")
def server(tmp_path_factory, settings):
    server = Server(tmp_path_factory.mktemp("node"), **settings)
    yield server
    server.end()


@pytest.fixture
def start(tmp_path):
    """Starts nodes; those that a failed test leaves behind are ended before their disk is taken away."""
    started = []

    def start(environment=None, **settings):
        started.append(Server(tmp_path, environment, **settings))
        return started[-1]

    yield start
    for server in started:
        if server.is_running():
            server.kill()


@pytest.fixture
def disk():
    """Makes disks of a size of their own."""
    mounted = []

    def make(folder, size):
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "carillon-test", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield make
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
async def api(server):
    """The HTTP API with the key that may do everything."""
    api = Api(server)
    yield api
    await api.aclose()


@pytest.fixture
async def keys(server, api):
    """Makes an `Api` with a key of its own."""
    made = []

    async def make(*scopes, domain=None):
        body = {"name": unique("key"), "scopes": list(scopes)}
        if domain:
            body["domain"] = domain
        created = await api.ok("POST", "/v1/admin/keys", body, status=201)
        made.append(Api(server, created["key"]))
        made[-1].id = created["id"]
        return made[-1]

    yield make
    for other in made:
        await other.aclose()


@pytest.fixture
async def account(api):
    """Makes an account of a name of its own; its bare JID."""

    async def make(stem="user", domain="localhost"):
        jid = f"{unique(stem)}@{domain}"
        await api.account(jid)
        return jid

    return make


@pytest.fixture
async def peer(server, account):
    """Connects a slixmpp client, with a new account where none is given."""
    open_peers = []

    async def connect(jid=None, **options):
        jid = jid or await account()
        peer = Peer(server, jid, **{k: options.pop(k) for k in CONSTRUCTION & options.keys()})
        open_peers.append(peer)
        await peer.log_in(**options)
        return peer

    yield connect
    for peer in reversed(open_peers):
        await peer.close()


CONSTRUCTION = {"password", "direct_tls", "mechanism", "plugins", "tls"}


@pytest.fixture
async def raw(server):
    """Opens connections to be spoken by hand."""
    open_streams = []

    class Opener:
        async def connect(self, port="c2s"):
            return self._keep(await Raw.connect(server, port))

        async def secured(self, to="localhost"):
            return self._keep(await Raw.secured(server, to))

        async def logged_in(self, jid, resource="raw", **options):
            return self._keep(await Raw.logged_in(server, jid.partition("@")[0], resource=resource, **options))

        def _keep(self, stream):
            open_streams.append(stream)
            return stream

    yield Opener()
    for stream in open_streams:
        await stream.close()


@pytest.fixture
async def user(api):
    """Makes an account, by its local part."""

    async def make(stem):
        name = unique(stem)
        await api.account(f"{name}@localhost")
        return name

    return make
