"""A live upgrade of nodes of a cell: each goes on in another process, as the same node, and neither clients nor the other nodes notice."""

import asyncio
import contextlib
import json

import pytest

from harness import look
from harness.api import Api
from harness.cell import Cell
from harness.inbox import deadline
from harness.peer import CLIENT
from harness.postgres import name_of
from harness.raw import Raw
from harness.redis import Redis
from harness.resuming import Resuming, come_to_an_end
from harness.server import Server, unique
from harness.upgrade import Upgradable

NODES = 3
INSTANT = "<query xmlns='http://jabber.org/protocol/muc#owner'><x xmlns='jabber:x:data' type='submit'/></query>"


class UpgradableCell(Cell):
    """A cell whose nodes have a binary of their own each, in whose place another can be put."""

    KIND = Upgradable


@pytest.fixture(scope="module")
def redis():
    redis = Redis()
    yield redis
    redis.end()


@pytest.fixture(scope="module")
def cell(tmp_path_factory, redis):
    cell = UpgradableCell(tmp_path_factory.mktemp("cell"), NODES, cell__redis=redis.url)
    yield cell
    cell.end()


@pytest.fixture
async def apis(cell):
    async with contextlib.AsyncExitStack() as stack:
        apis = [Api(node) for node in cell.nodes]
        for api in apis:
            stack.push_async_callback(api.aclose)
            await api.eventually("/v1/cluster", lambda seen: seen["well"] and seen["nodes"]["alive"] == NODES)
        yield apis


@pytest.fixture
async def connect(cell, apis):
    """Clients, each at home at the node with this number."""
    async with contextlib.AsyncExitStack() as stack:

        async def connect(*homes):
            names = [unique("user") for _ in homes]
            for name in names:
                await apis[0].account(f"{name}@localhost")
            all = []
            for name, home in zip(names, homes, strict=True):
                all.append(await Resuming(cell, name).begin(cell.nodes[home]))
                stack.push_async_callback(all[-1].end)
            for client in all:
                await client.is_acknowledged()
            return all

        yield connect


async def numbers(api):
    """The numbers of the nodes by their names, and how many partitions each keeps."""
    seen = await api.ok("GET", "/v1/cluster/nodes")
    return {node["node"]: (node["number"], node["partitions"]) for node in seen["nodes"]}


async def is_whole(apis):
    """Waits until every node has its share again, as every node sees it."""
    for api in apis:
        await api.eventually("/v1/cluster", lambda seen: seen["well"] and seen["nodes"]["alive"] == NODES)
    async with deadline("all nodes see the same homes"):
        while True:
            seen = [await numbers(api) for api in apis]
            if seen[0] == seen[1] == seen[2] and all(partitions > 0 for _, partitions in seen[0].values()):
                return seen[0]
            await look.again()


async def test_a_node_goes_on_as_the_same_node(cell, apis, connect):
    before = await is_whole(apis)
    alice, bob, carol = await connect(0, 1, 2)
    for n, node in enumerate(cell.nodes):
        await node.upgrade()
        for one, other in ((alice, bob), (bob, carol), (carol, alice)):
            one.chat(other.jid, f"{one.name} {n}")
            await other.hears(f"{one.name} {n}")
    assert await is_whole(apis) == before, "nobody was buried, and nobody is new"
    for client, other in ((alice, carol), (bob, alice), (carol, bob)):
        await client.is_acknowledged()
        assert client.heard == [f"{other.name} {n}" for n in range(NODES)]
        assert (client.away, client.wrong) == ([], [])


async def test_connections_whose_sessions_are_on_other_nodes_go_on(cell, apis):
    """The first session of an account is on node 0, and its second comes to node 1, which carries it there."""
    name, other = unique("user"), unique("user")
    for account in (name, other):
        await apis[0].account(f"{account}@localhost")
    first = await Raw.logged_in(cell.nodes[0], name, resource="first")
    far = await Raw.logged_in(cell.nodes[1], name, resource="far")
    bob = await Raw.logged_in(cell.nodes[2], other)
    await apis[1].figure_is('cell_connections{side="relayed"}', lambda seen: seen == 1)
    for n in (0, 1, 0, 1, 2):
        # Half a stanza stays on the way.
        stanza = f"<message to='{bob.jid}' type='chat'><body>{n} from afar</body></message>"
        far.send(stanza[:30])
        await first.ping()
        await cell.nodes[n].upgrade()
        far.send(stanza[30:])
        await bob.until(lambda e, body=f"{n} from afar": e.findtext(CLIENT + "body") == body)
        bob.send(f"<message to='{far.jid}' type='chat'><body>{n} to afar</body></message>")
        await far.until(lambda e, body=f"{n} to afar": e.findtext(CLIENT + "body") == body)
        await apis[1].figure_is('cell_connections{side="relayed"}', lambda seen: seen == 1)
        await apis[0].figure_is('cell_connections{side="carried"}', lambda seen: seen == 1)
    await far.close()
    await apis[0].figure_is('cell_connections{side="carried"}', lambda seen: seen == 0)
    await first.close()
    await bob.close()


