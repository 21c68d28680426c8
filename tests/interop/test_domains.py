"""Domains: made, changed and removed while the node runs; what their policies decide; operators who end sessions."""

import asyncio
import time
from xml.etree import ElementTree as ET

import pytest
from slixmpp.exceptions import IqError

from harness.api import Api
from harness.peer import CLIENT
from harness.raw import STANZA_ERRORS, Raw, auth, plain
from harness.server import unique


@pytest.fixture
async def domain(api):
    """Makes a domain of a name of its own."""
    made = []

    async def make(**policy):
        name = unique("tenant") + ".example"
        created = await api.ok("PUT", f"/v1/admin/domains/{name}", policy, status=201)
        assert created["domain"] == name
        made.append(name)
        return name

    yield make
    for name in made:
        await api.call("DELETE", f"/v1/admin/domains/{name}")


async def test_a_domain_made_at_run_time_takes_logins_at_once(domain, peer, account):
    name = await domain()
    alice, bob = await peer(await account("alice", name)), await peer(await account("bob", name))
    alice.chat(bob.bare, "a new home")
    await bob.message("a new home")


async def test_domains_are_listed_and_read(domain, api):
    name = await domain(sessions="single", sessions_max=3)
    read = await api.ok("GET", f"/v1/admin/domains/{name}")
    assert read["policy"]["sessions"] == "single"
    assert read["policy"]["sessions_max"] == 3
    listed = await api.ok("GET", "/v1/admin/domains")
    assert read in listed["domains"]
    assert listed["default_domain"] == "localhost"
    await api.problem(404, "unknown-domain", "GET", "/v1/admin/domains/elsewhere.example")


async def test_a_removed_domain_ends_its_sessions_with_host_gone(domain, peer, account, api, server):
    name = await domain()
    sessions = [await peer(await account("user", name)) for _ in range(3)]
    neighbour = await peer()
    await api.ok("DELETE", f"/v1/admin/domains/{name}", status=204)
    for session in sessions:
        assert await session.stream_error() == "host-gone"
    stranger = await Raw.connect(server)
    stranger.send(
        f"<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='{name}' version='1.0'>"
    )
    await stranger.stream_error("host-unknown")
    await stranger.close()
    await neighbour.ping()
    await api.problem(404, "unknown-domain", "GET", f"/v1/admin/domains/{name}")


async def test_under_single_the_new_session_ends_the_old(domain, peer, account):
    name = await domain(sessions="single")
    jid = await account("console", name)
    old = await peer(f"{jid}/old")
    new = await peer(f"{jid}/new")
    assert await old.stream_error() == "conflict"
    await new.ping()


async def test_under_multi_they_live_side_by_side_up_to_a_bound(domain, peer, account):
    name = await domain(sessions="multi", sessions_max=2)
    jid = await account("user", name)
    first, second = await peer(f"{jid}/1"), await peer(f"{jid}/2")
    await first.ping()
    third = await peer(f"{jid}/3")
    assert await first.stream_error() == "conflict"
    await second.ping()
    await third.ping()


async def test_a_policy_changed_at_run_time_is_in_force_for_the_next(domain, peer, account, api):
    name = await domain(sessions="multi")
    jid = await account("user", name)
    first = await peer(f"{jid}/1")
    await api.ok("PATCH", f"/v1/admin/domains/{name}", {"sessions": "single"})
    second = await peer(f"{jid}/2")
    assert await first.stream_error() == "conflict"
    await second.ping()


async def test_the_same_name_in_two_domains_is_two_accounts(domain, peer, api):
    here, there = await domain(other_domains=True), await domain(other_domains=True)
    await api.account(f"alice@{here}", "here")
    await api.account(f"alice@{there}", "there")
    sender = await peer(f"alice@{here}", password="here")
    receiver = await peer(f"alice@{there}", password="there")
    sender.chat(receiver.bare, "across")
    assert (await receiver.message("across")).get("from") == sender.jid


