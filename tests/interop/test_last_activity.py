"""When an account was last available (XEP-0012), as slixmpp asks for it."""

import pytest
from slixmpp.exceptions import IqError
from test_roster import befriend, listed

PLUGINS = ("xep_0012",)
# The whole test is shorter than this.
A_MINUTE = 60


async def seconds(peer, of):
    """What `peer` is told of an account, or of the server."""
    answer = await peer.plugin("xep_0012").get_last_activity(of, timeout=10)
    return answer["last_activity"]["seconds"]


async def test_contacts_are_told_and_others_are_not(peer):
    alice, bob, carol = [await peer(plugins=PLUGINS) for _ in range(3)]
    await listed(alice)
    await listed(bob)
    await befriend(alice, bob)
    assert await seconds(alice, bob.bare) == 0
    gone = bob.jid
    await bob.close()
    await alice.presence(gone, "unavailable")
    assert 0 <= await seconds(alice, bob.bare) < A_MINUTE
    with pytest.raises(IqError) as caught:
        await seconds(carol, alice.bare)
    assert caught.value.condition == "forbidden"


async def test_the_server_tells_its_uptime(peer):
    alice = await peer(plugins=PLUGINS)
    first = await seconds(alice, "localhost")
    assert first >= 0
    assert await seconds(alice, "localhost") >= first
