"""Rooms (XEP-0045), as slixmpp enters them."""

import pytest
from slixmpp.exceptions import IqError, PresenceError
from slixmpp.jid import JID

from harness.api import Api
from harness.inbox import deadline
from harness.peer import CLIENT
from harness.raw import Raw
from harness.server import unique
from harness.upgrade import Upgradable

PLUGINS = ("xep_0030", "xep_0045", "xep_0313", "xep_0410", "xep_0421")
MUC = "{http://jabber.org/protocol/muc#user}"


def room():
    return JID(f"{unique('room')}@rooms.localhost")


async def enter(peer, name, nick, **options):
    """Enters a room; what one is given who does."""
    async with deadline(f"{nick} enters {name}"):
        return await peer.plugin("xep_0045").join_muc_wait(name, nick, timeout=10, **options)


async def made(peer, name, nick="Ali", **fields):
    """A room with this configuration; its maker is in it."""
    await enter(peer, name, nick)
    muc = peer.plugin("xep_0045")
    async with deadline("the configuration"):
        form = await muc.get_room_config(name)
        for field, value in fields.items():
            form.get_fields()[f"muc#roomconfig_{field}"]["value"] = value
        await muc.set_room_config(name, config=form)


# A vCard with a photo, and the SHA-1 of its bytes.
VCARD = "<vCard xmlns='vcard-temp'><PHOTO><TYPE>image/png</TYPE><BINVAL>dGVh</BINVAL></PHOTO></vCard>"
PHOTO_SHA1 = "75490f32c06a50051804339453d3fe2f0cd5564b"


def avatar(name):
    """Whether a presence says that the room has this photo."""
    return lambda p: p.get("from") == name and p.findtext(".//{vcard-temp:x:update}photo") == PHOTO_SHA1


def text(wanted):
    return lambda message: message.findtext(CLIENT + "body") == wanted


async def test_what_is_said_is_heard_by_all_and_kept(peer):
    alice, bob, carol = [await peer(plugins=PLUGINS) for _ in range(3)]
    tea = room()
    await made(alice, tea, persistentroom=True)
    await enter(bob, tea, "Bob")
    bob.xmpp.send_message(mto=tea, mbody="Grüße \U0001f375", mtype="groupchat")
    heard = [await one.messages.take(text("Grüße \U0001f375"), "it") for one in (alice, bob)]
    ids = {message.find("{urn:xmpp:sid:0}stanza-id").get("id") for message in heard}
    assert len(ids) == 1
    assert {message.get("from") for message in heard} == {f"{tea}/Bob"}
    _, _, occupants, history = await enter(carol, tea, "Carol", maxstanzas=5)
    assert [message["body"] for message in history] == ["Grüße \U0001f375"]
    assert sorted(presence["from"].resource for presence in occupants) == ["Ali", "Bob", "Carol"]
    # She reads it in the archive, under the same number.
    async with deadline("the archive"):
        found = [m async for m in carol.plugin("xep_0313").iterate(jid=tea, rsm={"max": 3})]
    assert {m["mam_result"]["id"] for m in found} == ids
    async with deadline("the description"):
        info = await carol.plugin("xep_0030").get_info(jid=tea)
    features = set(info["disco_info"]["features"])
    assert {"muc_persistent", "urn:xmpp:mam:2", "urn:xmpp:occupant-id:0"} <= features
    async with deadline("the list"):
        items = await carol.plugin("xep_0030").get_items(jid="rooms.localhost")
    assert str(tea) in {jid for jid, _, _ in items["disco_items"]["items"]}


async def test_who_may_create_rooms_is_for_the_domain_to_say(peer, account, api):
    name = f"{unique('domain')}.example"
    await api.ok("PUT", f"/v1/admin/domains/{name}", {"rooms_create": "admin"}, status=201)
    alice = await peer(await account("alice", name), plugins=PLUGINS)
    tea = JID(f"tea@rooms.{name}")
    with pytest.raises(PresenceError) as caught:
        await enter(alice, tea, "Ali")
    assert caught.value.condition == "not-allowed"
    await api.ok("PUT", f"/v1/rooms/tea?domain={name}", {"title": "Tea"}, status=201)
    await enter(alice, tea, "Ali")
    with pytest.raises(PresenceError) as caught:
        await enter(alice, JID(f"milk@rooms.{name}"), "Ali")
    assert caught.value.condition == "not-allowed"
    # The policy changes while the node runs.
    await api.ok("PATCH", f"/v1/admin/domains/{name}", {"rooms_create": "any"})
    await enter(alice, JID(f"milk@rooms.{name}"), "Ali")


