"""What an operator sees of a cell, and does with it, by any of its nodes."""

import asyncio
import contextlib
import json
import signal

import pytest

from harness import look
from harness.api import Api
from harness.cell import Cell
from harness.inbox import deadline
from harness.peer import CLIENT, Peer
from harness.raw import STREAM, Raw
from harness.server import unique
from harness.wasm import DROP

NODES = 3
PARTITIONS = 256


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    cell = Cell(tmp_path_factory.mktemp("cell"), NODES)
    yield cell
    cell.end()


@pytest.fixture
async def apis(cell):
    """A way to each node. All are in the cell: a node that a test ended was started again."""
    async with contextlib.AsyncExitStack() as stack:
        apis = [Api(node) for node in cell.nodes]
        for api in apis:
            stack.push_async_callback(api.aclose)
        for api in apis:
            await api.eventually("/v1/cluster", lambda seen: seen["well"] and seen["nodes"]["alive"] == NODES)
        yield apis


async def nodes(api):
    """The nodes by their names, as one of them sees them."""
    seen = await api.ok("GET", "/v1/cluster/nodes")
    return {node["node"]: node for node in seen["nodes"]}


async def places(api, names):
    """The home of each account."""
    return {name: (await api.ok("GET", f"/v1/cluster/where/{name}@localhost"))["home"] for name in names}


async def become(api, name, wanted):
    """Reads until a node is as wanted."""
    async with deadline(f"{name} as wanted"):
        while not wanted(seen := (await nodes(api)).get(name)):
            await look.again()
        return seen


async def over(raw):
    """The end of a stream: with an error where its session was on the node, and without where that is on another."""
    with contextlib.suppress(AssertionError):
        await raw.until(lambda e: e.tag == STREAM + "error")
    assert await raw.reader.read() == b""


async def accounts(api, count):
    names = [unique("user") for _ in range(count)]
    for name in names:
        await api.account(f"{name}@localhost")
    return names


async def test_every_node_sees_all_and_says_how_it_is(cell, apis):
    homes = []
    for n, api in enumerate(apis):
        seen = await nodes(api)
        assert sorted(seen) == [cell.name(n) for n in range(NODES)]
        assert [name for name, node in seen.items() if node["own"]] == [cell.name(n)]
        assert {node["state"] for node in seen.values()} == {"alive"}
        assert all(node["beat_age_ms"] < 3000 and node["report"]["ready"] for node in seen.values())
        homes.append({name: node["partitions"] for name, node in seen.items()})
    assert homes[0] == homes[1] == homes[2]
    assert sum(homes[0].values()) == PARTITIONS
    assert min(homes[0].values()) > PARTITIONS // 10
    name = cell.name(1)
    one = await apis[0].ok("GET", f"/v1/cluster/nodes/{name}")
    same = await apis[0].ok("GET", f"/v1/cluster/nodes/{one['number']}")
    assert (one["node"], same["node"]) == (name, name)
    await apis[0].problem(404, "unknown-node", "GET", "/v1/cluster/nodes/nobody")
    for api in apis:
        assert await api.figure('cell_nodes{state="alive"}') == NODES
        assert await api.figure(f'cell_partitions{{node="{name}"}}') == homes[0][name]
        assert await api.figure("cell_bus_connected") == 1
        assert (await api.call("GET", "/readyz")).text == "ready\n"


