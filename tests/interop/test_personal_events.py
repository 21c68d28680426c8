"""What accounts publish under their own addresses, and their vCards, with slixmpp's plugins for avatars, nicknames and bookmarks."""

import pytest
from slixmpp.plugins.xep_0048.stanza import Bookmarks
from slixmpp.plugins.xep_0402.stanza import Conference

from harness.inbox import deadline
from harness.peer import DELAY

EVENT = "{http://jabber.org/protocol/pubsub#event}"
AVATAR = "urn:xmpp:avatar:metadata"
BOOKMARKS = "urn:xmpp:bookmarks:1"
PLUGINS = ("xep_0054", "xep_0084", "xep_0172", "xep_0402")
PICTURE = b"\x89PNG" + bytes(range(256)) * 40


@pytest.fixture
async def person(peer):
    """Connects a client that says what it wants to know in its first presence."""

    async def connect(jid=None):
        person = await peer(jid, plugins=PLUGINS, presence=False)
        person.plugin("xep_0163").add_interest(BOOKMARKS)
        async with deadline("the hash of what it can do"):
            await person.plugin("xep_0115").update_caps(broadcast=False)
        await person.available()
        return person

    return connect


async def befriend(api, one, other):
    await api.ok("PUT", f"/v1/accounts/{one.bare}/roster/{other.bare}", {"mutual": True})


async def told(peer, node, by):
    """The items of the next event of this node."""

    def items(message):
        found = message.find(f"{EVENT}event/{EVENT}items")
        return found if found is not None and found.get("node") == node else None

    message = await peer.messages.take(lambda m: items(m) is not None and m.get("from") == by, f"an event of {node}")
    return [child.get("id") for child in items(message)], message


async def publish_avatar(peer):
    avatars = peer.plugin("xep_0084")
    id = avatars.generate_id(PICTURE)
    async with deadline("an avatar"):
        await avatars.publish_avatar(PICTURE)
        await avatars.publish_avatar_metadata({"id": id, "type": "image/png", "bytes": len(PICTURE)})
    return id


async def test_an_avatar_is_told_and_read(person, api):
    alice, bob = await person(), await person()
    await befriend(api, alice, bob)
    id = await publish_avatar(alice)
    ids, _ = await told(bob, AVATAR, alice.bare)
    assert ids == [id]
    # So are the account's own clients.
    assert (await told(alice, AVATAR, alice.bare))[0] == [id]
    async with deadline("the picture"):
        result = await bob.plugin("xep_0084").retrieve_avatar(alice.bare, id)
    assert result["pubsub"]["items"]["item"]["avatar_data"]["value"] == PICTURE


async def test_who_comes_later_is_given_the_last_item(person, api, account):
    alice, address = await person(), await account()
    bob = await person(address)
    await befriend(api, alice, bob)
    await bob.drop()
    id = await publish_avatar(alice)
    async with deadline("a nickname"):
        await alice.plugin("xep_0172").publish_nick("Al")
    await alice.drop()
    bob = await person(address)
    ids, message = await told(bob, AVATAR, alice.bare)
    assert ids == [id]
    assert message.find(DELAY) is not None
    _, message = await told(bob, "http://jabber.org/protocol/nick", alice.bare)
    assert message.findtext(".//{http://jabber.org/protocol/nick}nick") == "Al"


async def test_bookmarks_are_the_accounts_alone(person, api):
    alice, bob = await person(), await person()
    second = await person(alice.bare)
    await befriend(api, alice, bob)
    options = alice.plugin("xep_0004").make_form(ftype="submit")
    options.add_field("FORM_TYPE", "hidden", value="http://jabber.org/protocol/pubsub#publish-options")
    for name, value in {"persist_items": "true", "max_items": "max", "send_last_published_item": "never"}.items():
        options.add_field(f"pubsub#{name}", value=value)
    options.add_field("pubsub#access_model", value="whitelist")
    for room in ("one@rooms.example", "two@rooms.example"):
        bookmark = Conference()
        bookmark["name"] = "Room"
        async with deadline("a bookmark"):
            await alice.plugin("xep_0060").publish(None, BOOKMARKS, id=room, payload=bookmark, options=options)
        assert (await told(second, BOOKMARKS, alice.bare))[0] == [room]
    async with deadline("the bookmarks"):
        items = await second.plugin("xep_0060").get_items(None, BOOKMARKS)
    assert {item["id"] for item in items["pubsub"]["items"]} == {"one@rooms.example", "two@rooms.example"}
    async with deadline("a retraction"):
        await alice.plugin("xep_0060").retract(None, BOOKMARKS, "one@rooms.example", notify=True)
    assert (await told(second, BOOKMARKS, alice.bare))[0] == ["one@rooms.example"]
    await bob.ping()
    assert not bob.messages.left(lambda m: m.find(f"{EVENT}event") is not None)


