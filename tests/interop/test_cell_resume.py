"""Three nodes that write their sessions down in Redis: when one is killed, its clients resume their sessions at the others."""

import asyncio
import contextlib
import signal

import pytest

from harness.api import Api
from harness.cell import Cell
from harness.inbox import deadline
from harness.peer import CLIENT
from harness.redis import Redis
from harness.resuming import Resuming, come_to_an_end
from harness.server import unique

NODES = 3


@pytest.fixture(scope="module")
def redis():
    redis = Redis()
    yield redis
    redis.end()


@pytest.fixture(scope="module")
def cell(tmp_path_factory, redis):
    cell = Cell(tmp_path_factory.mktemp("cell"), NODES, cell__redis=redis.url)
    yield cell
    cell.end()


@pytest.fixture
async def clients(cell):
    """Clients, each at home at the node with this number."""
    for number, node in enumerate(cell.nodes):
        if not node.is_running():
            cell.nodes[number] = cell.start(number)
    async with contextlib.AsyncExitStack() as stack:
        apis = [Api(node) for node in cell.nodes]
        for api in apis:
            stack.push_async_callback(api.aclose)

        async def connect(*homes):
            names = [unique("user") for _ in homes]
            for name in names:
                await apis[0].account(f"{name}@localhost")
            all = []
            for name, home in zip(names, homes, strict=True):
                all.append(await Resuming(cell, name).begin(cell.nodes[home]))
                stack.push_async_callback(all[-1].end)
            return all

        connect.apis = apis
        yield connect


async def kill(node):
    node.process.send_signal(signal.SIGKILL)
    await asyncio.to_thread(node.process.wait)


async def are_back(clients, within=30):
    """Waits until those that were away are connected again."""
    async with asyncio.timeout(within):
        for client in clients:
            await client.returned.wait()
            await client.connected.wait()


async def test_sessions_go_on_at_other_nodes(cell, clients):
    alice, bob, carol = await clients(2, 2, 0)
    for client in (alice, bob, carol):
        await client.is_acknowledged()
    carol.chat(bob.jid, "before")
    await bob.hears("before")
    await carol.is_acknowledged()
    await kill(cell.nodes[2])
    await are_back([alice, bob])
    assert [(client.resumed, client.failed) for client in (alice, bob)] == [(1, 0)] * 2
    # In both directions, and with those who noticed nothing.
    alice.chat(bob.jid, "one")
    bob.chat(carol.jid, "two")
    carol.chat(alice.jid, "three")
    for client, body in ((bob, "one"), (carol, "two"), (alice, "three")):
        await client.hears(body)
    for client in (alice, bob, carol):
        await client.is_acknowledged()
        assert not client.wrong
        assert not client.refused
    assert bob.heard == ["before", "one"]


async def test_what_was_not_acknowledged_is_sent_again_and_nothing_else(cell, clients):
    (bob, carol) = await clients(1, 0)
    sent = await clients.apis[0].notify(f"{bob.name}@localhost", {"n": 1})
    await bob.hears(sent["id"])
    # From now on it acknowledges nothing, and hears only half of what it is sent.
    sent_to_him = asyncio.Queue()
    taken, bob._take = bob._take, sent_to_him.put_nowait
    carol.chat(bob.jid, "one")
    later = await clients.apis[0].notify(f"{bob.name}@localhost", {"n": 2})
    async with deadline("both"):
        messages = 0
        while messages < 2:
            messages += (await sent_to_him.get()).tag == CLIENT + "message"
    bob._take = taken
    await kill(cell.nodes[1])
    await are_back([bob])
    assert (bob.resumed, bob.failed) == (1, 0)
    await bob.hears("one")
    await bob.hears(later["id"])
    await clients.apis[0].eventually(f"/v1/notifications/{later['id']}", lambda seen: seen["state"] == "acknowledged")
    await bob.is_acknowledged()
    # What would come twice comes before this.
    carol.chat(bob.jid, "last")
    await bob.hears("last")
    assert bob.heard.count("one") == bob.heard.count(later["id"]) == bob.heard.count(sent["id"]) == 1
    assert not bob.wrong