async def test_topics_of_another_domain_are_not_ones_own(domain, peer, account, api):
    name = await domain()
    topic = unique("news")
    await api.ok("PUT", f"/v1/topics/{topic}?domain={name}", {}, status=201)
    await api.problem(404, "unknown-topic", "GET", f"/v1/topics/{topic}")
    insider, outsider = await peer(await account("in", name), plugins=["xep_0060"]), await peer(plugins=["xep_0060"])
    await insider.plugin("xep_0060").subscribe(f"pubsub.{name}", topic)
    with pytest.raises(IqError) as caught:
        await outsider.plugin("xep_0060").subscribe(f"pubsub.{name}", topic)
    assert caught.value.condition == "remote-server-not-found"
    for open_to in (name, "localhost"):
        await api.ok("PATCH", f"/v1/admin/domains/{open_to}", {"other_domains": True})
    # Topics are for accounts of their own domain all the same.
    with pytest.raises(IqError) as caught:
        await outsider.plugin("xep_0060").subscribe(f"pubsub.{name}", topic)
    assert caught.value.condition == "forbidden"
    await api.ok("PATCH", "/v1/admin/domains/localhost", {"other_domains": False})


async def test_domains_are_apart_until_both_say_otherwise(domain, peer, account, api):
    here, there = await domain(), await domain()
    alice, bob = await peer(await account("alice", here)), await peer(await account("bob", there))
    not_found = f"{CLIENT}error/{STANZA_ERRORS}remote-server-not-found"

    async def is_refused(sender, receiver, id):
        sender.chat(receiver.bare, "across", id=id)
        error = await sender.message(id=id, type="error")
        assert error.find(not_found) is not None

    await is_refused(alice, bob, "1")
    await api.ok("PATCH", f"/v1/admin/domains/{here}", {"other_domains": True})
    await is_refused(alice, bob, "2")
    await is_refused(bob, alice, "3")
    await api.problem(
        409, "refused", "POST", f"/v1/accounts/{alice.bare}/messages", {"to": bob.bare, "body": "as alice"}
    )
    await api.ok("PATCH", f"/v1/admin/domains/{there}", {"other_domains": True})
    alice.chat(bob.bare, "open")
    await bob.message("open")
    bob.chat(alice.bare, "both ways")
    await alice.message("both ways")
    # One is enough to close again.
    await api.ok("PATCH", f"/v1/admin/domains/{there}", {"other_domains": False})
    await is_refused(alice, bob, "4")


async def test_the_keys_of_a_domain_have_a_quota_of_requests(domain, keys, account, api):
    name = await domain(requests_per_second=5)
    key = await keys("send", domain=name)
    device = await account("device", name)
    bodies = [{"to": device, "payload": n} for n in range(50)]
    answers = [await key.call("POST", "/v1/notifications", body) for body in bodies]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert 5 <= len(answers) - len(refused) < 50
    assert refused[0].json()["code"] == "too-many-requests"
    assert refused[0].headers["retry-after"] == "1"
    assert refused[0].headers["ratelimit-policy"] == '"domain";q=5;w=1'
    # Nobody else is held up.
    await api.notify(device, "by the operator")


async def test_the_clients_of_a_domain_have_a_quota_and_nobody_else_waits(domain, peer, account):
    name = await domain(stanzas_per_second=100)
    sender = await peer(await account("sender", name))
    neighbours = [await peer(), await peer()]
    began = time.monotonic()
    for n in range(400):
        sender.chat(sender.bare, str(n), id=str(n))
    async with asyncio.TaskGroup() as group:
        last = group.create_task(sender.message(id="399"))
        for n in range(50):
            neighbours[0].chat(neighbours[1].bare, str(n))
            await neighbours[1].message(str(n))
        assert not last.done()
    # One of two shards has half: 50 per second, 250 at once.
    assert time.monotonic() - began > 2


def by_quota(usage):
    """What is used, allowed and refused."""
    return {quota["quota"]: (quota["used"], quota["max"], quota["refused"]) for quota in usage["quotas"]}


