"""Inboxes (XEP-0430) and what back ends do for people, with slixmpp as their clients."""

import pytest
from slixmpp.xmlstream import ET

from harness.inbox import deadline
from harness.peer import CLIENT

INBOX = "{urn:xmpp:inbox:1}"
PLUGINS = ("xep_0333",)


@pytest.fixture(scope="module")
def settings():
    return {"archive__enabled": "true"}


async def inbox(peer):
    """With whom there are conversations, the newest first, and what is unread in each; and the totals."""
    iq = peer.xmpp.make_iq_get()
    iq.append(ET.Element(INBOX + "inbox"))
    async with deadline("the inbox"):
        result = await iq.send()
    fin = result.xml.find(INBOX + "fin")
    entries = []
    for _ in range(int(fin.get("total"))):
        message = await peer.messages.take(lambda m: m.find(INBOX + "entry") is not None, "a conversation")
        entry = message.find(INBOX + "entry")
        entries.append((entry.get("jid"), int(entry.get("unread"))))
    return entries, int(fin.get("unread")), int(fin.get("all-unread"))


async def hears(peer, text):
    return await peer.messages.take(lambda m: m.findtext(CLIENT + "body") == text, text)


async def test_what_is_unread_is_counted_until_it_is_seen(peer):
    alice, bob, carol = await peer(plugins=PLUGINS), await peer(), await peer()
    for text in ("one", "two"):
        bob.xmpp.send_message(mto=alice.bare, mbody=text, mtype="chat")
        last = await hears(alice, text)
    carol.xmpp.send_message(mto=alice.bare, mbody="three", mtype="chat")
    await hears(alice, "three")
    assert await inbox(alice) == ([(carol.bare, 1), (bob.bare, 2)], 2, 3)
    # Whoever wrote has read it.
    assert await inbox(bob) == ([(alice.bare, 0)], 0, 0)
    alice.plugin("xep_0333").send_marker(bob.bare, last.get("id"), "displayed")
    await bob.messages.take(lambda m: m.find("{urn:xmpp:chat-markers:0}displayed") is not None, "the marker")
    assert await inbox(alice) == ([(carol.bare, 1), (bob.bare, 0)], 1, 1)


async def test_a_back_end_acts_for_people(peer, api):
    alice, bob = await peer(), await peer()
    sent = await api.ok("POST", f"/v1/accounts/{alice.bare}/messages", {"to": bob.bare, "body": "your table is ready"})
    assert sent["settled"]
    message = await hears(bob, "your table is ready")
    assert message.get("from") == alice.bare
    page = await api.ok("GET", f"/v1/accounts/{bob.bare}/conversations?unread=true")
    assert [(entry["with"], entry["unread"]) for entry in page["conversations"]] == [(alice.bare, 1)]


async def test_clients_keep_what_is_theirs(peer):
    alice = await peer(plugins=("xep_0048", "xep_0049"))
    bookmarks = ET.Element("{storage:bookmarks}storage")
    conference = ET.SubElement(bookmarks, "{storage:bookmarks}conference")
    conference.set("jid", "room@chat.localhost")
    iq = alice.xmpp.make_iq_set()
    query = ET.SubElement(iq.xml, "{jabber:iq:private}query")
    query.append(bookmarks)
    async with deadline("private storage"):
        await iq.send()
        kept = await alice.plugin("xep_0049").retrieve("bookmarks")
    [found] = kept.xml.iter("{storage:bookmarks}conference")
    assert found.get("jid") == "room@chat.localhost"
