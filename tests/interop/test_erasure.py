"""Erasure proved by the bytes: markers in every kind of data of an account, and the files of the database searched for them."""

import contextlib
import sqlite3
import uuid
from xml.etree import ElementTree as ET

import pytest
from test_archive import talk
from test_roster import befriend, listed

from harness.api import Api
from harness.inbox import deadline
from harness.peer import CLIENT, Peer
from harness.server import Server, run, unique

PLUGINS = ("xep_0030", "xep_0054", "xep_0060", "xep_0313")
# More than a page of the database, so that it is kept in pages of its own.
LONG = 20_000
# Of the example of RFC 8291 §5.
KEYS = {
    "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    "auth": "BTBZMqHH6r4Tts7J_aSIgg",
}


@pytest.fixture
def settings():
    return {
        "archive__enabled": "true",
        "privacy_lists__enabled": "true",
        "store__secure_delete": "true",
        "upload__url": "https://files.example.org",
    }


@pytest.fixture
def server(tmp_path, settings):
    """A node of its own, because it is ended by the test."""
    server = Server(tmp_path, **settings)
    yield server
    if server.is_running():
        server.end()


class Markers:
    """Words that are nowhere else, by what they are planted in."""

    def __init__(self):
        self._words = {}

    def __call__(self, what, long=0):
        word = f"{what}-{uuid.uuid4().hex}"
        self._words[what] = word.encode()
        return word + "x" * long

    def found_in(self, data):
        return sorted(what for what, word in self._words.items() if word in data)

    def all(self):
        return sorted(self._words)


def contents(server):
    """The bytes of the database: its file, and its write-ahead log while there is one."""
    data = b""
    for name in ("carillon.db", "carillon.db-wal"):
        with contextlib.suppress(FileNotFoundError):
            data += (server.data / name).read_bytes()
    return data


async def ask(peer, payload, to=None, type="set"):
    """Sends a request; its result."""
    stanza = peer.xmpp.make_iq(ito=to, itype=type)
    stanza.append(ET.fromstring(payload))
    async with deadline("an answer"):
        return await stanza.send()


async def fill(api, peer, account, planted):
    """Has two accounts leave something of every kind."""
    person, other = await account("person"), await account("other")
    alice, bob = await peer(person, plugins=PLUGINS), await peer(other, plugins=PLUGINS)
    await listed(alice)
    await listed(bob)
    await befriend(alice, bob)
    name, group = planted("contact"), planted("group")
    await ask(
        alice,
        f"<query xmlns='jabber:iq:roster'><item jid='{other}' name='{name}'><group>{group}</group></item></query>",
    )
    await ask(
        alice,
        f"<block xmlns='urn:xmpp:blocking'><item jid='{planted('blocked')}@elsewhere.example'/></block>",
    )
    await ask(
        alice,
        f"<query xmlns='jabber:iq:privacy'><list name='{planted('privacy-list')}'>"
        f"<item type='jid' value='{planted('privacy-rule')}@elsewhere.example' action='deny' order='1'/></list></query>",
    )
    await ask(
        alice,
        f"<query xmlns='jabber:iq:private'><a xmlns='urn:x'>{planted('private', LONG)}</a></query>",
    )
    await ask(
        alice,
        f"<vCard xmlns='vcard-temp'><FN>{planted('vcard')}</FN><NOTE>{planted('long-vcard', LONG)}</NOTE></vCard>",
    )
    await ask(
        alice,
        f"<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='{planted('node')}'>"
        f"<item id='{planted('item')}'><a xmlns='urn:x'>{planted('payload', LONG)}</a></item></publish></pubsub>",
    )
    await ask(bob, f"<query xmlns='jabber:iq:roster'><item jid='{person}' name='{planted('name-by-other')}'/></query>")
    name = f"{planted('file')}.jpg"
    slot = f"<request xmlns='urn:xmpp:http:upload:0' filename='{name}' size='5' content-type='image/jpeg'/>"
    await ask(alice, slot, to="upload.localhost", type="get")
    await talk(alice, bob, [planted("message"), planted("reply"), planted("long-message", LONG)])
    await api.ok("PUT", "/v1/topics/erasure", {}, status=201)
    await api.call("PUT", f"/v1/devices/{person}/subscriptions/erasure")
    # Kept until she is back, which she is once.
    await alice.close()
    bob.xmpp.send_message(mto=person, mbody=planted("delivered", LONG), mtype="chat")
    await bob.ping()
    back = await peer(person, plugins=PLUGINS)
    await back.messages.take(lambda m: (m.findtext(CLIENT + "body") or "").startswith("delivered"), "what waited")
    await back.close()
    bob.xmpp.send_message(mto=person, mbody=planted("offline"), mtype="chat")
    bob.xmpp.send_message(mto=person, mbody=planted("long-offline", LONG), mtype="chat")
    await bob.ping()
    await bob.close()
    await api.notify(person, {"n": planted("notification")}, audience="always")
    await api.notify(person, {"n": planted("long-notification", LONG)}, audience="always", collapse_key=planted("key"))
    await api.ok(
        "POST",
        "/v1/push/registrations",
        {
            "account": person,
            "node": planted("app"),
            "web_push": {"endpoint": f"https://push.example.org/{planted('endpoint')}", "keys": KEYS},
        },
        status=201,
    )
    return person, other


