"""A receiver of spans by OTLP over HTTP, which reads them with the protocol's own messages."""

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from .inbox import Inbox

PROTOBUF = "application/x-protobuf"


class Collector:
    """Answers as it is told, and keeps the spans that came."""

    def __init__(self):
        self.spans = Inbox("the collector")
        self.resources = []
        self.requests = 0
        self.status = 200

    @classmethod
    async def start(cls, port=0):
        self = cls()
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/traces", self._take)
        self.runner = web.AppRunner(app)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
        return self

    async def close(self):
        await self.runner.cleanup()

    async def _take(self, request):
        self.requests += 1
        assert request.content_type == PROTOBUF
        read = ExportTraceServiceRequest.FromString(await request.read())
        if self.status == 200:
            for of_resource in read.resource_spans:
                self.resources.append(attributes(of_resource.resource))
                for of_scope in of_resource.scope_spans:
                    assert of_scope.scope.name == "carillon"
                    for span in of_scope.spans:
                        self.spans.put(span)
        said = ExportTraceServiceResponse().SerializeToString()
        return web.Response(status=self.status, body=said, content_type=PROTOBUF)

    async def span(self, name, **wanted):
        """The next span of this name with these attributes, whose dots are written as `__`."""

        def fits(span):
            has = attributes(span)
            return span.name == name and all(has.get(key.replace("__", ".")) == value for key, value in wanted.items())

        return await self.spans.take(fits, f"the span {name} {wanted}")


def attributes(of):
    """The attributes of a span or a resource."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in of.attributes}
