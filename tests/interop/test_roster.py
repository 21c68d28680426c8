"""Rosters and the presence of contacts, with slixmpp's own roster."""

import asyncio

from harness.api import Api
from harness.inbox import Inbox, deadline
from harness.peer import CLIENT, Peer
from harness.server import Server

ROSTER = "{jabber:iq:roster}"


async def listed(peer):
    """The roster as the server gives it: subscription, name and groups by address."""
    async with deadline(f"the roster of {peer.bare}"):
        await peer.xmpp.get_roster()
    roster = peer.xmpp.client_roster
    return {
        jid: (roster[jid]["subscription"], roster[jid]["name"], sorted(roster[jid]["groups"]))
        for jid in roster
        if jid != peer.bare
    }


def pushes(peer):
    """Changes of the roster as they come: the items."""
    inbox = Inbox(f"{peer.bare} (roster)")

    def note(iq):
        if iq["type"] == "set":
            inbox.put(iq.xml.find(f"{ROSTER}query/{ROSTER}item").attrib)

    peer.xmpp.add_event_handler("roster_update", note)
    return inbox


async def befriend(alice, bob):
    """Both see each other: slixmpp grants what it is asked for, and asks in turn."""
    changed = [pushes(alice), pushes(bob)]
    alice.xmpp.send_presence_subscription(pto=bob.bare)
    for inbox in changed:
        await inbox.take(lambda item: item["subscription"] == "both", "a subscription of both")


async def test_two_clients_become_contacts(peer):
    alice, bob = await peer(), await peer()
    assert await listed(alice) == {}
    await listed(bob)
    await befriend(alice, bob)
    await alice.presence(bob.jid)
    await bob.presence(alice.jid)
    alice.xmpp.send_presence(pshow="dnd", pstatus="a meeting")
    # slixmpp sends its presence to a new contact on its own, too.
    seen = await bob.presences.take(lambda p: p.findtext(CLIENT + "status") == "a meeting", "the new presence")
    assert (seen.get("from"), seen.get("to"), seen.findtext(CLIENT + "show")) == (alice.jid, bob.bare, "dnd")
    async with deadline("a change of the roster"):
        await alice.xmpp.update_roster(bob.bare, name="Bob", groups=["Friends", "Team"])
    assert await listed(alice) == {bob.bare: ("both", "Bob", ["Friends", "Team"])}
    assert await listed(bob) == {alice.bare: ("both", "", [])}
    await alice.drop()
    await bob.presence(alice.jid, "unavailable")


async def test_who_comes_later_is_asked_then_and_learns_who_is_there(peer, account):
    alice, jid = await peer(), await account()
    await listed(alice)
    changed = pushes(alice)
    alice.xmpp.send_presence_subscription(pto=jid)
    assert (await changed.take())["ask"] == "subscribe"
    bob = await peer(jid)
    await bob.presence(alice.bare, "subscribe")
    await changed.take(lambda item: item["subscription"] in ("to", "both"), "a subscription")
    again = await peer(f"{alice.bare}/again")
    await again.presence(bob.jid)


async def test_removing_a_contact_ends_what_both_see(peer):
    alice, bob = await peer(), await peer()
    await listed(alice)
    await listed(bob)
    await befriend(alice, bob)
    changed = pushes(bob)
    async with deadline("the removal"):
        await alice.xmpp.del_roster_item(bob.bare)
    await changed.take(lambda item: item["subscription"] == "none", "the end of the subscription")
    await alice.presence(bob.jid, "unavailable")
    await bob.presence(alice.jid, "unavailable")


async def test_a_thousand_contacts(peer, account, api):
    alice = await peer()
    await listed(alice)
    groups = ["Players", "Äußere"]
    for n in range(1000):
        item = (
            f"<item jid='friend{n}@localhost' name='Friend {n}'>"
            + "".join(f"<group>{g}</group>" for g in groups)
            + "</item>"
        )
        alice.send(f"<iq type='set' id='put{n}'><query xmlns='jabber:iq:roster'>{item}</query></iq>")
    other = await peer(f"{alice.bare}/other")
    # Each is kept before it is answered, which takes as long as the store does.
    async with deadline("all contacts to be kept", 60):
        while len(found := await listed(other)) < 1000:
            pass
    assert found["friend7@localhost"] == ("none", "Friend 7", sorted(groups))


async def test_contacts_outlive_the_node(tmp_path):
    node = Server(tmp_path)
    try:
        api = Api(node)
        await api.account("alice")
        await api.account("bob")
        await api.aclose()
        alice, bob = await Peer.connect(node, "alice@localhost"), await Peer.connect(node, "bob@localhost")
        await listed(alice)
        await listed(bob)
        await befriend(alice, bob)
        node.kill()
        node = Server(tmp_path)
        await asyncio.gather(alice.disconnected(), bob.disconnected())
        alice, bob = await Peer.connect(node, "alice@localhost"), await Peer.connect(node, "bob@localhost")
        await alice.presence(bob.jid)
        await bob.presence(alice.jid)
        assert await listed(alice) == {bob.bare: ("both", "", [])}
    finally:
        node.end()
