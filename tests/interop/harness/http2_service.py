"""A service that speaks HTTP/2, as APNs and FCM do, and can be made to fail as they do."""

import asyncio
import json

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset
from hyperframe.frame import GoAwayFrame

from .inbox import Inbox


class Request:
    """A request that has come as a whole."""

    def __init__(self, headers, body):
        self.headers = headers
        self.method = headers[":method"]
        self.path = headers[":path"]
        self.body = body


class Http2Service:
    """Answers as `answer(request)` says: a status, a status and JSON, or these and headers; None for no answer at all."""

    def __init__(self):
        # Every request that came: its path. And every one that was answered: its path, and the status.
        self.began = Inbox(type(self).__name__)
        self.seen = Inbox(type(self).__name__)
        self.count = 0
        self.connections = 0
        # What is cleared makes it hold its answers.
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        # The most requests that were open at once.
        self.open_max = 0
        self.open = set()
        # What requests had that they should not have.
        self.wrong = []

    @classmethod
    async def start(cls, *arguments, tls=None, **options):
        self = cls(*arguments, **options)
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: Connection(self), "127.0.0.1", 0, ssl=tls)
        self.port = self.server.sockets[0].getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        return self

    async def close(self):
        self.goes_on.set()
        self.server.close()
        self.drop()
        assert not self.wrong, self.wrong

    def freeze(self):
        """Connections that are open now are dead from now on, and nobody says so: nothing is read, nothing answered."""
        for connection in self.open:
            connection.is_frozen = True

    def go_away(self):
        """Connections that are open now end in order: what was begun is answered, what comes is not begun."""
        for connection in list(self.open):
            connection.go_away()

    def drop(self):
        """Connections that are open now are lost."""
        for connection in list(self.open):
            connection.transport.abort()

    def answer(self, request):
        raise NotImplementedError


class Connection(asyncio.Protocol):
    """A connection of a client."""

    def __init__(self, service):
        self.service = service
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.streams = {}
        self.is_frozen = False
        self.last_stream = None
        self.tasks = set()

    def connection_made(self, transport):
        self.transport = transport
        self.service.connections += 1
        self.service.open.add(self)
        self.h2.initiate_connection()
        self._flush()

    def connection_lost(self, error):
        self.service.open.discard(self)
        for task in self.tasks:
            task.cancel()

    def data_received(self, data):
        if self.is_frozen:
            return
        for event in self.h2.receive_data(data):
            stream = getattr(event, "stream_id", 0)
            if self.last_stream is not None and stream > self.last_stream:
                continue
            if isinstance(event, RequestReceived):
                self.streams[stream] = (dict(event.headers), bytearray())
                self.service.open_max = max(self.service.open_max, len(self.streams))
            elif isinstance(event, DataReceived):
                self.streams[stream][1].extend(event.data)
                if event.flow_controlled_length:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, stream)
            elif isinstance(event, StreamEnded):
                task = asyncio.get_running_loop().create_task(self._answer(stream))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
            elif isinstance(event, StreamReset):
                self.streams.pop(stream, None)
        self._flush()

    async def _answer(self, stream):
        request = Request(*self.streams[stream])
        self.service.count += 1
        self.service.began.put(request.path)
        try:
            answer = self.service.answer(request)
        except Exception as error:
            self.service.wrong.append(repr(error))
            answer = 500
        await self.service.goes_on.wait()
        if answer is None or self.is_frozen or stream not in self.streams:
            return
        status, content, more = (*answer, None, {})[:3] if isinstance(answer, tuple) else (answer, None, {})
        body = b"" if content is None else json.dumps(content).encode()
        headers = [(":status", str(status)), *(more or {}).items()]
        self.service.seen.put((request.path, status))
        self.h2.send_headers(stream, headers, end_stream=not body)
        if body:
            self.h2.send_data(stream, body, end_stream=True)
        del self.streams[stream]
        self._flush()
        if self.last_stream is not None and not self.streams:
            self.transport.close()

    def go_away(self):
        """RFC 9113 §6.8: the library would close the connection at once."""
        self.last_stream = max(self.streams, default=self.h2.highest_inbound_stream_id)
        self.transport.write(GoAwayFrame(0, last_stream_id=self.last_stream, error_code=0).serialize())
        if not self.streams:
            self.transport.close()

    def _flush(self):
        self.transport.write(self.h2.data_to_send())
