"""Events of rooms: what a back end is told of what people do in them."""

import contextlib

import pytest
from slixmpp.jid import JID
from test_muclight import PLUGINS as LIGHT_PLUGINS
from test_muclight import change, create
from test_rooms import PLUGINS, enter, made, text

from harness.api import Api
from harness.inbox import deadline
from harness.peer import CLIENT
from harness.raw import Raw
from harness.server import unique

TYPES = "room_created,room_destroyed,room_members,room_subject,room_message,room_moderated"
SID = "{urn:xmpp:sid:0}stanza-id"


def is_subject(wanted):
    """MUC sends the subject as a child of the message, MUC Light as a change of the room's configuration."""
    return lambda message: wanted in (element.text for element in message.iterfind(".//{*}subject"))


@pytest.fixture
async def domain(api):
    name = f"{unique('domain')}.example"
    await api.ok("PUT", f"/v1/admin/domains/{name}", {"room_events": "all"}, status=201)
    return name


async def test_what_people_do_in_a_room_is_told(peer, account, api, domain):
    alice, bob = [await peer(await account(local, domain), plugins=PLUGINS) for local in ("alice", "bob")]
    tea = JID(f"tea@rooms.{domain}")
    muc = alice.plugin("xep_0045")
    async with api.events(type=TYPES, domain=domain) as events:
        await made(alice, tea, persistentroom=True)
        await enter(bob, tea, "Bob")
        bob.xmpp.send_message(mto=tea, mbody="the kettle is on", mtype="groupchat")
        heard = await alice.messages.take(text("the kettle is on"), "it")
        alice.xmpp.send_message(mto=tea, msubject="Biscuits", mtype="groupchat")
        await bob.messages.take(is_subject("Biscuits"), "the subject")
        async with deadline("a ban, and the end"):
            await muc.set_affiliation(tea, affiliation="outcast", jid=JID(bob.jid).bare)
            await muc.destroy(tea, reason="over")
        seen = [await events.next() for _ in range(6)]
    assert [event["type"] for event in seen] == [
        *("room_created", "room_members", "room_message", "room_subject", "room_members", "room_destroyed")
    ]
    assert {event["room"] for event in seen} == {str(tea)}
    owner = JID(alice.jid).bare
    made_by, owned, said, _, banned, gone = seen
    assert made_by["by"] == owner
    assert owned["members"] == [{"account": owner, "was": "none", "affiliation": "owner"}]
    assert (said["by"], said["message"]["nick"]) == (JID(bob.jid).bare, "Bob")
    assert str(said["message"]["archive_id"]) == heard.find(SID).get("id")
    assert said["message"]["id"] == heard.get("id")
    # The administrator's key reads no messages.
    assert "body" not in said["message"]
    assert banned["members"] == [{"account": JID(bob.jid).bare, "was": "none", "affiliation": "outcast"}]
    assert (gone["by"], gone["reason"]) == (owner, "over")


async def test_what_people_do_in_a_room_of_muc_light_is_told(peer, account, api, domain):
    alice, bob = [await peer(await account(local, domain), plugins=LIGHT_PLUGINS) for local in ("alice", "bob")]
    tea = JID(f"tea@muclight.{domain}")
    owner, other = JID(alice.jid).bare, JID(bob.jid).bare
    async with api.events(type=TYPES, domain=domain) as events:
        await create(alice, tea)
        await change(alice, tea, (other, "member"))
        bob.xmpp.send_message(mto=tea, mbody="hello", mtype="groupchat")
        await alice.messages.take(text("hello"), "it")
        alice.xmpp.send_message(mto=tea, msubject="Biscuits", mtype="groupchat")
        # Two sessions are not in order with each other: bob goes when the subject is everybody's.
        await bob.messages.take(is_subject("Biscuits"), "the subject")
        # Who leaves as the last takes the room along.
        await change(bob, tea, (other, "none"))
        await change(alice, tea, (owner, "none"))
        seen = [await events.next() for _ in range(8)]
    assert [event["type"] for event in seen] == [
        *("room_created", "room_members", "room_members", "room_message", "room_subject"),
        *("room_members", "room_members", "room_destroyed"),
    ]
    joined = [{"account": other, "was": "none", "affiliation": "member"}]
    assert (seen[2]["by"], seen[2]["members"]) == (owner, joined)
    assert (seen[3]["by"], seen[3]["message"]["from"]) == (other, f"{tea}/{other}")
    assert seen[5]["members"] == [{"account": other, "was": "member", "affiliation": "none"}]


async def test_whoever_asks_for_no_rooms_is_told_of_none(peer, account, api, domain):
    alice = await peer(await account("alice", domain), plugins=PLUGINS)
    async with api.events(domain=domain, state="cancelled") as events:
        await made(alice, JID(f"tea@rooms.{domain}"))
        id = (await api.notify(await account("absent", domain), audience="always"))["id"]
        await api.ok("DELETE", f"/v1/notifications/{id}")
        first = await events.next()
    assert first["id"] == id


async def test_every_message_that_was_heard_has_an_event_though_the_node_is_killed(start):
    """The node is killed in the middle of a conversation, again and again: what an occupant heard is told, once and in the order of the archive."""
    settings = {"rooms__events": "all"}
    heard = []
    for round in range(4):
        server = start(**settings)
        api = Api(server)
        if round == 0:
            await api.account("alice")
            await api.ok("PUT", "/v1/rooms/tea", {"persistent": True}, status=201)
        alice = await Raw.logged_in(server, "alice")
        tea = "tea@rooms.localhost"
        entry = "<x xmlns='http://jabber.org/protocol/muc'><history maxstanzas='0'/></x>"
        alice.send(f"<presence to='{tea}/Ali'>{entry}</presence>")
        await alice.until(lambda e: e.find(CLIENT + "subject") is not None)
        for n in range(200):
            alice.send(f"<message to='{tea}' type='groupchat' id='{round}-{n}'><body>{n}</body></message>")
        for _ in range(20 + 30 * round):
            message = await alice.until(lambda e: e.find(SID) is not None)
            heard.append(int(message.find(SID).get("id")))
        server.kill()
        with contextlib.suppress(Exception):
            await alice.close()
        await api.aclose()
    server = start(**settings)
    api = Api(server)
    told, numbers = [], []
    async with api.events(type="room_message", after=0) as events:
        with contextlib.suppress(AssertionError):
            while True:
                event = await events.inbox.take(seconds=2)
                numbers.append(int(event[0]))
                told.append(event[1]["message"]["archive_id"])
    kept = await archived(server, api)
    assert told == kept, "each message of the archive has one event, in its order"
    assert numbers == sorted(set(numbers))
    assert set(heard) <= set(told)
    assert len(heard) > 100
    await api.aclose()


async def archived(server, api):
    """The numbers of all messages of the room's archive."""
    key = await api.ok("POST", "/v1/admin/keys", {"name": "reader", "scopes": ["read_messages"]}, status=201)
    reader, found, before = Api(server, key["key"]), [], None
    while True:
        query = {"limit": 100} | ({} if before is None else {"before": before})
        page = await reader.ok("GET", "/v1/rooms/tea/messages", params=query)
        found += [message["id"] for message in page["messages"]]
        before = page.get("next")
        if before is None:
            await reader.aclose()
            return sorted(found)
