"""Webhooks of a real node, with receivers that speak HTTPS, and the code of the book that verifies what they get."""

import asyncio
import json
import random
import re
import shutil

import pytest

from harness.api import Api
from harness.receiver import Authority, Receiver
from harness.server import ROOT, Server

PAGE = ROOT / "docs/book/webhooks.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LOOPBACK = '["127.0.0.0/8", "::1"]'


def block(language):
    """The page's code in this language."""
    [found] = [text for of, text in BLOCK.findall(PAGE.read_text()) if of == language]
    return found


def verify(*arguments):
    """The Python of the page."""
    space = {}
    exec(block("python"), space)
    return space["verify"](*arguments)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
async def receive(authority):
    """Starts receivers whose certificate is good."""
    started = []

    async def receive(context=None, **options):
        started.append(await Receiver.start(context or authority.context("localhost", "127.0.0.1"), **options))
        return started[-1]

    yield receive
    for receiver in started:
        await receiver.close()


@pytest.fixture(scope="module")
def settings(authority):
    return {
        "webhooks__allow_addresses": LOOPBACK,
        "webhooks__ca_file": authority.file,
        "webhooks__retry_first_ms": 20,
    }


async def create(api, receiver, **more):
    made = await api.ok("POST", "/v1/webhooks", {"url": receiver.url, **more}, status=201)
    return f"/v1/webhooks/{made['id']}", made["secret"]


async def replace(api, to, count, key="k"):
    """Has notifications end as replaced; all but the last of those that are sent. Their ids, in the order of their ends."""
    line = {"to": to, "payload": 1, "collapse_key": key}
    content = "".join(json.dumps(line) + "\n" for _ in range(count + 1))
    headers = {"content-type": "application/x-ndjson"}
    answer = await api.http.post("/v1/notifications/batch", content=content, headers=headers)
    return [json.loads(line)["id"] for line in answer.text.splitlines()][:-1]


