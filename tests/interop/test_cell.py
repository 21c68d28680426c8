"""Three nodes over one PostgreSQL and one NATS: whichever a client, a device or a sender comes to, they serve as one."""

import asyncio
import contextlib
import json
import signal

import httpx
import pytest

from harness.api import Api
from harness.cell import Cell
from harness.peer import CLIENT
from harness.raw import Raw
from harness.server import unique

NODES = 3
# A node that is silent is buried after nine seconds.
BURIED_S = 30
HOST = "go.example.com"
ITEM = "{http://jabber.org/protocol/pubsub#event}item"


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    cell = Cell(tmp_path_factory.mktemp("cell"), NODES, links__hosts=f"{HOST}=localhost")
    yield cell
    cell.end()


@pytest.fixture
async def clients(cell):
    """Connects accounts, each to the next node."""
    async with contextlib.AsyncExitStack() as stack:
        apis = [Api(node) for node in cell.nodes]
        for api in apis:
            stack.push_async_callback(api.aclose)

        async def connect(count, presence=True):
            names = [unique("user") for _ in range(count)]
            for n, name in enumerate(names):
                await apis[n % NODES].account(f"{name}@localhost")
            raws = []
            for n, name in enumerate(names):
                raws.append(await Raw.logged_in(cell.nodes[(n + 1) % NODES], name, presence=presence))
                raws[-1].name = name
                stack.push_async_callback(raws[-1].close)
            return raws

        connect.apis = apis
        yield connect


def chat(to, body, id="m"):
    return f"<message to='{to}' type='chat' id='{id}'><body>{body}</body></message>"


async def hears(raw, body):
    return await raw.until(lambda e: e.tag == CLIENT + "message" and e.findtext(CLIENT + "body") == body)


async def test_clients_of_all_nodes_talk(clients):
    raws = await clients(9)
    for n, raw in enumerate(raws):
        other = raws[(n + 1) % len(raws)]
        raw.send(chat(other.jid, f"hello {n}"))
        heard = await hears(other, f"hello {n}")
        assert heard.get("from") == raw.jid
    # Many at once, in their order.
    one, other = raws[0], raws[4]
    for n in range(300):
        one.send(chat(other.jid, f"{n} " + "x" * 500))
    for n in range(300):
        await hears(other, f"{n} " + "x" * 500)


async def test_contacts_see_each_other_whichever_node_they_are_on(clients):
    alice, bob, carol = await clients(3)
    for one, other in ((alice, bob), (bob, carol), (carol, alice)):
        bare = other.jid.partition("/")[0]
        one.send(f"<presence to='{bare}' type='subscribe'/>")
        await other.until(lambda e: e.get("type") == "subscribe")
        other.send(f"<presence to='{one.jid.partition('/')[0]}' type='subscribed'/>")
        await one.until(lambda e, jid=other.jid: e.tag == CLIENT + "presence" and e.get("from") == jid)
    bob.send("<presence><show>away</show></presence>")
    await alice.until(lambda e: e.get("from") == bob.jid and e.findtext(CLIENT + "show") == "away")


async def test_a_notification_by_any_node_reaches_a_device_on_any(clients):
    raws = await clients(6)
    for n, raw in enumerate(raws):
        bare = raw.jid.partition("/")[0]
        for api in clients.apis:
            sent = await api.notify(bare, {"n": n})
            heard = await raw.until(lambda e: e.tag == CLIENT + "message" and e.get("from") == "push.localhost")
            assert heard.get("id") == sent["id"]
            await raw.ping()
            for other in clients.apis:
                await other.eventually(f"/v1/notifications/{sent['id']}", lambda seen: seen["state"] == "acknowledged")


async def test_a_link_is_the_same_by_any_node_and_gone_on_all_of_them(cell, clients):
    url = {"url": f"https://example.com/{unique('offer')}"}
    # At once, so that no node has asked another.
    made = await asyncio.gather(*(api.call("POST", "/v1/links", url) for api in clients.apis))
    assert sorted(answer.status_code for answer in made) == [200] * (NODES - 1) + [201]
    (code,) = {answer.json()["code"] for answer in made}

    async def followed(node):
        async with httpx.AsyncClient(base_url=node.http, headers={"host": HOST}, trust_env=False) as client:
            return (await client.get(f"/{code}")).status_code

    first, *_, last = cell.nodes
    assert await followed(first) == 308
    await clients.apis[0].ok("DELETE", f"/v1/links/{code}", status=204)
    # One that had followed it would remember it for a minute (`links/cache.rs`).
    assert [await followed(node) for node in (first, last)] == [410, 410]