async def test_rooms_and_topics_of_all_nodes_go_on(cell, apis, connect):
    clients = await connect(0, 1, 2)
    rooms = [f"{unique('room')}@rooms.localhost" for _ in range(6)]
    topics = [unique("topic") for _ in range(6)]
    for n, client in enumerate(clients):
        for room in rooms:
            client.say(f"<presence to='{room}/{client.name}'><x xmlns='http://jabber.org/protocol/muc'/></presence>")
            if n == 0:
                client.say(f"<iq type='set' id='{room}' to='{room}'>{INSTANT}</iq>")
            client.say(
                f"<message to='{room}' type='groupchat' id='{room}'><body>{client.name} in {room}</body></message>"
            )
            await client.hears(f"{client.name} in {room}")
    for topic in topics:
        await apis[0].ok("PUT", f"/v1/topics/{topic}", {"max_items": 100}, status=201)
        for client in clients:
            await apis[0].ok("PUT", f"/v1/devices/{client.name}/subscriptions/{topic}", status=201)
    count = 0
    for node in cell.nodes:
        await node.upgrade()
        await is_whole(apis)
        for n, topic in enumerate(topics):
            item = {"id": f"{topic}-{count}", "payload": {"n": count}}
            await apis[n % NODES].ok("POST", f"/v1/topics/{topic}/items", item, status=202)
        for n, room in enumerate(rooms):
            body = f"{room} {count}"
            clients[n % NODES].say(f"<message to='{room}' type='groupchat' id='{body}'><body>{body}</body></message>")
        for client in clients:
            for name in [f"{topic}-{count}" for topic in topics] + [f"{room} {count}" for room in rooms]:
                await client.hears(name)
        count += 1
    for client in clients:
        for topic in topics:
            items = [heard for heard in client.heard if heard.startswith(f"{topic}-")]
            assert items == [f"{topic}-{n}" for n in range(count)]
        for room in rooms:
            said = [heard for heard in client.heard if heard.startswith(f"{room} ")]
            assert said == [f"{room} {n}" for n in range(count)]
        assert (client.away, client.wrong, client.refused) == ([], [], set())


async def load(clients, ends):
    """Each client writes to the next, until it is told to end; what was written, by recipient."""
    written = {client.name: [] for client in clients}
    count = 0
    while not ends.is_set():
        for n, client in enumerate(clients):
            other = clients[(n + 1) % len(clients)]
            body = f"{client.name}-{count}"
            client.chat(other.jid, body)
            written[other.name].append(body)
        count += 1
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ends.wait(), 0.02)
    return written


