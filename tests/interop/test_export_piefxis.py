"""`carillon account export --format xep-0227`: what is written is taken by our own import and by a real Prosody, with the same passwords."""

import contextlib
import json
import stat
from xml.etree import ElementTree

import pytest
from test_import import Elsewhere
from test_roster import befriend, listed

from harness import prosody
from harness.api import Api
from harness.inbox import deadline
from harness.peer import DELAY, Peer
from harness.server import run, unique

PLUGINS = ("xep_0030", "xep_0048", "xep_0049", "xep_0054", "xep_0060", "xep_0223")
BOOKMARKS = "urn:xmpp:bookmarks:1"
PIE = "{urn:xmpp:pie:0}"


@pytest.fixture
async def people(server, api, peer, keys, tmp_path):
    """A domain with two friends, one of whom has a message that waits; and the folder of its export."""
    domain = f"{unique('domain')}.example"
    await api.ok("PUT", f"/v1/admin/domains/{domain}", {}, status=201)
    for local in ("alice", "bob"):
        await api.account(f"{local}@{domain}", "s3cret")
    alice, bob = [await peer(f"{local}@{domain}", password="s3cret", plugins=PLUGINS) for local in ("alice", "bob")]
    await listed(alice)
    await listed(bob)
    await befriend(alice, bob)
    vcard = alice.plugin("xep_0054").make_vcard()
    vcard["FN"] = "Alice Größe & Söhne"
    conference = ElementTree.fromstring(f"<conference xmlns='{BOOKMARKS}' name='Tea'><nick>al</nick></conference>")
    async with deadline("what the node keeps"):
        await alice.xmpp.update_roster(bob.bare, name="Bob <b>", groups=["Friends"])
        await alice.plugin("xep_0054").publish_vcard(vcard)
        await alice.plugin("xep_0060").publish(None, BOOKMARKS, id=f"tea@rooms.{domain}", payload=conference)
    await alice.close()
    bob.chat(alice.bare, "while you were away")
    await bob.ping()
    await bob.close()
    folder = tmp_path / "exported"
    key = (await keys("admin", "read_messages")).key
    done = exported(server, key, "--domain", domain, "--output", str(folder), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout)
    assert (said["accounts"], said["file"]) == (2, str(folder / f"{domain}.xml"))
    return domain, folder, key


def exported(server, key, *more):
    return run("account", "export", "--format", "xep-0227", "--url", server.http, "--key", key, *more)


async def test_an_export_needs_what_it_tells(server, people, keys, api, tmp_path):
    domain, folder, key = people
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {file.name for file in folder.iterdir()} == {*(f"{domain}.xml", f"alice@{domain}.xml", f"bob@{domain}.xml")}
    for file in folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    one = exported(server, key, f"alice@{domain}")
    assert one.stdout == (folder / f"alice@{domain}.xml").read_text()
    user = ElementTree.fromstring(one.stdout).find(f".//{PIE}user")
    mechanisms = {keys.get("mechanism") for keys in user.iter("{urn:xmpp:pie:0#scram}scram-credentials")}
    assert mechanisms == {"SCRAM-SHA-1", "SCRAM-SHA-256"}
    assert "s3cret" not in one.stdout
    # Keys are not in what is written for the person.
    own = run("account", "export", f"alice@{domain}", "--url", server.http, "--key", key)
    assert "stored_key" not in own.stdout
    assert exported(server, key, "--domain", domain, "--output", str(folder)).returncode != 0, "it is there"
    no_contents = (await keys("admin")).key
    refused = exported(server, no_contents, f"alice@{domain}")
    assert refused.returncode == 1
    assert "read_messages" in refused.stderr


async def test_our_own_import_takes_it_and_exports_the_same(people, start, tmp_path):
    domain, folder, _ = people
    server = start()
    api = Api(server)
    await api.ok("PUT", f"/v1/admin/domains/{domain}", {}, status=201)
    main = str(folder / f"{domain}.xml")
    for _ in range(2):
        done = run("account", "import", main, "--url", server.http, "--key", server.key, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        said = json.loads(done.stdout)
        assert (said["imported"], said["failed"]) == (2, 0), said
    body = {"name": "reader", "scopes": ["admin", "read_messages"]}
    key = (await api.ok("POST", "/v1/admin/keys", body, status=201))["key"]
    again = tmp_path / "again"
    done = exported(server, key, "--domain", domain, "--output", str(again))
    assert done.returncode == 0, done.stdout + done.stderr
    for file in folder.iterdir():
        assert (again / file.name).read_text() == file.read_text(), file.name
    alice = Peer(server, f"alice@{domain}", password="s3cret", mechanism="SCRAM-SHA-256", plugins=PLUGINS)
    await alice.log_in()
    async with deadline("what she has"):
        roster = await alice.xmpp.get_roster()
        shown = await alice.plugin("xep_0054").get_vcard(alice.bare, cached=False)
        found = await alice.plugin("xep_0060").get_items(None, BOOKMARKS)
    item = roster["roster"]["items"][f"bob@{domain}"]
    assert (item["name"], item["subscription"], list(item["groups"])) == ("Bob <b>", "both", ["Friends"])
    assert shown["vcard_temp"]["FN"] == "Alice Größe & Söhne"
    assert found.xml.find(f".//{{{BOOKMARKS}}}conference").get("name") == "Tea"
    message = await alice.message("while you were away")
    assert len(message.findall(DELAY)) == 1
    await alice.close()
    await api.aclose()


async def test_prosody_takes_it(people, tmp_path):
    if not prosody.is_installed():
        pytest.skip("Prosody is not installed")
    domain, folder, _ = people
    place = tmp_path / "prosody"
    place.mkdir()
    accounts = [file for file in folder.iterdir() if "@" in file.name]
    other = prosody.Prosody(place, domain, accounts)
    with contextlib.ExitStack() as stack:
        stack.callback(other.end)
        alice = Peer(Elsewhere(other.port), f"alice@{domain}", password="s3cret", plugins=PLUGINS)
        await alice.log_in()
        async with deadline("what she has"):
            roster = await alice.xmpp.get_roster()
            shown = await alice.plugin("xep_0054").get_vcard(alice.bare, cached=False)
        item = roster["roster"]["items"][f"bob@{domain}"]
        assert (item["name"], item["subscription"], list(item["groups"])) == ("Bob <b>", "both", ["Friends"])
        assert shown["vcard_temp"]["FN"] == "Alice Größe & Söhne"
        await alice.close()
