"""Presence: between an account's own sessions, directed, and its end."""

from harness.peer import CLIENT
from harness.raw import STANZA_ERRORS


async def test_an_accounts_sessions_see_each_other(peer, account):
    jid = await account()
    phone = await peer(f"{jid}/phone")
    desk = await peer(f"{jid}/desk", presence=False)
    desk.xmpp.send_presence(pshow="away", pstatus="lunch", ppriority=5)
    seen = await phone.presence(desk.jid)
    assert seen.findtext(CLIENT + "show") == "away"
    assert seen.findtext(CLIENT + "status") == "lunch"
    assert seen.findtext(CLIENT + "priority") == "5"
    await desk.presence(phone.jid)
    await desk.close()
    await phone.presence(desk.jid, "unavailable")


async def test_a_lost_connection_is_told_too(peer, account):
    jid = await account()
    phone, desk = await peer(f"{jid}/phone"), await peer(f"{jid}/desk")
    await phone.presence(desk.jid)
    await desk.drop()
    await phone.presence(desk.jid, "unavailable")


async def test_directed_presence_and_its_end(peer):
    alice, bob = await peer(), await peer()
    alice.xmpp.send_presence(pto=bob.bare, pshow="chat")
    seen = await bob.presence(alice.jid)
    assert (seen.get("to"), seen.findtext(CLIENT + "show")) == (bob.bare, "chat")
    await alice.close()
    await bob.presence(alice.jid, "unavailable")


async def test_becoming_unavailable_ends_what_was_directed(peer):
    alice, bob = await peer(), await peer()
    alice.xmpp.send_presence(pto=bob.jid)
    await bob.presence(alice.jid)
    alice.xmpp.send_presence(ptype="unavailable")
    await bob.presence(alice.jid, "unavailable")


async def test_a_priority_out_of_range(peer):
    alice = await peer()
    alice.send("<presence id='p'><priority>128</priority></presence>")
    error = await alice.presences.take(lambda p: p.get("id") == "p", "an answer")
    assert error.find(f"{CLIENT}error/{STANZA_ERRORS}bad-request") is not None