async def test_under_load_nothing_is_lost_and_nothing_comes_twice(cell, apis, connect):
    before = await is_whole(apis)
    # Neighbours are on one node, or on two.
    all = await connect(*[n // 4 % NODES for n in range(24)])
    ends = asyncio.Event()
    loading = asyncio.create_task(load(all, ends))
    await asyncio.gather(*[client.hears_more(50) for client in all])
    silences = []
    for _ in range(2):
        for node in cell.nodes:
            done = await node.command("upgrade", "--json")
            assert done.returncode == 0, done.stderr
            silences.append(json.loads(done.stdout.splitlines()[-1])["done"]["silence_ms"])
            await asyncio.to_thread(node.adopt, node.process)
            await asyncio.gather(*[client.hears_more(50) for client in all])
    ends.set()
    written = await loading
    await come_to_an_end(all)
    print("silences", silences, "written", sum(map(len, written.values())))
    for client in all:
        heard = client.heard[:-1]
        lost, doubled = set(written[client.name]) - set(heard), len(heard) - len(set(heard))
        assert (lost, doubled) == (set(), 0)
        assert (client.away, client.wrong, client.refused) == ([], [], set())
    assert await is_whole(apis) == before


async def test_two_versions_side_by_side_in_both_directions_under_load(cell, apis, connect):
    """Node by node to a process that speaks the version of the form of the release before, and back."""
    before = await is_whole(apis)
    all = await connect(*[n // 2 % NODES for n in range(12)])
    ends = asyncio.Event()
    loading = asyncio.create_task(load(all, ends))
    for settings in ({"cell__form_max": 4}, {}):
        for node in cell.nodes:
            if settings:
                node.add_settings(**settings)
            else:
                node.restore_binary()
            # The script ran a binary of another path, which the node would take.
            done = await node.command("upgrade", "--binary", str(node.binary))
            assert done.returncode == 0, done.stderr
            await asyncio.to_thread(node.adopt, node.process)
            await asyncio.gather(*[client.hears_more(20) for client in all])
    ends.set()
    written = await loading
    for n, client in enumerate(all):
        await client.is_acknowledged()
        client.chat(all[(n + 1) % len(all)].jid, f"last of {client.name}")
    for n, client in enumerate(all):
        await client.hears(f"last of {all[n - 1].name}")
        heard = client.heard[:-1]
        assert (set(written[client.name]) - set(heard), len(heard) - len(set(heard))) == (set(), 0)
        assert (client.away, client.wrong, client.refused) == ([], [], set())
    assert await is_whole(apis) == before


async def test_sessions_that_went_on_are_written_down_again(cell, apis, connect, redis):
    """A node that is killed after its upgrade: its clients resume their sessions at the others."""
    alice, bob = await connect(2, 0)
    log = cell.nodes[2].log
    said = len(log.read_text())
    await cell.nodes[2].upgrade()
    async with deadline("all sessions are written down"):
        while "all sessions are written down" not in log.read_text()[said:]:
            await apis[2].figure("cell_session_log_sessions_total")
    bob.chat(alice.jid, "after it")
    await alice.hears("after it")
    cell.nodes[2].process.kill()
    await asyncio.to_thread(cell.nodes[2].process.wait)
    async with asyncio.timeout(30):
        await alice.returned.wait()
        await alice.connected.wait()
    assert (alice.resumed, alice.failed) == (1, 0)
    bob.chat(alice.jid, "at another")
    await alice.hears("at another")
    assert alice.heard == ["after it", "at another"]
    cell.nodes[2] = cell.start(2)
    await is_whole([*apis[:2], Api(cell.nodes[2])])


async def test_a_process_that_fails_changes_nothing(cell, apis, connect):
    before = await is_whole(apis)
    alice, bob = await connect(0, 1)
    node = cell.nodes[0]
    for mode in (
        "refuses",
        "ends when it is ready to take over",
        "ends among the sessions",
        "cannot read the sessions",
    ):
        node.replace_binary(mode)
        await node.fails_to_upgrade()
        alice.chat(bob.jid, mode)
        await bob.hears(mode)
        bob.chat(alice.jid, mode)
        await alice.hears(mode)
    node.restore_binary()
    assert await is_whole(apis) == before
    for client in (alice, bob):
        await client.is_acknowledged()
        assert (client.away, client.wrong) == ([], [])
    await node.upgrade()
    alice.chat(bob.jid, "after it")
    await bob.hears("after it")
    assert bob.heard.count("after it") == 1


async def test_what_cannot_go_on_as_the_same_node_is_refused(cell, apis):
    """A process with other shards, or under another name, would be another node to the others; an earlier release makes itself one."""
    before = await is_whole(apis)
    node = cell.nodes[1]
    for settings, why in (({"shards": 3}, "2 shards"), ({"node__name": "other"}, "node1")):
        node.add_settings(**settings)
        assert why in await node.fails_to_upgrade()
    node.replace_binary("knows no cells")
    assert "no live upgrade of a node of a cell" in await node.fails_to_upgrade()
    node.restore_binary()
    assert await is_whole(apis) == before


async def test_a_node_that_does_not_fit_does_not_join_and_says_why(tmp_path, cell, apis):
    def refused(**settings):
        folder = tmp_path / unique("node")
        folder.mkdir()
        shared = {
            "store__url": cell.url,
            "node__name": "stranger",
            "cell__nats": cell.nats.url,
            "cell__secret_file": cell.secret,
            **cell.settings,
        }
        with pytest.raises(AssertionError) as error:
            Server(folder, **{**shared, **settings})
        return str(error.value)

    before = await is_whole(apis)
    secret = tmp_path / "secret"
    secret.write_bytes(b"x" * 32)
    assert "cell.secret_file is not as the node node0 has it" in refused(cell__secret_file=secret)
    assert "cell.prefix is not as the node node0 has it" in refused(cell__prefix="other")
    assert "cell.redis is not as the node node0 has it" in refused(cell__redis="")
    database = name_of(cell.url)
    try:
        other = "UPDATE node SET form_oldest = 98, form_newest = 99, release = '9.9' WHERE name = 'node1'"
        cell.postgres.sql(other, database)
        assert "the node node1 of release 9.9 speaks the versions 98 to 99" in refused()
        # A process that would go on with a node is refused before anybody waits for it.
        assert "speaks the versions 98 to 99" in await cell.nodes[0].fails_to_upgrade()
    finally:
        await cell.nodes[1].upgrade()
    assert await is_whole(apis) == before