async def test_a_domain_has_as_many_accounts_topics_and_sessions_as_it_may(domain, peer, account, api, server):
    name = await domain(registration=True)
    changed = await server.command(
        "domain", "set", name, "--accounts-max", "2", "--topics-max", "1", "--subscriptions-max", "1",
        "--sessions-total-max", "2",
    )  # fmt: skip
    assert changed.returncode == 0, changed.stderr
    first, second = await account("a", name), await account("b", name)
    await api.problem(409, "too-many-accounts", "POST", "/v1/admin/accounts", {"jid": f"c@{name}", "password": "c"})
    stream = await Raw.secured(server, name)
    register = "<iq type='set' id='r'><query xmlns='jabber:iq:register'><username>c</username><password>c</password></query></iq>"
    refused = await stream.ask(register, "r")
    assert refused.find(f"{CLIENT}error/{STANZA_ERRORS}resource-constraint") is not None
    await stream.close()
    imported = await api.call(
        "POST",
        "/v1/admin/accounts/import",
        content=f'{{"jid":"d@{name}","password":"d"}}\n',
        headers={"content-type": "application/x-ndjson"},
    )
    assert "too-many-accounts" in imported.text

    alice = await peer(f"{first}/1", plugins=["xep_0060"])
    topic, other = unique("topic"), unique("topic")
    await alice.plugin("xep_0060").create_node(f"pubsub.{name}", topic)
    with pytest.raises(IqError) as caught:
        await alice.plugin("xep_0060").create_node(f"pubsub.{name}", other)
    assert caught.value.condition == "resource-constraint"
    await api.problem(409, "too-many-topics", "PUT", f"/v1/topics/{other}?domain={name}", {})
    # Of two sessions each of the two shards has one, and another of the same account is another.
    late = await Raw.secured(server, name)
    late.send(auth("PLAIN", plain(first.partition("@")[0])))
    assert (await late.element()).tag.endswith("}success")
    await late.begin(name)
    bound = await late.ask("<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>", "b")
    assert bound.find(f"{CLIENT}error/{STANZA_ERRORS}resource-constraint") is not None
    await late.close()
    wanted = {
        "accounts": (2, 2, 1),
        "sessions": (1, 2, 1),
        "topics": (1, 1, 2),
        "rooms": (0, None, 0),
        "keys": (0, 100, None),
        "stored-bytes": (None, None, 0),
    }
    await api.eventually(f"/v1/admin/domains/{name}/usage", lambda seen: by_quota(seen) == wanted)
    assert await api.figure(f'domain_refused_total{{domain="{name}",quota="sessions"}}') == 1
    # More is granted at once.
    await api.ok("PATCH", f"/v1/admin/domains/{name}", {"topics_max": 2, "sessions_total_max": 0})
    await alice.plugin("xep_0060").create_node(f"pubsub.{name}", other)
    await peer(f"{first}/2")
    await peer(second)


async def test_what_clients_of_a_domain_are_sent_has_a_quota_and_nobody_else_waits(domain, peer, account, api, keys):
    name = await domain(bytes_out_per_second=20_000)
    reader = await peer(await account("reader", name), plugins=["xep_0060"])
    topic = unique("flood")
    await api.ok("PUT", f"/v1/topics/{topic}?domain={name}", {}, status=201)
    await reader.plugin("xep_0060").subscribe(f"pubsub.{name}", topic)
    neighbours = [await peer(), await peer()]
    answers = [
        await api.call("POST", f"/v1/topics/{topic}/items?domain={name}", {"id": str(n), "payload": "x" * 10_000})
        for n in range(40)
    ]
    refused = [answer for answer in answers if answer.status_code == 429]
    # Five seconds' worth at once on each of two shards.
    assert 5 <= len(answers) - len(refused) < 40
    assert refused[0].json()["code"] == "too-fast"
    assert "bytes_out_per_second" in refused[0].json()["detail"]
    assert "retry-after" in refused[0].headers
    neighbours[0].chat(neighbours[1].bare, "at once")
    await neighbours[1].message("at once")


async def test_a_domain_stores_as_much_as_it_may(domain, peer, account, api):
    name = await domain(stored_bytes_max=50_000)
    jid = await account("alice", name)
    alice = await peer(jid)
    topic = unique("topic")
    await api.ok("PUT", f"/v1/topics/{topic}?domain={name}", {"max_items": 100}, status=201)
    items, usage = f"/v1/topics/{topic}/items?domain={name}", f"/v1/admin/domains/{name}/usage"
    for n in range(6):
        await api.ok("POST", items, {"id": str(n), "payload": "x" * 10_000}, status=202)
    # It is measured every ten seconds.
    seen = await api.eventually(usage, lambda seen: by_quota(seen)["stored-bytes"][0] >= 50_000)
    assert by_quota(seen)["stored-bytes"][1] == 50_000
    problem = await api.problem(507, "storage-full", "POST", items, {"id": "7", "payload": 1})
    assert "stored_bytes_max" in problem["detail"]
    private = alice.xmpp.make_iq_set()
    private.append(ET.fromstring("<query xmlns='jabber:iq:private'><a xmlns='urn:x'>b</a></query>"))
    with pytest.raises(IqError) as caught:
        await private.send()
    assert caught.value.condition == "resource-constraint"
    # What need not be stored passes.
    alice.chat(alice.bare, "still there")
    await alice.message("still there")
    dropped = await api.notify(jid, 1, audience="always")
    trace = await api.trace(dropped["id"])
    assert (trace["state"], trace["reason"]) == ("dropped", "queue-full")
    # There is room again when something is removed, and when more is granted at once.
    await api.ok("PATCH", f"/v1/admin/domains/{name}", {"stored_bytes_max": 1_000_000})
    await api.ok("POST", items, {"id": "7", "payload": 1}, status=202)


