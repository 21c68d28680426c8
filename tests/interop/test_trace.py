"""What an operator sees of one account, of those that cost most, and of what the shards did."""

import asyncio
import json
import socket

import pytest

from harness.inbox import deadline
from harness.raw import Raw
from harness.tracing import traced

SM = "urn:xmpp:sm:3"
PING = "<iq type='get' id='{}'><ping xmlns='urn:xmpp:ping'/></iq>"


async def test_what_a_client_sends_and_is_sent_is_told(server, api, user):
    alice, bob = await user("alice"), await user("bob")
    async with traced(api, alice) as trace:
        assert trace.begun["account"] == f"{alice}@localhost"
        raw = await Raw.logged_in(server, alice, resource="r")
        other = await Raw.logged_in(server, bob, resource="r")
        session = f"{alice}@localhost/r"
        await trace.line("session", what="opened", session=session)
        sent = await trace.line("in", name="presence", session=session)
        assert sent["bytes"] == len("<presence/>")
        # Its own: to another account, and what the server answers.
        raw.send(f"<message to='{bob}@localhost' type='chat' id='m1'><body>a secret</body></message>")
        line = await trace.line("in", id="m1")
        assert (line["type"], line["to"]) == ("chat", f"{bob}@localhost")
        assert line["payload"] == ["body jabber:client"]
        assert (await trace.line("route", id="m1"))["what"] == "posted"
        raw.send(PING.format("p1"))
        await trace.line("in", id="p1", type="get")
        await trace.line("out", id="p1", type="result")
        # Another's.
        other.send(f"<message to='{alice}@localhost' type='chat' id='m2'><body>another secret</body></message>")
        line = await trace.line("route", id="m2", what="delivered")
        assert (line["detail"], line["from"]) == ("r", f"{bob}@localhost/r")
        line = await trace.line("out", id="m2")
        assert "body jabber:client" in line["payload"]
        assert line["bytes"] > len("another secret")
        # What is refused.
        raw.send("<message to='nobody@elsewhere.example' id='m3'><body>x</body></message>")
        await trace.line("route", id="m3", what="refused", detail="remote-server-not-found")
        await raw.close()
        await trace.line("session", what="closed", session=session)
        assert trace.said
        assert "secret" not in "".join(trace.said)
        await other.close()


async def test_a_session_that_is_there_is_followed_and_no_other(server, api, user):
    alice, bob = await user("alice"), await user("bob")
    raw, other = await Raw.logged_in(server, alice), await Raw.logged_in(server, bob)
    async with traced(api, alice, kinds="in") as trace:
        other.send(PING.format("other"))
        await other.element()
        raw.send(PING.format("own"))
        line = await trace.inbox.take(lambda _: True, "a line")
        assert (line["kind"], line["id"]) == ("in", "own")
    # The reader is gone, and the trace with it.
    await api.figure_is("traces", lambda count: count == 0)
    await raw.close()
    await other.close()


async def test_streams_that_are_lost_and_resumed_are_told(server, api, user):
    alice, bob = await user("alice"), await user("bob")
    async with traced(api, alice, kinds="route,store,session") as trace:
        raw = await Raw.logged_in(server, alice, resource="r")
        other = await Raw.logged_in(server, bob)
        raw.send(f"<enable xmlns='{SM}' resume='true'/>")
        enabled = await raw.element()
        other.send(f"<message to='{alice}@localhost' type='chat' id='m1'><body>x</body></message>")
        await raw.until(lambda e: e.get("id") == "m1")
        raw.send(f"<a xmlns='{SM}' h='1'/>")
        await trace.line("store", what="acknowledged", count=1)
        raw.send(f"<message to='{bob}@localhost' type='chat' id='m2'><body>x</body></message>")
        await trace.line("store", what="settled")
        raw.reset()
        await trace.line("session", what="parked")
        other.send(f"<message to='{alice}@localhost' type='chat' id='m3'><body>x</body></message>")
        await trace.line("route", id="m3", what="taken", detail="stored")
        other.send(f"<message to='{alice}@localhost/r' type='headline' id='m4'><body>x</body></message>")
        await trace.line("store", what="queued")
        again = await Raw.secured(server)
        await again.authenticate(alice)
        again.send(f"<resume xmlns='{SM}' previd='{enabled.get('id')}' h='1'/>")
        await trace.line("session", what="resumed", detail="tcp")
        await again.until(lambda e: e.get("id") == "m3")
        await again.close()
        await other.close()