async def test_items_that_are_published_before_a_session_is_adopted_are_given_to_it(cell, clients):
    (bob,) = await clients(1)
    api, topics = clients.apis[0], [unique("topic") for _ in range(6)]
    for topic in topics:
        await api.ok("PUT", f"/v1/topics/{topic}", {"max_items": 100}, status=201)
        await api.ok("PUT", f"/v1/devices/{bob.name}/subscriptions/{topic}")

    async def publish(topic, *numbers):
        """Whether it could: a node that has just died may have been the topic's home."""
        items = ({"id": f"{topic}-{n}", "payload": {"n": n}} for n in numbers)
        answers = [await api.call("POST", f"/v1/topics/{topic}/items", item) for item in items]
        return all(answer.is_success for answer in answers)

    for topic in topics:
        assert await publish(topic, 1, 2)
        await bob.hears(f"{topic}-2")
    await bob.is_acknowledged()
    await kill(cell.nodes[1])
    # Nobody has its sessions yet.
    elsewhere = [topic for topic in topics if await publish(topic, 3)]
    assert elsewhere, "one node was the home of all topics"
    for topic in elsewhere:
        assert await publish(topic, 4, 5)
    await are_back([bob])
    assert (bob.resumed, bob.failed) == (1, 0)
    for topic in elsewhere:
        assert await publish(topic, 6, 7)
        await bob.hears(f"{topic}-7")
        items = [item for item in bob.heard if item.startswith(f"{topic}-")]
        assert items == [f"{topic}-{n}" for n in range(1, 8)]
    assert not bob.wrong


async def load(clients, ends):
    """Each client writes to the next, until it is told to end; what was written, by recipient."""
    written = {client.name: [] for client in clients}
    count = 0
    while not ends.is_set():
        for n, client in enumerate(clients):
            other = clients[(n + 1) % len(clients)]
            if client.connected.is_set():
                body = f"{client.name}-{count}"
                client.chat(other.jid, body)
                written[other.name].append((client, body))
        count += 1
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ends.wait(), 0.01)
    return written


async def test_sessions_of_a_node_that_is_killed_while_it_is_drained_go_on(cell, clients):
    """Those that were told to go elsewhere have; the others are as those of any node that dies."""
    all = await clients(*[2] * 8, 0)
    *theirs, carol = all
    for client in all:
        await client.is_acknowledged()
    name, api = cell.name(2), clients.apis[0]
    await api.ok("PUT", f"/v1/cluster/nodes/{name}/drain", {"over_ms": 600_000})

    def leaves(seen):
        return [node["state"] for node in seen["nodes"] if node["node"] == name] == ["leaving"]

    for other in clients.apis[:2]:
        await other.eventually("/v1/cluster/nodes", leaves)
    stay = [client for client in theirs if client.connected.is_set()]
    assert len(stay) > len(theirs) // 2, "they were to be drained over ten minutes"
    for n, client in enumerate(stay):
        carol.chat(client.jid, f"before {n}")
        await client.hears(f"before {n}")
    await carol.is_acknowledged()
    await kill(cell.nodes[2])
    await are_back(stay)
    assert [(client.resumed, client.failed) for client in stay] == [(1, 0)] * len(stay)
    for n, client in enumerate(stay):
        carol.chat(client.jid, f"after {n}")
        await client.hears(f"after {n}")
        assert client.heard == [f"before {n}", f"after {n}"]
        assert not client.wrong


