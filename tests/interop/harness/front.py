"""Several cells, each one node with a store of its own, and a front with their registry."""

import asyncio
import contextlib

from . import look
from .api import Api
from .inbox import deadline
from .peer import Peer
from .ports import free_port
from .server import Server

SM = ["xep_0198"]


class Front:
    """A front and its cells. A process that is started again has the ports of the one before it."""

    def __init__(self, folder):
        self.folder = folder
        self.cells = {}
        self.apis = {}
        self._ports = {}
        self.server = self.api = None
        self.is_up = asyncio.Event()
        self.start()

    def start(self):
        """Starts the front, for the first time or after it was killed."""
        self.server = self._serve("front", cells__front="true", cells__timeout_ms=2000)
        self.api = Api(self.server)
        self.is_up.set()

    def kill_front(self):
        self.is_up.clear()
        self.server.kill()

    def start_cell(self, name):
        self.cells[name] = self._serve(name)
        self.apis[name] = Api(self.cells[name])

    async def add(self, name, weight=100):
        """Starts a cell and adds it."""
        self.start_cell(name)
        cell = self.cells[name]
        body = {
            "url": cell.http,
            "key": cell.key,
            "weight": weight,
            "endpoints": {"host": "127.0.0.1", "c2s_port": cell.port("c2s")},
        }
        return await self.api.ok("PUT", f"/v1/cells/{name}", body, status=201)

    def _serve(self, name, **settings):
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        ports = self._ports.setdefault(name, {"http__port": free_port(), "c2s__port": free_port()})
        return Server(folder, **settings, **ports)

    async def enrol(self, id):
        """A device: its cell and its secret."""
        enrolled = await self.api.ok("POST", "/v1/devices", {"id": id}, status=201)
        return enrolled["cell"], enrolled["secret"]

    async def endpoint(self, id):
        return await self.api.ok("GET", f"/v1/devices/{id}/endpoint")

    async def connect(self, id, secret):
        """The device where it is told to connect."""
        cell = self.cells[(await self.endpoint(id))["cell"]]
        peer = Peer(cell, f"{id}@localhost", password=secret, plugins=SM)
        try:
            await peer.log_in()
        except BaseException:
            peer._stop()
            raise
        return peer

    async def shown(self, cell):
        return await self.api.ok("GET", f"/v1/cells/{cell}")

    async def until(self, cell, wanted, seconds=20):
        """Reads a cell until it is as wanted."""
        async with deadline(f"{cell} as wanted", seconds):
            while not wanted(seen := await self.shown(cell)):
                await look.again()
            return seen

    async def moved(self):
        """Waits until no device moves."""
        await self.api.eventually("/v1/moves", lambda seen: not seen["moves"])

    async def close(self):
        for api in (self.api, *self.apis.values()):
            await api.aclose()
        for server in (self.server, *self.cells.values()):
            if server.is_running():
                server.end()

    def kill(self):
        """What a failed test leaves behind."""
        for server in (self.server, *self.cells.values()):
            if server.is_running():
                server.kill()


@contextlib.asynccontextmanager
async def front(folder, *cells):
    """A front with these cells, and their ends."""
    one = Front(folder)
    try:
        for name in cells:
            await one.add(name)
        yield one
        await one.close()
    finally:
        one.kill()
