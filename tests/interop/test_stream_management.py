"""Stream management (XEP-0198): counts both ways, and nothing lost that was not acknowledged."""

import time

from harness.inbox import Inbox
from harness.peer import CLIENT, DELAY

SM = ["xep_0198"]


async def managed(peer, jid=None):
    session = await peer(jid, plugins=SM)
    session.acknowledged = Inbox(session.jid)
    session.xmpp.add_event_handler("stanza_acked", session.acknowledged.put)
    assert session.plugin("xep_0198").enabled_in
    return session


async def test_the_server_acknowledges_what_it_received(peer):
    alice, bob = await managed(peer), await peer()
    for i in range(7):
        alice.chat(bob.bare, f"counted {i}")
    await alice.ping()
    alice.plugin("xep_0198").request_ack()
    for i in range(7):
        wanted = f"counted {i}"
        await alice.acknowledged.take(lambda s, w=wanted: s.xml.findtext(CLIENT + "body") == w, f"the ack of {wanted}")


async def test_the_server_asks_and_the_client_answers(server, peer, api):
    alice, bob = await peer(), await managed(peer)
    alice.chat(bob.bare, "please acknowledge")
    await bob.message("please acknowledge")
    await bob.ping()
    session = (await api.ok("GET", f"/v1/admin/sessions?account={bob.bare}"))["sessions"][0]
    assert session["stream_management"] is True
    assert bob.plugin("xep_0198").handled > 0


async def test_what_was_acknowledged_is_not_sent_again(peer):
    alice, bob = await peer(), await managed(peer)
    alice.chat(bob.bare, "first")
    await bob.message("first")
    await bob.ping()
    await bob.drop()
    alice.chat(bob.bare, "second")
    await alice.ping()
    again = await peer(bob.bare)
    assert (await again.message()).findtext(CLIENT + "body") == "second"


async def test_what_was_not_acknowledged_is_kept(peer, raw, account):
    alice, bob = await peer(), await account("bob")
    deaf = await raw.logged_in(bob)
    deaf.send("<enable xmlns='urn:xmpp:sm:3'/>")
    await deaf.until(lambda e: e.tag == "{urn:xmpp:sm:3}enabled")
    for i in range(3):
        alice.chat(bob, f"unheard {i}")
    await deaf.until(lambda e: e.findtext(CLIENT + "body") == "unheard 2")
    deaf.send("<a xmlns='urn:xmpp:sm:3' h='1'/>")
    await deaf.ping()
    deaf.reset()
    again = await peer(bob)
    for i in (1, 2):
        message = await again.message()
        assert message.findtext(CLIENT + "body") == f"unheard {i}"
        assert message.find(DELAY) is not None


async def test_a_session_that_is_bound_resumes_no_other(raw, account):
    stream = await raw.logged_in(await account())
    stream.send("<resume xmlns='urn:xmpp:sm:3' previd='x' h='0'/>")
    failed = await stream.until(lambda e: e.tag == "{urn:xmpp:sm:3}failed")
    assert len(failed) > 0
    await stream.ping()


async def test_an_impossible_count_ends_the_stream(raw, account):
    stream = await raw.logged_in(await account())
    stream.send("<enable xmlns='urn:xmpp:sm:3'/>")
    await stream.until(lambda e: e.tag == "{urn:xmpp:sm:3}enabled")
    stream.send("<a xmlns='urn:xmpp:sm:3' h='77'/>")
    await stream.stream_error("undefined-condition")


async def test_many_requests_for_acknowledgements_are_answered_without_a_pause(raw, account):
    """They cost their bytes, not a stanza each: two thousand in one piece are twice a burst of stanzas."""
    client = await raw.logged_in(await account())
    client.send("<enable xmlns='urn:xmpp:sm:3'/>")
    await client.until(lambda e: e.tag == "{urn:xmpp:sm:3}enabled")
    began = time.monotonic()
    client.send("<r xmlns='urn:xmpp:sm:3'/>" * 2000)
    for _ in range(2000):
        await client.until(lambda e: e.tag == "{urn:xmpp:sm:3}a")
    await client.ping()
    assert time.monotonic() - began < 4, "as stanzas they would take five seconds beyond the burst"
