"""Blocking (XEP-0191), with slixmpp's own commands."""

import pytest
from slixmpp.exceptions import IqError
from slixmpp.jid import JID

from harness.inbox import Inbox, deadline
from harness.peer import CLIENT


def changes(peer):
    """Who is blocked, as the server tells a client."""
    inbox = Inbox(f"{peer.bare} (blocked)")
    peer.xmpp.add_event_handler("blocked", lambda iq: inbox.put({str(item["jid"]) for item in iq["block"]}))
    return inbox


async def blocked(peer):
    async with deadline(f"the block list of {peer.bare}"):
        return {str(jid) for jid in await peer.plugin("xep_0191").get_blocked_jids()}


async def test_who_is_blocked_does_not_get_through(peer):
    alice, bob = await peer(), await peer()
    for user in (alice, bob):
        user.xmpp.register_plugin("xep_0191")
    told = changes(alice)
    assert await blocked(alice) == set()
    async with deadline("blocking"):
        await alice.plugin("xep_0191").block(JID(bob.bare))
    assert await told.take() == {bob.bare}
    assert await blocked(alice) == {bob.bare}
    bob.xmpp.send_message(mto=alice.bare, mbody="hello?", mtype="chat")
    error = await bob.messages.take(lambda m: m.get("type") == "error", "an error")
    assert error.find(f"{CLIENT}error/{{urn:ietf:params:xml:ns:xmpp-stanzas}}service-unavailable") is not None
    with pytest.raises(IqError) as refused:
        async with deadline("a ping"):
            await alice.plugin("xep_0199").send_ping(JID(bob.jid))
    assert refused.value.condition == "not-acceptable"
    async with deadline("unblocking"):
        await alice.plugin("xep_0191").unblock(JID(bob.bare))
    bob.xmpp.send_message(mto=alice.bare, mbody="hello again", mtype="chat")
    message = await alice.messages.take(lambda m: m.findtext(CLIENT + "body"), "a message")
    assert message.findtext(CLIENT + "body") == "hello again"
