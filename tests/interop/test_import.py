"""`carillon account import` of XML of XEP-0227: what a real ejabberd exports is there for the same clients, with the same passwords."""

import json
import ssl

import pytest
from slixmpp.plugins.xep_0048.stanza import Bookmarks

from harness.ejabberd import Ejabberd, is_installed
from harness.inbox import deadline
from harness.peer import DELAY, Peer
from harness.server import run

PLUGINS = ("xep_0048", "xep_0049", "xep_0054", "xep_0060", "xep_0223")
BOOKMARKS = "urn:xmpp:bookmarks:1"


class Elsewhere:
    """Another server, as a peer connects to it."""

    def __init__(self, port):
        self._port = port

    def port(self, _):
        return self._port

    def tls(self, verify_name=True):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context


@pytest.fixture
def ejabberd(tmp_path):
    if not is_installed():
        pytest.skip("ejabberd is not installed")
    folder = tmp_path / "ejabberd"
    folder.mkdir()
    ejabberd = Ejabberd(folder, modules=("mod_admin_extra", "mod_offline", "mod_private", "mod_vcard"))
    yield ejabberd
    ejabberd.end()


def imported(server, key, file, *more):
    return run("account", "import", str(file), "--url", server.http, "--key", key, *more)


async def test_what_ejabberd_exports_is_there(ejabberd, server, keys, peer):
    old = Elsewhere(ejabberd.port)
    for name in ("moved-alice", "moved-bob"):
        ejabberd.command("register", name, "localhost", "secret")
    ejabberd.command("add_rosteritem", "moved-alice", "localhost", "moved-bob", "localhost", "Bob", "Friends", "both")
    ejabberd.command("add_rosteritem", "moved-bob", "localhost", "moved-alice", "localhost", "Al", "", "both")
    alice = await Peer.connect(old, "moved-alice@localhost", plugins=PLUGINS)
    bookmarks = Bookmarks()
    bookmarks.add_conference("tea@rooms.localhost", "al", name="Tea & more", autojoin=True)
    vcard = alice.plugin("xep_0054").make_vcard()
    vcard["FN"] = "Alice Gr\u00f6\u00dfe"
    async with deadline("what ejabberd keeps"):
        await alice.plugin("xep_0048").set_bookmarks(bookmarks, method="xep_0049")
        await alice.plugin("xep_0054").publish_vcard(vcard)
    alice.chat("moved-bob@localhost", "while you were there")
    await alice.ping()
    await alice.close()
    exported = ejabberd.folder / "exported"
    exported.mkdir()
    exported.chmod(0o777)
    ejabberd.command("export_piefxis", str(exported))
    main = min(exported.glob("*.xml"), key=lambda file: len(file.name))

    key = (await keys("admin")).key
    for _ in range(2):
        done = imported(server, key, main, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        said = json.loads(done.stdout)
        assert (said["imported"], said["failed"]) == (2, 0), said
    alice = await peer("moved-alice@localhost", plugins=PLUGINS, mechanism="SCRAM-SHA-256")
    async with deadline("her roster"):
        roster = await alice.xmpp.get_roster()
    items = {str(jid): item for jid, item in roster["roster"]["items"].items()}
    assert list(items) == ["moved-bob@localhost"]
    item = items["moved-bob@localhost"]
    assert (item["name"], item["subscription"], list(item["groups"])) == ("Bob", "both", ["Friends"])
    async with deadline("her bookmarks as items"):
        found = await alice.plugin("xep_0060").get_items(None, BOOKMARKS)
    conference = found.xml.find(f".//{{{BOOKMARKS}}}conference")
    assert (conference.get("name"), conference.get("autojoin")) == ("Tea & more", "true")
    async with deadline("her vCard"):
        shown = await alice.plugin("xep_0054").get_vcard(alice.bare, cached=False)
    assert shown["vcard_temp"]["FN"] == "Alice Gr\u00f6\u00dfe"
    # The message once, with the time at which ejabberd took it; and presence goes by the rosters.
    bob = await peer("moved-bob@localhost")
    message = await bob.message("while you were there")
    assert len(message.findall(DELAY)) == 1
    await bob.presence(alice.jid)
    await bob.ping()
    assert not bob.messages.left(lambda m: m.findtext("{jabber:client}body") is not None)


async def test_what_is_wrong_is_told_by_its_line(server, keys, tmp_path):
    file = tmp_path / "users.xml"
    file.write_text(
        "<?xml version='1.0'?>\n<server-data xmlns='urn:xmpp:pie:0'>\n<host jid='localhost'>\n"
        "<user name='imported-well' password='p'><query xmlns='jabber:iq:roster'><item jid='@'/></query></user>\n"
        "<user name='imported-ill'/>\n<group xmlns='urn:other'/>\n</host>\n"
        "<host jid='nowhere.example'>\n<user name='a' password='p'/></host></server-data>\n"
    )
    key = (await keys("admin")).key
    done = imported(server, key, file)
    assert done.returncode == 1
    told = done.stderr.splitlines()
    assert told[0].startswith(f"{file}:4: imported-well@localhost, contact @: ")
    assert (
        told[1]
        == f"{file}:5: imported-ill@localhost: it has neither a password nor keys for SCRAM-SHA-1 or SCRAM-SHA-256"
    )
    assert told[2].startswith(f"{file}:9: a@nowhere.example: ")
    assert told[3] == "passed over, 1 times: <group xmlns='urn:other'/>"
    assert done.stdout == "1 imported, 3 failed\n"
    file.write_text(
        "<server-data xmlns='urn:xmpp:pie:0'>\n<host jid='localhost'>\n<user name='cut' password='p'/>\n<user"
    )
    done = imported(server, key, file)
    assert done.returncode == 2
    assert done.stdout == "1 imported, 0 failed\n"
    assert f"{file}:4: " in done.stderr