async def test_where_things_are_every_node_says_alike(cell, apis):
    names = await accounts(apis[0], 6)
    raws = [await Raw.logged_in(cell.nodes[n % NODES], name) for n, name in enumerate(names)]
    known = await places(apis[0], names)
    assert known == {name: cell.name(n % NODES) for n, name in enumerate(names)}, "where its client is"
    for api in apis[1:]:
        assert await places(api, names) == known
    for n, (name, raw) in enumerate(zip(names, raws, strict=True)):
        seen = await apis[1].ok("GET", f"/v1/cluster/where/{name}@localhost")
        assert seen["kind"] == "account"
        connected = {"jid": raw.jid, "state": "connected", "connection": cell.name(n % NODES)}
        assert seen["sessions"] == [connected]
    for jid, kind in (("news@pubsub.localhost", "topic"), ("tea@rooms.localhost", "room")):
        seen = [await api.ok("GET", f"/v1/cluster/where/{jid}") for api in apis]
        assert seen[0] == seen[1] == seen[2]
        assert (seen[0]["kind"], seen[0]["sessions"]) == (kind, [])
    await apis[0].problem(404, "unknown-domain", "GET", "/v1/cluster/where/alice@elsewhere.example")
    await apis[0].problem(422, "invalid-jid", "GET", "/v1/cluster/where/localhost")
    # A further session of an account is where the first is: its connection is counted at both nodes.
    raws.append(await Raw.logged_in(cell.nodes[1], names[0], resource="far"))
    seen = await apis[2].ok("GET", f"/v1/cluster/where/{names[0]}@localhost")
    assert (seen["home"], {session["connection"] for session in seen["sessions"]}) == (
        cell.name(0),
        {cell.name(0), cell.name(1)},
    )
    async with deadline("the connections that are carried"):
        while True:
            relayed = [await api.figure('cell_connections{side="relayed"}') for api in apis]
            carried = [await api.figure('cell_connections{side="carried"}') for api in apis]
            if (sum(relayed), sum(carried), relayed[1], carried[0]) == (1, 1, 1, 1):
                break
            await look.again()
    for raw in raws:
        await raw.close()


async def test_what_passes_between_nodes_is_counted_at_both(cell, apis):
    names = await accounts(apis[0], 12)
    known = await places(apis[0], names)
    at_home = {home: name for name, home in known.items()}
    one, other = cell.name(0), cell.name(1)
    assert {one, other} <= set(at_home)
    alice = await Raw.logged_in(cell.nodes[0], at_home[one])
    bob = await Raw.logged_in(cell.nodes[1], at_home[other])
    before = (await nodes(apis[1]))[one]
    for n in range(100):
        alice.send(f"<message to='{bob.jid}' type='chat'><body>{n} {'x' * 1000}</body></message>")
    await bob.until(lambda e: e.tag == CLIENT + "message" and (e.findtext(CLIENT + "body") or "").startswith("99 "))
    after = (await nodes(apis[1]))[one]
    assert after["taken"] - before["taken"] >= 100
    assert after["taken_bytes"] - before["taken_bytes"] > 100_000
    posted = (await nodes(apis[0]))[other]
    assert posted["posted"] >= after["taken"]
    assert after["gaps"] == 0
    assert await apis[1].figure(f'cell_taken_records_total{{node="{one}"}}') >= after["taken"]
    await apis[0].figure_is("cell_unsettled", lambda seen: seen == 0)
    await alice.close()
    await bob.close()


async def test_commands_say_how_it_is(cell, apis):
    one, two = cell.nodes[0], cell.name(1)
    status = await one.command("cluster", "status", "--json")
    assert status.returncode == 0, status.stderr
    seen = json.loads(status.stdout)
    assert (seen["well"], seen["problems"], seen["node"]) == (True, [], cell.name(0))
    listed = await one.command("cluster", "nodes")
    lines = listed.stdout.splitlines()
    assert lines[0].startswith("NODE")
    assert len(lines) == 1 + NODES
    assert any(line.split()[0] == two and " alive " in line for line in lines)
    name = (await accounts(apis[0], 1))[0]
    where = await one.command("cluster", "where", f"{name}@localhost")
    assert where.returncode == 0, where.stderr
    assert "account" in where.stdout
    assert (await one.command("cluster", "where", "nobody@elsewhere.example")).returncode == 1
    stranger = Api(one, key="")
    await stranger.problem(401, "missing-key", "GET", "/v1/cluster")
    await stranger.aclose()


