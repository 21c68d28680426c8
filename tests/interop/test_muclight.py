"""MUC Light, as a client asks for it that has no library for it: slixmpp with requests written by hand."""

from xml.etree import ElementTree

import pytest
from slixmpp.exceptions import IqError
from slixmpp.jid import JID

from harness.api import Api
from harness.inbox import deadline
from harness.peer import CLIENT
from harness.raw import Raw
from harness.server import unique
from harness.upgrade import Upgradable

PLUGINS = ("xep_0030", "xep_0059", "xep_0313")
LIGHT = "urn:xmpp:muclight:0"
AFFILIATIONS = f"{{{LIGHT}#affiliations}}"


def room():
    return JID(f"{unique('room')}@muclight.localhost")


async def ask(peer, kind, to, payload):
    """Sends a request; what it is answered with."""
    iq = peer.xmpp.make_iq(ito=to, itype=kind)
    iq.append(ElementTree.fromstring(payload))
    async with deadline("an answer"):
        return (await iq.send(timeout=10)).xml


def users(*changes):
    return "".join(f"<user affiliation='{affiliation}'>{jid}</user>" for jid, affiliation in changes)


async def create(peer, name, *others, title="Tea"):
    await ask(
        peer,
        "set",
        name,
        f"<query xmlns='{LIGHT}#create'><configuration><roomname>{title}</roomname></configuration>"
        f"<occupants>{users(*((jid, 'member') for jid in others))}</occupants></query>",
    )


async def change(peer, name, *changes):
    await ask(peer, "set", name, f"<query xmlns='{LIGHT}#affiliations'>{users(*changes)}</query>")


def affiliation(jid, wanted):
    """Whether a message says what an account is to the room now."""

    def says(message):
        found = message.iter(f"{AFFILIATIONS}user")
        return any(user.text == jid and user.get("affiliation") == wanted for user in found)

    return says


def text(wanted):
    return lambda message: message.findtext(CLIENT + "body") == wanted


async def test_occupants_hear_each_other_and_read_what_they_missed(peer):
    alice, bob, carol = [await peer(plugins=PLUGINS) for _ in range(3)]
    tea = room()
    await create(alice, tea, bob.bare, carol.bare)
    for one in (bob, carol):
        await one.messages.take(affiliation(one.bare, "member"), "the notice")
    await alice.messages.take(affiliation(alice.bare, "owner"), "the notice")
    bob.xmpp.send_message(mto=tea, mbody="Grüße \U0001f375", mtype="groupchat")
    heard = [await one.messages.take(text("Grüße \U0001f375"), "it") for one in (alice, bob, carol)]
    assert {message.get("from") for message in heard} == {f"{tea}/{bob.bare}"}
    ids = {message.find("{urn:xmpp:sid:0}stanza-id").get("id") for message in heard}
    assert len(ids) == 1
    # It is in the archive of the room, behind the notice of its creation.
    async with deadline("the archive"):
        found = [m async for m in carol.plugin("xep_0313").iterate(jid=tea, rsm={"max": 10})]
    assert len(found) == 2
    assert {found[1]["mam_result"]["id"]} == ids
    # The service says which rooms one is in.
    async with deadline("the list"):
        items = await carol.plugin("xep_0030").get_items(jid="muclight.localhost")
    assert (str(tea), None, "Tea") in items["disco_items"]["items"]


