"""Notifications for every account of a domain: given to who is there and to who comes later, once, and steered by the command line."""

import json

import pytest

from harness.api import Api
from harness.peer import CLIENT, JSON, Peer
from harness.server import Server

SM = ["xep_0198"]
MESSAGE = f"{CLIENT}message"
PATH = "/v1/domains/localhost/notifications"


def done(result):
    """The output of a command that must succeed."""
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.parametrize("how", ["an orderly end", "a power cut"])
async def test_each_account_is_given_it_once_whatever_becomes_of_the_node(tmp_path, how):
    server = Server(tmp_path)
    api = Api(server)
    for user in ("alice", "bob", "carol"):
        await api.account(f"{user}@localhost")
    alice = await Peer.connect(server, "alice@localhost", plugins=SM)
    sent = await api.ok("POST", PATH, {"payload": {"n": 1}, "ttl": 3600}, status=202)
    assert json.loads((await alice.notification(sent["id"])).findtext(JSON)) == {"n": 1}
    bob = await Peer.connect(server, "bob@localhost", plugins=SM)
    await bob.notification(sent["id"])
    await api.eventually(f"{PATH}/{sent['id']}", lambda seen: seen["acknowledged"] == 2)
    for peer in (alice, bob):
        await peer.close()
    await api.aclose()
    (server.kill if how == "a power cut" else server.end)()

    server = Server(tmp_path)
    api = Api(server)
    try:
        carol = await Peer.connect(server, "carol@localhost", plugins=SM)
        await carol.notification(sent["id"])
        alice = await Peer.connect(server, "alice@localhost", plugins=SM)
        # The first that she is given is the next one: what she had she is not given again.
        second = await api.ok("POST", PATH, {"payload": {"n": 2}}, status=202)
        assert (await alice.message(type="headline")).get("id") == second["id"]
        seen = await api.eventually(f"{PATH}/{sent['id']}", lambda seen: seen["acknowledged"] == 3)
        assert seen["state"] == "running"
        for peer in (alice, carol):
            await peer.close()
    finally:
        await api.aclose()
        server.end()


async def test_an_operator_steers_it_by_command(server, peer):
    device = await peer(plugins=SM)
    broadcast = lambda *words: server.command("broadcast", *words)  # noqa: E731
    counted = json.loads(done(await broadcast("send", "--payload", "1", "--dry-run", "--json")))
    assert (counted["accounts"], counted["reached_now"]) == (1, 1)
    id = done(await broadcast("send", "--payload", '{"n": 3}', "--rate", "100"))
    await device.notification(id)
    assert id in done(await broadcast("list"))
    done(await broadcast("pause", id))
    assert json.loads(done(await broadcast("show", id, "--json")))["state"] == "paused"
    done(await broadcast("set", id, "--rate", "none", "--window", "00:00-12:00+09:00"))
    shown = json.loads(done(await broadcast("show", id, "--json")))
    assert "rate" not in shown
    assert shown["window"] == {"from": "00:00", "to": "12:00", "utc_offset": "+09:00"}
    done(await broadcast("resume", id))
    user = device.bare.partition("@")[0]
    assert json.loads(done(await broadcast("show", id, "--account", user, "--json")))["state"] == "acknowledged"
    done(await broadcast("abort", id, "--yes"))
    again = await broadcast("pause", id)
    assert again.returncode == 1
    assert "ended" in again.stderr
    wrong = await broadcast("set", id, "--rate", "fast")
    assert wrong.returncode == 2
    assert "--rate" in wrong.stderr


async def test_a_slow_reader_is_given_all_of_many(api, account, raw):
    jid = await account()
    ids = []
    for n in range(10):
        body = {"payload": {"n": n, "text": "x" * 30_000}, "ttl": 600}
        ids.append((await api.ok("POST", PATH, body, status=202))["id"])
    stream = await raw.logged_in(jid, presence=False)
    stream.stop_reading()
    # Its session goes and comes: it is not given again what it has.
    stream.send("<presence/>" + "<presence type='unavailable'/><presence/>" * 3)
    stream.read_again()
    found = [(await stream.until(lambda element: element.tag == MESSAGE)).get("id") for _ in ids]
    assert found == ids
    await stream.ping()
    for id in ids:
        await api.ok("DELETE", f"{PATH}/{id}")