async def test_a_module_is_tried_on_one_node(cell, apis, tmp_path):
    """Whose account is at home there has it; the others do not, and it is seen where it decides."""
    file = tmp_path / "canary.wasm"
    file.write_bytes(DROP)
    one, there = cell.nodes[0], cell.name(1)
    version = (await one.command("module", "push", str(file))).stdout.strip()
    unknown = await one.command("module", "activate", version, "--node", "nobody")
    assert unknown.returncode == 1
    assert "no node `nobody`" in unknown.stderr
    done = await one.command("module", "activate", version, "--node", there)
    assert done.returncode == 0, done.stderr
    assert f"for all on {there}" in done.stdout
    names = await accounts(apis[0], NODES)
    peers = [await Peer.connect(node, f"{name}@localhost") for node, name in zip(cell.nodes, names, strict=True)]
    homes = await places(apis[0], names)
    dropped = [peer for peer, name in zip(peers, names, strict=True) if homes[name] == there]
    assert len(dropped) == 1
    for peer in peers:
        peer.chat(peers[0].bare, f"from {peer.bare}")
        await peer.ping()
    for peer in peers:
        if peer not in dropped:
            await peers[0].messages.take(lambda m, peer=peer: m.findtext(CLIENT + "body") == f"from {peer.bare}", "it")
    path = "/v1/admin/modules/canary"
    seen = await apis[1].eventually(path, lambda module: (module["figures"] or {}).get("verdicts") == {"drop": 1})
    assert (seen["activation"]["node"], seen["figures"]["standing"]) == (there, "active")
    for api in (apis[0], apis[2]):
        assert (await api.ok("GET", path))["figures"] is None
    assert not peers[0].messages.left(lambda m: m.findtext(CLIENT + "body"))
    assert f"all on {there}" in (await one.command("module", "status")).stdout
    # What is good enough for one is activated for all.
    done = await one.command("module", "activate", version)
    assert done.returncode == 0, done.stderr
    for api, peer in zip(apis, peers, strict=True):
        peer.chat(peers[0].bare, "to nobody")
        await api.eventually(path, lambda module: ((module["figures"] or {}).get("verdicts") or {}).get("drop", 0) >= 1)
    assert (await one.command("module", "deactivate", "canary", "--yes")).returncode == 0
    for peer in peers:
        await peer.close()


async def test_an_engine_that_is_away_is_said(cell, apis):
    cell.nats.stop()
    async with deadline("the bus that is away"):
        while "the bus of the cell is away" not in (ready := await apis[0].call("GET", "/readyz")).text:
            pass
    # Nobody else could serve in its place.
    assert ready.status_code == 200
    status = await cell.nodes[0].command("cluster", "status")
    assert status.returncode == 1
    assert "the bus of this node is away" in status.stderr
    assert await apis[0].figure("cell_bus_connected") == 0
    cell.nats.start()
    for api in apis:
        await api.figure_is("cell_bus_connected", lambda seen: seen == 1)


async def test_a_node_that_cannot_read_while_others_can_is_fenced_and_says_so(cell, apis):
    cell.cut_off(2)
    async with deadline("the fence"):
        while "fenced" not in (ready := await apis[2].call("GET", "/readyz")).text:
            pass
    assert ready.status_code == 503
    assert "cannot read the store, and others can" in ready.text
    assert await apis[2].figure("cell_fenced") == 1
    seen = await apis[2].ok("GET", "/v1/cluster")
    assert (seen["fenced"], seen["well"]) == (True, False)
    await apis[2].problem(503, "unavailable", "POST", f"/v1/cluster/nodes/{cell.name(1)}/evict", {"reason": "x"})
    cell.reconnect(2)
    await apis[2].eventually("/v1/cluster", lambda seen: seen["well"])
    assert (await apis[2].call("GET", "/readyz")).status_code == 200