async def test_rooms_of_another_domain_are_entered_where_both_say_so(peer, account, api):
    here, there = f"{unique('domain')}.example", f"{unique('domain')}.example"
    await api.ok("PUT", f"/v1/admin/domains/{here}", {"other_domains": True}, status=201)
    await api.ok("PUT", f"/v1/admin/domains/{there}", {}, status=201)
    alice = await peer(await account("alice", here), plugins=PLUGINS)
    bob = await peer(await account("bob", there), plugins=PLUGINS)
    tea = JID(f"tea@rooms.{there}")
    await made(bob, tea, nick="Bob", persistentroom=True)
    with pytest.raises(PresenceError) as caught:
        await enter(alice, tea, "Ali")
    assert caught.value.condition == "remote-server-not-found"
    await api.ok("PATCH", f"/v1/admin/domains/{there}", {"other_domains": True})
    await enter(alice, tea, "Ali")
    async with deadline("the list"):
        items = await alice.plugin("xep_0030").get_items(jid=f"rooms.{there}")
    assert {jid for jid, _, _ in items["disco_items"]["items"]} == {str(tea)}
    alice.xmpp.send_message(mto=tea, mbody="across", mtype="groupchat")
    for one in (alice, bob):
        assert (await one.messages.take(text("across"), "it")).get("from") == f"{tea}/Ali"
    async with deadline("the archive"):
        found = [m async for m in alice.plugin("xep_0313").iterate(jid=tea, rsm={"max": 3})]
    assert len(found) == 1
    with pytest.raises(PresenceError) as caught:
        await enter(alice, JID(f"milk@rooms.{there}"), "Ali")
    assert caught.value.condition == "not-allowed"
    # A domain closes again: she is not told what is said, and leaves.
    await api.ok("PATCH", f"/v1/admin/domains/{here}", {"other_domains": False})
    bob.xmpp.send_message(mto=tea, mbody="not across", mtype="groupchat")
    await bob.messages.take(text("not across"), "it")
    left = await bob.presences.take(
        lambda p: p.get("from") == f"{tea}/Ali" and p.get("type") == "unavailable", "she left"
    )
    assert left is not None
    await alice.ping()
    assert not alice.messages.left(text("not across"))


async def test_who_may_not_enter_is_told_why(peer):
    alice, bob = await peer(plugins=PLUGINS), await peer(plugins=PLUGINS)
    den = room()
    await made(alice, den, membersonly=True)
    with pytest.raises(PresenceError) as caught:
        await enter(bob, den, "Bob")
    assert caught.value.condition == "registration-required"
    async with deadline("the affiliation"):
        await alice.plugin("xep_0045").set_affiliation(den, "member", jid=JID(bob.bare))
    with pytest.raises(PresenceError) as caught:
        await enter(bob, den, "Ali")
    assert caught.value.condition == "conflict"
    await enter(bob, den, "Bob")
    with pytest.raises(IqError) as caught:
        async with deadline("the kick"):
            await bob.plugin("xep_0045").set_role(den, "Ali", "none")
    assert caught.value.condition == "not-allowed"
    async with deadline("the kick"):
        await alice.plugin("xep_0045").set_role(den, "Bob", "none", reason="enough")
    gone = await bob.presences.take(lambda p: p.get("type") == "unavailable", "the kick")
    codes = {status.get("code") for status in gone.iter(MUC + "status")}
    assert codes == {"307", "110"}
    assert gone.find(f".//{MUC}reason").text == "enough"


async def test_one_who_is_gone_leaves_the_room(server, peer):
    alice = await peer(plugins=PLUGINS)
    tea = room()
    await made(alice, tea)
    account = await peer()
    await account.close()
    lost = await Raw.logged_in(server, JID(account.bare).local)
    lost.send(f"<presence to='{tea}/Lost'><x xmlns='http://jabber.org/protocol/muc'/></presence>")
    await alice.presences.take(lambda p: p.get("from") == f"{tea}/Lost", "somebody enters")
    lost.reset()
    gone = await alice.presences.take(
        lambda p: p.get("from") == f"{tea}/Lost" and p.get("type") == "unavailable", "and is gone"
    )
    assert "333" in {status.get("code") for status in gone.iter(MUC + "status")}


async def test_rooms_go_along_in_a_live_upgrade(tmp_path):
    server = Upgradable(tmp_path)
    try:
        api = Api(server)
        for name in ("alice", "bob"):
            await api.account(name)
        alice, bob = await Raw.logged_in(server, "alice"), await Raw.logged_in(server, "bob")
        tea = "tea@rooms.localhost"
        entry = "<x xmlns='http://jabber.org/protocol/muc'/>"
        alice.send(f"<presence to='{tea}/Ali'>{entry}</presence>")
        await alice.until(lambda e: e.find(CLIENT + "subject") is not None)
        alice.send(
            f"<iq type='set' id='c' to='{tea}'><query xmlns='http://jabber.org/protocol/muc#owner'>"
            "<x xmlns='jabber:x:data' type='submit'/></query></iq>"
        )
        await alice.until(lambda e: e.get("id") == "c")
        bob.send(f"<presence to='{tea}/Bob'>{entry}</presence>")
        await bob.until(lambda e: e.find(CLIENT + "subject") is not None)
        alice.send(f"<iq type='set' id='v' to='{tea}'>{VCARD}</iq>")
        await alice.until(avatar(tea))
        for n in range(3):
            await server.upgrade()
            for one, other in ((alice, bob), (bob, alice)):
                one.send(f"<message to='{tea}' type='groupchat' id='{n}'><body>{n} {one.jid}</body></message>")
                for each in (one, other):
                    await each.until(text(f"{n} {one.jid}"))
        assert (await api.ok("GET", "/v1/rooms/tea"))["avatar"] == [PHOTO_SHA1]
        await api.aclose()
    finally:
        server.end()