async def test_python_and_node_verify_what_comes(api, account, receive, tmp_path):
    receiver = await receive()
    _, secret = await create(api, receiver)
    ids = await replace(api, await account(), 3)
    request = await receiver.requests.take()
    assert request.events[0]["notification"] == await api.trace(request.events[0]["notification"]["id"])
    assert request.events[0]["notification"]["id"] in ids
    tampered = request.body.replace(b"replaced", b"expired!", 1)
    late = {**request.headers, "webhook-timestamp": str(int(request.headers["webhook-timestamp"]) + 1)}
    other = "whsec_" + "A" * 43 + "="
    cases = [
        (secret, request.headers, request.body, True),
        (secret, request.headers, tampered, False),
        (secret, late, request.body, False),
        (other, request.headers, request.body, False),
    ]
    for *arguments, expected in cases:
        assert verify(*arguments) is expected
    assert shutil.which("node"), "node is not installed"
    (tmp_path / "verify.mjs").write_text(block("js"))
    (tmp_path / "main.mjs").write_text(
        "import { verify } from './verify.mjs';\n"
        "const cases = JSON.parse((await import('node:fs')).readFileSync(0));\n"
        "console.log(JSON.stringify(cases.map(([secret, headers, body]) => verify(secret, headers, body))));\n"
    )
    given = json.dumps([[secret, headers, body.decode()] for secret, headers, body, _ in cases])
    process = await asyncio.create_subprocess_exec(
        "node", "main.mjs", cwd=tmp_path, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate(given.encode())
    assert json.loads(output) == [expected for *_, expected in cases]


async def test_every_end_arrives_though_the_node_is_killed(tmp_path, authority, receive):
    """The node is killed in the middle of sending, again and again; every end arrives, in order, and at least once."""
    receiver = await receive()
    dice = random.Random(7)
    settings = {
        "webhooks.allow_addresses": LOOPBACK,
        "webhooks.ca_file": authority.file,
        "webhooks.retry_first_ms": 20,
    }
    ended = []
    for life in range(4):
        server = Server(tmp_path, **settings)
        api = Api(server)
        if life == 0:
            await api.account("alice@localhost")
            path, secret = await create(api, receiver)
        # At some time in the life of the node the receiver is away, too.
        receiver.answer = lambda _, life=life: 503 if life == 1 and len(receiver.seen) % 3 else 204
        receiver.goes_on.clear()
        before = len(receiver.seen)
        ended += await replace(api, "alice@localhost", 400, key=f"k{life}")
        # Killed while the first request of this life waits for its answer, or at about the time of a later one's.
        count = 1 if life == 0 else dice.randrange(1, 3)
        if count > 1 or life == 3:
            receiver.goes_on.set()
        while len(receiver.seen) < before + count:
            await receiver.requests.take()
        await api.aclose()
        if life < 3:
            server.kill()
    receiver.answer = lambda _: 204
    api = Api(server)
    # What the last one of each round became counts, too: those wait still.
    await api.eventually(path, lambda view: view["behind"] == 0 and view["failures"] == 0)
    await api.aclose()
    server.end()
    first_seen = {}
    for event in receiver.events():
        first_seen.setdefault(event["id"], event["notification"]["id"])
    assert list(first_seen.values()) == ended, "each of them, in the order in which they ended"
    assert list(first_seen) == sorted(first_seen)
    assert len(receiver.events()) > len(ended), "what was not answered came again"
    assert all(verify(secret, request.headers, request.body) for request in receiver.seen)


async def test_what_is_refused_is_a_dead_letter_and_is_sent_again(server, api, account, receive):
    receiver = await receive()
    path, _ = await create(api, receiver)
    bad = set()
    receiver.answer = lambda request: 422 if bad & {e["notification"]["id"] for e in request.events} else 200
    receiver.goes_on.clear()
    ids = await replace(api, await account(), 5)
    bad.add(ids[2])
    receiver.goes_on.set()
    view = await api.eventually(path, lambda view: view["dead_letters"]["count"] == 1 and view["behind"] == 0)
    assert view["failures"] == 0
    assert "a webhook fails" in server.log.read_text()
    assert "a webhook works again" in server.log.read_text()
    number = path.rsplit("/", 1)[1]
    listed = await server.command("webhook", "dead-letters", number)
    assert "422" in listed.stdout, listed
    refused = await server.command("webhook", "resend", number)
    assert (refused.returncode, "422" in refused.stderr) == (1, True), refused
    bad.clear()
    again = await server.command("webhook", "resend", number)
    assert again.returncode == 0, again
    assert re.search(r"taken +1\n", again.stdout), again
    assert receiver.seen[-1].events[0]["notification"]["id"] == ids[2]
    assert (await api.ok("GET", path))["dead_letters"]["count"] == 0
    assert await api.figure('webhook_requests_total{result="refused"}') >= 6


async def test_a_slow_receiver_holds_up_nobody_else(api, account, receive):
    slow, quick = await receive(), await receive()
    slow.goes_on.clear()
    paths = [(await create(api, receiver))[0] for receiver in (slow, quick)]
    to = await account()
    first = await replace(api, to, 1)
    await slow.requests.take()
    ids = first + await replace(api, to, 300)
    # The last of the first round ended when the second began.
    await api.eventually(paths[1], lambda view: view["behind"] == 0)
    assert len(slow.seen) == 1, "one request at a time"
    slow.goes_on.set()
    await api.eventually(paths[0], lambda view: view["behind"] == 0)
    for receiver in (slow, quick):
        got = [event["notification"]["id"] for event in receiver.events()]
        assert set(ids) <= set(got)
        assert len(got) == len(set(got)) == 302
    assert max(len(request.events) for request in slow.seen) > 100, "what gathers travels together"


async def test_certificates_are_checked(start, authority, receive, tmp_path_factory):
    good = await receive()
    other_name = await receive(authority.context("elsewhere.example"))
    stranger = await receive(Authority(tmp_path_factory.mktemp("stranger")).context("localhost"))
    server = start(webhooks__allow_addresses=LOOPBACK, webhooks__ca_file=authority.file)
    api = Api(server)
    try:
        for receiver, taken in ((good, True), (other_name, False), (stranger, False)):
            path, _ = await create(api, receiver)
            tried = await api.ok("POST", path + "/test")
            assert tried["taken"] is taken, tried
            assert bool(receiver.seen) is taken
            assert taken or "certificate" in tried["error"], tried
    finally:
        await api.aclose()
    server.end()


async def test_no_request_goes_to_a_private_address(start, authority, receive):
    receiver = await receive()
    server = start(webhooks__ca_file=authority.file)
    api = Api(server)
    try:
        for host in ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "10.1.2.3", "169.254.169.254"):
            body = {"url": f"https://{host}:{receiver.port}/"}
            problem = await api.problem(422, "invalid-value", "POST", "/v1/webhooks", body)
            assert problem["pointer"] == "/url"
            assert "not a public address" in problem["detail"]
        await api.problem(422, "invalid-value", "POST", "/v1/webhooks", {"url": "http://a.example/"})
        # Names, and addresses in forms that only the system's resolver understands.
        for host in ("localhost", "2130706433", "0x7f.1"):
            made = await api.ok("POST", "/v1/webhooks", {"url": f"https://{host}:{receiver.port}/"}, status=201)
            tried = await api.ok("POST", f"/v1/webhooks/{made['id']}/test")
            assert not tried["taken"]
            assert "not a public address" in tried["error"] or "no address" in tried["error"], tried
    finally:
        await api.aclose()
    assert not receiver.seen
    server.end()


