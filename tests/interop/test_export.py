"""`carillon account export`: all that a node keeps of an account, and nothing of it once it is removed."""

import json
import stat

import pytest
from slixmpp.jid import JID
from test_archive import talk
from test_rooms import made, text
from test_roster import befriend, listed

from harness.server import run

PLUGINS = ("xep_0030", "xep_0045", "xep_0054", "xep_0060", "xep_0313", "xep_0410")
ROOM = JID("export@rooms.localhost")


@pytest.fixture(scope="module")
def settings():
    return {"archive__enabled": "true"}


def of(lines, kind):
    return [line for line in lines if line["kind"] == kind]


async def test_what_is_kept_of_a_person_is_exported(server, api, keys, peer, tmp_path):
    alice, bob = await peer(plugins=PLUGINS), await peer(plugins=PLUGINS)
    person, other = alice.bare, bob.bare
    await listed(alice)
    await listed(bob)
    await befriend(alice, bob)
    await talk(alice, bob, [f"{n} \U0001f514" for n in range(3)])
    await made(alice, ROOM, persistentroom=True)
    alice.xmpp.send_message(mto=ROOM, mbody="hers", mtype="groupchat")
    await alice.messages.take(text("hers"), "hers")
    vcard = alice.plugin("xep_0054").make_vcard()
    vcard["FN"] = "Alice Größe"
    await alice.plugin("xep_0054").publish_vcard(vcard)
    await alice.close()
    bob.xmpp.send_message(mto=person, mbody="while she is away", mtype="chat")
    await bob.close()
    notification = await api.notify(person, {"n": 1}, audience="always")

    key = (await keys("admin", "read_messages")).key

    def export(jid, *more):
        return run("account", "export", jid, "--url", server.http, "--key", key, *more)

    file = tmp_path / "person.ndjson"
    done = export(person, "--output", str(file))
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[0]["kind"] == "account"
    assert lines[-1] == {"kind": "end", "records": len(lines) - 1}
    assert [contact["jid"] for contact in of(lines, "contact")] == [other]
    bodies = [message["body"] for message in of(lines, "message")]
    assert bodies == ["0 \U0001f514", "1 \U0001f514", "2 \U0001f514", "while she is away"]
    assert {line["with"] for line in of(lines, "conversation")} == {other, str(ROOM)}
    assert [line["room"] for line in of(lines, "room")] == [str(ROOM)]
    assert [line["body"] for line in of(lines, "room_message")] == ["hers"]
    assert "Größe" in of(lines, "vcard")[0]["xml"]
    assert "while she is away" in of(lines, "offline_message")[0]["xml"]
    assert notification["id"] in [line["id"] for line in of(lines, "notification")]

    # What is there is not written over, and who may not read messages exports nothing.
    assert export(person, "--output", str(file)).returncode == 2
    refused = run("account", "export", person, "--data-dir", str(server.data))
    assert refused.returncode == 1
    assert "read_messages" in refused.stderr

    # Once the account is removed there is nothing to export, also where it is made anew.
    await api.ok("DELETE", f"/v1/admin/accounts/{person}")
    assert export(person).returncode == 1
    await api.account(person)
    printed = export(person)
    assert [json.loads(line)["kind"] for line in printed.stdout.splitlines()] == ["account", "end"]