def left_of_archives(server):
    """Messages that archives still have."""
    with contextlib.closing(sqlite3.connect(f"file:{server.data / 'carillon.db'}?mode=ro", uri=True)) as db:
        # The newest of all stays, emptied.
        return db.execute("SELECT count(*) FROM archive_message WHERE length(stanza) > 0").fetchone()[0]


async def erased(server, api, *accounts):
    """Removes accounts, and waits for the end of their archives."""
    for jid in accounts:
        await api.ok("DELETE", f"/v1/admin/accounts/{jid}", status=204)
    # Archives are gone through every ten minutes, the first time a minute after the start.
    async with deadline("the end of the archives", 180):
        while left_of_archives(server) > 0:
            await api.ok("GET", "/v1/admin/status")


@pytest.mark.embedded
@pytest.mark.timeout(240)
async def test_nothing_of_an_account_is_in_the_files_of_the_database_once_it_is_erased(server, api, peer, account):
    planted = Markers()
    person, other = await fill(api, peer, account, planted)
    # Otherwise there would be nothing to find.
    assert planted.found_in(contents(server)) == planted.all()
    await erased(server, api, person, other)
    # It ends with a checkpoint, and its log goes.
    server.end()
    assert planted.found_in(contents(server)) == []


@pytest.mark.embedded
@pytest.mark.timeout(240)
async def test_without_secure_delete_what_was_deleted_before_may_be_left_until_the_file_is_made_anew(
    tmp_path, settings
):
    """What the account still had when it was erased is gone; what had been deleted earlier may be in pages that were given up."""
    folder = tmp_path / "fast"
    folder.mkdir()
    server = Server(folder, **settings | {"store__secure_delete": "false"})
    planted = Markers()
    async with contextlib.AsyncExitStack() as stack:
        api = Api(server)
        stack.push_async_callback(api.aclose)

        async def account(stem):
            jid = f"{unique(stem)}@localhost"
            await api.account(jid)
            return jid

        async def peer(jid, **options):
            connected = Peer(server, jid, **options)
            stack.push_async_callback(connected.close)
            await connected.log_in()
            return connected

        person, other = await fill(api, peer, account, planted)
        # Kept until she is back, and then deleted: more pages than what is written later needs.
        bob = await peer(other, plugins=PLUGINS)
        for n in range(EARLIER):
            bob.xmpp.send_message(mto=person, mbody=planted(f"delivered-{n}", LONG), mtype="chat")
        await bob.ping()
        back = await peer(person, plugins=PLUGINS)
        for _ in range(EARLIER):
            await back.messages.take(
                lambda m: (m.findtext(CLIENT + "body") or "").startswith("delivered"), "what waited"
            )
        await back.close()
        await bob.close()
        await erased(server, api, person, other)
        while_it_runs = planted.found_in(contents(server))
    server.end()
    left = planted.found_in(contents(server))
    print(f"beside a running node: {while_it_runs}\nonce it has ended: {left}")
    assert left, "there is nothing to find"
    assert all(what.startswith("delivered") for what in left)
    assert set(left) <= set(while_it_runs)
    copy = folder / "copy.db"
    done = run("backup", str(copy), "--data-dir", str(server.data))
    assert done.returncode == 0, done.stderr
    assert set(planted.found_in(copy.read_bytes())) == set(left), "a backup has the pages that were given up, too"
    with contextlib.closing(sqlite3.connect(server.data / "carillon.db")) as db:
        db.execute("VACUUM")
    assert planted.found_in(contents(server)) == []


# Messages that are kept and delivered before the account is erased.
EARLIER = 40