@pytest.mark.parametrize("way", ["drained", "ended"])
async def test_sessions_of_a_node_that_is_emptied_under_load_go_on_at_the_others(cell, clients, way):
    """Drained at a pace, or ended in order: nothing is lost, nothing comes twice, and whoever can resumes."""
    all = await clients(*[n // 4 % NODES for n in range(24)])
    for client in all:
        await client.is_acknowledged()
    ends = asyncio.Event()
    loading = asyncio.create_task(load(all, ends))
    await asyncio.gather(*[client.hears_more(50) for client in all])
    theirs = [client for n, client in enumerate(all) if n // 4 % NODES == 2]
    name, api = cell.name(2), clients.apis[0]
    if way == "drained":
        drained = await cell.nodes[0].command("cluster", "drain", name, "--rate", "20", "--to", "localhost")
        assert drained.returncode == 0, drained.stderr
    else:
        await asyncio.to_thread(cell.nodes[2].end)
    await are_back(theirs)
    await asyncio.gather(*[client.hears_more(50) for client in all])
    ends.set()
    written = await loading
    await come_to_an_end(all)
    assert [(client.resumed, client.failed) for client in theirs] == [(1, 0)] * len(theirs)
    print(way, sorted(client.away[0] for client in theirs), sum(map(len, written.values())), "written")
    for client in all:
        heard = client.heard[:-1]
        assert len(set(heard)) == len(heard), "nothing comes twice"
        assert set(heard) == {body for _, body in written[client.name]}, "nothing is lost"
        assert not client.wrong
        # What is on its way to a process that ends is told to its sender as not known, and may have arrived.
        assert not client.refused or way == "ended"
    if way == "drained":
        where = await api.ok("GET", f"/v1/cluster/where/{theirs[0].name}@localhost")
        assert where["home"] != name
        await api.call("DELETE", f"/v1/cluster/nodes/{name}/drain")


@pytest.mark.parametrize("round", range(3))
async def test_under_load_nothing_is_lost_and_nothing_comes_twice(cell, clients, round):
    gone = (round + 1) % NODES
    # Neighbours are on one node, or on two.
    all = await clients(*[n // 4 % NODES for n in range(24)])
    for client in all:
        await client.is_acknowledged()
    ends = asyncio.Event()
    loading = asyncio.create_task(load(all, ends))
    await asyncio.gather(*[client.hears_more(100) for client in all])
    await kill(cell.nodes[gone])
    theirs = [client for n, client in enumerate(all) if n // 4 % NODES == gone]
    await are_back(theirs)
    await asyncio.gather(*[client.hears_more(100) for client in all])
    ends.set()
    written = await loading
    await come_to_an_end(all)
    lost, doubled = [], []
    for client in all:
        heard = set(client.heard)
        # One that came back as an error may have arrived.
        lost += [body for sender, body in written[client.name] if body not in heard and body not in sender.refused]
        doubled += [body for body in heard if client.heard.count(body) > 1]
    assert not [wrong for client in all for wrong in client.wrong]
    assert [(client.resumed, client.failed) for client in theirs] == [(1, 0)] * len(theirs)
    print(sorted(client.away[0] for client in theirs), sum(map(len, written.values())), "written")
    assert (lost, doubled) == ([], [])


async def test_while_redis_is_away_sessions_are_served_and_end_with_their_node(cell, clients, redis):
    alice, bob = await clients(2, 0)
    redis.stop()
    bob.chat(alice.jid, "while it is away")
    await alice.hears("while it is away")
    await alice.is_acknowledged()
    await kill(cell.nodes[2])
    await are_back([alice])
    assert (alice.resumed, alice.failed) == (0, 1)
    redis.start()
    bob.chat(alice.jid, "again")
    await alice.hears("again")


async def test_what_redis_lost_is_written_anew_when_it_is_back(cell, clients, redis):
    (alice, bob) = await clients(1, 0)
    await alice.is_acknowledged()
    redis.stop()
    bob.chat(alice.jid, "while it is away")
    await alice.hears("while it is away")
    log = cell.nodes[1].log
    said = len(log.read_text())
    redis.start()
    # A node tries to reach it twice per second, and tells the others when all is written: before what it gives them then.
    async with deadline("all sessions are written down"):
        while "all sessions are written down" not in log.read_text()[said:]:
            await clients.apis[1].figure("cell_session_log_sessions_total")
    bob.chat(alice.jid, "it is back")
    await alice.hears("it is back")
    alice.chat(bob.jid, "it is")
    await bob.hears("it is")
    await kill(cell.nodes[1])
    await are_back([alice])
    assert (alice.resumed, alice.failed) == (1, 0)
    bob.chat(alice.jid, "after")
    await alice.hears("after")
    assert alice.heard == ["while it is away", "it is back", "after"]
    assert not alice.wrong


async def test_a_client_that_handled_more_than_was_written_down_begins_anew(cell, clients):
    alice, bob = await clients(2, 0)
    bob.chat(alice.jid, "before")
    await alice.hears("before")
    await alice.is_acknowledged()
    # As if Redis had lost what was written last.
    alice.handled += 5
    await kill(cell.nodes[2])
    await are_back([alice])
    assert (alice.resumed, alice.failed) == (0, 1)
    bob.chat(alice.jid, "after")
    await alice.hears("after")
    # What it had not acknowledged is given again, as where a session ends.
    assert alice.heard in (["before", "after"], ["before", "before", "after"])
    assert not alice.wrong


async def test_a_session_that_is_over_is_not_waited_for(cell, clients):
    (alice,) = await clients(0)
    alice.key = f"{int(alice.key, 16) ^ 1:016x}"
    alice.cut()
    await are_back([alice], within=2)
    assert alice.failed == 1