async def test_a_trace_ends_at_its_bounds(server, api, user):
    alice = await user("alice")
    raw = await Raw.logged_in(server, alice)
    async with traced(api, alice, kinds="in", count=3) as trace:
        for n in range(10):
            raw.send(PING.format(n))
        for n in range(3):
            assert (await trace.line("in"))["id"] == str(n)
        await trace.line("ended", detail="count")
        await trace.ended()
    async with traced(api, alice, kinds="in", **{"for": 1}) as trace:
        await trace.line("ended", detail="time")
        await trace.ended()
    # What comes faster than it may is counted, and costs nobody anything.
    async with traced(api, alice, kinds="in", rate=5) as trace:
        for n in range(200):
            raw.send(PING.format(f"r{n}"))
        missed = 0
        async with deadline("what was missed"):
            while missed < 100:
                missed += (await trace.line("missed"))["count"]
    await api.figure_is("trace_missed_total", lambda count: count >= 100)
    await raw.until(lambda e: e.get("id") == "r199")
    await raw.close()


async def read_all(raw):
    while True:
        await raw.element()


async def test_a_reader_that_takes_nothing_is_cut(server, api, keys, user):
    alice, key = await user("alice"), await keys("admin", "trace_payload")
    raw = await Raw.logged_in(server, alice)
    reading = asyncio.create_task(read_all(raw))
    port = int(server.http.rpartition(":")[2])
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", port))
        target = f"/v1/trace?account={alice}&kinds=out&payloads=true&rate=1000"
        reader.sendall(f"GET {target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key.key}\r\n\r\n".encode())
        await api.figure_is("traces", lambda count: count == 1)
        # More than the kernel holds for it.
        for _ in range(400):
            await api.notify(f"{alice}@localhost", {"x": "y" * 30_000}, audience="connected")
        await api.figure_is("traces", lambda count: count == 0)
    reading.cancel()
    await raw.close()


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"for": 3601}, "`for` is an integer from 1 to 3600"),
        ({"count": 0}, "`count` is an integer from 1 to 100000"),
        ({"rate": 1001}, "`rate` is an integer from 1 to 1000"),
        ({"kinds": "in,timer"}, "`timer` is none"),
    ],
)
async def test_bounds_are_mandatory(api, query, said):
    problem = await api.problem(400, "invalid-parameter", "GET", "/v1/trace", params={"account": "a", **query})
    assert said in problem["detail"]


async def test_contents_take_a_scope_of_their_own(server, api, keys, user):
    alice = await user("alice")
    payloads = {"account": alice, "payloads": "true"}
    problem = await api.problem(403, "missing-scope", "GET", "/v1/trace", params=payloads)
    assert "`trace_payload`" in problem["detail"]
    other = await keys("send", "trace_payload")
    await other.problem(403, "missing-scope", "GET", "/v1/trace", params=payloads)
    raw = await Raw.logged_in(server, alice)
    both = await keys("admin", "trace_payload")
    async with traced(both, alice, payloads="true") as trace:
        raw.send(PING.format("p"))
        line = await trace.line("in", id="p")
        assert "<ping xmlns='urn:xmpp:ping'/>" in line["xml"]
    await raw.close()


async def test_a_key_of_a_domain_sees_its_own(api, keys):
    await api.ok("PUT", "/v1/admin/domains/other.example", {})
    key = await keys("admin", domain="other.example")
    await key.problem(403, "other-domain", "GET", "/v1/trace", params={"account": "alice@localhost"})
    assert (await key.ok("GET", "/v1/top"))["accounts"] == []
    await key.problem(403, "other-domain", "GET", "/v1/dump")


