"""What a durable queue has accepted is delivered once, or ended for a reason, whatever is killed, stopped or away meanwhile.

`QUEUE_ROUNDS=50 pytest test_queues_faults.py -k killed` is the long campaign; `NATS_SERVER` names another server than Debian's."""

import collections
import os
import random
import re

import pytest
from test_queues import QUEUE, intake, make_sender

from harness.api import Api
from harness.jetstream import JetStream
from harness.nats import Nats
from harness.peer import CLIENT
from harness.postgres import Postgres
from harness.raw import Raw

ROUNDS = int(os.environ.get("QUEUE_ROUNDS", "5"))
PER_ROUND = 300
POISON_EVERY = 50
DEVICES = [f"device{n}" for n in range(5)]
NUMBER = re.compile(r'"n":(\d+)')


@pytest.fixture
def nats():
    nats = Nats(jetstream=True, binary=os.environ.get("NATS_SERVER", "nats-server"))
    with JetStream(nats) as stream:
        stream.stream("ORDERS", "orders.>")
    yield nats
    nats.end()


async def prepared(start, nats, store=None, **settings):
    """A node that takes messages, and its settings."""
    wanted = intake(nats, ack_wait_ms=2000, **settings) | {"limits__pending_notifications": 100_000}
    if store:
        wanted["store__url"] = store
    return start(**wanted), wanted


async def with_devices(server):
    api = await make_sender(server)
    for device in DEVICES:
        await api.account(f"{device}@localhost")
    return api


def messages(first, count):
    """Numbered messages to all devices in turn, some of which are poison."""
    for n in range(first, first + count):
        to = "nobody" if n % POISON_EVERY == POISON_EVERY - 1 else DEVICES[n % len(DEVICES)]
        yield {"to": to, "payload": {"n": n}}


def poison(count):
    return {n for n in range(count) if n % POISON_EVERY == POISON_EVERY - 1}


async def emptied(api, stream):
    """Waits until the queue has nothing left."""
    await api.eventually(f"/v1/queues/{QUEUE}", lambda seen: seen["in_flight"] == 0 and stream.messages("ORDERS") == 0)


async def received(server, api):
    """What the devices are given when they come at last: how often each number."""
    counts = collections.Counter()
    for device in DEVICES:
        await api.notify(f"{device}@localhost", {"last": True}, priority="low")
        raw = await Raw.logged_in(server, device)
        while True:
            heard = await raw.until(lambda e: e.tag == CLIENT + "message" and e.get("from") == "push.localhost")
            text = "".join(heard.itertext())
            if "last" in text:
                break
            counts[int(NUMBER.search(text)[1])] += 1
        await raw.close()
    return counts


async def check(server, api, stream, sent):
    """Each was given once, but the poison, which is there as dead letters, once each."""
    counts = await received(server, api)
    expected = set(range(sent)) - poison(sent)
    doubled = {n: count for n, count in counts.items() if count > 1}
    lost = expected - set(counts)
    assert (lost, doubled, set(counts) - expected) == (set(), {}, set())
    dead = stream.messages("carillon_dead_orders")
    assert dead == len(poison(sent))


async def test_a_node_that_is_killed_loses_and_repeats_nothing(start, nats):
    server, settings = await prepared(start, nats)
    api = await with_devices(server)
    dice = random.Random(7)
    sent = 0
    with JetStream(nats) as stream:
        for _ in range(ROUNDS):
            stream.publish_all("orders.new", messages(sent, PER_ROUND))
            sent += PER_ROUND
            enough = dice.randrange(1, PER_ROUND // 2)
            await api.figure_is(f'intake_accepted_total{{queue="{QUEUE}"}}', lambda seen, enough=enough: seen >= enough)
            server.kill()
            await api.aclose()
            server = start(**settings)
            api = Api(server)
        await emptied(api, stream)
        redelivered = await api.figure(f'intake_redelivered_total{{queue="{QUEUE}"}}')
        print(f"{ROUNDS} kills, {sent} messages, {redelivered:.0f} delivered again to the last process")
        await check(server, api, stream, sent)
    await api.aclose()
    server.end()


async def test_the_queue_is_stopped_and_goes_on(start, nats):
    server, _ = await prepared(start, nats)
    api = await with_devices(server)
    sent = 0
    for _ in range(2):
        with JetStream(nats) as stream:
            stream.publish_all("orders.new", messages(sent, PER_ROUND))
        sent += PER_ROUND
        nats.stop()
        await api.eventually(f"/v1/queues/{QUEUE}", lambda seen: seen["state"] == "away")
        nats.start()
        await api.eventually(f"/v1/queues/{QUEUE}", lambda seen: seen["state"] == "pulling")
    with JetStream(nats) as stream:
        await emptied(api, stream)
        await check(server, api, stream, sent)
    await api.aclose()
    server.end()


@pytest.fixture
def postgres():
    postgres = Postgres()
    yield postgres
    postgres.end()


async def test_nothing_is_taken_while_the_store_is_away(start, nats, postgres):
    server, _ = await prepared(start, nats, postgres.database(), messages_max=20)
    api = await with_devices(server)
    with JetStream(nats) as stream:
        stream.publish_all("orders.new", messages(0, 20))
        await emptied(api, stream)
        postgres.stop()
        stream.publish_all("orders.new", messages(20, PER_ROUND - 20))
        await api.eventually(f"/v1/queues/{QUEUE}", lambda seen: seen["state"] == "behind")
        ready = await api.call("GET", "/readyz")
        assert f"no messages are taken from the queue {QUEUE}" in ready.text
        postgres.start()
        await emptied(api, stream)
        seen = await api.ok("GET", f"/v1/queues/{QUEUE}")
        put_back = sum(seen["put_back"].values())
        # Those that were under way, and those that tried.
        assert 0 < put_back < 100, seen
        assert seen["received"] <= PER_ROUND + put_back
        await check(server, api, stream, PER_ROUND)
    await api.aclose()
    server.end(expected=["store", "database", "PostgreSQL"])


async def test_a_node_that_drains_ends_what_it_has(start, nats):
    server, settings = await prepared(start, nats)
    api = await with_devices(server)
    with JetStream(nats) as stream:
        stream.publish_all("orders.new", messages(0, PER_ROUND))
        await api.figure_is(f'intake_accepted_total{{queue="{QUEUE}"}}', lambda seen: seen >= 1)
        server.end()
        await api.aclose()
        server = start(**settings)
        api = Api(server)
        await emptied(api, stream)
        # What was begun was settled; what came too late was given back, and nobody knows it.
        assert await api.figure(f'intake_repeated_total{{queue="{QUEUE}"}}') == 0
        await check(server, api, stream, PER_ROUND)
    await api.aclose()
    server.end()
