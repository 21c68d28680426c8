"""Spans of OpenTelemetry, from the request of a sender to the acknowledgement of a device and to a webhook."""

import asyncio

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from harness.api import Api
from harness.collector import Collector, attributes
from harness.peer import Peer
from harness.receiver import Authority, Receiver
from harness.server import unique

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa01c902b7"
SAMPLED = {"traceparent": f"00-{TRACE}-{CALLER}-01"}
NOT_SAMPLED = {"traceparent": f"00-{TRACE}-{CALLER}-00"}


@pytest.fixture
async def collector():
    collector = await Collector.start()
    yield collector
    await collector.close()


async def sampled(api, to, headers=SAMPLED, **more):
    body = {"to": to, "payload": {"n": 1}, **more}
    return await api.ok("POST", "/v1/notifications", body, status=202, headers=headers)


@pytest.fixture
async def node(start, collector):
    """A node that exports its spans, its API and an account."""
    server = start(otel__endpoint=collector.url)
    api = Api(server)
    jid = unique("otel")
    await api.account(jid)
    yield server, api, f"{jid}@localhost"
    await api.aclose()
    if server.is_running():
        server.end()


async def test_a_notification_has_spans_from_the_request_to_the_device(node, collector):
    server, api, jid = node
    device = await Peer.connect(server, jid, plugins=["xep_0184"])
    sent = await sampled(api, jid)
    request = await collector.span("POST /v1/notifications")
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (TRACE, CALLER)
    assert request.kind == Span.SPAN_KIND_SERVER
    assert attributes(request) == {
        "http.request.method": "POST",
        "http.route": "/v1/notifications",
        "http.response.status_code": 202,
    }
    whole = await collector.span("notification", carillon__notification__id=sent["id"])
    assert (whole.trace_id.hex(), whole.parent_span_id) == (TRACE, request.span_id)
    assert attributes(whole)["carillon.notification.state"] == "acknowledged"
    assert whole.status.code == Status.STATUS_CODE_UNSET
    parts = [await collector.span(name) for name in ("store", "write", "acknowledge", "transmit")]
    for part in parts:
        assert (part.trace_id.hex(), part.parent_span_id) == (TRACE, whole.span_id)
        assert whole.start_time_unix_nano <= part.start_time_unix_nano <= part.end_time_unix_nano
    assert attributes(parts[2]) == {"carillon.acknowledged_by": "receipt"}
    assert request.start_time_unix_nano <= whole.start_time_unix_nano
    ids = {span.span_id for span in [request, whole, *parts]}
    assert len(ids) == 6
    assert collector.resources[0]["service.name"] == "carillon"
    await api.figure_is('otel_spans_total{result="exported"}', lambda count: count >= 6)
    await device.close()


async def test_the_caller_decides_and_else_the_ratio(node, collector):
    _, api, jid = node
    await sampled(api, jid, headers={})
    await sampled(api, jid, headers=NOT_SAMPLED)
    await sampled(api, jid, headers={"traceparent": "nonsense"})
    # Only this one.
    await api.ok("PUT", "/v1/topics/news", {})
    answer = await api.call("POST", "/v1/topics/news/items", {"payload": 1}, headers=SAMPLED)
    assert answer.is_success
    span = await collector.span("POST /v1/topics/{topic}/items")
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, CALLER)
    assert not collector.spans.left()


async def test_of_those_without_a_trace_as_many_are_sampled_as_is_wanted(start, collector):
    server = start(otel__endpoint=collector.url, otel__sample_per_million=1_000_000)
    api, jid = Api(server), unique("all")
    await api.account(jid)
    sent = await sampled(api, jid, headers={}, audience="active")
    request = await collector.span("POST /v1/notifications")
    assert request.parent_span_id == b""
    assert request.trace_id != bytes(16)
    whole = await collector.span("notification", carillon__notification__id=sent["id"])
    assert whole.trace_id == request.trace_id
    # It was dropped, which is an error.
    assert (whole.status.code, whole.status.message) == (Status.STATUS_CODE_ERROR, "not-connected")
    # A probe has spans, too.
    report = await api.ok("POST", "/v1/trace/send", {"to": jid, "audience": "active"})
    whole = await collector.span("notification", carillon__notification__id=report["id"])
    assert (whole.trace_id.hex(), whole.parent_span_id) == (report["trace_id"], b"")
    await api.aclose()
    server.end()


async def test_a_webhook_gets_the_trace_of_what_it_is_told(start, collector, tmp_path):
    authority = Authority(tmp_path)
    receiver = await Receiver.start(authority.context("localhost", "127.0.0.1"))
    server = start(
        otel__endpoint=collector.url,
        webhooks__allow_addresses='["127.0.0.0/8", "::1"]',
        webhooks__ca_file=authority.file,
    )
    api, jid = Api(server), unique("hook")
    await api.account(jid)
    await api.ok("POST", "/v1/webhooks", {"url": receiver.url}, status=201)
    sent = await sampled(api, jid)
    await api.ok("DELETE", f"/v1/notifications/{sent['id']}")
    request = await receiver.requests.take()
    assert request.events[0]["notification"]["id"] == sent["id"]
    version, trace, span, flags = request.headers["traceparent"].split("-")
    assert (version, trace, flags) == ("00", TRACE, "01")
    called = await collector.span("POST webhook", http__response__status_code=204)
    whole = await collector.span("notification", carillon__notification__id=sent["id"])
    assert (called.span_id.hex(), called.parent_span_id, called.kind) == (span, whole.span_id, Span.SPAN_KIND_CLIENT)
    # What is not sampled is told without.
    sent = await sampled(api, jid, headers=NOT_SAMPLED)
    await api.ok("DELETE", f"/v1/notifications/{sent['id']}")
    assert "traceparent" not in (await receiver.requests.take()).headers
    await api.aclose()
    server.end()
    await receiver.close()


async def test_a_collector_that_is_away_delays_nobody_and_what_is_lost_is_counted(node, collector):
    server, api, jid = node
    collector.status = 503
    device = await Peer.connect(server, jid, plugins=["xep_0198"])
    sent = await sampled(api, jid)
    await device.notification(sent["id"])
    await api.figure_is('otel_spans_total{result="failed"}', lambda count: count >= 1)
    assert "spans were not taken" in server.log.read_text()
    collector.status = 200
    sent = await sampled(api, jid)
    await collector.span("notification", carillon__notification__id=sent["id"])
    # What is not sent yet is sent when the node ends.
    sent = await sampled(api, jid)
    await device.notification(sent["id"])
    await device.close()
    await asyncio.to_thread(server.end)
    await collector.span("POST /v1/notifications")


async def test_an_endpoint_is_a_url(start):
    with pytest.raises(Exception, match=r"otel\.endpoint"):
        start(otel__endpoint="not a url")