async def test_a_node_is_drained_by_another_and_comes_back(cell, apis):
    names = await accounts(apis[0], 9)
    gone = cell.name(2)
    known = await places(apis[0], names)
    assert gone in known.values()
    raws = [await Raw.logged_in(cell.nodes[2], name) for name in names]
    drained = await cell.nodes[0].command("cluster", "drain", gone, "--over", "1s")
    assert drained.returncode == 0, drained.stderr
    assert drained.stdout.splitlines()[-1].startswith("drained: none of")
    for raw in raws:
        await over(raw)
        await raw.close()
    for api in apis:
        seen = await become(api, gone, lambda node: node["state"] == "leaving" and node["partitions"] == 0)
        assert (seen["report"]["ready"], seen["report"]["drain"]["state"]) == (False, "drained")
        assert gone not in (await places(api, names)).values()
    assert (await apis[2].call("GET", "/readyz")).status_code == 503
    # All are served by the others meanwhile, and a node that comes back does not take part in it.
    again = [await Raw.logged_in(cell.nodes[n % 2], name) for n, name in enumerate(names)]
    for n, raw in enumerate(again):
        other = again[(n + 1) % len(again)]
        raw.send(f"<message to='{other.jid}' type='chat'><body>hello {n}</body></message>")
        await other.until(lambda e, body=f"hello {n}": e.findtext(CLIENT + "body") == body)
    moved = await apis[2].figure('cell_partitions_moved_total{way="went"}')
    assert moved > PARTITIONS // 10
    cancelled = await cell.nodes[1].command("cluster", "drain", gone, "--cancel")
    assert cancelled.returncode == 0, cancelled.stderr
    for api in apis:
        await become(api, gone, lambda node: node["state"] == "alive" and node["partitions"] > 0)
        # A node that comes back takes nobody's session away: an account is at home where its client is.
        assert await places(api, names) == {name: cell.name(n % 2) for n, name in enumerate(names)}
    assert await apis[2].figure('cell_partitions_moved_total{way="came"}') == moved
    for raw in again:
        await raw.close()


async def test_a_node_that_lives_is_not_buried_unless_it_is_wanted(cell, apis):
    name, number = cell.name(2), (await nodes(apis[0]))[cell.name(2)]["number"]
    path = f"/v1/cluster/nodes/{name}/evict"
    await apis[0].problem(409, "node-alive", "POST", path, {"reason": "a test"})
    await apis[2].problem(409, "node-alive", "POST", path, {"reason": "a test", "force": True})
    problem = await apis[0].problem(422, "invalid-value", "POST", path, {"reason": ""})
    assert problem["pointer"] == "/reason"
    refused = await cell.nodes[0].command("cluster", "evict", name, "--reason", "a test", "--yes")
    assert refused.returncode == 1
    assert "with `force`" in refused.stderr
    done = await cell.nodes[0].command("cluster", "evict", name, "--reason", "worn out", "--force", "--yes")
    assert (done.returncode, done.stdout) == (0, f"{name} is buried\n"), done.stderr
    # It reads that it is dead, and ends, to be started again.
    assert await asyncio.to_thread(cell.nodes[2].process.wait, 30) == 1
    log = cell.nodes[0].log.read_text()
    assert "worn out" in log
    assert name in log
    for api in apis[:2]:
        await become(api, name, lambda node: node["state"] == "dead" and node["partitions"] == 0)
    again = await apis[1].ok("POST", path, {"reason": "once more"})
    assert (again["buried"], again["number"]) == (False, number)
    await apis[0].problem(404, "unknown-node", "PUT", f"/v1/cluster/nodes/{name}/drain", {"over_ms": 0})
    cell.nodes[2] = cell.start(2)
    seen = await become(apis[0], name, lambda node: node["state"] == "alive" and node["partitions"] > 0)
    assert seen["number"] > number


async def test_a_silent_node_is_buried_at_once(cell, apis):
    name = cell.name(2)
    cell.nodes[2].process.send_signal(signal.SIGSTOP)
    try:
        seen = await become(apis[0], name, lambda node: node["state"] == "silent")
        assert seen["report"] is None
        status = await cell.nodes[0].command("cluster", "status")
        assert status.returncode == 1
        assert f"{name} was not heard for" in status.stderr
        evicted = await apis[0].ok("POST", f"/v1/cluster/nodes/{name}/evict", {"reason": "it hangs"})
        assert evicted["buried"]
        seen = await become(apis[0], name, lambda node: node["state"] == "dead")
        # The others would have waited for nine seconds.
        assert seen["beat_age_ms"] is None or seen["beat_age_ms"] < 9000
        assert seen["partitions"] == 0
    finally:
        cell.nodes[2].process.send_signal(signal.SIGCONT)
    assert await asyncio.to_thread(cell.nodes[2].process.wait, 30) == 1
    cell.nodes[2] = cell.start(2)
    await become(apis[0], name, lambda node: node["state"] == "alive")