async def test_there_are_so_many_traces_and_no_more(api):
    open_traces = [traced(api, "nobody") for _ in range(16)]
    for one in open_traces:
        await one.__aenter__()
    await api.problem(503, "too-many-streams", "GET", "/v1/trace", params={"account": "nobody"})
    for one in open_traces:
        await one.__aexit__(None, None, None)
    await api.figure_is("traces", lambda count: count == 0)


async def test_the_command_prints_a_trace(server, user):
    alice = await user("alice")
    raw = await Raw.logged_in(server, alice)
    running = server.command("trace", alice, "--kinds", "in", "--count", "1", "--for", "10s", "--rate", "10/s")
    task = asyncio.create_task(running)
    async with deadline("the end of the command"):
        while not task.done():
            raw.send(PING.format("p"))
            await raw.element()
    done = await task
    assert done.returncode == 0, done.stderr
    begun, line, ended = done.stdout.splitlines()
    assert f"account={alice}@localhost" in begun
    assert f"in       {alice}@localhost/raw  iq  get  id=p" in line
    assert "[ping urn:xmpp:ping]" in line
    assert "ended    count" in ended
    refused = await server.command("trace", alice, "--count", "0")
    assert (refused.returncode, refused.stderr) == (1, "carillon: `count` is an integer from 1 to 100000\n")
    await raw.close()


async def test_who_sends_most_is_on_top(server, api, user):
    much, little = await user("much"), await user("little")
    raw, other = await Raw.logged_in(server, much), await Raw.logged_in(server, little)
    for n in range(300):
        raw.send(PING.format(n))
    await raw.until(lambda e: e.get("id") == "299")
    body = "x" * 20_000
    for n in range(5):
        other.send(f"<message to='{much}@localhost' type='chat' id='l{n}'><body>{body}</body></message>")
    await raw.until(lambda e: e.get("id") == "l4")
    top = (await api.ok("GET", "/v1/top?by=messages&limit=1"))["accounts"]
    assert top[0]["account"] == f"{much}@localhost"
    assert 300 <= top[0]["messages"] <= 310
    top = (await api.ok("GET", "/v1/top?by=bytes&limit=1"))["accounts"]
    assert top[0]["account"] == f"{little}@localhost"
    assert top[0]["bytes"] > 100_000
    # One of 17 reads is timed.
    async with deadline("its time"):
        while f"{much}@localhost" not in [
            one["account"] for one in (await api.ok("GET", "/v1/top?by=cpu"))["accounts"]
        ]:
            await raw.ping()
    # A client that reads nothing has a queue.
    raw.stop_reading()
    async with deadline("a queue"):
        while not (queues := (await api.ok("GET", "/v1/top?by=queue"))["accounts"]):
            other.send(f"<message to='{much}@localhost' type='chat'><body>{body}</body></message>")
            await other.ping()
    assert [one["account"] for one in queues] == [f"{much}@localhost"]
    printed = await server.command("top", "--by", "queue")
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.splitlines()[0].split() == ["ACCOUNT", "MESSAGES", "BYTES", "CPU", "QUEUE", "COUNTED"]
    assert f"{much}@localhost" in printed.stdout
    raw.reset()
    await other.close()


async def test_the_flight_recorders_have_what_happened(server, api, user):
    raw = await Raw.logged_in(server, await user("alice"))
    ping = PING.format("flight")
    raw.send(ping)
    await raw.element()
    shards = (await api.ok("GET", "/v1/dump?last=4096"))["shards"]
    entries = [entry for shard in shards for entry in shard["entries"]]
    sizes = [entry["size"] for entry in entries if entry["kind"] == "bytes"]
    assert len(ping) in sizes
    assert len("<presence/>") in sizes
    assert {"opened", "answer", "tick"} <= {entry["kind"] for entry in entries}
    printed = json.loads((await server.command("dump", "--last", "5", "--json")).stdout)
    assert 0 < len(printed) <= 5 * len(shards)
    await raw.close()
