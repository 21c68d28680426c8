"""Privacy lists (XEP-0016), with slixmpp's own commands, and with XEP-0191 beside them."""

import pytest
from slixmpp.exceptions import IqError
from slixmpp.jid import JID

from harness.api import Api
from harness.inbox import Inbox, deadline
from harness.peer import CLIENT
from harness.raw import Raw
from harness.upgrade import Upgradable

PRIVACY = "{jabber:iq:privacy}"


@pytest.fixture(scope="module")
def settings():
    return {"privacy_lists__enabled": "true"}


def plugins(peer):
    for name in ("xep_0016", "xep_0191"):
        peer.xmpp.register_plugin(name)
    return peer.plugin("xep_0016")


def deny(value, order, kind="jid", **stanzas):
    return {"type": kind, "value": value, "action": "deny", "order": str(order), **stanzas}


async def names(lists):
    """The names that the server tells: what decides, and all lists."""
    async with deadline("the names"):
        query = (await lists.get_privacy_lists()).xml.find(PRIVACY + "query")
    return [(child.tag.removeprefix(PRIVACY), child.get("name")) for child in query]


async def rules(lists, name):
    async with deadline("the rules"):
        items = (await lists.get_list(name)).xml.iter(PRIVACY + "item")
        return [
            (
                item.get("type"),
                item.get("value"),
                item.get("action"),
                [child.tag.removeprefix(PRIVACY) for child in item],
            )
            for item in items
        ]


async def refused(peer, to):
    peer.xmpp.send_message(mto=to, mbody="hello?", mtype="chat")
    error = await peer.messages.take(lambda m: m.get("type") == "error", "an error")
    assert error.find(f"{CLIENT}error/{{urn:ietf:params:xml:ns:xmpp-stanzas}}service-unavailable") is not None


async def heard(sender, peer, to, body):
    sender.xmpp.send_message(mto=to, mbody=body, mtype="chat")
    message = await peer.messages.take(lambda m: m.findtext(CLIENT + "body") == body, "a message")
    assert message.get("from") == sender.jid


async def test_lists_are_made_chosen_and_removed(peer):
    alice, bob = await peer(), await peer()
    lists = plugins(alice)
    assert await names(lists) == []
    async with deadline("a list"):
        await lists.edit_list("quiet", [deny(bob.bare, 1, message=True)])
    assert await names(lists) == [("list", "quiet")]
    assert await rules(lists, "quiet") == [("jid", bob.bare, "deny", ["message"])]
    await heard(bob, alice, alice.jid, "it decides nothing yet")
    async with deadline("choosing it"):
        await lists.activate("quiet")
    assert await names(lists) == [("active", "quiet"), ("list", "quiet")]
    await refused(bob, alice.jid)
    # It is about messages, not requests.
    async with deadline("a ping"):
        await bob.plugin("xep_0199").send_ping(JID(alice.jid))
    async with deadline("choosing none"):
        await lists.deactivate()
    await heard(bob, alice, alice.jid, "again")
    async with deadline("removing it"):
        await lists.remove_list("quiet")
    assert await names(lists) == []
    with pytest.raises(IqError) as missing:
        await rules(lists, "quiet")
    assert missing.value.condition == "item-not-found"


async def test_the_default_list_and_the_block_list_are_one(peer):
    alice, bob, carol = await peer(), await peer(), await peer()
    lists, blocking = plugins(alice), alice.plugin("xep_0191")

    async def blocked():
        async with deadline("the block list"):
            return {str(jid) for jid in await blocking.get_blocked_jids()}

    told = Inbox(f"{alice.bare} (blocked)")
    alice.xmpp.add_event_handler("blocked", lambda iq: told.put({str(item["jid"]) for item in iq["block"]}))
    assert await blocked() == set()
    async with deadline("blocking"):
        await blocking.block(JID(bob.bare))
    assert await told.take() == {bob.bare}
    assert await names(lists) == [("default", "blocklist"), ("list", "blocklist")]
    assert await rules(lists, "blocklist") == [("jid", bob.bare, "deny", [])]
    async with deadline("editing it"):
        await lists.edit_list("blocklist", [deny(bob.bare, 1), deny(carol.bare, 2)])
    assert await told.take() == {carol.bare}
    assert await blocked() == {bob.bare, carol.bare}
    await refused(carol, alice.bare)
    async with deadline("removing it"):
        await lists.remove_list("blocklist")
    assert await blocked() == set()
    await heard(carol, alice, alice.bare, "hello again")


async def test_another_session_keeps_the_list_that_it_uses(peer):
    alice = await peer()
    other = await peer(alice.bare)
    mine, theirs = plugins(alice), plugins(other)
    async with deadline("lists"):
        await mine.edit_list("one", [deny("one.example", 1)])
        await theirs.activate("one")
    with pytest.raises(IqError) as conflict:
        async with deadline("removing it"):
            await mine.remove_list("one")
    assert conflict.value.condition == "conflict"
    async with deadline("choosing none, and removing it"):
        await theirs.deactivate()
        await mine.remove_list("one")
    assert await names(mine) == []


async def test_a_session_keeps_its_list_over_a_live_upgrade(tmp_path):
    server = Upgradable(tmp_path, privacy_lists__enabled="true")
    try:
        api = Api(server)
        for name in ("alice", "bob"):
            await api.account(name)
        alice, bob = await Raw.logged_in(server, "alice"), await Raw.logged_in(server, "bob")
        query = "<query xmlns='jabber:iq:privacy'>"
        item = "<item type='jid' value='bob@localhost' action='deny' order='1'/>"
        await alice.ask(f"<iq type='set' id='l'>{query}<list name='l'>{item}</list></query></iq>", "l")
        await alice.ask(f"<iq type='set' id='a'>{query}<active name='l'/></query></iq>", "a")
        for n in range(3):
            if n:
                await server.upgrade()
            bob.send(f"<message to='{alice.jid}' type='headline' id='{n}'><body>hi</body></message>")
            error = await bob.until(lambda e, n=n: e.get("id") == str(n))
            assert error.get("type") == "error"
        # It is the session's choice, and ends when the session declines it.
        await alice.ask(f"<iq type='set' id='d'>{query}<active/></query></iq>", "d")
        bob.send(f"<message to='{alice.jid}' type='headline' id='now'><body>hi</body></message>")
        heard = await alice.until(lambda e: e.get("id") == "now")
        assert heard.get("from") == bob.jid
        await api.aclose()
    finally:
        server.end()
