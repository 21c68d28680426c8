"""Messages of queues of Amazon SQS become notifications, as if they had come by HTTP."""

import json
import re

import pytest
from test_queues import make_sender

from harness.api import Api
from harness.peer import CLIENT
from harness.raw import Raw
from harness.server import Server
from harness.sqs import ENVIRONMENT, Sqs

QUEUE = "orders"
FIFO = 30


@pytest.fixture(scope="module")
def sqs():
    sqs = Sqs()
    yield sqs
    sqs.end()


def intake(url, **more):
    # Long enough for a slow machine: a delivery that outlives it is made again, and counted twice.
    settings = {"url": url, "sender": "backend", "ack_wait_ms": 30_000, **more}
    return {f"intake__queues__{QUEUE}__{key}": value for key, value in settings.items()}


def waits(name):
    """What a killed node had taken is delivered again soon."""
    return {"ack_wait_ms": 2000} if "killed" in name else {}


@pytest.fixture
async def node(tmp_path, sqs, request):
    """A node that takes the messages of a queue of the test's own, with a device."""
    name = re.sub(r"\W", "-", request.node.name)[-40:]
    url = sqs.queue(name, fifo="fifo" in request.node.name)
    server = Server(tmp_path, ENVIRONMENT, **intake(url, **waits(name)), limits__pending_notifications=100_000)
    server.queue = url
    server.api = await make_sender(server)
    await server.api.account("alice@localhost")
    yield server
    await server.api.aclose()
    if server.is_running():
        server.end()


async def emptied(server, sqs, count=None):
    """Waits until the queue has nothing left: after so many messages, or when the queue says so."""

    def is_done(seen):
        if count is None:
            return (seen.get("waiting"), seen.get("unsettled"), seen["in_flight"]) == (0, 0, 0)
        done = seen["accepted"] + sum(seen["refused"].values())
        return done >= count and seen["in_flight"] == 0 and sqs.left(server.queue) == 0

    await server.api.eventually(f"/v1/queues/{QUEUE}", is_done)


async def given(server, user="alice"):
    """The numbers of what a device is given that comes at last, in their order."""
    await server.api.notify(f"{user}@localhost", {"last": True}, priority="low")
    raw = await Raw.logged_in(server, user)
    numbers = []
    while True:
        heard = await raw.until(lambda e: e.tag == CLIENT + "message" and e.get("from") == "push.localhost")
        text = "".join(heard.itertext())
        if "last" in text:
            await raw.close()
            return numbers
        numbers.append(int(re.search(r'"n":(\d+)', text)[1]))


async def test_messages_are_sent_and_deleted(node, sqs):
    for n in range(25):
        sqs.send(node.queue, {"to": "alice", "payload": {"n": n}})
    event = {"specversion": "1.0", "id": "1", "source": "/shop", "type": "t"}
    sqs.send(node.queue, {**event, "data": {"to": "alice", "payload": {"n": 25}}})
    lines = "\n".join(json.dumps({"to": "alice", "payload": {"n": n}}) for n in (26, 27))
    sqs.send(node.queue, lines, Content_Type="application/x-ndjson")
    # SQS delivers more than once; what is sent twice under one key is one.
    for _ in range(2):
        sqs.send(node.queue, {"to": "alice", "payload": {"n": 28}}, Idempotency_Key="once")
    await emptied(node, sqs, 29)
    assert sorted(await given(node)) == list(range(29))


async def test_poison_goes_to_the_dead_letter_queue_and_back(node, sqs):
    sqs.send(node.queue, "{")
    sqs.send(node.queue, {"to": "bob", "payload": {"n": 1}})
    await emptied(node, sqs, 2)
    seen = await node.api.ok("GET", f"/v1/queues/{QUEUE}")
    assert seen["refused"] == {"not-json": 1, "unknown-device": 1}
    dead = (await node.api.ok("GET", f"/v1/queues/{QUEUE}/dead"))["dead"]
    assert sorted(letter["code"] for letter in dead) == ["not-json", "unknown-device"]
    await node.api.account("bob@localhost")

    async def redriven():
        return (await node.api.ok("POST", f"/v1/queues/{QUEUE}/redrive"))["redriven"]

    # Those that were looked at are not given again at once.
    count = 0
    while count < 2:
        count += await redriven()
    await node.api.eventually(f"/v1/queues/{QUEUE}", lambda seen: seen["accepted"] == 1)
    assert await given(node, "bob") == [1]


async def test_a_killed_node_repeats_nothing(node, sqs, tmp_path):
    sent = 0
    for _ in range(2):
        for _ in range(100):
            sqs.send(node.queue, {"to": "alice", "payload": {"n": sent}})
            sent += 1
        await node.api.figure_is(f'intake_accepted_total{{queue="{QUEUE}"}}', lambda seen: seen >= 10)
        node.kill()
        await node.api.aclose()
        again = Server(
            tmp_path, ENVIRONMENT, **intake(node.queue, **waits("killed")), limits__pending_notifications=100_000
        )
        node.process, node.ports, node.api = again.process, again.ports, Api(again)
    await emptied(node, sqs)
    assert sorted(await given(node)) == list(range(sent))


async def test_fifo_keeps_the_order_of_a_group(node, sqs):
    for n in range(FIFO):
        user = ("alice", "bob", "carol")[n % 3]
        sqs.send(node.queue, {"to": user, "payload": {"n": n}}, group=user, once=str(n))
    # Nobody is called bob or carol yet: those are refused, and the others go on.
    await emptied(node, sqs, FIFO)
    assert await given(node) == list(range(0, FIFO, 3))
    for user in ("bob", "carol"):
        await node.api.account(f"{user}@localhost")
    count = 0
    while count < FIFO * 2 // 3:
        count += (await node.api.ok("POST", f"/v1/queues/{QUEUE}/redrive"))["redriven"]
    await emptied(node, sqs, FIFO + count)
    assert await given(node, "bob") == list(range(1, FIFO, 3))
    assert await given(node, "carol") == list(range(2, FIFO, 3))


async def test_a_queue_without_a_dead_letter_queue_is_refused(tmp_path, sqs):
    url = sqs.call("CreateQueue", QueueName="alone")["QueueUrl"]
    server = Server(tmp_path, ENVIRONMENT, **intake(url))
    api = await make_sender(server)
    seen = await api.eventually(f"/v1/queues/{QUEUE}", lambda seen: "RedrivePolicy" in seen.get("why", ""))
    assert seen["state"] == "wrong"
    await api.aclose()
    server.end()
