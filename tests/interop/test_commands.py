"""The commands of the binary beside a running node, and what it says to settings that cannot be."""

import asyncio
import json

from harness.peer import JSON, Peer
from harness.server import run, unique

SM = ["xep_0198"]


def done(result):
    """The output of a command that must succeed."""
    assert result.returncode == 0, result.stderr
    return result.stdout


async def test_an_operators_day(server, api):
    user, topic = unique("user"), unique("news")
    done(await server.command("account", "create", f"{user}@localhost", "--password", "secret"))
    assert f"{user}@localhost" in done(await server.command("account", "list"))
    peer = await Peer.connect(server, f"{user}@localhost", plugins=SM)
    listed = json.loads(done(await server.command("session", "list", "--json")))
    assert peer.jid in json.dumps(listed)
    states = done(await server.command("send", user, "--payload", '{"n": 1}', "--wait"))
    assert "acknowledged" in states
    assert (await peer.message(type="headline")).findtext(JSON) == '{"n":1}'
    done(await server.command("topic", "create", topic))
    await api.ok("PUT", f"/v1/devices/{user}/subscriptions/{topic}", status=201)
    done(await server.command("topic", "publish", topic, "--payload", "[1]"))
    item = await peer.messages.take(lambda m: m.get("from") == "pubsub.localhost", "the item")
    assert item.find(f".//{JSON}").text == "[1]"
    assert user in done(await server.command("topic", "subscribers", topic))
    done(await server.command("session", "end", f"{user}@localhost"))
    await peer.stream_error()
    assert "sessions" in done(await server.command("status")).lower()


async def test_what_was_said_in_a_room_by_command(server):
    room = unique("room")
    done(await server.command("room", "create", room, "--archive-days", "30"))
    for text in ("The kettle is on", "Two sugars"):
        done(await server.command("room", "send", room, text))
    # An operator's key does not read what people say.
    refused = await server.command("room", "messages", room)
    assert refused.returncode == 1
    assert "read_messages" in refused.stderr
    made = json.loads(
        done(await server.command("key", "create", unique("reader"), "--scope", "read_messages", "--json"))
    )

    async def messages():
        reader = ("--url", server.http, "--key", made["key"])
        return json.loads(done(await asyncio.to_thread(run, "room", "messages", room, "--json", *reader)))

    listed = await messages()
    assert [message["body"] for message in listed] == ["Two sugars", "The kettle is on"]
    done(await server.command("room", "retract", room, str(listed[0]["id"]), "--reason", "no sugar"))
    assert [message["body"] for message in await messages()] == [None, "The kettle is on"]
    refused = await server.command("room", "retract", room, "999999999")
    assert refused.returncode == 1
    assert "no such message" in refused.stderr
    # Nothing is erased by mistake.
    refused = await server.command("room", "erase", room)
    assert refused.returncode != 0
    assert len(await messages()) == 2
    done(await server.command("room", "erase", room, "--yes"))
    assert await messages() == []


async def test_keys_made_by_command_work(server):
    made = json.loads(done(await server.command("key", "create", "shop", "--scope", "send", "--json")))
    refused = run("account", "list", "--url", server.http, "--key", made["key"])
    assert refused.returncode == 1
    assert "admin" in refused.stderr


async def test_accounts_from_a_file(server, tmp_path):
    users = [unique("imported") for _ in range(5)]
    file = tmp_path / "accounts.csv"
    file.write_text("jid,password\n" + "".join(f"{user}@localhost,secret\n" for user in users))
    done(await server.command("account", "import", str(file)))
    peer = await Peer.connect(server, f"{users[-1]}@localhost")
    await peer.close()


async def test_a_domain_by_command(server):
    name = unique("tenant") + ".example"
    done(await server.command("domain", "create", name, "--sessions", "single"))
    assert name in done(await server.command("domain", "list"))
    done(await server.command("account", "create", f"alice@{name}", input="secret\n"))
    peer = await Peer.connect(server, f"alice@{name}")
    # Nothing is removed by mistake.
    assert (await server.command("domain", "delete", name)).returncode == 2
    done(await server.command("domain", "delete", name, "--yes"))
    assert await peer.stream_error() == "host-gone"


def test_no_node_answers(tmp_path):
    result = run("status", "--data-dir", str(tmp_path))
    assert result.returncode == 3
    assert result.stderr


def test_settings_that_cannot_be_are_named():
    for setting, words in [
        ("c2s.prt=5222", ["c2s.prt", "c2s.port"]),
        ("c2s.port=70000", ["c2s.port", "65535"]),
        ("c2s.port=many", ["c2s.port"]),
        ("sessions.policy=some", ["sessions.policy", "single", "multi"]),
    ]:
        result = run("config", "check", "--set", setting)
        assert result.returncode == 2, setting
        assert all(word in result.stderr for word in words), result.stderr


def test_the_sample_is_a_file_that_passes(tmp_path):
    file = tmp_path / "carillon.toml"
    file.write_text(done(run("config", "sample")))
    # The ports of the sample may be taken on this machine, which the check would tell.
    ports = [f"{server}.port=0" for server in ("c2s", "c2s_tls", "websocket", "http")]
    done(run("config", "check", "--config", str(file), *(word for port in ports for word in ("--set", port))))