async def test_a_room_comes_back_after_a_crash(start):
    server = start()
    api = Api(server)
    for name in ("alice", "bob"):
        await api.account(name)
    alice = await Raw.logged_in(server, "alice")
    tea = "tea@rooms.localhost"
    entry = "<x xmlns='http://jabber.org/protocol/muc'/>"
    alice.send(f"<presence to='{tea}/Ali'>{entry}</presence>")
    await alice.until(lambda e: e.find(CLIENT + "subject") is not None)
    alice.send(
        f"<iq type='set' id='c' to='{tea}'><query xmlns='http://jabber.org/protocol/muc#owner'>"
        "<x xmlns='jabber:x:data' type='submit'><field var='muc#roomconfig_persistentroom'><value>1</value></field>"
        "</x></query></iq>"
    )
    await alice.until(lambda e: e.get("id") == "c")
    alice.send(f"<message to='{tea}' type='groupchat' id='s'><subject>Biscuits</subject></message>")
    await alice.until(lambda e: e.get("id") == "s")
    alice.send(f"<iq type='set' id='v' to='{tea}'>{VCARD}</iq>")
    await alice.until(avatar(tea))
    alice.send(f"<message to='{tea}' type='groupchat' id='m'><body>before</body></message>")
    await alice.until(text("before"))
    server.kill()
    await api.aclose()
    server = start()
    bob = await Raw.logged_in(server, "bob")
    bob.send(f"<presence to='{tea}/Bob'>{entry}</presence>")
    await bob.until(avatar(tea))
    said = await bob.until(text("before"))
    assert said.find("{urn:xmpp:delay}delay") is not None
    last = await bob.until(lambda e: e.find(CLIENT + "subject") is not None)
    assert last.findtext(CLIENT + "subject") == "Biscuits"
    await bob.close()


async def test_a_back_end_runs_a_room_that_clients_are_in(api, peer):
    tea = room()
    alice, bob = await peer(plugins=PLUGINS), await peer(plugins=PLUGINS)
    path = f"/v1/rooms/{tea.user}"
    await api.ok("PUT", path, {"title": "Tea", "moderated": True}, status=201)
    await api.ok("PUT", f"{path}/members/{alice.bare}", {"affiliation": "owner", "nick": "Ali"}, status=204)
    await enter(alice, tea, "Ali")
    await enter(bob, tea, "Bob")
    page = await api.ok("GET", f"{path}/occupants")
    assert [(of["nick"], of["role"]) for of in page["occupants"]] == [("Ali", "moderator"), ("Bob", "visitor")]
    assert page["occupants"][1]["clients"] == [str(bob.xmpp.boundjid)]
    # It gives voice, and says something in the name of the room and of somebody who is not there.
    await api.ok("PATCH", f"{path}/occupants/Bob", {"role": "participant", "reason": "please"}, status=204)
    bob.xmpp.send_message(mto=tea, mbody="thanks", mtype="groupchat")
    await alice.messages.take(text("thanks"), "what Bob says")
    await api.ok("POST", f"{path}/messages", {"body": "closing soon"}, status=200)
    told = await bob.messages.take(text("closing soon"), "what the room says")
    assert told.get("from") == str(tea)
    said = await api.ok("POST", f"{path}/messages", {"body": "spam", "from": alice.bare})
    for one in (alice, bob):
        message = await one.messages.take(text("spam"), "what is said in her name")
        assert message.get("from") == f"{tea}/Ali"
        assert message.find("{urn:xmpp:sid:0}stanza-id").get("id") == str(said["archive_id"])
    await api.ok("DELETE", f"{path}/messages/{said['archive_id']}?reason=Spam", status=204)
    moderated = "{urn:xmpp:message-retract:1}retract"
    retracted = await bob.messages.take(lambda message: message.find(moderated) is not None, "the retraction")
    assert retracted.find(moderated).get("id") == str(said["archive_id"])
    # It removes him, and then the room.
    gone = bob.presences.take(lambda p: p.get("type") == "unavailable" and p.get("from") == f"{tea}/Bob", "the end")
    await api.ok("DELETE", f"{path}/occupants/Bob?reason=Late", status=204)
    codes = {status.get("code") for status in (await gone).iter(MUC + "status")}
    assert {"110", "307"} <= codes
    assert (await api.ok("GET", path))["occupants"] == 1
    end = alice.presences.take(lambda p: p.find(f"{MUC}x/{MUC}destroy") is not None, "the end of the room")
    await api.ok("DELETE", f"{path}?reason=Closed&venue=coffee@rooms.localhost", status=204)
    destroy = (await end).find(f"{MUC}x/{MUC}destroy")
    assert (destroy.get("jid"), destroy.findtext(MUC + "reason")) == ("coffee@rooms.localhost", "Closed")
    await api.problem(404, "unknown-room", "GET", path)