async def test_a_broadcast_by_any_node_reaches_each_account_once(cell, clients):
    raws, path = await clients(6), "/v1/domains/localhost/notifications"
    await clients.apis[2].account(f"{(late := unique('late'))}@localhost")
    sent = await clients.apis[1].ok("POST", path, {"payload": {"n": 1}, "ttl": 600}, status=202)
    for raw in raws:
        heard = await raw.until(lambda e: e.tag == CLIENT + "message" and e.get("from") == "push.localhost")
        assert heard.get("id") == sent["id"]
        await raw.ping()
    for n, raw in enumerate(raws):
        device = f"{path}/{sent['id']}/devices/{raw.name}"
        await clients.apis[n % NODES].eventually(device, lambda seen: seen["state"] == "acknowledged")
    # Who comes later is given it; who has acknowledged it is not given it again by another node.
    async with contextlib.AsyncExitStack() as stack:
        for n, name in enumerate([late, *(raw.name for raw in raws)]):
            again = await Raw.logged_in(cell.nodes[n % NODES], name, resource="again")
            stack.push_async_callback(again.close)
            if name != late:
                await clients.apis[0].notify(again.jid.partition("/")[0], "next")
            heard = await again.until(lambda e: e.tag == CLIENT + "message" and e.get("from") == "push.localhost")
            assert (heard.get("id") == sent["id"]) == (name == late)
    aborted = await clients.apis[0].ok("DELETE", f"{path}/{sent['id']}")
    assert aborted["state"] == "aborted"


async def test_an_item_reaches_followers_on_all_nodes(clients):
    raws, topic = await clients(6), unique("news")
    await clients.apis[0].ok("PUT", f"/v1/topics/{topic}", {}, status=201)
    for raw in raws:
        answer = await raw.ask(
            f"<iq type='set' id='s' to='pubsub.localhost'><pubsub xmlns='http://jabber.org/protocol/pubsub'>"
            f"<subscribe node='{topic}' jid='{raw.jid.partition('/')[0]}'/></pubsub></iq>",
            "s",
        )
        assert answer.get("type") == "result"
    for n, api in enumerate(clients.apis):
        await api.ok("POST", f"/v1/topics/{topic}/items", {"id": f"i{n}", "payload": {"n": n}})
        for raw in raws:
            await raw.until(lambda e, id=f"i{n}": id in [item.get("id") for item in e.iter(ITEM)])


async def enter(room, raws):
    """The first makes the room, and the others enter it."""
    for n, raw in enumerate(raws):
        raw.send(f"<presence to='{room}/n{n}'><x xmlns='http://jabber.org/protocol/muc'/></presence>")
        await raw.until(lambda e, at=f"{room}/n{n}": e.tag == CLIENT + "presence" and e.get("from") == at)
        if n == 0:
            form = "<x xmlns='jabber:x:data' type='submit'/>"
            owner = f"<query xmlns='http://jabber.org/protocol/muc#owner'>{form}</query>"
            await raw.ask(f"<iq type='set' id='o' to='{room}'>{owner}</iq>", "o")


async def is_alive(raw):
    """Whether neither the node of its connection nor that of its session is gone."""
    with contextlib.suppress(AssertionError, OSError, TimeoutError):
        async with asyncio.timeout(5):
            await raw.ping()
            return True
    return False


async def test_a_room_has_occupants_on_all_nodes(clients):
    raws, room = await clients(6), f"{unique('room')}@rooms.localhost"
    await enter(room, raws)
    for n, raw in enumerate(raws):
        raw.send(f"<message to='{room}' type='groupchat'><body>from {n}</body></message>")
        for other in raws:
            heard = await hears(other, f"from {n}")
            assert heard.get("from") == f"{room}/n{n}"


async def test_events_of_rooms_are_told_by_every_node(clients):
    raws, room = await clients(3), f"{unique('room')}@rooms.localhost"
    await clients.apis[0].ok("PATCH", "/v1/admin/domains/localhost", {"room_events": "all"})
    for api in clients.apis:
        await api.eventually("/v1/admin/domains", lambda seen: '"room_events": "all"' in json.dumps(seen))
    async with contextlib.AsyncExitStack() as stack:
        wanted = "room_created,room_members,room_message"
        streams = [await stack.enter_async_context(api.events(type=wanted)) for api in clients.apis]
        await enter(room, raws)
        for n, raw in enumerate(raws):
            raw.send(f"<message to='{room}' type='groupchat'><body>from {n}</body></message>")
            await hears(raws[0], f"from {n}")
        told = [[await events.next() for _ in range(5)] for events in streams]
    await clients.apis[0].ok("PATCH", "/v1/admin/domains/localhost", {"room_events": "off"})
    assert [event["type"] for event in told[0]] == ["room_created", "room_members", *["room_message"] * 3]
    assert [event["message"]["nick"] for event in told[0][2:]] == ["n0", "n1", "n2"]
    assert told[1] == told[0]
    assert told[2] == told[0]


