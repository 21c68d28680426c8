"""Message archives (XEP-0313), with slixmpp's own queries."""

import asyncio

import pytest
from slixmpp.jid import JID

from harness.api import Api
from harness.inbox import deadline
from harness.peer import CLIENT, Peer

PLUGINS = ("xep_0313", "xep_0441")
STANZA_ID = "{urn:xmpp:sid:0}stanza-id"


@pytest.fixture(scope="module")
def settings():
    return {"archive__enabled": "true"}


async def archived(peer, **query):
    """What is in the archive, read in pages of three: numbers and texts."""
    async with deadline(f"the archive of {peer.bare}"):
        found = [m async for m in peer.plugin("xep_0313").iterate(rsm={"max": 3}, **query)]
    return [(m["mam_result"]["id"], m["mam_result"]["forwarded"]["stanza"]["body"]) for m in found]


async def talk(one, other, texts):
    """They say these in turn; the ids under which the recipients find them."""
    ids = []
    for text in texts:
        one.xmpp.send_message(mto=other.bare, mbody=text, mtype="chat")
        message = await other.messages.take(lambda m, text=text: m.findtext(CLIENT + "body") == text, text)
        [stanza_id] = message.findall(STANZA_ID)
        assert stanza_id.get("by") == other.bare
        ids.append(stanza_id.get("id"))
        one, other = other, one
    return ids


async def test_a_conversation_is_in_both_archives(peer):
    alice, bob, carol = await peer(plugins=PLUGINS), await peer(plugins=PLUGINS), await peer()
    texts = [f"{n} Größe \U0001f514" for n in range(8)]
    ids = await talk(alice, bob, texts)
    [other] = await talk(carol, alice, ["hello from carol"])
    both = list(zip(ids, texts, strict=True))
    assert await archived(bob) == both
    assert await archived(alice) == [*both, (other, "hello from carol")]
    assert await archived(alice, with_jid=JID(bob.bare)) == both
    assert sorted(await archived(alice, with_jid=JID(bob.bare), reverse=True)) == sorted(both)
    async with deadline("the metadata"):
        metadata = await alice.plugin("xep_0313").get_archive_metadata()
    assert metadata["mam_metadata"]["start"]["id"] == ids[0]
    assert metadata["mam_metadata"]["end"]["id"] == other
    async with deadline("service discovery"):
        info = await alice.plugin("xep_0030").get_info(jid=alice.bare)
    assert {"urn:xmpp:mam:2", "urn:xmpp:mam:2#extended"} <= info["disco_info"]["features"]


async def test_preferences_are_kept_and_followed(peer):
    alice, bob = await peer(plugins=PLUGINS), await peer(plugins=PLUGINS)
    async with deadline("the preferences"):
        await alice.plugin("xep_0441").set_preferences(default="never", always=[], never=[])
        default, always, never = await alice.plugin("xep_0441").get_preferences()
    assert (default, list(always), list(never)) == ("never", [], [])
    bob.xmpp.send_message(mto=alice.bare, mbody="not for the archive", mtype="chat")
    message = await alice.messages.take(lambda m: m.findtext(CLIENT + "body"), "the message")
    assert message.find(STANZA_ID) is None
    assert await archived(alice) == []
    assert [text for _, text in await archived(bob)] == ["not for the archive"]


async def test_archives_outlive_the_node(start):
    node = start(archive__enabled="true")
    api = Api(node)
    await api.account("alice")
    await api.account("bob")
    await api.aclose()
    alice = await Peer.connect(node, "alice@localhost", plugins=PLUGINS)
    bob = await Peer.connect(node, "bob@localhost", plugins=PLUGINS)
    ids = await talk(alice, bob, ["one", "two"])
    node.kill()
    node = start(archive__enabled="true")
    await asyncio.gather(alice.disconnected(), bob.disconnected())
    alice = await Peer.connect(node, "alice@localhost", plugins=PLUGINS)
    bob = await Peer.connect(node, "bob@localhost", plugins=PLUGINS)
    [third] = await talk(alice, bob, ["three"])
    assert await archived(alice) == [(ids[0], "one"), (ids[1], "two"), (third, "three")]
    assert int(third) > int(ids[1])


async def test_archives_can_be_turned_on_for_a_domain(api):
    await api.ok("PUT", "/v1/admin/domains/other.example", {"archive": True, "archive_days": 7})
    policy = (await api.ok("GET", "/v1/admin/domains/other.example"))["policy"]
    assert (policy["archive"], policy["archive_days"]) == (True, 7)
