"""Probes: a notification that is sent to see each step of its way to a device."""

import json

import pytest

from harness.api import Api
from harness.raw import Raw

WAY = ["request", "home", "committed", "given", "written", "arrived", "acknowledged", "ended"]
SM = "urn:xmpp:sm:3"


async def probe(api, to, **more):
    return await api.ok("POST", "/v1/trace/send", {"to": to, **more}, timeout=90)


def steps(report):
    return {hop["hop"]: hop for hop in report["hops"]}


@pytest.mark.parametrize(("plugin", "by"), [("xep_0198", "stream-management"), ("xep_0184", "receipt")])
async def test_each_step_of_the_way_to_a_device_is_told(peer, api, plugin, by):
    device = await peer(plugins=[plugin])
    report = await probe(api, device.bare)
    assert [hop["hop"] for hop in report["hops"]] == WAY
    assert "node" not in report
    assert report["missing"] == []
    found = steps(report)
    assert found["request"]["at_us"] == 0
    times = [hop["at_us"] for hop in report["hops"]]
    assert times == sorted(times)
    assert 0 < found["home"]["at_us"] < found["written"]["at_us"] < 5_000_000
    assert found["written"]["at_us"] <= found["arrived"]["at_us"]
    assert found["acknowledged"]["by"] == by
    assert {found[hop]["session"] for hop in ("given", "written", "arrived", "acknowledged")} == {device.jid}
    assert len({found[hop]["shard"] for hop in WAY[1:]}) == 1
    assert (report["state"], report["to"]) == ("acknowledged", device.bare)
    message = await device.notification(report["id"])
    assert json.loads(message.findtext("{urn:xmpp:json:0}json")) == {"carillon": "probe"}
    # It is the trace that every notification has.
    trace = await api.trace(report["id"])
    assert (trace["state"], trace["acknowledged_by"]) == ("acknowledged", by)


async def test_one_that_is_not_kept_is_not_committed(peer, api):
    device = await peer(plugins=["xep_0198"])
    report = await probe(api, device.bare, audience="active", payload={"n": 1})
    assert [hop["hop"] for hop in report["hops"] if hop["hop"] != "arrived"] == [
        hop for hop in WAY if hop not in ("committed", "arrived")
    ]
    assert report["missing"] == []
    assert json.loads((await device.notification(report["id"])).findtext("{urn:xmpp:json:0}json")) == {"n": 1}


async def test_a_device_that_is_away_is_said_to_be(peer, account, api):
    jid = await account()
    report = await probe(api, jid, timeout=1)
    assert [hop["hop"] for hop in report["hops"]] == ["request", "home", "committed", "withheld"]
    assert steps(report)["withheld"]["reason"] == "not-connected"
    missing = {hop["hop"]: hop["reason"] for hop in report["missing"]}
    assert list(missing) == ["given", "written", "arrived", "acknowledged"]
    assert missing["given"] == "the account has no session that it is for: not-connected"
    # It does not come later.
    assert report["state"] == "cancelled"
    assert (await api.trace(report["id"]))["state"] == "cancelled"
    device = await peer(jid)
    await device.ping()
    assert not device.messages.left()
    report = await probe(api, await account(), audience="active")
    assert [hop["hop"] for hop in report["hops"]] == ["request", "home", "ended"]
    assert (report["state"], steps(report)["ended"]["reason"]) == ("dropped", "not-connected")


async def test_a_client_that_does_not_acknowledge_is_said_to_be_there(server, user, api):
    alice = await user("alice")
    raw = await Raw.logged_in(server, alice)
    raw.send(f"<enable xmlns='{SM}'/>")
    await raw.until(lambda e: e.tag == f"{{{SM}}}enabled")
    report = await probe(api, alice, timeout=1)
    assert [hop["hop"] for hop in report["hops"]] == WAY[:6]
    assert [hop["hop"] for hop in report["missing"]] == ["acknowledged"]
    assert report["state"] == "sent"
    await raw.until(lambda e: e.get("id") == report["id"])
    await raw.close()


async def test_who_is_not_there_and_what_is_not_allowed(server, api, keys, account):
    jid = await account()
    nobody = await api.problem(404, "unknown-device", "POST", "/v1/trace/send", {"to": "nobody-at-all"})
    assert nobody["detail"] == "there is no device `nobody-at-all@localhost`"
    await api.problem(404, "unknown-domain", "POST", "/v1/trace/send", {"to": "a@elsewhere.example"})
    await api.problem(422, "invalid-value", "POST", "/v1/trace/send", {"to": jid, "timeout": 61})
    await api.problem(400, "unknown-field", "POST", "/v1/trace/send", {"to": jid, "ttl": 5})
    sender = await keys("send")
    await sender.problem(403, "missing-scope", "POST", "/v1/trace/send", {"to": jid})
    done = await server.command("trace", "send", "nobody-at-all")
    assert done.returncode != 0
    assert "there is no device `nobody-at-all@localhost`" in done.stderr


async def test_the_command_shows_the_steps_and_the_audit_log_has_it(server, peer, api):
    device = await peer(plugins=["xep_0198"])
    done = await server.command("trace", "send", device.bare, "--timeout", "5s")
    assert done.returncode == 0, done.stderr
    for hop in WAY:
        assert f" {hop} " in f"{done.stdout} ".replace("\n", " "), done.stdout
    assert f"to={device.bare}  acknowledged" in done.stdout
    done = await server.command("trace", "send", device.bare, "--audience", "active", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] == "acknowledged"
    acts = await api.ok("GET", "/v1/admin/audit")
    assert [act["what"] for act in acts["acts"] if "trace/send" in act["what"]][:1] == ["POST /v1/trace/send"]
    logged = [line for line in server.log.read_text().splitlines() if "a probe is sent" in line]
    assert any(device.bare in line for line in logged)
    # A shell that only reads does not send it.
    done = await server.command("shell", input=f"trace send {device.bare}\n")
    assert "the shell is read-only" in done.stderr


async def test_a_key_of_a_domain_sees_its_own(server, api, keys):
    await api.ok("PUT", "/v1/admin/domains/probes.example", {}, status=201)
    own: Api = await keys("admin", domain="probes.example")
    await own.problem(404, "unknown-device", "POST", "/v1/trace/send", {"to": "nobody"})
    await own.problem(403, "other-domain", "POST", "/v1/trace/send", {"to": "a@localhost"})