def bookmarks_of(storage):
    """Name and nick of each room in a list of XEP-0048."""
    rooms = storage.iter("{storage:bookmarks}conference")
    return {room.get("jid"): (room.get("name"), room.findtext("{storage:bookmarks}nick")) for room in rooms}


async def listed(peer):
    async with deadline("the list in private storage"):
        result = await peer.plugin("xep_0048").get_bookmarks(method="xep_0049")
    return bookmarks_of(result.xml)


async def test_old_and_new_clients_see_the_same_bookmarks(person, peer, account):
    address = await account()
    new = await person(address)
    old = await peer(address, plugins=("xep_0048", "xep_0049", "xep_0223"))
    assert await listed(old) == {}
    bookmark = Conference()
    bookmark["name"], bookmark["nick"] = "One", "al"
    async with deadline("a bookmark"):
        await new.plugin("xep_0060").publish(None, BOOKMARKS, id="one@rooms.example", payload=bookmark)
    assert await listed(old) == {"one@rooms.example": ("One", "al")}
    # The old client adds a room: the new one is told of that one alone, and its features of the account say why.
    await told(new, BOOKMARKS, address)
    stored = Bookmarks()
    stored.add_conference("one@rooms.example", "al", name="One")
    stored.add_conference("two@rooms.example", "al", name="Two", autojoin=True)
    async with deadline("a list"):
        await old.plugin("xep_0048").set_bookmarks(stored, method="xep_0049")
    ids, message = await told(new, BOOKMARKS, address)
    assert ids == ["two@rooms.example"]
    assert message.find(f".//{{{BOOKMARKS}}}conference").get("autojoin") == "true"
    async with deadline("the list as an item"):
        items = await old.plugin("xep_0060").get_items(None, "storage:bookmarks")
    assert bookmarks_of(items.xml) == {"one@rooms.example": ("One", "al"), "two@rooms.example": ("Two", "al")}
    async with deadline("a retraction"):
        await new.plugin("xep_0060").retract(None, BOOKMARKS, "one@rooms.example", notify=True)
    assert await listed(old) == {"two@rooms.example": ("Two", "al")}
    async with deadline("what the account has"):
        info = await new.plugin("xep_0030").get_info(jid=address)
    features = info["disco_info"]["features"]
    assert {f"{BOOKMARKS}#compat", f"{BOOKMARKS}#compat-pep"} <= set(features)


async def test_a_vcard_is_shown_to_others(person):
    alice, bob = await person(), await person()
    vcards = alice.plugin("xep_0054")
    vcard = vcards.make_vcard()
    vcard["FN"] = "Alice Liddell"
    vcard["PHOTO"]["TYPE"] = "image/png"
    vcard["PHOTO"]["BINVAL"] = PICTURE
    async with deadline("the vCard"):
        await vcards.publish_vcard(vcard)
    await alice.drop()
    async with deadline("the vCard of somebody else"):
        shown = await bob.plugin("xep_0054").get_vcard(alice.bare, cached=False)
    assert (shown["vcard_temp"]["FN"], shown["vcard_temp"]["PHOTO"]["BINVAL"]) == ("Alice Liddell", PICTURE)


async def test_a_photo_is_set_in_a_vcard_that_is_not_there_yet(peer, api):
    """slixmpp reads the account's own vCard before it sets the photo in it (XEP-0153)."""
    alice, bob = [await peer(plugins=(*PLUGINS, "xep_0153")) for _ in range(2)]
    async with deadline("the photo"):
        await alice.plugin("xep_0153").set_avatar(avatar=PICTURE, mtype="image/png")
        shown = await bob.plugin("xep_0054").get_vcard(alice.bare, cached=False)
    assert shown["vcard_temp"]["PHOTO"]["BINVAL"] == PICTURE