async def test_what_one_node_creates_all_know(clients):
    domain = f"{unique('d')}.example.org"
    await clients.apis[0].ok("PUT", f"/v1/admin/domains/{domain}", {}, status=201)
    for api in clients.apis:
        await api.eventually("/v1/admin/domains", lambda seen: domain in str(seen))
    raws = await clients(3)
    for api in clients.apis:
        seen = await api.ok("GET", "/v1/admin/sessions")
        assert {raw.jid for raw in raws} <= {session["jid"] for session in seen["sessions"]}
    kicked = f"/v1/admin/sessions/{raws[1].jid.partition('/')[0]}"
    await clients.apis[0].call("DELETE", kicked)
    await raws[1].stream_error("policy-violation")


async def test_the_bus_is_away_and_comes_back(cell, clients):
    raws = await clients(6)
    cell.nats.stop()
    # What needs no other node goes on: the API, and what is in the database.
    for api in clients.apis:
        await api.ok("GET", "/v1/admin/accounts")
    cell.nats.start()
    # Streams that passed the bus may have lost something, and are closed; their clients come back.
    again = [await login_somewhere(cell, raw.name) for raw in raws]
    for n, raw in enumerate(again):
        other = again[(n + 1) % len(again)]
        raw.send(chat(other.jid, f"back {n}"))
        await hears(other, f"back {n}")
    for raw in again:
        await raw.close()


async def login_somewhere(cell, name):
    """Logs in by any node that lives, as soon as the account's home does."""
    async with asyncio.timeout(BURIED_S):
        while True:
            for node in cell.nodes:
                if node.is_running():
                    with contextlib.suppress(AssertionError, OSError, TimeoutError):
                        async with asyncio.timeout(5):
                            return await Raw.logged_in(node, name)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
async def test_a_node_goes_and_its_accounts_are_served_by_the_others(cell, clients, how):
    raws = await clients(12)
    rooms = [f"{unique('room')}@rooms.localhost" for _ in range(4)]
    for room in rooms:
        await enter(room, raws)
    gone = cell.nodes[2]
    gone.process.send_signal(how)
    await asyncio.to_thread(gone.process.wait)
    # Of what is asked for while the cell finds out, it is said that it was accepted, or that nobody knows.
    accepted, answers = [], set()
    for raw in raws:
        for api in clients.apis[:2]:
            answer = await api.call("POST", "/v1/notifications", {"to": f"{raw.name}@localhost", "payload": 1})
            answers.add(answer.status_code)
            if answer.status_code == 202:
                accepted.append(answer.json()["id"])
    assert answers <= {202, 503}
    assert len(accepted) > len(raws)
    async with contextlib.AsyncExitStack() as stack:
        again = [await login_somewhere(cell, raw.name) for raw in raws]
        for one in again:
            stack.push_async_callback(one.close)
        # Whichever of an account's sessions has it.
        for id in accepted:
            await clients.apis[0].eventually(f"/v1/notifications/{id}", lambda seen: seen["state"] == "acknowledged")
        # Who is still there is in the rooms, wherever these are at home now.
        alive = [raw for raw in raws if await is_alive(raw)]
        for room in rooms:
            for n, raw in enumerate(alive):
                raw.send(f"<message to='{room}' type='groupchat'><body>still {n}</body></message>")
                for other in alive:
                    assert (await hears(other, f"still {n}")).get("type") == "groupchat"
        if how == signal.SIGKILL:
            # Not only when it had been silent for long: neither engine has a connection of it.
            logs = [node.log.read_text() for node in cell.nodes[:2]]
            assert any("its process is gone" in log for log in logs), logs
        cell.nodes[2] = cell.start(2)
        clients.apis[2] = Api(cell.nodes[2])
        stack.push_async_callback(clients.apis[2].aclose)
    for n, raw in enumerate(raws[:6]):
        one, other = await login_somewhere(cell, raw.name), await login_somewhere(cell, raws[n + 6].name)
        one.send(chat(other.jid, f"again {n}"))
        await hears(other, f"again {n}")
        await one.close()
        await other.close()


async def test_what_waits_in_a_session_of_a_node_that_ends_is_given_by_another(cell, clients):
    (alice,), gone = await clients(1), cell.nodes[2]
    await clients.apis[0].account(f"{(name := unique('away'))}@localhost")
    away = await Raw.logged_in(gone, name)
    away.send("<enable xmlns='urn:xmpp:sm:3' resume='true'/>")
    await away.until(lambda e: e.tag == "{urn:xmpp:sm:3}enabled")
    # Its session waits for it on that node, and what is sent meanwhile is with the session.
    away.writer.transport.abort()
    await clients.apis[0].eventually("/v1/admin/sessions", lambda seen: is_parked(seen, away.jid))
    alice.send(chat(away.jid, "wait for me"))
    await alice.ping()
    gone.process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(gone.process.wait)
    again = await login_somewhere(cell, name)
    await hears(again, "wait for me")
    await again.close()
    cell.nodes[2] = cell.start(2)


def is_parked(sessions, jid):
    return any(session["jid"] == jid and session["state"] == "parked" for session in sessions["sessions"])