async def test_the_owner_decides_who_is_in(peer):
    alice, bob, carol = [await peer(plugins=PLUGINS) for _ in range(3)]
    tea = room()
    await create(alice, tea, bob.bare)
    with pytest.raises(IqError) as caught:
        await change(bob, tea, (carol.bare, "member"))
    assert caught.value.condition == "not-allowed"
    with pytest.raises(IqError) as caught:
        await change(carol, tea, (carol.bare, "member"))
    assert caught.value.condition == "item-not-found"
    await change(alice, tea, (carol.bare, "member"), (bob.bare, "owner"))
    await carol.messages.take(affiliation(carol.bare, "member"), "the notice")
    await alice.messages.take(affiliation(alice.bare, "member"), "another owns it")
    await change(bob, tea, (alice.bare, "none"))
    await alice.messages.take(affiliation(alice.bare, "none"), "she is out")
    information = await ask(carol, "get", tea, f"<query xmlns='{LIGHT}#info'><version/></query>")
    occupants = {user.text: user.get("affiliation") for user in information.iter(f"{{{LIGHT}#info}}user")}
    assert occupants == {bob.bare: "owner", carol.bare: "member"}


async def test_whom_one_blocks_does_not_add_one(peer):
    alice, bob = [await peer(plugins=PLUGINS) for _ in range(2)]
    block = f"<query xmlns='{LIGHT}#blocking'><user action='deny'>{alice.bare}</user></query>"
    await ask(bob, "set", "muclight.localhost", block)
    tea = room()
    await create(alice, tea, bob.bare)
    information = await ask(alice, "get", tea, f"<query xmlns='{LIGHT}#affiliations'/>")
    assert [user.text for user in information.iter(f"{AFFILIATIONS}user")] == [alice.bare]
    listed = await ask(bob, "get", "muclight.localhost", f"<query xmlns='{LIGHT}#blocking'/>")
    assert [user.text for user in listed.iter(f"{{{LIGHT}#blocking}}user")] == [alice.bare]


async def test_rooms_are_there_after_a_live_upgrade(tmp_path):
    server = Upgradable(tmp_path)
    try:
        api = Api(server)
        for name in ("alice", "bob"):
            await api.account(name)
        alice, bob = await Raw.logged_in(server, "alice"), await Raw.logged_in(server, "bob")
        tea = "tea@muclight.localhost"
        alice.send(
            f"<iq type='set' id='c' to='{tea}'><query xmlns='{LIGHT}#create'>"
            f"<occupants>{users(('bob@localhost', 'member'))}</occupants></query></iq>"
        )
        await alice.until(lambda e: e.tag == CLIENT + "iq" and e.get("id") == "c")
        await bob.until(affiliation("bob@localhost", "member"))
        for n in range(3):
            await server.upgrade()
            for one, other in ((alice, bob), (bob, alice)):
                one.send(f"<message to='{tea}' type='groupchat' id='{n}'><body>{n} {one.jid}</body></message>")
                for each in (one, other):
                    await each.until(text(f"{n} {one.jid}"))
        await api.aclose()
    finally:
        server.end()


async def test_a_back_end_makes_a_room_and_its_members(api, peer):
    tea = room()
    alice, bob = await peer(plugins=PLUGINS), await peer(plugins=PLUGINS)
    path = f"/v1/rooms/{tea}"
    made = await api.ok("PUT", path, {"title": "Tea", "fields": {"subject": "Milk"}}, status=201)
    assert (made["kind"], made["jid"], made["config"]["persistent"]) == ("muclight", str(tea), True)
    await api.ok("PUT", f"{path}/members/{alice.bare}", {"affiliation": "owner"}, status=204)
    await alice.messages.take(affiliation(alice.bare, "owner"), "the notice")
    await change(alice, tea, (bob.bare, "member"))
    await bob.messages.take(affiliation(bob.bare, "member"), "the notice")
    await api.ok("POST", f"{path}/messages", {"body": "The kettle is on", "from": alice.bare})
    said = await bob.messages.take(text("The kettle is on"), "it")
    assert said.get("from") == f"{tea}/{alice.bare}"
    listed = await api.ok("GET", "/v1/rooms?kind=muclight")
    assert tea.user in {listing["name"] for listing in listed["rooms"]}
    await api.ok("DELETE", path, status=204)
    await bob.messages.take(affiliation(bob.bare, "none"), "it is gone")