async def test_only_keys_make_topics_where_the_policy_says_so(domain, peer, account, api):
    name = await domain(pubsub_create="admin")
    alice = await peer(await account("alice", name), plugins=["xep_0060"])
    topic = unique("news")
    with pytest.raises(IqError) as caught:
        await alice.plugin("xep_0060").create_node(f"pubsub.{name}", topic)
    assert caught.value.condition in ("forbidden", "not-allowed")
    await api.ok("PUT", f"/v1/topics/{topic}?domain={name}", {}, status=201)


async def test_registration_only_where_the_policy_allows_it(domain, server, peer):
    name = await domain(registration=True)
    stream = await Raw.secured(server, name)
    register = "<iq type='set' id='r'><query xmlns='jabber:iq:register'><username>new</username><password>secret</password></query></iq>"
    assert (await stream.ask(register, "r")).get("type") == "result"
    await stream.close()
    await peer(f"new@{name}")
    elsewhere = await Raw.secured(server)
    elsewhere.send(register)
    await elsewhere.stream_error("not-authorized")
    await elsewhere.close()


async def test_an_operator_ends_one_session_or_all(peer, account, api):
    jid = await account()
    first, second, third = [await peer(f"{jid}/{i}") for i in range(3)]
    ended = await api.ok("DELETE", f"/v1/admin/sessions/{jid}%2F0", status=200)
    assert ended == {"sessions_ended": 1}
    await first.stream_error()
    await second.ping()
    ended = await api.ok("DELETE", f"/v1/admin/sessions/{jid}", status=200)
    assert ended == {"sessions_ended": 2}
    await second.stream_error()
    await third.stream_error()
    # It may come back.
    await peer(jid)


async def test_a_new_password_ends_the_sessions_of_the_old(peer, account, api):
    jid = await account()
    session = await peer(jid)
    await api.ok("PUT", f"/v1/admin/accounts/{jid}/password", {"password": "new"}, status=204)
    await session.stream_error()
    await peer(jid, password="new")


async def test_a_removed_account_is_gone(peer, account, api):
    jid = await account()
    session = await peer(jid)
    await api.ok("DELETE", f"/v1/admin/accounts/{jid}", status=204)
    await session.stream_error()
    await api.problem(404, "unknown-account", "DELETE", f"/v1/admin/accounts/{jid}")
    await api.problem(404, "unknown-device", "POST", "/v1/notifications", {"to": jid, "payload": 1})


async def test_sessions_are_listed_as_they_are(peer, account, api):
    jid = await account()
    session = await peer(f"{jid}/phone", direct_tls=True, plugins=["xep_0198"])
    [listed] = (await api.ok("GET", f"/v1/admin/sessions?account={jid}"))["sessions"]
    assert listed["jid"] == session.jid
    assert (listed["transport"], listed["tls"]) == ("tcp", True)
    assert listed["presence"] == "available"
    assert listed["stream_management"] is True
    assert listed["address"] == "127.0.0.1"


async def test_a_key_of_a_domain_stays_in_it(domain, keys, account, api, server):
    mine, other = await domain(), await domain()
    key = await keys("admin", domain=mine)
    inside, outside = await account("in", mine), await account("out", other)
    await key.notify(inside, 1)
    await key.problem(403, "other-domain", "POST", "/v1/notifications", {"to": outside, "payload": 1})
    await key.problem(403, "other-domain", "DELETE", f"/v1/admin/domains/{mine}")
    await key.problem(403, "other-domain", "GET", "/v1/admin/status")
    listed = await key.ok("GET", "/v1/admin/domains")
    assert [entry["domain"] for entry in listed["domains"]] == [mine]
    sent = await api.notify(outside, 1)
    await key.problem(404, "unknown-notification", "GET", f"/v1/notifications/{sent['id']}")
    # A key goes with its domain.
    await api.ok("DELETE", f"/v1/admin/domains/{mine}", status=204)
    gone = Api(server, key.key)
    await gone.problem(401, "unknown-key", "GET", "/v1/key")
    await gone.aclose()