async def test_webhooks_go_with_their_domain(api, receive):
    receiver = await receive()
    await api.ok("PUT", "/v1/admin/domains/gone.example", {}, status=201)
    await api.account("alice@gone.example")
    path, _ = await create(api, receiver, domain="gone.example")
    ids = await replace(api, "alice@gone.example", 2)
    await api.eventually(path, lambda view: view["behind"] == 0)
    assert [event["notification"]["id"] for event in receiver.events()] == ids
    before = len(receiver.seen)
    await api.ok("DELETE", "/v1/admin/domains/gone.example", status=204)
    await api.problem(404, "unknown-webhook", "GET", path)
    assert len(receiver.seen) == before


async def test_webhooks_are_managed_from_the_command_line(server, api, receive):
    receiver = await receive()
    made = await server.command("webhook", "create", receiver.url, "--state", "acknowledged,expired")
    assert made.returncode == 0, made
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=\n", made.stdout), made
    webhooks = (await api.ok("GET", "/v1/webhooks"))["webhooks"]
    number = str(webhooks[-1]["id"])
    assert webhooks[-1]["states"] == ["acknowledged", "expired"]
    assert receiver.url in (await server.command("webhook", "list")).stdout
    tried = await server.command("webhook", "test", number)
    assert tried.returncode == 0, tried
    assert re.search(r"status +204", tried.stdout), tried
    request = await receiver.requests.take()
    assert verify(made.stdout.strip(), request.headers, request.body)
    rotated = await server.command("webhook", "set", number, "--rotate-secret", "--enabled", "false")
    assert rotated.stdout.startswith("whsec_")
    assert rotated.stdout != made.stdout
    assert re.search(r"status +disabled", (await server.command("webhook", "show", number)).stdout)
    receiver.answer = lambda _: 500
    failed = await server.command("webhook", "test", number)
    assert (failed.returncode, "500" in failed.stderr) == (1, True), failed
    assert (await server.command("webhook", "delete", number, "--yes")).returncode == 0
    assert (await server.command("webhook", "show", number)).returncode == 1
