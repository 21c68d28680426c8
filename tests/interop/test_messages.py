"""Messages between people: both ways, to one session or all, kept while nobody is there, copied to the others."""

import datetime

from harness.peer import CLIENT, DELAY
from harness.raw import STANZA_ERRORS
from harness.server import unique

STANZA_ID = "{urn:xmpp:sid:0}stanza-id"
CARBONS = "{urn:xmpp:carbons:2}"
FORWARDED = "{urn:xmpp:forward:0}forwarded"


async def test_both_directions(peer):
    alice, bob = await peer(), await peer(direct_tls=True)
    alice.chat(bob.bare, "ping?")
    question = await bob.message("ping?")
    assert question.get("from") == alice.jid
    assert question.get("to") == bob.bare
    assert question.find(STANZA_ID).get("by") == bob.bare
    bob.chat(question.get("from"), "pong!")
    answer = await alice.message("pong!")
    assert (answer.get("from"), answer.get("to")) == (bob.jid, alice.jid)


async def test_what_is_written_arrives_as_it_was_written(peer):
    alice, bob = await peer(), await peer()
    body = '<b> & ]]> "\'" \u00a0\u2028 é 你好 \U0001f514\n\tend'
    alice.chat(bob.bare, body)
    assert (await bob.message()).findtext(CLIENT + "body") == body


async def test_order_is_kept(peer):
    alice, bob = await peer(), await peer()
    for i in range(150):
        alice.chat(bob.bare, str(i))
    assert [(await bob.message()).findtext(CLIENT + "body") for _ in range(150)] == [str(i) for i in range(150)]


async def test_a_bare_address_reaches_every_session_and_a_full_one_only_its_own(peer, account):
    alice, bob = await peer(), await account("bob")
    phone, desk = await peer(f"{bob}/phone"), await peer(f"{bob}/desk")
    alice.chat(bob, "to all")
    await phone.message("to all")
    await desk.message("to all")
    alice.chat(f"{bob}/desk", "to one")
    alice.chat(bob, "end")
    await desk.message("to one")
    await phone.message("end")
    assert not phone.messages.left(lambda m: m.findtext(CLIENT + "body") == "to one")


async def test_a_session_of_negative_priority_gets_nothing_for_the_account(peer, account):
    alice, bob = await peer(), await account("bob")
    quiet, loud = await peer(f"{bob}/quiet", presence=False), await peer(f"{bob}/loud")
    await quiet.available(ppriority=-1)
    alice.chat(bob, "for the account")
    alice.chat(f"{bob}/quiet", "for it alone")
    await loud.message("for the account")
    await quiet.message("for it alone")
    assert not quiet.messages.left(lambda m: m.findtext(CLIENT + "body") == "for the account")


async def test_kept_while_nobody_is_there_in_order_with_the_time(peer, account):
    alice, bob = await peer(), await account("bob")
    before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=1)
    for i in range(20):
        alice.chat(bob, f"kept {i}", id=f"k{i}")
    await alice.ping()
    session = await peer(bob)
    for i in range(20):
        message = await session.message()
        assert (message.findtext(CLIENT + "body"), message.get("id")) == (f"kept {i}", f"k{i}")
        stamp = datetime.datetime.fromisoformat(message.find(DELAY).get("stamp"))
        assert before <= stamp <= datetime.datetime.now(datetime.UTC)
    # What was delivered is not delivered again.
    await session.close()
    again = await peer(bob)
    alice.chat(bob, "new")
    assert (await again.message()).findtext(CLIENT + "body") == "new"


async def test_what_has_no_words_is_not_kept(peer, account):
    alice, bob = await peer(), await account("bob")
    alice.send(f"<message to='{bob}' type='chat'><active xmlns='http://jabber.org/protocol/chatstates'/></message>")
    alice.chat(bob, "news", type="headline")
    alice.chat(bob, "kept")
    await alice.ping()
    session = await peer(bob)
    assert (await session.message()).findtext(CLIENT + "body") == "kept"


async def test_nobody_of_that_name_and_no_such_domain(peer):
    alice = await peer()
    for to, condition in [
        (unique("nobody") + "@localhost", "service-unavailable"),
        ("alice@elsewhere.example", "remote-server-not-found"),
    ]:
        alice.chat(to, "hello?", id=to)
        error = await alice.message(id=to, type="error")
        assert error.get("from") == to
        assert error.find(f"{CLIENT}error/{STANZA_ERRORS}{condition}") is not None


async def test_the_sender_is_who_the_server_knows(peer):
    alice, bob = await peer(), await peer()
    alice.send(f"<message from='mallory@localhost/x' to='{bob.bare}' type='chat'><body>forged</body></message>")
    assert (await bob.message("forged")).get("from") == alice.jid


async def test_receipts_pass_between_clients(peer):
    alice, bob = await peer(plugins=["xep_0184"]), await peer(plugins=["xep_0184"])
    message = alice.xmpp.make_message(mto=bob.jid, mbody="read this", mtype="chat")
    message["request_receipt"] = True
    message["id"] = "asked"
    message.send()
    await bob.message("read this")
    receipt = await alice.messages.take(lambda m: m.find("{urn:xmpp:receipts}received") is not None, "a receipt")
    assert receipt.find("{urn:xmpp:receipts}received").get("id") == "asked"


async def carbon_peer(peer, jid):
    session = await peer(jid, plugins=["xep_0280"])
    await session.plugin("xep_0280").enable()
    return session


def inner(carbon, kind):
    return carbon.find(f"{CARBONS}{kind}/{FORWARDED}/{CLIENT}message")


async def test_carbons_of_what_is_received_and_sent(peer, account):
    alice, bob = await peer(), await account("bob")
    phone, desk = await carbon_peer(peer, f"{bob}/phone"), await carbon_peer(peer, f"{bob}/desk")
    alice.chat(f"{bob}/phone", "hello phone")
    await phone.message("hello phone")
    copy = await desk.messages.take(lambda m: inner(m, "received") is not None, "a carbon")
    assert copy.get("from") == bob
    assert inner(copy, "received").findtext(CLIENT + "body") == "hello phone"
    phone.chat(alice.jid, "hello alice")
    await alice.message("hello alice")
    copy = await desk.messages.take(lambda m: inner(m, "sent") is not None, "a carbon")
    assert inner(copy, "sent").get("to") == alice.jid
    assert inner(copy, "sent").findtext(CLIENT + "body") == "hello alice"


async def test_no_carbon_of_what_is_private(peer, account):
    alice, bob = await peer(), await account("bob")
    phone, desk = await carbon_peer(peer, f"{bob}/phone"), await carbon_peer(peer, f"{bob}/desk")
    alice.send(
        f"<message to='{phone.jid}' type='chat'><body>secret</body><private xmlns='urn:xmpp:carbons:2'/></message>"
    )
    await phone.message("secret")
    alice.chat(phone.jid, "open")
    copy = await desk.message()
    assert inner(copy, "received").findtext(CLIENT + "body") == "open"
